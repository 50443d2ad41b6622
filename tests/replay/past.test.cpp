// SPDX-License-Identifier: Apache-2.0
// --memory past: the history that sessions leave for the next ones.
#include "replay/past.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <span>
#include <sstream>
#include <string>
#include <system_error>
#include <tuple>
#include <utility>
#include <vector>

#if !defined(_WIN32)

#include <cerrno>
#endif

#include "replay/options.hpp"
#include "replay/replay_tool.hpp"
#include "replay/run.hpp"
#include "replay/strategies.hpp"
#include "reprise/control/cost_control.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/history/history_snapshot.hpp"
#include "reprise/history/snapshot_file.hpp"
#include "reprise/loop/session.hpp"
#include "reprise_testing/random.hpp"
#include "support/ranked_rounds.hpp"

namespace reprise::replay::past_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::HasSubstr;
using testing::Random;
using Tokens = std::vector<Token>;

/// Sessions that repeat one another, as those of agents do: prompts and outputs are joined from a few dozen texts.
Trace agents(std::size_t sessions, std::uint64_t seed = 1) {
  Random random(seed);
  std::vector<Tokens> texts(30);
  for (Tokens& text : texts) {
    text.resize(10 + random.below(80));
    for (Token& token : text) token = static_cast<Token>(random.below(2000));
  }
  const auto say = [&](std::size_t parts) {
    Tokens tokens;
    for (std::size_t i = 0; i < parts; ++i) {
      const Tokens& text = texts[random.below(texts.size())];
      tokens.insert(tokens.end(), text.begin(), text.end());
      tokens.push_back(static_cast<Token>(random.below(2000)));
    }
    return tokens;
  };
  Trace trace = {"agents.jsonl", {}};
  for (std::size_t i = 0; i < sessions; ++i) {
    TraceSession session = {std::to_string(i), i % 2 == 0 ? "x" : "y", {}};
    for (std::size_t turns = 1 + random.below(2); turns > 0; --turns)
      session.turns.push_back({say(2 + random.below(4)), say(1 + random.below(3))});
    trace.sessions.push_back(std::move(session));
  }
  return trace;
}

/// A part of the sessions of a trace.
Trace part(const Trace& trace, std::size_t begin, std::size_t end) {
  return {trace.path,
          {trace.sessions.begin() + static_cast<std::ptrdiff_t>(begin),
           trace.sessions.begin() + static_cast<std::ptrdiff_t>(end)}};
}

/// All fields of a row except times.
using Sums = std::tuple<std::string, std::string, std::size_t, std::uint64_t, std::uint64_t, std::uint64_t,
                        std::uint64_t, double, std::uint64_t, std::string>;
Sums sums(const Row& row) {
  return {row.category,        row.strategy + " " + row.control.text(),
          row.curve,           row.counts.tokens,
          row.counts.passes,   row.counts.drafted,
          row.counts.accepted, row.charge().cost,
          row.memory_bytes,    row.counts.fault};
}

/// The settings of a replay, changed by the tests.
struct How {
  std::vector<std::string> strategies = {"ngram"};
  std::vector<std::string> controls = {"all"};
  std::vector<std::string> curves = {"linear:0.02"};
  ReplaySettings settings = {.kept = Kept::past};
  bool by_category = false;
  std::size_t threads = 1;
  std::span<const std::byte> snapshot_in = {};
  std::vector<std::byte>* snapshot_out = nullptr;
};

std::vector<Row> replayed(const std::vector<Trace>& traces, const How& how = {}) {
  std::vector<StrategyRun> runs;
  std::vector<ControlSpec> controls;
  std::vector<CostCurve> curves;
  for (const std::string& spec : how.strategies)
    for (StrategyRun& run : make_runs(spec)) runs.push_back(std::move(run));
  for (const std::string& control : how.controls) controls.push_back(parse_control(control).front());
  for (const std::string& curve : how.curves) curves.push_back(CostCurve::parse(curve));
  Assignment assignment = {traces, runs, controls, curves, how.settings, how.by_category, how.threads};
  assignment.snapshot_in.bytes = how.snapshot_in;
  assignment.snapshot_out = how.snapshot_out;
  tools::Progress progress(nullptr, 80);
  return replay_all(assignment, progress);
}
Counts counts(const Trace& trace, const How& how = {}) { return replayed({trace}, how).front().counts; }

/// Replays a trace without the tool. strategy() returns the drafter of the next session; leave(session, drafter) is
/// called at its end.
template <class Strategy, class Control>
Counts by_hand(const Trace& trace, const Control& control, const std::function<Strategy()>& strategy,
               const std::function<void(const TraceSession&, const Strategy&)>& leave) {
  Counts counts;
  for (const TraceSession& recorded : trace.sessions) {
    Session<Strategy, Control> session(strategy(), control, 32);
    Capabilities trees;
    trees.max_leaves = unlimited;
    bool first = true;
    for (const Turn& turn : recorded.turns) {
      if (first) {
        EXPECT_TRUE(session.begin(turn.prompt, trees));
      } else {
        EXPECT_TRUE(session.append(turn.prompt, Origin::prompt));
      }
      first = false;
      EXPECT_TRUE(session.append(TokenSpan(turn.output).first(1), Origin::output));
      std::size_t done = 1;
      while (done < turn.output.size()) {
        const TokenSpan coming = TokenSpan(turn.output).subspan(done);
        Limits limits;
        limits.draft.max_nodes = 32;
        static_cast<void>(session.propose(limits));
        const auto pass = session.plan();
        Tokens picks = {coming[0]};  // one per row: the token at its depth
        for (const auto depth : pass->depths) picks.push_back(depth < coming.size() ? coming[depth] : 0);
        const auto decision = session.resolve(pass->ticket, picks, [&](TokenSpan output, Token) {
          return output.size() + 2 == turn.output.size() ? StopDecision::stop_after : StopDecision::proceed;
        });
        counts.tokens += decision->tokens.size();
        done += decision->tokens.size();
        EXPECT_TRUE(session.commit(pass->ticket));
      }
      if (turn.output.size() == 1) continue;
      counts.passes += session.statistics().passes;
      counts.drafted += session.statistics().drafted;
      counts.accepted += session.statistics().accepted;
    }
    leave(recorded, session.strategy());
  }
  return counts;
}

void expect_same(const Counts& a, const Counts& b) {
  EXPECT_EQ(a.tokens, b.tokens);
  EXPECT_EQ(a.passes, b.passes);
  EXPECT_EQ(a.drafted, b.drafted);
  EXPECT_EQ(a.accepted, b.accepted);
  EXPECT_GT(a.accepted, 0U);
}

TEST(Past, OfNgramIsAMemoryCountsAndACalibrationThatGoFromSessionToSession) {
  const Trace trace = agents(30);
  const auto expected = [&](const auto& control) {
    auto memory = HistoryStore::make();
    auto next_tokens = NextTokens::make({.max_bytes = 2 * ReplaySettings().next_token_bytes,
                                         .key = next_token_key(IndexOptions().key),
                                         .rankings = true});
    CalibrationState learned;
    std::int64_t sessions = 0;
    return by_hand<NgramDrafter<>>(
        trace, control,
        [&] {
          NgramOptions options;
          options.stores = {*memory};
          options.next_tokens = &*next_tokens;
          options.prior = learned;
          return NgramDrafter<>(options);
        },
        [&](const TraceSession& session, const NgramDrafter<>& used) {
          memory->begin_sequence(0);
          Tokens text;
          for (const Turn& turn : session.turns) {
            memory->append(turn.prompt, Origin::prompt);
            memory->append(turn.output, Origin::output);
            text.insert(text.end(), turn.prompt.begin(), turn.prompt.end());
            text.insert(text.end(), turn.output.begin(), turn.output.end());
          }
          memory->end_sequence();
          next_tokens->add(text);
          sessions = std::min<std::int64_t>(sessions + 1, 4);  // the mean of about the last four
          detail::for_each_bias(
              [&](auto& bias, auto end) {
                bias = static_cast<decltype(end)>(bias + (std::int64_t{end} - bias) / sessions);
              },
              learned, used.calibration());
        });
  };
  expect_same(counts(trace), expected(SendAll()));
  CostOptions options;
  options.curve = CostCurve::parse("linear:0.02").for_control();
  options.max_nodes = 32;
  options.calibrated = true;
  How cost;
  cost.controls = {"cost"};
  expect_same(counts(trace, cost), expected(CostControl(options)));
}

/// Sessions whose target ranks tokens by the token before, with all rows.
Trace ranked(std::size_t sessions) {
  const testing::RankedText target{.order = 1, .vocabulary = 200};
  Trace trace = {"ranked.jsonl", {}};
  for (std::size_t i = 0; i < sessions; ++i) {
    Turn turn{{static_cast<Token>(i)}, {}, TopKRows()};
    for (Tokens text = turn.prompt; turn.output.size() < 60; text.push_back(turn.output.back())) {
      turn.output.push_back(target.say(text));
      for (std::size_t rank = 0; rank < 8; ++rank) turn.top_k->add(target.say(text, rank));
      turn.top_k->end_row();
    }
    trace.sessions.push_back({std::to_string(i), "x", {std::move(turn)}});
  }
  return trace;
}

TEST(Past, OfAPublishedRankedMethodIsTheStrategyItself) {
  const Trace trace = ranked(12);
  for (const auto& [spec, nodes] : {std::pair("token-recycling", 80U), std::pair("racer", 63U)}) {
    How how;
    how.strategies = {spec};
    const Row past = replayed({trace}, how).front();
    // One strategy that begins every session anew.
    AnyStrategy strategy = make_runs(spec).front().strategy;
    Counts expected;
    for (const TraceSession& session : trace.sessions) {
      ReplaySetup setup{.control = {ControlKind::all}};
      setup.settings.max_nodes = nodes;
      ReplayControl control = make_control(setup);
      expected += replay_session(session, strategy, setup, control);
    }
    expect_same(past.counts, expected);
    EXPECT_TRUE(past.counts.lossless());
    EXPECT_EQ(past.kept, Kept::past);
    EXPECT_EQ(past.memory_bytes, strategy.memory_bytes());
    EXPECT_EQ(past.max_nodes, nodes);
    EXPECT_GT(past.counts.drafted, 34 * past.counts.passes) << "more than other strategies may draft";

    how.settings.kept = Kept::session;
    EXPECT_LT(replayed({trace}, how).front().counts.accepted, past.counts.accepted) << spec;
    how.settings.max_nodes = 16;
    const Row small = replayed({trace}, how).front();
    EXPECT_EQ(small.max_nodes, 16U);
    EXPECT_LE(small.counts.drafted, 16 * small.counts.passes);
    how.settings.max_nodes = usual_draft_nodes;
    how.controls = {"cost"};
    EXPECT_EQ(replayed({trace}, how).front().max_nodes, usual_draft_nodes) << "control weighs the nodes";
  }
}

TEST(Past, BelongsToOneTraceStrategyControlAndCurve) {
  const Trace trace = agents(6);
  const Trace other = agents(6, 2);
  How how;
  how.settings.memory_bytes = std::size_t{1} << 20;  // there are many of them
  how.strategies = {"ngram", "ngram:index=naive", "token-table"};
  how.controls = {"all", "best:3"};
  how.curves = {"linear:0", "linear:0.1"};
  how.by_category = true;
  const auto together = replayed({trace, other, trace}, how);
  std::vector<Sums> alone;
  for (const Trace& one : {trace, other, trace})
    for (const std::string& strategy : how.strategies)
      for (const std::string& control : how.controls) {
        How just = how;
        just.strategies = {strategy};
        just.controls = {control};
        for (const Row& row : replayed({one}, just)) alone.push_back(sums(row));
      }
  ASSERT_EQ(together.size(), alone.size());
  for (std::size_t i = 0; i < alone.size(); ++i) EXPECT_EQ(sums(together[i]), alone[i]) << i;
}

TEST(Past, DoesNotDependOnTheNumberOfThreads) {
  const std::vector<Trace> traces = {agents(6), agents(5, 2)};
  How how;
  how.settings.memory_bytes = std::size_t{1} << 20;  // there are many of them
  how.strategies = {"ngram", "vllm", "token-table:n=8"};
  how.controls = {"auto", "best:2"};
  how.curves = {"linear:0", "linear:0.1"};
  how.by_category = true;
  for (const CostKnown known : {CostKnown::told, CostKnown::learned, CostKnown::carried}) {
    how.settings.cost_known = known;
    how.threads = 1;
    std::vector<Sums> one;
    for (const Row& row : replayed(traces, how)) one.push_back(sums(row));
    for (const std::size_t threads : {2U, 100U}) {
      how.threads = threads;
      const auto rows = replayed(traces, how);
      ASSERT_EQ(rows.size(), one.size());
      for (std::size_t i = 0; i < one.size(); ++i) ASSERT_EQ(sums(rows[i]), one[i]) << threads;
    }
  }
}

/// A snapshot does not save which of several equal places is the latest, so drafts may differ a little.
void expect_nearly(std::uint64_t a, std::uint64_t b) {
  EXPECT_LE(std::max(a, b) - std::min(a, b), b / 50) << a << " where " << b << " are expected";
}

/// Sessions of random tokens whose second halves repeat their first halves: no text of another one is in them.
Trace strangers(std::size_t sessions) {
  Random random(3);
  Trace trace = {"strangers.jsonl", {}};
  for (std::size_t i = 0; i < sessions; ++i) {
    Tokens text(100);
    for (Token& token : text) token = static_cast<Token>(random.below(1'000'000));
    trace.sessions.push_back({std::to_string(i), "x", {{text, text}}});
  }
  return trace;
}

TEST(Past, MayBeTheCalibrationAlone) {
  const Trace own = strangers(8);
  Trace same = {"same.jsonl", {}};  // text that a memory would find
  for (int i = 0; i < 8; ++i)
    same.sessions.push_back({std::to_string(i), "x", {{{1, 2, 3}, own.sessions[0].turns[0].output}}});
  const auto kept = [](const Trace& trace, Kept what) {
    How how;
    how.controls = {"cost"};
    how.settings.kept = what;
    return replayed({trace}, how).front();
  };
  EXPECT_LT(kept(own, Kept::calibration).charge().cost, kept(own, Kept::session).charge().cost)
      << "repetitions are trusted from the second session on";
  EXPECT_EQ(kept(same, Kept::calibration).counts.accepted, 0U) << "no text is kept";
  EXPECT_GT(kept(same, Kept::past).counts.accepted, 500U);
  EXPECT_EQ(kept(own, Kept::calibration).kept, Kept::calibration);
  How how;
  how.strategies = {"vllm"};
  how.settings.kept = Kept::calibration;
  EXPECT_EQ(replayed({own}, how).front().kept, Kept::session) << "a strategy that learns nothing";
}

class PastTool : public ReplayToolTest {
 protected:
  PastTool() { trace_ = write("t.jsonl", agents(12)); }

  [[nodiscard]] Arguments with(const Arguments& more) const {
    return joined({trace_, "--memory", "past", "--cost", "linear:0.02", "--format", "json"}, more);
  }
  [[nodiscard]] Ran past(const Arguments& more) const { return run(with(more)); }
  using FolderTest::write;
  std::string write(const std::string& name, const Trace& trace) {
    const auto list = [](const Tokens& tokens) {
      std::string text = "[";
      for (const Token token : tokens) text.append(text.size() == 1 ? "" : ",").append(std::to_string(token));
      return text + "]";
    };
    std::string text;
    for (const TraceSession& session : trace.sessions) {
      text += R"({"id":")" + session.id + R"(","category":")" + session.category + R"(","turns":[)";
      for (const Turn& turn : session.turns)
        text += (&turn == &session.turns.front() ? R"({"prompt":)" : R"(,{"prompt":)") + list(turn.prompt) +
                R"(,"output":)" + list(turn.output) + "}";
      text += "]}\n";
    }
    return write(name, text);
  }
  static tools::Json result(const Ran& ran) { return results_in(ran.out).front(); }
  void refused(const Arguments& more, const std::string& sentence) const { refuses(with(more), sentence); }

  std::string trace_;
};

TEST_F(PastTool, SaysWhatIsKeptAndItsBytes) {
  const auto bytes = [&](const Arguments& more) { return number(result(past(more)), "memory_bytes"); };
  EXPECT_NEAR(bytes({"--memory-bytes", "200000", "--next-tokens", "0"}), 220'000, 5000);
  EXPECT_NEAR(bytes({"--memory-bytes", "200000", "--next-tokens", "100000"}), 320'000, 5000) << "next-token counts";
  EXPECT_NEAR(bytes({"--strategy", "token-table:bytes=100000"}), 100'000, 200);
  EXPECT_EQ(bytes({"--strategy", "vllm"}), 0);
  Past ranked;
  give_room(ranked, 200'000, 100'000);
  EXPECT_NEAR(static_cast<double>(ranked.memory_bytes()), 420'000, 5000) << "counts and rankings";
}

TEST_F(PastTool, ReplaysSessionsInARandomOrderOfASeed) {
  const auto passes = [&](const char* seed) { return number(result(past({"--shuffle", seed})), "passes"); };
  EXPECT_EQ(passes("1"), passes("1"));
  EXPECT_NE(passes("1"), passes("2")) << "later sessions draft from other ones";
  const auto alone = [&](const Arguments& more) {
    const tools::Json found = result(run(joined({trace_, "--format", "json"}, more)));
    return std::pair(number(found, "tokens"), number(found, "passes"));
  };
  EXPECT_EQ(alone({"--shuffle", "1"}), alone({})) << "the sessions are the same ones";
  refused({"--shuffle", "0"}, "--shuffle 0");
}

TEST_F(PastTool, SavesWhatItHasLeftAndBeginsWithIt) {
  const Trace whole = agents(12);
  const std::string first = write("first.jsonl", part(whole, 0, 7));
  const std::string second = write("second.jsonl", part(whole, 7, 12));
  // Without next-token counts, which the snapshot does not save.
  const std::vector<std::string> how = {"--memory", "past",        "--next-tokens", "0",
                                        "--cost",   "linear:0.02", "--format",      "json"};
  const auto replay = [&](const Arguments& more) { return result(run(joined(more, how))); };
  const tools::Json all = replay({trace_});
  const tools::Json one =
      replay({first, "--snapshot-out", path("m.snapshot"), "--fingerprint", "18446744073709551615"});
  const tools::Json two = replay({second, "--snapshot-in", path("m.snapshot"), "--snapshot-out", path("m.snapshot"),
                                  "--fingerprint", "18446744073709551615"});
  for (const char* name : {"passes", "drafted", "accepted", "tokens"})
    expect_nearly(static_cast<std::uint64_t>(number(one, name) + number(two, name)),
                  static_cast<std::uint64_t>(number(all, name)));

  reprise::Bytes bytes;
  ASSERT_TRUE(load_file(path("m.snapshot"), bytes));
  auto memory = HistoryStore::make();
  CalibrationState calibration;
  ASSERT_TRUE(
      load_history(std::span<const std::byte>(bytes.data(), bytes.size()), ~std::uint64_t{0}, *memory, calibration));
  std::size_t tokens = 0;
  for (const TraceSession& session : whole.sessions)
    for (const Turn& turn : session.turns) tokens += turn.prompt.size() + turn.output.size();
  EXPECT_GT(memory->counts().stored, tokens / 3);
  EXPECT_LE(memory->counts().stored, tokens);
  EXPECT_NE(calibration, CalibrationState());
}

TEST_F(PastTool, BeginsEveryRunWithTheSnapshot) {
  ASSERT_EQ(past({"--snapshot-out", path("m.snapshot")}).status, 0);
  const Ran ran = past({"--snapshot-in", path("m.snapshot"), "--strategy", "ngram", "--strategy", "ngram:index=naive",
                        "--threads", "3"});
  ASSERT_EQ(ran.status, 0) << ran.error;
  const tools::Json::Array both = results_in(ran.out);
  ASSERT_EQ(both.size(), 2U);
  EXPECT_EQ(number(both[0], "accepted"), number(both[1], "accepted"));
  EXPECT_LT(number(both[0], "passes"), number(result(past({})), "passes"));
}

TEST_F(PastTool, RefusesSnapshotsThatCannotBe) {
  const std::string large = write("large", "x");
  fs::resize_file(large, 2 * 1'000'000 + (1 << 20));
  refused({"--snapshot-in", large, "--memory-bytes", "1000000"}, "does not begin like a snapshot");
  fs::resize_file(large, 2 * 1'000'000 + (1 << 20) + 1);
  refused({"--snapshot-in", large, "--memory-bytes", "1000000"},
          "(3048577 bytes, for --memory-bytes 1000000 at most 3048576)");
  const std::string out = path("m.snapshot");
  ASSERT_EQ(past({"--snapshot-out", out}).status, 0);
  std::string damaged = read(out);
  damaged[damaged.size() / 2] ^= 1;
  refused({"--snapshot-in", write("damaged", damaged)}, "damaged: a section of the snapshot is damaged");
  std::error_code no_links;
  fs::create_symlink("m.snapshot", path("link"), no_links);
  if (!no_links) refused({"--snapshot-in", out, "--output", path("link")}, "are the same file");
}

TEST_F(PastTool, SavesNothingWhenTheResultsCouldNotBeWritten) {
  if (!fs::exists("/dev/full")) GTEST_SKIP() << "no device that is always full";
  const std::string out = write("m.snapshot", "old");
  const Ran ran = past({"--snapshot-out", out, "--output", "/dev/full"});
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.error, AllOf(HasSubstr("/dev/full: could not be written"), HasSubstr(out + ": not saved")));
  EXPECT_EQ(read(out), "old");
}

#if !defined(_WIN32)
TEST_F(PastTool, SaysWhatTheSystemSays) {
  const std::string why = std::generic_category().message(ENAMETOOLONG);
  refused({"--snapshot-in", path(std::string(300, 'x'))}, why);
  refused({"--snapshot-out", path(std::string(300, 'x'))}, std::generic_category().message(ENAMETOOLONG));
  const Ran ran = past({"--snapshot-out", path(std::string(250, 'x'))});  // its temporary name is longer
  EXPECT_EQ(ran.status, 1);
  EXPECT_THAT(ran.error, HasSubstr(why));
  EXPECT_THAT(ran.out, HasSubstr("\"results\"")) << "they are there all the same";
}
#endif

TEST(MemoryBytes, AreThoseThatHelpAndDocsSay) {
  // 18 bytes for each token of capacity, plus a little that is lost where sequences end.
  auto memory = HistoryStore::make({.max_bytes = std::size_t{1} << 20});
  ASSERT_TRUE(memory);
  const double each = static_cast<double>(memory->memory_bytes()) / static_cast<double>(memory->capacity());
  EXPECT_GT(each, 17.9);
  EXPECT_LT(each, 18.2);
  EXPECT_THAT(help_text(true), HasSubstr("a token takes 18.2\n"));
  std::ostringstream page;
  page << std::ifstream(std::string(REPRISE_SOURCE_DIR) + "/docs/performance.md").rdbuf();
  EXPECT_THAT(page.str(), HasSubstr("18 bytes for each token of capacity"));
}

}  // namespace
}  // namespace reprise::replay::past_test
