// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/no_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "reprise/index/ranked_rows.hpp"
#include "reprise/loop/generate.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/testing/lossless.hpp"
#include "support/choices.hpp"
#include "support/lying_engine.hpp"
#include "support/random_rows.hpp"

namespace reprise::testing {

/// The events of runs with hostile rows.
struct HostileRowsCoverage {
  std::size_t runs = 0;
  std::size_t kept = 0;      ///< rows in the drafters at the end
  std::size_t drafted = 0;   ///< tokens
  std::size_t accepted = 0;  ///< tokens
};

/// Decodes one output with a drafter that sees rows of passes, of the prompt and of earlier sequences. Most of them are
/// lies. Compares the output with plain decoding. The body of a test and of a fuzz target. Returns the first fault, or
/// an empty string.
class HostileRowsRun {
 public:
  explicit HostileRowsRun(Choices& choices) : choices_(choices) {}

  std::string run(HostileRowsCoverage* coverage = nullptr) {
    ScriptedOptions model;
    model.vocabulary = static_cast<Token>(choices_.between(2, 12));
    model.order = choices_.between(1, 4);
    model.seed = choices_.below(1U << 16);
    model.sampled = choices_.chance(30);
    model.revealed = choices_.below(13);
    model.capabilities.max_leaves = choices_.chance(50) ? 1 : unlimited;
    const std::size_t lies = choices_.below(101);
    RankedRows carried = *RankedRows::make({.max_bytes = 64 * choices_.between(1, 60)});
    NgramOptions options;
    options.top_k = choices_.below(10);
    options.row_bytes = choices_.below(4000);
    if (choices_.chance(50)) options.ranked_rows = &carried;
    if (choices_.chance(30)) options.min_path_probability = Probability::ratio(1, 1'000'000);
    std::vector<Token> prompt(choices_.between(1, 12));
    for (Token& token : prompt) token = static_cast<Token>(choices_.below(static_cast<std::size_t>(model.vocabulary)));
    fill(carried, prompt);

    Limits limits;
    limits.max_tokens = choices_.between(1, 60);
    limits.draft.max_nodes = choices_.below(33);
    if (choices_.chance(30))
      return decode(
          UnionDrafter(NgramDrafter<>(options), PromptLookupDrafter<>()), model, lies, prompt, limits,
          [](auto& strategy) -> NgramDrafter<>& { return strategy.template member<0>(); }, carried, coverage);
    return decode(
        NgramDrafter<>(options), model, lies, prompt, limits,
        [](auto& strategy) -> NgramDrafter<>& { return strategy; }, carried, coverage);
  }

 private:
  /// Adds rows of an earlier sequence, which lie.
  void fill(RankedRows& carried, TokenSpan said) {
    for (std::size_t i = choices_.below(40); i > 0; --i) {
      const std::vector<Token> ranking = random_ranking(choices_, said);
      const Token last = said[choices_.below(said.size())];
      const Token before = choices_.chance(50) ? Ranking::none : said[choices_.below(said.size())];
      carried.add(std::array{RankedRows::Row{before, last, Ranking(ranking)}});
    }
  }
  template <class Strategy, class Inner>
  std::string decode(Strategy strategy, const ScriptedOptions& model, std::size_t lies,
                     const std::vector<Token>& prompt, const Limits& limits, Inner inner, RankedRows& carried,
                     HostileRowsCoverage* coverage) {
    Session plain_session{NoDrafter()};
    ScriptedVerifier plain(model, prompt);
    Session<Strategy, SendAll> session(std::move(strategy), 32);
    LyingEngine engine(model, prompt, lies);
    if (!plain_session.begin(prompt, model.capabilities) || !session.begin(prompt, model.capabilities))
      return "begin() failed";
    for (std::size_t i = choices_.below(20); i > 0; --i) {
      const std::size_t position = choices_.below(prompt.size() + 1);
      const bool taken = session.report_prompt_row(position, random_ranking(choices_, prompt)).has_value();
      if (taken != (position < prompt.size())) return "report_prompt_row() took or refused the wrong row";
    }
    if (!generate(plain_session, plain, limits) || !generate(session, engine, limits)) return "generate() failed";
    if (!engine.violations().empty()) return engine.violations().front();
    const TokenSpan wanted = plain_session.output();
    const TokenSpan output = session.output();
    if (!std::equal(output.begin(), output.end(), wanted.begin(), wanted.end())) return "the output is another one";
    return check_rows(inner(session.strategy()), carried, session.statistics(), coverage);
  }
  /// Checks the rows at the end, and carries them to the next sequence.
  std::string check_rows(const NgramDrafter<>& drafter, RankedRows& carried, const Statistics& statistics,
                         HostileRowsCoverage* coverage) {
    if (drafter.rows().size() * sizeof(RankedRows::Row) > drafter.options().row_bytes)
      return "more rows than their memory";
    for (const RankedRows::Row& row : drafter.rows())
      for (const Token token : row.ranking.tokens)
        if (token < 0 && token != Ranking::none) return "a negative token was kept";
    carried.add(drafter.rows());
    if (coverage == nullptr) return {};
    ++coverage->runs;
    coverage->kept += static_cast<std::size_t>(std::count_if(drafter.rows().begin(), drafter.rows().end(),
                                                             [](const RankedRows::Row& row) { return row.last >= 0; }));
    coverage->drafted += statistics.drafted;
    coverage->accepted += statistics.accepted;
    return {};
  }

  Choices& choices_;
};

}  // namespace reprise::testing
