// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "support/refusal.hpp"

namespace reprise::llama::llama_options_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

/// Returns the arguments `more` after a model and a prompt.
std::vector<std::string> with(std::vector<std::string> more) {
  more.insert(more.begin(), {"--model", "m.gguf", "--prompt", "hello"});
  return more;
}
Options parsed(const std::vector<std::string>& arguments) { return parse_options(arguments); }
std::string refused(const std::vector<std::string>& arguments) {
  return testing::refusal([&] { return parse_options(arguments); });
}

TEST(LlamaOptions, HaveDefaults) {
  const Options options = parsed(with({}));
  EXPECT_EQ(options.engine.model, "m.gguf");
  EXPECT_EQ(options.inputs.prompt, "hello");
  EXPECT_EQ(options.engine.context, 4096U);
  EXPECT_EQ(options.inputs.max_tokens, 256U);
  EXPECT_EQ(options.engine.sequences, 1U);
  EXPECT_EQ(options.cost, "learned");
  EXPECT_TRUE(options.sampling.plain());
  EXPECT_FALSE(options.compare || options.flips);
}

TEST(LlamaOptions, TakeOneHalfOfTheSessions) {
  const auto sessions = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"--model", "m.gguf", "--prompts", "p.jsonl"});
    return more;
  };
  EXPECT_EQ(parsed(sessions({})).part, replay::TracePart::all);
  EXPECT_EQ(parsed(sessions({"--record=r", "--part=a"})).part, replay::TracePart::a);
  const Options warm = parsed(sessions({"--compare", "--part", "b", "--memory=past", "--warm", "--again=3"}));
  EXPECT_EQ(warm.part, replay::TracePart::b);
  EXPECT_TRUE(warm.warm);
  EXPECT_EQ(warm.again, 3U);
  EXPECT_THAT(refused(sessions({"--part=c"})), HasSubstr("--part c"));
  EXPECT_THAT(refused(with({"--part=a"})), HasSubstr("--part applies to files of sessions"));
  EXPECT_THAT(refused({"--model", "m", "--trace", "t", "--flips", "--part=a"}), HasSubstr("--flips and --part"));
  EXPECT_THAT(refused(sessions({"--part=b", "--memory=past", "--warm"})),
              HasSubstr("--warm is an option of --compare"));
  EXPECT_THAT(refused(sessions({"--compare", "--part=b", "--warm"})), HasSubstr("--warm needs --memory past"));
  EXPECT_THAT(refused(sessions({"--compare", "--memory=past", "--warm"})), HasSubstr("give --part a or --part b"));
  EXPECT_THAT(refused(sessions({"--again=3"})), HasSubstr("--again is an option of --compare"));
}

TEST(LlamaOptions, HoldWhatTheArgumentsSay) {
  const Options options = parsed(
      with({"--compare", "--strategy=hf:n=3", "--strategy=none", "--repeat=3", "--epsilon=0.5",
            "--cost-model=linear:0.1", "--temperature=0.5", "--seed=9", "--threads=1", "--context=128", "--leaves=4",
            "--cost=linear:0.2", "--format=json", "--output=o", "--raw", "--max-tokens=5", "--verbose"}));
  EXPECT_TRUE(options.compare && options.inputs.raw && options.engine.verbose);
  EXPECT_THAT(options.strategies, ElementsAre("hf:n=3", "none"));
  EXPECT_EQ(options.repeat, 3U);
  EXPECT_DOUBLE_EQ(options.epsilon, 0.5);
  EXPECT_EQ(options.cost_model, "linear:0.1");
  EXPECT_DOUBLE_EQ(options.sampling.temperature, 0.5);
  EXPECT_EQ(options.sampling.seed, 9U);
  EXPECT_EQ(options.engine.threads, 1);
  EXPECT_EQ(options.engine.context, 128U);
  EXPECT_EQ(options.engine.sequences, 4U);  // one for each leaf
  EXPECT_TRUE(options.json);
  EXPECT_EQ(options.inputs.max_tokens, 5U);
}

TEST(LlamaOptions, TakeTheNumberOfTopKTokensToRecord) {
  EXPECT_EQ(parsed(with({"--record", "r", "--top-k", "8"})).record_top_k, 8U);
  EXPECT_EQ(parsed(with({"--record", "r"})).record_top_k, 0U);
  for (const char* top_k : {"0", "1025"})
    EXPECT_THAT(refused(with({"--record", "r", "--top-k", top_k})),
                HasSubstr(std::string("--top-k ") + top_k + ": expected a whole number from 1 to 1024"));
  EXPECT_THAT(refused(with({"--top-k", "8"})), HasSubstr("--top-k is an option of --record"));
}

TEST(LlamaOptions, TakePicksFromARecordingOnlyWhereThereIsOne) {
  const auto traced = [](std::vector<std::string> more) {
    more.insert(more.begin(), {"--model", "m", "--trace", "t", "--picks", "recorded"});
    return more;
  };
  EXPECT_EQ(parsed(with({"--compare"})).picks, PickSource::target);
  EXPECT_EQ(parsed(with({"--compare", "--picks", "target", "--epsilon=1"})).picks, PickSource::target);
  EXPECT_EQ(parsed(traced({"--compare"})).picks, PickSource::recorded);
  EXPECT_EQ(parsed(traced({"--compare", "--repeat=2", "--leaves=64"})).picks, PickSource::recorded);
  EXPECT_THAT(refused(with({"--compare", "--picks", "recorded"})), HasSubstr("--picks recorded takes the tokens of a"));
  EXPECT_THAT(refused(traced({})), HasSubstr("is an option of --compare"));
  EXPECT_THAT(refused(traced({"--compare", "--epsilon=1"})), HasSubstr("--picks and --epsilon"));
  EXPECT_THAT(refused(traced({"--compare", "--temperature=1"})), HasSubstr("recorded draws nothing"));
  EXPECT_THAT(refused(with({"--compare", "--picks", "mine"})), HasSubstr("--picks mine"));
  EXPECT_FALSE(parsed(with({"--compare"})).prompt_rows);
  EXPECT_TRUE(parsed(with({"--compare", "--prompt-rows"})).prompt_rows);
  EXPECT_THAT(refused(with({"--prompt-rows"})), HasSubstr("is an option of --compare"));
}

TEST(LlamaOptions, KeepAPastOnlyWhereEachSessionRunsOnce) {
  EXPECT_EQ(parsed(with({"--compare"})).kept, replay::Kept::session);
  EXPECT_EQ(parsed(with({"--compare", "--memory", "past"})).kept, replay::Kept::past);
  EXPECT_EQ(parsed(with({"--compare", "--memory=session", "--repeat=2"})).repeat, 2U);
  EXPECT_THAT(refused(with({"--compare", "--memory=past", "--repeat=2"})),
              HasSubstr("--repeat does not go with --memory past"));
  EXPECT_THAT(refused(with({"--compare", "--memory=past", "--cost-model=linear:0"})),
              HasSubstr("--cost-model does not go with --memory past"));
  EXPECT_THAT(refused(with({"--memory", "gone"})), HasSubstr("--memory gone"));
  EXPECT_THAT(refused(with({"--compare", "--snapshot-in=m"})), HasSubstr("--snapshot-in needs --memory past"));
  EXPECT_THAT(refused(with({"--compare", "--snapshot-out=m"})), HasSubstr("--snapshot-out needs --memory past"));
  EXPECT_THAT(refused(with({"--memory=past", "--fingerprint=3"})), HasSubstr("--fingerprint needs --snapshot-in or"));
  EXPECT_THAT(refused(with({"--memory=past", "--snapshot-in=m", "--fingerprint=x"})), HasSubstr("--fingerprint x"));
  EXPECT_EQ(parsed(with({"--memory=past", "--snapshot-in=m", "--snapshot-out=m", "--fingerprint=3"})).fingerprint, 3U);
  EXPECT_THAT(refused(with({"--memory=past", "--snapshot-in=m", "--output=m"})),
              HasSubstr("--output m: is given for something else"));
  EXPECT_THAT(refused(with({"--memory=past", "--snapshot-out=m.gguf"})),
              HasSubstr("--snapshot-out m.gguf: is given for something else"));
  EXPECT_THAT(refused(with({"--record", "r", "--memory=past"})), HasSubstr("nothing is drafted there"));
}

TEST(LlamaOptions, TakeFilesBehindTheOptionTheyBelongTo) {
  const Options options =
      parsed({"--model", "m", "--prompts", "a", "b", "--limit", "2", "--prompts", "c", "--compare"});
  EXPECT_THAT(options.inputs.prompts, ElementsAre("a", "b", "c"));
  EXPECT_EQ(options.inputs.limit, 2U);
  EXPECT_THAT(refused({"--model", "m", "--prompts", "a", "--compare", "b"}), HasSubstr("'b' belongs to no option"));
}

TEST(LlamaOptions, MakeRoomForWhatAProfileMeasures) {
  const Options options = parsed({"--model", "m", "--profile", "p.json", "--contexts", "10,1000", "--sequences=1,3"});
  EXPECT_THAT(options.contexts, ElementsAre(10U, 1000U));
  EXPECT_THAT(options.sequences, ElementsAre(1U, 3U));
  EXPECT_EQ(options.engine.sequences, 3U);
  EXPECT_GE(options.engine.context, 3 * (1000U + 33U));
  EXPECT_FALSE(options.engine.unified);
}

TEST(LlamaOptions, MakeRoomForManySequences) {
  const Options options = parsed(with({"--sequences", "1,8,4", "--rules", "plain,told,2", "--chunk=0", "--repeat=3",
                                       "--epsilon=0.1", "--cost", "linear:0.1"}));
  EXPECT_TRUE(options.batched);
  EXPECT_THAT(options.sequences, ElementsAre(1U, 8U, 4U));
  EXPECT_THAT(options.rules, ElementsAre("plain", "told", "2"));
  EXPECT_EQ(options.chunk, 0U);
  EXPECT_EQ(options.repeat, 3U);
  EXPECT_EQ(options.engine.sequences, 8U);
  EXPECT_TRUE(options.engine.unified);
  EXPECT_FALSE(parsed(with({"--sequences", "2", "--cache", "separate"})).engine.unified);
  EXPECT_TRUE(parsed({"--model", "m", "--profile", "p", "--cache", "unified"}).engine.unified);
  EXPECT_FALSE(parsed({"--model", "m", "--profile", "p", "--sequences", "2"}).batched);
  EXPECT_THAT(refused(with({"--sequences", "65"})), HasSubstr("from 1 to 64"));
  EXPECT_THAT(refused(with({"--chunk", "8"})), HasSubstr("--chunk is an option of --sequences"));
  EXPECT_THAT(refused(with({"--rules", "plain"})), HasSubstr("--rules is an option of --sequences"));
  EXPECT_THAT(refused(with({"--cache", "unified"})), HasSubstr("--cache is an option of --sequences and of --profile"));
  for (const char* other : {"--compare", "--record=r", "--leaves=2", "--memory=past"})
    EXPECT_THAT(refused(with({"--sequences", "2", other})), HasSubstr("--sequences and --")) << other;
  EXPECT_THAT(refused({"--model", "m", "--trace", "t", "--flips", "--sequences", "2"}),
              HasSubstr("--sequences and --flips"));
  EXPECT_THAT(refused(with({"--sequences", "2", "--picks", "target"})), HasSubstr("--picks is an option of --compare"));
}

TEST(LlamaOptions, RefuseWhatIsNoNumberOrOutOfBounds) {
  EXPECT_THAT(refused(with({"--threads", "0"})), HasSubstr("--threads 0: expected a whole number from 1"));
  EXPECT_THAT(refused(with({"--temperature", "hot"})), HasSubstr("--temperature hot: expected a number"));
  EXPECT_THAT(refused(with({"--temperature=1", "--seed", "4294967295"})), HasSubstr("to 4294967294"));
  EXPECT_THAT(refused(with({"--format", "csv"})), HasSubstr("the choices are table and json"));
  EXPECT_THAT(refused({"--model", "m", "--profile", "p", "--contexts", "1,"}), HasSubstr("--contexts 1,: expected"));
  EXPECT_THAT(refused({"--model", "m", "--profile", "p", "--sequences=2,,3"}),
              HasSubstr("--sequences 2,,3: expected whole numbers with commas between them, each from 1 to 64"));
}

TEST(LlamaOptions, RefuseWhatIsUnknownOrMissing) {
  EXPECT_THAT(refused({"--prompt", "a"}), HasSubstr("--model is missing"));
  EXPECT_THAT(refused({"--model", "m"}), HasSubstr("nothing to generate"));
  EXPECT_THAT(refused(with({"--strategy", "magic"})), HasSubstr("there is no strategy magic; the choices are ngram"));
  EXPECT_EQ(refused({"--help"}), "accepted");
}

TEST(LlamaOptions, RefuseWhatDoesNotGoTogether) {
  EXPECT_THAT(refused(with({"--trace", "t"})), HasSubstr("--prompt and --trace do not go together"));
  EXPECT_THAT(refused(with({"--seed", "1"})), HasSubstr("--temperature above 0"));
  EXPECT_THAT(refused(with({"--epsilon", "1"})), HasSubstr("--epsilon is an option of --compare"));
  EXPECT_THAT(refused(with({"--strategy", "hf:n=1..3"})), HasSubstr("only --compare"));
  EXPECT_THAT(refused(with({"--limit", "1"})), HasSubstr("--limit"));
  EXPECT_THAT(refused({"--model", "m", "--trace", "t", "--max-tokens", "5"}), HasSubstr("a trace has tokens"));
  EXPECT_THAT(refused(with({"--record", "r", "--compare"})), HasSubstr("--compare and --record"));
  EXPECT_THAT(refused(with({"--record", "r", "--temperature", "1"})), HasSubstr("likeliest"));
  EXPECT_THAT(refused(with({"--record", "r", "--grammar", "g"})), HasSubstr("--record and --grammar"));
  EXPECT_THAT(refused(with({"--grammar", "g", "--output", "g"})), HasSubstr("--output g: is given for something else"));
  EXPECT_THAT(refused(with({"--record", "r", "--strategy", "hf"})), HasSubstr("nothing is drafted"));
  EXPECT_THAT(refused(with({"--flips"})), HasSubstr("give --trace"));
  EXPECT_THAT(refused(with({"--profile", "p"})), HasSubstr("leave out --prompt"));
  EXPECT_EQ(parsed({"--model", "m", "--profile", "p"}).most_drafted, 32U);
  EXPECT_EQ(parsed({"--model", "m", "--profile", "p", "--most-drafted", "8", "--sequences", "16"}).engine.batch, 512U);
  EXPECT_EQ(parsed({"--model", "m", "--profile", "p", "--most-drafted", "31", "--sequences", "20"}).engine.batch, 640U);
  EXPECT_THAT(refused({"--model", "m", "--profile", "p", "--most-drafted", "33"}), HasSubstr("from 1 to 32"));
  EXPECT_THAT(refused(with({"--most-drafted", "9"})), HasSubstr("--most-drafted is an option of --profile"));
  EXPECT_THAT(refused(with({"--pass-times", "9"})), HasSubstr("--pass-times is an option of --profile"));
  EXPECT_THAT(refused({"--model", "m", "--profile", "p", "--pass-times", "6"}), HasSubstr("from 7 to 100000"));
  EXPECT_EQ(parsed({"--model", "m", "--profile", "p", "--pass-times", "7"}).pass_times, 7U);
  EXPECT_THAT(refused(with({"--record", "r", "--output", "r"})), HasSubstr("--output r: is given for something else"));
  EXPECT_THAT(refused({"--model", "m", "--prompts", "a", "p", "--output", "p"}), HasSubstr("--output p: is given"));
  EXPECT_EQ(refused(with({"--record", "r", "--output", "o"})), "accepted");
  for (const char* name : {"--raw", "--max-tokens=5", "--limit=1"})
    EXPECT_THAT(refused({"--model", "m", "--profile", "p", name}), HasSubstr("--profile and --")) << name;
  EXPECT_THAT(refused(with({"--record", "r", "--format=json"})), HasSubstr("--format is an option of --compare"));
  EXPECT_EQ(refused({"--model", "m", "--trace", "t", "--flips", "--limit=1", "--format=json"}), "accepted");
}

TEST(LlamaOptions, HelpFitsInto100Columns) {
  std::istringstream lines(help_text());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

}  // namespace
}  // namespace reprise::llama::llama_options_test
