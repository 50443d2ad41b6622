// SPDX-License-Identifier: Apache-2.0
// The gain of rebase() on the bundled traces. Before each turn but the first, the second quarter of the context is
// removed, as by a compaction or a chat template without reasoning blocks. Then the recorded output is decoded twice:
// with rebase(), and with begin().
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <string>
#include <vector>

#include "replay/trace.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/loop/session.hpp"
#include "support/streams.hpp"

namespace reprise::replay::rebase_test {
namespace {

/// Returns the tokens and passes of all turns with a changed context. `evidence`: see NgramOptions::max_replaced.
Statistics replay(const Trace& trace, bool rebase, std::size_t evidence = NgramOptions().max_replaced) {
  NgramOptions options;
  options.max_replaced = evidence;
  Statistics total;
  for (const TraceSession& recorded : trace.sessions) {
    Session<NgramDrafter<>> session{NgramDrafter<>(options)};
    Limits limits;
    limits.draft.max_nodes = 8;
    for (std::size_t turn = 0; turn < recorded.turns.size(); ++turn) {
      std::vector<Token> context(session.context().begin(), session.context().end());
      const auto quarter = static_cast<std::ptrdiff_t>(context.size() / 4);
      context.erase(context.begin() + quarter, context.begin() + 2 * quarter);
      context.insert(context.end(), recorded.turns[turn].prompt.begin(), recorded.turns[turn].prompt.end());
      if (context.empty()) continue;
      const Statistics before = turn == 0 ? Statistics() : session.statistics();
      EXPECT_TRUE(turn == 0 || !rebase ? session.begin(context).has_value() : session.rebase(context).has_value());
      const TokenSpan output = recorded.turns[turn].output;
      limits.max_tokens = output.size();
      for (session.propose(limits); !session.finished(); session.propose(limits)) {
        const auto pass = session.plan();
        EXPECT_TRUE(pass);
        const TokenSpan coming = output.subspan(session.output().size());
        EXPECT_TRUE(session.resolve(pass->ticket, testing::StreamPicks{coming, pass->depths}));
        EXPECT_TRUE(session.commit(pass->ticket));
      }
      EXPECT_TRUE(std::equal(output.begin(), output.end(), session.output().begin(), session.output().end()));
      if (turn == 0) continue;
      total.tokens += session.statistics().tokens - (rebase ? before.tokens : 0);
      total.passes += session.statistics().passes - (rebase ? before.passes : 0);
    }
  }
  return total;
}

TEST(RebaseOnTraces, SavesPassesWhereTheContextLosesItsMiddle) {
  for (const char* name : {"chat", "code-edit", "json"}) {
    const Trace trace = read_trace(std::string(REPRISE_SOURCE_DIR "/bench/traces/") + name + ".jsonl");
    const Statistics kept = replay(trace, true);
    const Statistics anew = replay(trace, false);
    ASSERT_EQ(kept.tokens, anew.tokens);
    ASSERT_GT(kept.tokens, 1000U) << name;
    EXPECT_GT(kept.mean_accepted_tokens(), anew.mean_accepted_tokens()) << name;
    const Statistics no_evidence = replay(trace, true, 0);
    EXPECT_GT(kept.mean_accepted_tokens(), no_evidence.mean_accepted_tokens()) << name;
    std::printf("%s: %.3f tokens per pass with rebase(), %.3f without evidence, %.3f with begin(); %u tokens\n", name,
                kept.mean_accepted_tokens(), no_evidence.mean_accepted_tokens(), anew.mean_accepted_tokens(),
                static_cast<unsigned>(kept.tokens));
  }
}

}  // namespace
}  // namespace reprise::replay::rebase_test
