// SPDX-License-Identifier: Apache-2.0
// An engine that owns its loop and hands over its token ids, and the time if pass costs are to be learned. A follower
// compares the ids and finds the tokens that each pass committed. The C and Python interfaces stand on it.
#include "player.hpp"

#include <reprise/batch.hpp>
#include <reprise/reprise.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

int main() {
  const std::string text = "the rain in spain stays mainly in the plain. in spain the rain stays mainly in the plain. ";
  std::vector<reprise::Token> ids = to_tokens(text.substr(0, 10));
  reprise::Follower<reprise::Speculator> follower;
  std::size_t passes = 0;
  std::chrono::nanoseconds now{0};
  for (; ids.size() < text.size(); now += std::chrono::milliseconds(10), ++passes) {
    const auto draft = follower.draft(ids, 16, now);  // the time of the call: pass costs are learned
    if (!draft) return std::puts(draft.error().message.data()), 1;
    // The engine verifies the draft in its own way, and appends what the model picks.
    std::size_t agreed = 0;
    while (agreed < draft->size() && ids.size() < text.size() && (*draft)[agreed] == text[ids.size()]) {
      ids.push_back(text[ids.size()]);
      ++agreed;
    }
    if (ids.size() < text.size()) ids.push_back(text[ids.size()]);
  }
  // The result of the last pass is known only from its ids. Without this call, it would count as lost.
  if (const auto last = follower.draft(ids, 0, now); !last) return std::puts(last.error().message.data()), 1;
  const reprise::Statistics statistics = follower.statistics();
  std::printf("%zu passes for %zu tokens; of %llu drafted tokens %.0f%% were accepted\n", passes, text.size() - 10,
              static_cast<unsigned long long>(statistics.drafted), 100 * statistics.acceptance_rate());
  return passes < text.size() - 10 ? 0 : 1;
}
