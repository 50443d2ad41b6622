// SPDX-License-Identifier: Apache-2.0
#include "replay/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <vector>

#include "replay/advice.hpp"
#include "support/refusal.hpp"

namespace reprise::replay::replay_options_test {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::StartsWith;

using Arguments = std::vector<std::string>;

std::string refused(const Arguments& arguments) {
  return testing::refusal([&] { return parse_options(arguments); });
}

TEST(Options, AreTheDefaultsWithoutArguments) {
  const Options options = parse_options({});
  EXPECT_THAT(options.strategies, IsEmpty());
  EXPECT_THAT(options.costs, IsEmpty());
  EXPECT_THAT(options.traces, IsEmpty());
  EXPECT_FALSE(options.json);
  EXPECT_EQ(options.limit, unlimited);
  EXPECT_EQ(options.threads, 1U);
  EXPECT_FALSE(options.by_category || options.list || options.help || options.version);
  EXPECT_THAT(options.controls, IsEmpty());
  EXPECT_EQ(options.settings.max_nodes, 32U);
  EXPECT_EQ(options.settings.cost_known, CostKnown::told);
  EXPECT_EQ(options.part, TracePart::all);
}

TEST(Options, AreTheDefaultsOfTheLibrary) {
  // An engine with only verify() and commit(): chains, and no top_k(i).
  EXPECT_EQ(parse_options({}).settings.trees, Capabilities().max_leaves > 1);
  EXPECT_FALSE(parse_options({}).settings.trees);
  EXPECT_FALSE(parse_options({}).settings.top_k);
  EXPECT_EQ(AdvisedSettings().trees, parse_options({}).settings.trees);
}

TEST(Options, HoldWhatTheArgumentsSay) {
  const Options options = parse_options(Arguments{"a.jsonl", "--strategy", "pld", "--strategy=hf:n=3", "--cost",
                                                  "linear:1", "--memory", "session", "--by-category", "--format=json",
                                                  "--output", "x.json", "--limit", "5", "--threads=2", "b.jsonl"});
  EXPECT_THAT(options.strategies, ElementsAre("pld", "hf:n=3"));
  EXPECT_THAT(options.costs, ElementsAre("linear:1"));
  EXPECT_THAT(options.traces, ElementsAre("a.jsonl", "b.jsonl"));
  EXPECT_TRUE(options.by_category);
  EXPECT_TRUE(options.json);
  EXPECT_EQ(options.output, "x.json");
  EXPECT_EQ(options.limit, 5U);
  EXPECT_EQ(options.threads, 2U);
  EXPECT_TRUE(parse_options(Arguments{"--list"}).list);
  EXPECT_TRUE(parse_options(Arguments{"-h"}).help);
  EXPECT_TRUE(parse_options(Arguments{"--version"}).version);
}

TEST(Options, HoldHowToReplay) {
  const Options options =
      parse_options(Arguments{"--control", "cost", "--control=best:1..2", "--cost-known", "learned", "--noise", "0.25",
                              "--seed=7", "--max-nodes", "11", "--shape", "chain", "--part", "b"});
  std::vector<std::string> controls;
  for (const ControlSpec& spec : options.controls) controls.push_back(spec.text());
  EXPECT_THAT(controls, ElementsAre("cost", "best:1", "best:2"));
  EXPECT_EQ(options.settings.cost_known, CostKnown::learned);
  EXPECT_EQ(options.settings.noise, 0.25);
  EXPECT_EQ(options.settings.seed, 7U);
  EXPECT_EQ(options.settings.max_nodes, 11U);
  EXPECT_FALSE(options.settings.trees);
  EXPECT_EQ(options.part, TracePart::b);
  EXPECT_TRUE(parse_options(Arguments{"--cost-known=told", "--shape=tree", "--part=a"}).settings.trees);
}

TEST(Options, SayWhetherTopKRowsAreShown) {
  EXPECT_FALSE(parse_options({}).top_k_given);
  EXPECT_FALSE(parse_options(Arguments{"--top-k", "off"}).settings.top_k);
  const Options on = parse_options(Arguments{"--top-k=on"});
  EXPECT_TRUE(on.settings.top_k && on.top_k_given);
  EXPECT_THAT(refused({"--top-k", "8"}), StartsWith("--top-k 8: "));
}

TEST(Options, HoldTheAssumedCosts) {
  const Options options = parse_options(Arguments{"--cost-known", "assumed", "--cost-prior", "linear:0.3"});
  EXPECT_EQ(options.settings.cost_known, CostKnown::assumed);
  EXPECT_EQ(options.settings.cost_prior, "linear:0.3");
  EXPECT_EQ(parse_options(Arguments{"--cost-known=learned", "--cost-prior=gpu-batch-1"}).settings.cost_prior,
            "gpu-batch-1");
  EXPECT_EQ(parse_options({}).settings.cost_prior, "");
}

TEST(Options, RefuseWaysToReplayThatThereAreNot) {
  EXPECT_THAT(refused({"--control", "best:65"}), HasSubstr("from 0 to 64"));
  EXPECT_THAT(refused({"--cost-known", "guessed"}), HasSubstr("the choices are told, learned, carried and assumed"));
  EXPECT_THAT(refused({"--shape", "bush"}), HasSubstr("the choices are chain and tree"));
  EXPECT_THAT(refused({"--part", "c"}), HasSubstr("the choices are all, a and b"));
  for (const char* nodes : {"0", "65", "x"})
    EXPECT_THAT(refused({"--max-nodes", nodes}), HasSubstr("from 1 to 64")) << nodes;
  for (const char* noise : {"-0.1", "0.6", "x", "nan"})
    EXPECT_THAT(refused({"--cost-known", "learned", "--noise", noise}), HasSubstr("from 0 to 0.5")) << noise;
}

TEST(Options, RefuseWhatHasNoEffect) {
  EXPECT_THAT(refused({"--noise", "0.1"}), HasSubstr("--noise needs --cost-known learned or carried"));
  EXPECT_THAT(refused({"--cost-known", "told", "--seed", "2"}),
              HasSubstr("--seed needs --cost-known learned or carried"));
  EXPECT_THAT(refused({"--cost-known", "assumed", "--seed", "2"}),
              HasSubstr("--seed needs --cost-known learned or carried"));
  EXPECT_THAT(refused({"--cost-prior", "gpu-batch-1"}),
              HasSubstr("--cost-prior needs --cost-known learned, carried or assumed"));
}

TEST(Options, RefuseWhatTheyDoNotKnow) {
  EXPECT_THAT(refused({"--format", "xml"}), HasSubstr("the choices are table and json"));
  EXPECT_THAT(refused({"--memory", "future"}), HasSubstr("the choices are session and past"));
  EXPECT_THAT(refused({""}), HasSubstr("empty"));
}

TEST(Options, HoldWhatIsKeptFromSessionToSession) {
  EXPECT_EQ(parse_options({}).settings.kept, Kept::session);
  EXPECT_EQ(parse_options({}).settings.memory_bytes, std::size_t{64} << 20);
  EXPECT_EQ(parse_options({}).fingerprint, 0U);
  const Options options = parse_options(Arguments{"--memory", "past", "--memory-bytes=5000", "--snapshot-in", "a",
                                                  "--snapshot-out=b", "--fingerprint", "18446744073709551615"});
  EXPECT_EQ(options.settings.kept, Kept::past);
  EXPECT_EQ(options.settings.memory_bytes, 5000U);
  EXPECT_TRUE(options.memory_bytes_given);
  EXPECT_FALSE(parse_options({}).memory_bytes_given);
  EXPECT_EQ(options.snapshot_in, "a");
  EXPECT_EQ(options.snapshot_out, "b");
  EXPECT_EQ(options.fingerprint, ~std::uint64_t{0});
  EXPECT_EQ(parse_options(Arguments{"--memory=session"}).settings.kept, Kept::session);
}

TEST(Options, RefuseWhatIsOfMemoriesWithoutOne) {
  for (const char* name : {"--memory-bytes", "--snapshot-in", "--snapshot-out"}) {
    const std::string message = name + std::string(" needs --memory past: with --memory session, nothing is kept");
    EXPECT_THAT(refused({name, "5"}), StartsWith(message));
    EXPECT_THAT(refused({"--memory", "session", name, "5"}), StartsWith(message));
    EXPECT_EQ(refused({"--memory", "past", name, "5"}), "accepted") << name;
  }
  EXPECT_THAT(refused({"--memory", "past", "--fingerprint", "5"}),
              HasSubstr("--fingerprint needs --snapshot-in, --snapshot-out or --corpus"));
  for (const char* number : {"-1", "x", "0x5", " 5", "18446744073709551616"})
    EXPECT_THAT(refused({"--memory", "past", "--snapshot-in", "a", "--fingerprint", number}),
                HasSubstr("expected a whole number from 0 to 2^64 - 1"));
  for (const char* number : {"0", "-1", "64m", "1099511627777"})
    EXPECT_THAT(refused({"--memory", "past", "--memory-bytes", number}), HasSubstr("expected a number of bytes"));
}

TEST(Options, RefuseNumbersOutOfBounds) {
  EXPECT_THAT(refused({"--limit", "0"}), HasSubstr("expected a number of sessions"));
  for (const char* threads : {"0", "1025"})
    EXPECT_THAT(refused({"--threads", threads}), HasSubstr("expected a number of threads, from 1 to 1024"));
}

TEST(HelpText, FitsInto100Columns) {
  std::istringstream lines(help_text());
  for (std::string line; std::getline(lines, line);) EXPECT_LE(line.size(), 100U) << line;
}

}  // namespace
}  // namespace reprise::replay::replay_options_test
