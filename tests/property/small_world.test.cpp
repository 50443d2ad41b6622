// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <vector>

#include "reprise/loop/session.hpp"
#include "support/plain_decoding.hpp"
#include "support/property_cases.hpp"
#include "support/scripted_verifier.hpp"
#include "support/strategies.hpp"

// Generations over two tokens, for every truth table over the last two tokens, every choice of EOS, limits 1 to 6 and
// three stop rules. Every sequence of accept/reject patterns of drafts up to 3 is tried, where truncate() goes back to
// try the next pattern.
namespace reprise::testing::small_world_test {
namespace {

enum class Rule : std::uint8_t { none, sequence, predicate };

struct Stop {
  Rule rule = Rule::none;
  StopDecision operator()(TokenSpan output, Token next) const {
    const bool stops = rule == Rule::predicate && output.size() >= 2 && next == 1 && output.back() == 0;
    return stops ? StopDecision::stop_before : StopDecision::proceed;
  }
};

class SmallWorld {
 public:
  SmallWorld(unsigned table, std::vector<Token> eos, std::size_t max_tokens, Rule rule, std::array<Token, 2> prompt)
      : stop_{rule}, prompt_(prompt), session_(Dictated(), 8), engine_(options(table, rule)) {
    limits_.max_tokens = max_tokens;
    limits_.eos = std::move(eos);
    if (rule == Rule::sequence) limits_.stop_sequences = {{1, 0, 1}};
    ScriptedVerifier plain(options(table, rule));
    plain.prefill(TokenSpan(prompt_).first(1));
    std::vector<Token> context(prompt_.begin(), prompt_.end());
    truth_ = decode_plainly(plain, context, 2, limits_, stop_);
  }

  /// Returns the number of passes run, or 0 if one was wrong.
  std::size_t explore() {
    EXPECT_TRUE(session_.begin(prompt_));
    engine_.prefill(TokenSpan(prompt_).first(1));
    static_cast<void>(branch());
    EXPECT_TRUE(engine_.violations().empty());
    return sound_ && engine_.violations().empty() ? passes_ : 0;
  }

 private:
  [[nodiscard]] bool ends_as_wanted() const {
    const TokenSpan settled = session_.settled_output(limits_);
    const std::size_t now = session_.context().size() - prompt_.size();
    if (now > truth_.committed.size() || settled.size() > truth_.returned) return false;
    if (!std::equal(settled.begin(), settled.end(), truth_.committed.begin())) return false;
    if (session_.finished() && (session_.finish_reason() != truth_.finish || settled.size() != truth_.returned))
      return false;
    return session_.finished() || now < truth_.committed.size() || truth_.finish == FinishReason::predicate;
  }
  static ScriptedOptions options(unsigned table, Rule rule) {
    ScriptedOptions options;
    options.table = [table](TokenSpan end) {
      return static_cast<Token>((table >> (2 * end[end.size() - 2] + end[end.size() - 1])) & 1U);
    };
    options.may_stop_before = rule == Rule::predicate;
    return options;
  }

  /// Tries every pattern after the committed tokens, and follows each to the end of the generation.
  bool branch() {
    const std::size_t size = session_.context().size();
    const std::size_t done = size - prompt_.size();
    for (std::size_t length = 0; length <= 3; ++length) {
      for (unsigned wrong = 0; wrong < (1U << length); ++wrong) {
        if (!one_pass(done, length, wrong)) return sound_ = false;
        // A draft above the limit is cut to a shorter one. That shorter draft is followed up as its own pattern.
        const bool cut = length + 1 > limits_.max_tokens - done;
        if (!session_.finished() && !cut && !branch()) return false;
        if (!session_.truncate(size)) return sound_ = false;
        engine_.truncate(session_.cached());
      }
    }
    return true;
  }
  /// Returns the number of drafted tokens up to the first that ends the generation.
  [[nodiscard]] std::size_t until_end() const {
    std::vector<Token> output(session_.output().begin(), session_.output().end());
    for (std::size_t i = 0; i < draft_.size(); ++i) {
      if (reprise::detail::check_stop(limits_, output, draft_[i].token).reason != FinishReason::none) return i + 1;
      output.push_back(draft_[i].token);
    }
    return draft_.size();
  }
  bool one_pass(std::size_t done, std::size_t length, unsigned wrong) {
    draft_.clear();
    std::size_t agreeing = length;
    for (std::size_t i = 0; i < length; ++i) {
      const Token right = done + i < truth_.committed.size() ? truth_.committed[done + i] : 0;
      const bool flip = ((wrong >> i) & 1U) != 0;
      draft_.push_back({.token = flip ? 1 - right : right, .parent = static_cast<NodeIndex>(i) - 1});
      if (flip) agreeing = std::min(agreeing, i);
    }
    session_.propose(limits_);
    auto pass = session_.plan();
    if (!pass || pass->drafted != std::min(until_end(), limits_.max_tokens - done - 1)) return false;
    auto picks = engine_.verify(pass->batch, pass->drafted);
    if (!picks) return false;
    const auto decision = session_.resolve(pass->ticket, *picks, stop_);
    if (!decision) return false;
    const std::size_t wanted =
        std::min({agreeing + 1, pass->drafted + 1, truth_.committed.size() - std::min(done, truth_.committed.size())});
    if (decision->tokens.size() != wanted) return false;
    if (!engine_.commit(decision->keep) || !session_.commit(pass->ticket)) return false;
    ++passes_;
    return ends_as_wanted();
  }

  Stop stop_;
  std::array<Token, 2> prompt_;
  Limits limits_;
  Session<Dictated> session_;
  Nodes& draft_ = session_.strategy().nodes;
  ScriptedVerifier engine_;
  PlainTurn truth_;
  std::size_t passes_ = 0;
  bool sound_ = true;
};

/// Returns the length of the longest output: 5, or 6 with more random cases than usual, because the last length takes
/// as long as all others together.
std::size_t longest_output() { return property_cases() <= 50'000 ? 5 : 6; }

TEST(SmallWorld, EveryWayToAcceptAndRejectDecodesAsPlainDecodingDoes) {
  const std::vector<std::vector<Token>> eos_choices = {{}, {0}, {1}, {0, 1}};
  std::size_t passes = 0;
  for (unsigned table = 0; table < 16; ++table)
    for (const auto& eos : eos_choices)
      for (std::size_t limit = 1; limit <= longest_output(); ++limit)
        for (const Rule rule : {Rule::none, Rule::sequence, Rule::predicate})
          for (unsigned prompt = 0; prompt < 4; ++prompt) {
            const std::array<Token, 2> tokens = {static_cast<Token>(prompt & 1U), static_cast<Token>(prompt >> 1)};
            const std::size_t ran = SmallWorld(table, eos, limit, rule, tokens).explore();
            ASSERT_GT(ran, 0U) << "table " << table << ", limit " << limit << ", rule " << static_cast<int>(rule)
                               << ", prompt " << prompt << ", eos tokens " << eos.size();
            passes += ran;
          }
  EXPECT_GT(passes, 1'000'000U);
  RecordProperty("passes", static_cast<int>(passes));
}

}  // namespace
}  // namespace reprise::testing::small_world_test
