// SPDX-License-Identifier: Apache-2.0
#include "replay/strategies.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <numeric>
#include <string>
#include <vector>

#include "common/input_error.hpp"
#include "replay/table_strategy.hpp"
#include "support/lent_context.hpp"
#include "support/refusal.hpp"

namespace reprise::replay::strategies_test {
namespace {

using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::Not;

using Tokens = std::vector<Token>;

/// Returns the strategy's draft after `context`.
Tokens drafted(const std::string& spec, const Tokens& context) {
  AnyStrategy strategy = make_runs(spec).front().strategy;
  strategy.begin(context);
  return testing::propose(strategy, context, {.max_nodes = 32}).tokens();
}

std::string refused(const std::string& spec) {
  return testing::refusal([&] { return make_runs(spec); });
}

TEST(Strategies, CanAllBeMadeWithTheirDefaults) {
  for (const StrategyInfo& info : strategies()) {
    EXPECT_EQ(make_runs(info.name).size(), 1U) << info.name;
    for (const KeyInfo& key : info.keys) {
      const std::string spec =
          std::string(info.name) + ":" + std::string(key.name) + "=" + std::string(key.default_value);
      EXPECT_EQ(make_runs(spec).front().spec, spec);
    }
  }
}

TEST(Strategies, TakeEveryWordThatTheyList) {
  for (const StrategyInfo& info : strategies())
    for (const KeyInfo& key : info.keys)
      for (const std::string_view word : key.words)
        EXPECT_NO_THROW(make_runs(std::string(info.name) + ":" + std::string(key.name) + "=" + std::string(word)));
}

// A setting without an effect is a bug, so each one must change a draft.
TEST(Strategies, ObeyTheirSettings) {
  const Tokens context = {1, 2, 3, 4, 5, 6, 7, 9, 2, 3, 4, 8, 9, 1, 2, 3};
  EXPECT_THAT(drafted("pld:k=2", context), ElementsAre(4, 5));
  EXPECT_THAT(drafted("pld:k=4", context), ElementsAre(4, 5, 6, 7));
  EXPECT_THAT(drafted("pld:n=2,k=1", {1, 2, 5, 3, 2, 6, 7, 3, 2}), ElementsAre(6));
  EXPECT_THAT(drafted("pld:n=1,k=1", {1, 2, 5, 3, 2, 6, 7, 3, 2}), ElementsAre(5));
  EXPECT_THAT(drafted("hf:k=3", context), ElementsAre(4, 5, 6));
  EXPECT_THAT(drafted("hf:n=1,k=1", {1, 2, 5, 3, 2, 6, 7, 3, 2}), ElementsAre(5));
  EXPECT_THAT(drafted("vllm:min=3,max=3,k=2", context), ElementsAre(4, 5));
  EXPECT_THAT(drafted("vllm:min=4,max=5", context), IsEmpty());
  EXPECT_THAT(drafted("ngram-simple:n=2,m=5", context), ElementsAre(4, 8, 9, 1, 2));
  EXPECT_THAT(drafted("ngram-simple:n=3,m=5", context), IsEmpty()) << "the only match is at the very beginning";
  EXPECT_THAT(drafted("ds4:n=2,k=3", context), ElementsAre(4, 8, 9));
  EXPECT_THAT(drafted("ds4:n=2,k=3,eos=8", context), ElementsAre(4, 8));
  EXPECT_THAT(drafted("ds4", context), IsEmpty());
  EXPECT_THAT(drafted("copy:k=2", context), ElementsAre(4, 5)) << "1 2 3 agrees furthest";
  EXPECT_THAT(drafted("copy:k=2,max_ngram=2", context), ElementsAre(4, 8)) << "the most recent 2 3";
  EXPECT_THAT(drafted("copy:k=2,max_ngram=2,prefer=earliest", context), ElementsAre(4, 5));
  EXPECT_THAT(drafted("copy:min_ngram=4,k=2", context), IsEmpty());
  const Tokens votes = {2, 5, 0, 2, 5, 1, 2, 6, 3, 2};
  EXPECT_THAT(drafted("copy:k=1", votes), ElementsAre(6));
  EXPECT_THAT(drafted("copy:k=1,prefer=frequent", votes), ElementsAre(5));
  EXPECT_THAT(drafted("copy:k=1,prefer=frequent,candidates=1", votes), ElementsAre(6));
  EXPECT_THAT(drafted("copy:k=5", {1, 2, 1, 2}), ElementsAre(1, 2, 1, 2, 1));
  EXPECT_THAT(drafted("copy:k=5,past_end=no", {1, 2, 1, 2}), ElementsAre(1, 2));
  EXPECT_THAT(drafted("adaptive", context), ElementsAre(4, 5, 6, 7, 9, 2, 3, 4, 8, 9, 1, 2, 3)) << "all it has";
  EXPECT_THAT(drafted("none", context), IsEmpty());
  const Tokens table = {1, 2, 3, 5, 9, 2, 3, 6, 7, 1, 2, 3};
  EXPECT_THAT(drafted("token-table:n=3,k=4", table), ElementsAre(5, 9, 2, 3));
  EXPECT_THAT(drafted("token-table:n=3", table).size(), 32U) << "3 6 7 and 7 1 2 lead back to 1 2 3";
  EXPECT_THAT(drafted("token-table:n=2,k=4", table), ElementsAre(6, 7, 1, 2)) << "the latest 2 3";
  EXPECT_THAT(drafted("token-table", table), IsEmpty()) << "16 tokens have to agree";
  EXPECT_THAT(drafted("token-table:preset=mlx-lm,n=3", table), ElementsAre(5, 9, 2));
  EXPECT_THAT(drafted("token-table:preset=llama.cpp,n=2", {7, 8, 9, 5, 6, 4, 7, 8}), IsEmpty()) << "fewer than 48";
  EXPECT_THAT(drafted("token-table:preset=llama.cpp,n=2,min=5", {7, 8, 9, 5, 6, 4, 7, 8}), ElementsAre(9, 5, 6, 4, 7))
      << "4 7 8 is not learned before there is something behind it";
  EXPECT_THAT(drafted("token-table:preset=llama.cpp,n=2,min=6", {7, 8, 9, 5, 6, 4, 7, 8}), IsEmpty());
  const Tokens grams = {1, 2, 3, 1, 2, 4, 1, 2, 3, 1, 2};
  EXPECT_THAT(drafted("token-recycling", grams), ElementsAre(0, 0, 0, 0, 0, 0)) << "no row was shown";
  EXPECT_THAT(drafted("racer:ngram=3,nodes=3,refill=no", grams), ElementsAre(3, 4));
  EXPECT_THAT(drafted("racer:ngram=3,nodes=3", grams), ElementsAre(3, 4, 0));
  EXPECT_THAT(drafted("racer:ngram=3,nodes=1,refill=no", grams), ElementsAre(3));
  EXPECT_THAT(drafted("racer:nodes=3,refill=no", grams), ElementsAre(3, 1))
      << "of four nodes, 1 2 and 1 2 3 1 2 take two";
  Tokens many(62);
  for (std::size_t i = 0; i < many.size(); ++i) many[i] = static_cast<Token>(i % 60 + 1);
  EXPECT_THAT(drafted("racer:nodes=1", many), ElementsAre(3));
  EXPECT_THAT(drafted("racer:nodes=1,trie=34", many), ElementsAre(0)) << "the first n-grams are evicted";
  EXPECT_EQ(drafted("ngram:index=naive", context), drafted("ngram", context));
  for (const char* spec : {"copy", "pld:k=2", "hf", "vllm", "ngram-simple:n=2,m=5", "ds4:n=2"})
    for (const char* index : {"rolling_hash", "suffix_array", "naive"})
      EXPECT_EQ(
          drafted(std::string(spec) + (std::string(spec).find(':') == std::string::npos ? ":" : ",") + "index=" + index,
                  context),
          drafted(spec, context))
          << spec << " " << index;
}

TEST(Strategies, JudgeChainsOfATableBeyondWhatIsSent) {
  Tokens context(42);
  for (std::size_t i = 0; i < context.size(); ++i) context[i] = static_cast<Token>(i);
  context.insert(context.end(), {50, 0, 1});  // after 0 1: 40 tokens, 50 and 0, then nothing learned
  EXPECT_EQ(drafted("token-table:preset=llama.cpp,n=2,min=42", context).size(), 32U);
  EXPECT_THAT(drafted("token-table:preset=llama.cpp,n=2,min=43", context), IsEmpty());
  EXPECT_THAT(drafted("token-table:preset=llama.cpp,n=2", context), IsEmpty()) << "48";
}

TEST(Strategies, FailWithoutATable) {
  TableStrategy strategy({.bytes = 8}, {}, nullptr);
  EXPECT_THROW(strategy.begin(Tokens{1, 2}), tools::InputError);
}

TEST(Strategies, UseTheNextTokenCountsOfThePastUnlessToldOtherwise) {
  Past past;
  give_room(past, HistoryStore::bytes_for(64), std::size_t{1} << 20);
  for (const Tokens& text : {Tokens{1, 2, 3, 4, 5}, {7, 1, 2, 3, 4}, {1, 2, 3, 9}, {6, 1, 2, 3, 4}})
    past.memory->add(text);
  Tokens other(256);
  std::iota(other.begin(), other.end(), 1000);
  past.memory->add(other);  // the history has forgotten the rest
  const auto drafts = [&](const char* spec) {
    AnyStrategy strategy = make_runs(spec).front().with_past(past);
    const Tokens context = {90, 80, 70, 60, 1, 2};
    strategy.begin(context);
    return testing::propose(strategy, context, {.max_nodes = 8}).tokens();
  };
  EXPECT_THAT(drafts("ngram"), Contains(3));
  EXPECT_THAT(drafts("ngram:next_tokens=no"), Not(Contains(3)));
}

TEST(Strategies, DraftFromThePastAloneByTheRuleOfRest) {
  Past past;
  give_room(past, std::size_t{1} << 20);
  for (const Tokens& text : {Tokens{1, 2, 3, 4, 5}, {7, 1, 2, 3, 4}, {1, 2, 3, 9}, {6, 1, 2, 8}})
    past.memory->add(text);
  const Tokens context = {1, 2, 9, 9, 1, 2};
  const auto drafts = [&](const char* spec) {
    AnyStrategy strategy = make_runs(spec).front().with_past(past);
    strategy.begin(context);
    return testing::propose(strategy, context, {.max_nodes = 64}).tokens();
  };
  EXPECT_THAT(drafts("rest"), ElementsAre(3, 4, 8, 9, 5));
  EXPECT_THAT(drafts("rest:nodes=2"), ElementsAre(3, 4));
  EXPECT_THAT(drafts("rest:k=1"), ElementsAre(3, 8));
  EXPECT_THAT(drafts("rest:places=1"), ElementsAre(8)) << "the latest one";
  EXPECT_THAT(drafts("rest:min_ngram=3"), IsEmpty());
  EXPECT_THAT(drafts("rest:nodes=4"), ElementsAre(3, 4, 8, 9));
  EXPECT_THAT(drafts("rest:nodes=4,cut=yes"), ElementsAre(3, 4, 8)) << "the paths have 1, 2, 1 and 2 tokens";
  EXPECT_THAT(drafts("rest:max_ngram=1,min_ngram=1"), ElementsAre(3, 4, 8, 9, 5));
  EXPECT_THAT(drafted("rest", context), IsEmpty()) << "the context is no datastore";
  EXPECT_EQ(refused("rest:max_ngram=2,min_ngram=3"),
            "--strategy rest:max_ngram=2,min_ngram=3: min_ngram is larger than max_ngram (3, limit 2)");
}

TEST(Strategies, WantRowsUnlessToldOtherwise) {
  EXPECT_EQ(make_runs("ngram").front().strategy.top_k_wanted(), 8U);
  EXPECT_EQ(make_runs("ngram:rows=no").front().strategy.top_k_wanted(), 0U);
  EXPECT_EQ(make_runs("racer").front().strategy.top_k_wanted(), 8U);
}

TEST(Strategies, DraftNothingWithALengthOfZero) {
  const Tokens context = {1, 2, 3, 4, 5, 6, 7, 8, 9, 1, 2, 3, 4, 5, 6, 7, 8, 1, 2, 3, 4};
  for (const char* spec :
       {"copy:k=0", "pld:k=0", "hf:k=0", "vllm:k=0", "ngram-simple:m=0", "ds4:k=0", "token-table:n=2,k=0"})
    EXPECT_THAT(drafted(spec, context), IsEmpty()) << spec;
}

}  // namespace
}  // namespace reprise::replay::strategies_test
