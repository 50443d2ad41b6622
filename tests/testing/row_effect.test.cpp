// SPDX-License-Identifier: Apache-2.0
#include "reprise_testing/detail/row_effect.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "reprise_testing/check_batch.hpp"
#include "reprise_testing/check_verifier.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::testing::row_effect_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// Row counts whose kernel gives slightly other numbers.
using OtherKernel = std::function<bool(std::size_t rows)>;

/// An engine whose picks depend on all tokens before them. At near ties, another kernel gives another pick.
struct Faults {
  OtherKernel other = [](std::size_t) { return false; };
  bool keeps_rejected = false;  ///< V4: rejected rows stay in the cache
  bool keeps_void = false;      ///< V5: rows of a void pass stay in the cache
  std::size_t ties = 16;        ///< one pick in so many is a near tie
};
constexpr std::size_t from = 20;  // contexts below have no near ties

Token pick_after(TokenSpan text, std::size_t rows, const Faults& faults) {
  std::uint64_t hash = text.size();
  for (const Token token : text) hash = mix(hash * 31 + static_cast<std::uint64_t>(token));
  const bool flips = text.size() >= from && (hash >> 20) % faults.ties == 0 && faults.other(rows);
  return static_cast<Token>((hash >> 8) % 9 + (flips ? 100 : 0));
}

class Engine {
 public:
  Engine(TokenSpan prompt, const Faults& faults) : cache_(prompt.begin(), prompt.end() - 1), faults_(faults) {}

  std::vector<Token> verify(TokenSpan batch, std::size_t drafted) {
    if (!faults_.keeps_void) cache_.resize(kept_.value_or(cache_.size()));
    kept_ = cache_.size();
    cache_.insert(cache_.end(), batch.begin(), batch.end());
    std::vector<Token> picks;
    for (std::size_t size = cache_.size() - drafted; size <= cache_.size(); ++size)
      picks.push_back(pick_after(TokenSpan(cache_).first(size), batch.size(), faults_));
    return picks;
  }
  void commit(std::size_t keep) {
    if (!faults_.keeps_rejected) cache_.resize(*kept_ + keep);
    kept_ = cache_.size();
  }
  void truncate(std::size_t size) {
    cache_.resize(size);
    kept_ = size;
  }

 private:
  std::vector<Token> cache_;
  std::optional<std::size_t> kept_;
  Faults faults_;
};

std::vector<Token> prompt_of(std::size_t size) {
  std::vector<Token> prompt;
  for (std::size_t i = 0; i < size; ++i) prompt.push_back(static_cast<Token>(mix(i) % 9));
  return prompt;
}
Report check(const Faults& faults, std::size_t prompt = 67) {
  return check_verifier([&](TokenSpan tokens) { return Engine(tokens, faults); }, prompt_of(prompt));
}
const char* const effect = "passes without a draft, with other numbers of rows";
const char* const rollback = "wrong drafts are rolled back";
const OtherKernel more_than_one = [](std::size_t rows) { return rows > 1; };

TEST(RowEffect, AnotherKernelForOneRowIsNamedAndNoClauseOfDraftsIsBlamed) {
  const Report report = check({.other = more_than_one});
  EXPECT_EQ(report.find(effect)->verdict, Verdict::wrong);
  EXPECT_THAT(report.find(effect)->message,
              AllOf(HasSubstr("without any draft"), HasSubstr("rows: 2, 3"), HasSubstr("docs/lossless.md")));
  for (const Report::Finding& finding : report.findings) {
    if (finding.what != effect) {
      EXPECT_NE(finding.verdict, Verdict::wrong) << finding.what << ": " << finding.message;
    }
  }
  EXPECT_EQ(report.find(rollback)->verdict, Verdict::skipped);
  EXPECT_THAT(report.find(rollback)->message, AllOf(HasSubstr("not blamed"), HasSubstr(effect)));
  EXPECT_FALSE(report.passed());
}
TEST(RowEffect, AKernelForManyRowsIsNamedToo) {
  for (const std::size_t most : {2U, 3U, 4U, 8U}) {
    const Report report = check({.other = [&](std::size_t rows) { return rows > most; }, .ties = 8});
    EXPECT_EQ(report.find(effect)->verdict, Verdict::wrong) << most;
    EXPECT_THAT(report.find(effect)->message, Not(HasSubstr("rows: 2"))) << most;
    for (const Report::Finding& finding : report.findings) {
      if (finding.what != effect) {
        EXPECT_NE(finding.verdict, Verdict::wrong) << finding.what << ": " << finding.message;
      }
    }
  }
}
TEST(RowEffect, AShortPromptIsAskedToBeARealOne) {
  const Report little = check({.other = more_than_one, .ties = 1U << 20}, 8);
  EXPECT_EQ(little.verdict(), Verdict::exact);
  EXPECT_THAT(little.to_string(), AllOf(HasSubstr("the prompt has 8 tokens"), HasSubstr("64 tokens")));
  EXPECT_THAT(check({}, 64).to_string(), Not(HasSubstr("the prompt has")));
}
TEST(RowEffect, RowsThatStayAreBlamedWithAndWithoutIt) {
  for (const OtherKernel& other : {OtherKernel([](std::size_t) { return false; }), more_than_one}) {
    const Report rows = check({.other = other, .keeps_rejected = true});
    EXPECT_EQ(rows.find(rollback)->clause, "V4");
    EXPECT_EQ(rows.find(rollback)->verdict, Verdict::wrong) << rows.to_string();
    const Report voided = check({.other = other, .keeps_void = true});
    EXPECT_EQ(voided.find("a void pass, then the same again")->verdict, Verdict::wrong) << voided.to_string();
    EXPECT_NE(voided.find(rollback)->verdict, Verdict::wrong) << voided.to_string();
  }
}
TEST(RowEffect, ASoundEngineHasNone) {
  const Report report = check({});
  EXPECT_EQ(report.verdict(), Verdict::exact) << report.to_string();
  EXPECT_EQ(report.find(effect)->message, "");
  EXPECT_GT(report.find(effect)->checks, 60U);
}

/// Many sequences, whose rows share a pass.
class Server {
 public:
  Server(const std::vector<std::vector<Token>>& prompts, const Faults& faults) : faults_(faults) {
    for (const auto& prompt : prompts) caches_.emplace_back(prompt.begin(), prompt.end() - 1);
  }
  std::vector<std::vector<Token>> verify(std::span<const SequencePass> passes) {
    for (const auto& [s, size] : open_) caches_[s].resize(size);
    open_.clear();
    std::size_t rows = 0;
    for (const SequencePass& pass : passes) rows += pass.batch.size();
    std::vector<std::vector<Token>> picks;
    for (const SequencePass& pass : passes) {
      std::vector<Token>& cache = caches_[pass.sequence];
      open_.emplace_back(pass.sequence, cache.size());
      cache.insert(cache.end(), pass.batch.begin(), pass.batch.end());
      picks.emplace_back();
      for (std::size_t size = cache.size() - pass.drafted; size <= cache.size(); ++size)
        picks.back().push_back(pick_after(TokenSpan(cache).first(size), rows, faults_));
    }
    return picks;
  }
  void commit(std::size_t sequence, std::span<const std::size_t> rows) {
    for (auto at = open_.begin(); at != open_.end(); ++at) {
      if (at->first != sequence) continue;
      if (!faults_.keeps_rejected) caches_[sequence].resize(at->second + rows.size());
      open_.erase(at);
      return;
    }
  }

 private:
  std::vector<std::vector<Token>> caches_;
  std::vector<std::pair<std::size_t, std::size_t>> open_;  // sequences of the pass, with the rows before it
  Faults faults_;
};
Report check_server(const Faults& faults) {
  const std::vector<std::vector<Token>> prompts = {prompt_of(67), prompt_of(70), prompt_of(80)};
  return check_batch([&] { return Server(prompts, faults); }, prompts);
}
const char* const together = "all sequences in a pass, without drafts";
const char* const some_wrong = "wrong drafts of some are rolled back";

TEST(RowEffect, IsToldFromRollbackInBatches) {
  for (const std::size_t most : {1U, 2U, 6U}) {
    const Report report = check_server({.other = [&](std::size_t rows) { return rows > most; }});
    EXPECT_EQ(report.find(together)->verdict, Verdict::wrong) << most << report.to_string();
    EXPECT_THAT(report.find(together)->message, HasSubstr("docs/lossless.md"));
    for (const Report::Finding& finding : report.findings) {
      if (finding.what != together) {
        EXPECT_NE(finding.verdict, Verdict::wrong) << finding.what << ": " << finding.message;
      }
    }
  }
  EXPECT_EQ(check_server({}).verdict(), Verdict::exact);
  for (const OtherKernel& other : {OtherKernel([](std::size_t) { return false; }), more_than_one})
    EXPECT_EQ(check_server({.other = other, .keeps_rejected = true}).find(some_wrong)->verdict, Verdict::wrong);
}

}  // namespace
}  // namespace reprise::testing::row_effect_test
