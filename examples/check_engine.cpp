// SPDX-License-Identifier: Apache-2.0
// Run these checks once against your engine, before you measure anything: of its verifier, of a drafter, of batches and
// of whole texts. Then measure the cost of its passes. The program exits with 1 if a check fails.
#include "player.hpp"

#include <reprise/reprise.hpp>
#include <reprise_testing/check_batch.hpp>
#include <reprise_testing/check_strategy.hpp>
#include <reprise_testing/check_verifier.hpp>
#include <reprise_testing/lossless.hpp>
#include <reprise_testing/measure_curve.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace {

namespace testing = reprise::testing;

const std::string text = "one fish two fish red fish blue fish. black fish blue fish old fish new fish. ";

// An engine with one sequence. All but the last token of the prompt are in its cache.
Player make_engine(reprise::TokenSpan prompt) { return {text, prompt.size()}; }

// An engine that packs sequences into a pass. Sequence k recites the text from its k-th character on.
class Server {
 public:
  std::vector<std::vector<reprise::Token>> verify(std::span<const reprise::SequencePass> passes) {
    std::vector<std::vector<reprise::Token>> answer(passes.size());
    for (std::size_t k = 0; k < passes.size(); ++k) {
      const reprise::SequencePass& part = passes[k];
      for (std::size_t row = part.pending() - 1; row < part.batch.size(); ++row)
        answer[k].push_back(text[(part.sequence + part.cached() + row + 1) % text.size()]);
    }
    return answer;
  }
  void commit(std::size_t /*sequence*/, std::span<const std::size_t> /*rows*/) {}  // this model has no cache
};
static_assert(testing::BatchServer<Server>);

bool passed(const char* what, const testing::Report& report) {
  std::printf("%s: %s\n", what, report.passed() ? "passed" : report.to_string().c_str());
  for (const testing::Report::Finding& finding : report.findings)
    if (finding.verdict <= testing::Verdict::skipped && !finding.message.empty())
      std::printf("  %s: %s (%s)\n", finding.verdict == testing::Verdict::skipped ? "not checked" : "note",
                  finding.what.c_str(), finding.message.c_str());
  return report.passed();
}

// Replace this function: run one pass of this shape, and return how long it took.
std::chrono::nanoseconds run_pass(const reprise::PassShape& shape) {
  return std::chrono::microseconds(9000 + 100 * shape.rows + shape.context / 8);
}

}  // namespace

int main() {
  const std::vector<reprise::Token> prompt = to_tokens(text.substr(0, 10));
  bool all = passed("verifier", testing::check_verifier(make_engine, prompt, testing::VerifierCheck{.tokens = 24}));

  const auto make_drafter = [] { return reprise::NgramDrafter<>(reprise::NgramOptions{}); };
  all &= passed("drafter", testing::check_strategy(make_drafter, testing::StrategyCheck{.runs = 8}));

  const std::vector<std::vector<reprise::Token>> prompts = {to_tokens(text.substr(0, 10)),
                                                            to_tokens(text.substr(1, 10))};
  all &= passed("batches", testing::check_batch([] { return Server(); }, prompts, testing::BatchCheck{.tokens = 12}));

  const testing::LosslessReport texts =
      testing::compare_lossless(make_engine, prompt, {.eos = {0}}, make_drafter(), reprise::NeverStop());
  std::printf("text: %s, %llu passes instead of %llu\n", texts.identical() ? "the same" : texts.message.c_str(),
              static_cast<unsigned long long>(texts.drafted.statistics.passes),
              static_cast<unsigned long long>(texts.plain.statistics.passes));

  const testing::MeasuredCurve measured =
      testing::measure_cost_curve(run_pass, testing::MeasuredCurve::Settings{.contexts = {256}, .repeats = 5});
  std::fputs(measured.to_string().c_str(), stdout);
  return all && texts.identical() && measured.curve() ? 0 : 1;
}
