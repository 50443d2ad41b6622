// SPDX-License-Identifier: Apache-2.0
#include "reprise_testing/check_verifier.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <vector>

#include "support/scripted_verifier.hpp"

namespace reprise::testing::check_verifier_test {
namespace {

using ::testing::HasSubstr;

/// The faults of an engine.
struct Wrong {
  std::ptrdiff_t keep = 0;          ///< rows kept beyond the argument of commit()
  bool keeps_void_rows = false;     ///< an uncommitted pass stays
  bool late_rollback = false;       ///< not rolled back before a pass without draft
  bool samples_all_rows = false;    ///< the sampler advances for every row
  bool sampler_keeps_void = false;  ///< the sampler is not restored after a void pass
  bool first_pending_only = false;  ///< runs only one of several pending tokens
  bool truncates_one_short = false;
  bool dies_of_failures = false;  ///< the rows of a failed pass stay
  bool short_span = false;        ///< gives no bonus pick
  bool keeps_the_anchor = false;  ///< commit() always keeps the pending rows
  bool flips_near_ties = false;   ///< in passes with a draft, where the margin is small
};

/// A small engine with one optional fault. Its sampler is a counter that affects every pick.
class ChainToy {
 public:
  ChainToy(TokenSpan prompt, Wrong wrong, bool sampled)
      : cache_(prompt.begin(), prompt.end() - 1), wrong_(wrong), sampled_(sampled) {}

  bool fail_next = false;

  TokenSpan verify(TokenSpan batch, std::size_t drafted) {
    if (open_ && !(wrong_.keeps_void_rows && !fresh_)) cache_.resize(base_);
    if (open_ && !wrong_.sampler_keeps_void) draws_ = draws_before_;
    if (wrong_.late_rollback && drafted == 0) cache_.insert(cache_.end(), refused_.begin(), refused_.end());
    base_ = cache_.size();
    draws_before_ = draws_;
    fresh_ = false;
    if (std::exchange(fail_next, false)) {
      cache_.push_back(batch.front());
      open_ = !wrong_.dies_of_failures;
      throw std::runtime_error("toy");
    }
    if (wrong_.first_pending_only && batch.size() > drafted + 1) batch = batch.last(drafted + 1);
    open_ = true;
    batch_.assign(batch.begin(), batch.end());
    cache_.insert(cache_.end(), batch.begin(), batch.end());
    picks_.clear();
    margins_.clear();
    for (std::size_t row = cache_.size() - drafted; row <= cache_.size(); ++row) {
      const std::uint64_t hash = mix(static_cast<std::uint64_t>(cache_[row - 1]) * 31 +
                                     static_cast<std::uint64_t>(cache_[row > 1 ? row - 2 : 0]) +
                                     (sampled_ ? draws_++ * 977 : 0) + row * 10003);
      const bool tie = hash % 7 == 0;
      margins_.push_back(tie ? 0.001 : 1.0);
      picks_.push_back(static_cast<Token>((hash >> 8) % 5) + (wrong_.flips_near_ties && tie && drafted > 0 ? 5 : 0));
      const bool agrees = row < cache_.size() && cache_[row] == picks_.back();
      if (!agrees && !wrong_.samples_all_rows) break;
    }
    if (wrong_.short_span && picks_.size() > 1) picks_.pop_back();
    return picks_;
  }
  void commit(std::size_t keep) {
    const auto least = static_cast<std::ptrdiff_t>(wrong_.keeps_the_anchor ? 1 : 0);
    const auto kept = static_cast<std::size_t>(std::clamp<std::ptrdiff_t>(
        static_cast<std::ptrdiff_t>(keep) + wrong_.keep, least, static_cast<std::ptrdiff_t>(batch_.size())));
    refused_.assign(batch_.begin() + static_cast<std::ptrdiff_t>(std::min(keep, batch_.size())), batch_.end());
    cache_.resize(base_ + kept);
    // This engine draws all picks at once, so it must undo those that were not committed.
    if (sampled_ && !wrong_.samples_all_rows) draws_ = draws_before_ + std::min(picks_.size(), keep);
    open_ = false;
  }
  void truncate(std::size_t size) {
    cache_.resize(size + (wrong_.truncates_one_short ? 1 : 0));
    refused_.clear();
    open_ = false;
  }
  [[nodiscard]] double margin(std::size_t i) const { return margins_[i]; }

 private:
  std::vector<Token> cache_;
  std::vector<Token> batch_;
  std::vector<Token> refused_;
  std::vector<Token> picks_;
  std::vector<double> margins_;
  std::size_t base_ = 0;
  std::uint64_t draws_ = 0;
  std::uint64_t draws_before_ = 0;
  Wrong wrong_;
  bool sampled_;
  bool open_ = false;
  bool fresh_ = true;
};

const std::vector<Token> prompt = {1, 2, 3, 4, 1};

Report check_toy(Wrong wrong, VerifierCheck check = {}) {
  const auto make = [&](TokenSpan tokens) { return ChainToy(tokens, wrong, check.sampled); };
  return check_verifier(make, prompt, check, [](ChainToy& toy) { toy.fail_next = true; });
}
Verdict of(const Report& report, const char* what) {
  const Report::Finding* finding = report.find(what);
  EXPECT_NE(finding, nullptr) << what;
  return finding == nullptr ? Verdict::skipped : finding->verdict;
}

TEST(CheckVerifier, PassesASoundEngineInEveryClause) {
  const Report report = check_toy({});
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
  for (const Report::Finding& finding : report.findings) {
    EXPECT_EQ(finding.verdict, Verdict::exact) << finding.what;
    EXPECT_GT(finding.checks, 20U) << finding.what;
  }
}
TEST(CheckVerifier, PassesSoundSamplers) {
  VerifierCheck check;
  check.sampled = true;
  ScriptedOptions options;
  options.sampled = true;
  options.penalty = 200;
  options.vocabulary = 6;
  const auto make = [&](TokenSpan tokens) { return ScriptedVerifier(options, tokens); };
  EXPECT_EQ(check_verifier(make, prompt, check).verdict(), Verdict::exact);
}
TEST(CheckVerifier, StaysWithinWhatAnEngineCanDo) {
  ScriptedOptions options;
  options.vocabulary = 3;
  options.capabilities.max_rows = 4;
  options.capabilities.max_depth = 2;
  options.capabilities.allowed_widths = {2, 3};
  options.may_stop_before = true;
  std::vector<std::string> violations;
  struct Watched {
    ScriptedVerifier inner;
    std::vector<std::string>* violations;
    auto verify(TokenSpan batch, std::size_t drafted) { return inner.verify(batch, drafted); }
    auto commit(std::size_t keep) {
      auto done = inner.commit(keep);
      violations->insert(violations->end(), inner.violations().begin(), inner.violations().end());
      return done;
    }
    [[nodiscard]] Capabilities capabilities() const { return inner.capabilities(); }
  };
  const Report report = check_verifier(
      [&](TokenSpan tokens) {
        return Watched{ScriptedVerifier(options, tokens), &violations};
      },
      prompt);
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
  EXPECT_TRUE(violations.empty()) << violations.front();
}
struct Planted {
  const char* name;
  Wrong fault;
  const char* wrong;            ///< the finding that shows it
  const char* exact = nullptr;  ///< one that does not
  bool sampled = false;
};
struct CheckVerifierFinds : ::testing::TestWithParam<Planted> {};
TEST_P(CheckVerifierFinds, APlantedFault) {
  const auto& [name, fault, wrong, exact, sampled] = GetParam();
  VerifierCheck check;
  check.sampled = sampled;
  const Report report = check_toy(fault, check);
  EXPECT_EQ(of(report, wrong), Verdict::wrong);
  EXPECT_EQ(of(check_toy({}, check), wrong), Verdict::exact) << "without the fault";
  if (exact != nullptr) {
    EXPECT_EQ(of(report, exact), Verdict::exact);
  }
}
INSTANTIATE_TEST_SUITE_P(
    Faults, CheckVerifierFinds,
    ::testing::Values(
        Planted{"ARowTooMany", {.keep = 1}, "wrong drafts are rolled back"},
        Planted{"ARowTooFew", {.keep = -1}, "right drafts"},
        Planted{"RowsOfAVoidPass", {.keeps_void_rows = true}, "a void pass, then the same again", "right drafts"},
        Planted{"StateNotRestoredBeforeAPassWithoutDraft",
                {.late_rollback = true},
                "a pass without draft just after an accepting one",
                "wrong drafts are rolled back"},
        Planted{"ASamplerThatAdvancesForEveryRow",
                {.samples_all_rows = true},
                "wrong drafts are rolled back",
                "plain decoding again",
                true},
        Planted{"ASamplerThatRemembersAVoidPass",
                {.sampler_keeps_void = true},
                "a void pass, then the same again",
                nullptr,
                true},
        Planted{"PendingTokensThatWereNotRun", {.first_pending_only = true}, "several pending tokens"},
        Planted{"ATruncateThatKeepsTooMuch", {.truncates_one_short = true}, "truncate(), then the same again"},
        Planted{"AnEngineThatDoesNotSurviveAFailure",
                {.dies_of_failures = true},
                "a failed pass, then the same again",
                "everything mixed"},
        Planted{"AnEngineThatKeepsARefusedAnchor",
                {.keeps_the_anchor = true},
                "the first pick refused, nothing committed"}),
    [](const auto& planted) { return std::string(planted.param.name); });

TEST(CheckVerifier, FindsASpanThatIsTooShort) {
  const Report report = check_toy({.short_span = true});
  EXPECT_EQ(of(report, "right drafts"), Verdict::wrong);
  EXPECT_THAT(report.find("right drafts")->message, HasSubstr("span of picks ends"));
}
TEST(CheckVerifier, CallsADifferenceWithinEpsilonANearTieAndNeverExact) {
  VerifierCheck check;
  check.epsilon = 0.01;
  const Report report = check_toy({.flips_near_ties = true}, check);
  EXPECT_EQ(report.verdict(), Verdict::near_tie) << report.to_string();
  EXPECT_TRUE(report.passed());
  EXPECT_GT(report.find("right drafts")->near_ties, 0U);
  EXPECT_THAT(report.to_string(), HasSubstr("near tie"));
}
TEST(CheckVerifier, CallsTheSameDifferenceWrongBeyondEpsilon) {
  VerifierCheck check;
  check.epsilon = 0.0001;
  EXPECT_EQ(check_toy({.flips_near_ties = true}, check).verdict(), Verdict::wrong);
}
TEST(CheckVerifier, ShowsAShortWayToSeeADifference) {
  const Report report = check_toy({.keep = 1});
  const std::string& message = report.find("wrong drafts are rolled back")->message;
  EXPECT_THAT(message, HasSubstr("plain decoding gives"));
  EXPECT_THAT(message, HasSubstr("verify({"));
  EXPECT_LT(std::count(message.begin(), message.end(), '{'), 12) << message;
  const Report refused = check_toy({.keeps_the_anchor = true});
  EXPECT_THAT(refused.find("the first pick refused, nothing committed")->message, HasSubstr("and commit(0)"));
  const Report truncated = check_toy({.truncates_one_short = true});
  EXPECT_THAT(truncated.find("truncate(), then the same again")->message, HasSubstr("truncate(4), 1 plain pass"));
}
TEST(CheckVerifier, SaysWhatItCouldNotCheck) {
  struct Bare {
    ChainToy inner;
    TokenSpan verify(TokenSpan batch, std::size_t drafted) { return inner.verify(batch, drafted); }
    void commit(std::size_t keep) { inner.commit(keep); }
  };
  const Report report = check_verifier([](TokenSpan tokens) { return Bare{ChainToy(tokens, {}, false)}; }, prompt);
  EXPECT_EQ(report.verdict(), Verdict::exact);
  EXPECT_EQ(of(report, "truncate(), then the same again"), Verdict::skipped);
  EXPECT_EQ(of(report, "a failed pass, then the same again"), Verdict::skipped);
  EXPECT_NE(report.to_string().find("no fail_next(verifier) was given: pass a function"), std::string::npos);
  EXPECT_THAT(report.to_string(), HasSubstr("no truncate()"));
}
TEST(CheckVerifier, ReportsAnEngineThatAnswersWithErrors) {
  ScriptedOptions options;
  options.faults = {.verify_every = 3, .as_errors = true};
  const Report report = check_verifier([&](TokenSpan tokens) { return ScriptedVerifier(options, tokens); }, prompt);
  EXPECT_EQ(report.verdict(), Verdict::wrong);
  EXPECT_THAT(report.to_string(), HasSubstr("verify() failed"));
}
TEST(CheckVerifier, StaysWithinTheContextOfTheEngine) {
  ScriptedOptions options;
  options.capabilities.max_context = 9;
  std::size_t longest = 0;
  struct Watched : ScriptedVerifier {
    std::size_t* longest;
    Watched(const ScriptedOptions& o, TokenSpan tokens, std::size_t* most)
        : ScriptedVerifier(o, tokens), longest(most) {}
    auto verify(TokenSpan batch, std::size_t drafted) {
      auto picks = ScriptedVerifier::verify(batch, drafted);
      *longest = std::max(*longest, cache().size());
      return picks;
    }
  };
  const Report report = check_verifier([&](TokenSpan tokens) { return Watched(options, tokens, &longest); }, prompt);
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
  EXPECT_LT(longest, 9U);
  EXPECT_GT(longest, prompt.size());
}
TEST(CheckVerifier, ChecksNothingWithoutAPrompt) {
  EXPECT_EQ(check_verifier([](TokenSpan tokens) { return ChainToy(tokens, {}, false); }, {}).verdict(),
            Verdict::skipped);
}

}  // namespace
}  // namespace reprise::testing::check_verifier_test
