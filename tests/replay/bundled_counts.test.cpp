// SPDX-License-Identifier: Apache-2.0
/// The counts of every preset on the bundled traces from three sources: bench/replay/expected_counts.json, the tool,
/// and plain loops over the rules. The loops share no code with the library.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <functional>
#include <map>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "common/bundled_files.hpp"
#include "common/json.hpp"
#include "replay/replay.hpp"
#include "replay/strategies.hpp"
#include "replay/trace.hpp"
#include "support/preset_rules.hpp"

namespace reprise::replay::bundled_counts_test {
namespace {

using testing::Tokens;
using Rule = std::function<Tokens(const Tokens&)>;

const std::string folder = REPRISE_SOURCE_DIR "/bench/";

const std::map<std::string, Rule> rules = {
    {"none", [](const Tokens&) { return Tokens(); }},
    {"pld", [](const Tokens& context) { return testing::pld(context, 3, 10); }},
    {"hf:n=3", [](const Tokens& context) { return testing::hugging_face(context, 3, 10); }},
    {"vllm:min=2,max=5,k=5", [](const Tokens& context) { return testing::vllm(context, 2, 5, 5); }},
    {"ngram-simple:n=3,m=10", [](const Tokens& context) { return testing::ngram_simple(context, 3, 10); }},
    {"ds4", [](const Tokens& context) { return testing::ds4(context, 4, 7); }},
    {"ds4:eos=2", [](const Tokens& context) { return testing::ds4(context, 4, 7, 2); }},
};

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

/// Returns {"trace", "strategy", ...}, as a line of the file.
std::string line(const std::string& trace, const std::string& strategy, std::uint64_t tokens, std::uint64_t passes,
                 std::uint64_t drafted, std::uint64_t accepted) {
  return "{\"trace\": \"" + trace + "\", \"strategy\": \"" + strategy + "\", \"tokens\": " + std::to_string(tokens) +
         ", \"passes\": " + std::to_string(passes) + ", \"drafted\": " + std::to_string(drafted) +
         ", \"accepted\": " + std::to_string(accepted) + "}";
}

/// A rule that learns nothing.
struct Fixed {
  const Rule& draft;
  void learn(std::size_t, std::size_t) {}
};

/// Replays without reprise: compares the tokens that the rule drafts with the recorded ones. Each session begins with
/// a copy of `fresh`.
template <class Learning>
std::string by_the_rule(const std::string& name, const Trace& trace, const std::string& strategy,
                        const Learning& fresh) {
  std::uint64_t tokens = 0;
  std::uint64_t passes = 0;
  std::uint64_t drafted = 0;
  std::uint64_t accepted = 0;
  for (const TraceSession& session : trace.sessions) {
    Learning rule = fresh;
    Tokens context;
    for (const Turn& turn : session.turns) {
      context.insert(context.end(), turn.prompt.begin(), turn.prompt.end());
      context.push_back(turn.output.front());
      tokens += turn.output.size() - 1;
      for (std::size_t at = 1; at < turn.output.size();) {
        const Tokens draft = rule.draft(context);
        std::size_t agreed = 0;
        while (agreed < draft.size() && at + agreed < turn.output.size() && draft[agreed] == turn.output[at + agreed])
          ++agreed;
        rule.learn(draft.size(), agreed);
        const std::size_t committed = std::min(agreed + 1, turn.output.size() - at);
        for (std::size_t i = 0; i < committed; ++i) context.push_back(turn.output[at + i]);
        at += committed;
        ++passes;
        drafted += draft.size();
        accepted += agreed;
      }
    }
  }
  return line(name, strategy, tokens, passes, drafted, accepted);
}

std::string by_the_tool(const std::string& name, const Trace& trace, const std::string& strategy,
                        const ReplaySetup& setup = {}) {
  const StrategyRun run = make_runs(strategy).front();
  Counts counts;
  for (const TraceSession& session : trace.sessions) counts += replay_session(session, run.strategy, setup);
  EXPECT_TRUE(counts.lossless()) << counts.fault;
  return line(name, strategy, counts.tokens, counts.passes, counts.drafted, counts.accepted);
}

/// Returns the lines of one list of the file.
std::vector<std::string> expected(const char* list) {
  tools::Json json;
  const auto error = tools::parse_json(read(folder + "replay/expected_counts.json"), json);
  EXPECT_FALSE(error) << error->message;
  const tools::Json* results = json.find(list);
  if (results == nullptr || results->array() == nullptr) return {};
  const auto number = [](const tools::Json& result, const char* name) {
    return static_cast<std::uint64_t>(result.find(name)->number()->integer.value());
  };
  std::vector<std::string> lines;
  for (const tools::Json& result : *results->array())
    lines.push_back(line(*result.find("trace")->string(), *result.find("strategy")->string(), number(result, "tokens"),
                         number(result, "passes"), number(result, "drafted"), number(result, "accepted")));
  return lines;
}

/// If this variable is set, the test writes the file instead of reading it.
constexpr const char* writes = "REPRISE_WRITE_EXPECTED_COUNTS";

std::string joined(const std::vector<std::string>& lines) {
  std::string text;
  for (const std::string& one : lines) text += (text.empty() ? "\n" : ",\n") + one;
  return text;
}

// The default strategy has no rule of a few lines to compare with. Its counts under one curve are recorded so that
// every change is seen, and is the same with every compiler. `results` holds the presets. After a change of the
// default, run REPRISE_WRITE_EXPECTED_COUNTS=1 build/tools/tests/reprise-replay-tests --gtest_filter=BundledCounts.*
TEST(BundledCounts, AreWhatTheRulesTheToolAndTheFileSay) {
  const std::vector<CostCurve> curve = {CostCurve::parse("linear:0.02")};
  const ReplaySetup weighed = {{ControlKind::cost, 0}, curve, {}};
  const std::vector<CostCurve> exact = {CostCurve::parse("linear:0.03125")};  // 2^-5, also in fixed point
  const ReplaySetup marginal = {{ControlKind::marginal, 0}, exact, {}};
  std::vector<std::string> from_rules;
  std::vector<std::string> from_tool;
  std::vector<std::string> of_default;
  for (const std::string& path : tools::find_traces({folder + "traces"})) {
    const std::string name = std::filesystem::path(path).filename().string();
    const Trace trace = read_trace(path);
    for (const auto& [strategy, rule] : rules) {
      from_rules.push_back(by_the_rule(name, trace, strategy, Fixed{rule}));
      from_tool.push_back(by_the_tool(name, trace, strategy));
    }
    const testing::AdaptiveRule adaptive{0.03125};
    EXPECT_EQ(by_the_tool(name, trace, "adaptive", marginal), by_the_rule(name, trace, "adaptive", adaptive));
    of_default.push_back(by_the_tool(name, trace, std::string(default_strategy), weighed));
  }
  EXPECT_EQ(from_tool, from_rules);
  if (std::getenv(writes) != nullptr) {
    std::ofstream(folder + "replay/expected_counts.json", std::ios::binary | std::ios::trunc)
        << "{\"results\": [" << joined(from_rules) << "\n], \"default under linear:0.02\": [" << joined(of_default)
        << "\n]}\n";
  }
  EXPECT_EQ(expected("results"), from_rules);
  EXPECT_EQ(expected("default under linear:0.02"), of_default) << "after a change of the default, see above";
}

}  // namespace
}  // namespace reprise::replay::bundled_counts_test
