// SPDX-License-Identifier: Apache-2.0
#include "replay/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "replay/input_error.hpp"

namespace reprise::replay {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

using Arguments = std::vector<std::string>;

std::string refused(const Arguments& arguments) {
  try {
    parse_options(arguments);
    return "accepted";
  } catch (const InputError& error) {
    return error.what();
  }
}

TEST(Options, AreTheDefaultsWithoutArguments) {
  const Options options = parse_options({});
  EXPECT_THAT(options.strategies, IsEmpty());
  EXPECT_THAT(options.costs, IsEmpty());
  EXPECT_THAT(options.traces, IsEmpty());
  EXPECT_EQ(options.format, Format::table);
  EXPECT_EQ(options.limit, unlimited);
  EXPECT_EQ(options.threads, 1U);
  EXPECT_FALSE(options.by_category || options.list || options.help || options.version);
}

TEST(Options, HoldWhatTheArgumentsSay) {
  const Options options = parse_options(Arguments{"a.jsonl", "--strategy", "pld", "--strategy=hf:n=3", "--cost",
                                                  "linear:1", "--memory", "session", "--by-category", "--format=json",
                                                  "--output", "x.json", "--limit", "5", "--threads=2", "b.jsonl"});
  EXPECT_THAT(options.strategies, ElementsAre("pld", "hf:n=3"));
  EXPECT_THAT(options.costs, ElementsAre("linear:1"));
  EXPECT_THAT(options.traces, ElementsAre("a.jsonl", "b.jsonl"));
  EXPECT_TRUE(options.by_category);
  EXPECT_EQ(options.format, Format::json);
  EXPECT_EQ(options.output, "x.json");
  EXPECT_EQ(options.limit, 5U);
  EXPECT_EQ(options.threads, 2U);
  EXPECT_EQ(parse_options(Arguments{"--format", "csv"}).format, Format::csv);
  EXPECT_TRUE(parse_options(Arguments{"--list"}).list);
  EXPECT_TRUE(parse_options(Arguments{"-h"}).help);
  EXPECT_TRUE(parse_options(Arguments{"--version"}).version);
}

TEST(Options, TakeEverythingBehindTwoDashesAsTraces) {
  EXPECT_THAT(parse_options(Arguments{"--", "--list", "-x"}).traces, ElementsAre("--list", "-x"));
}

TEST(Options, RefuseWhatTheyDoNotKnow) {
  EXPECT_EQ(refused({"--foo"}), "there is no option --foo; see --help for those there are");
  EXPECT_THAT(refused({"-x"}), HasSubstr("no option -x"));
  EXPECT_THAT(refused({"--format", "xml"}), HasSubstr("there are table, json and csv"));
  EXPECT_THAT(refused({"--memory", "future"}), HasSubstr("there are session and past"));
  EXPECT_THAT(refused({""}), HasSubstr("empty"));
}

TEST(Options, RefuseMemoryOfPastSessionsAndSayWhy) {
  EXPECT_THAT(refused({"--memory", "past"}), HasSubstr("no strategy keeps memory from session to session"));
}

TEST(Options, RefuseMissingAndSuperfluousValues) {
  for (const char* name : {"--strategy", "--cost", "--memory", "--format", "--output", "--limit", "--threads"}) {
    EXPECT_THAT(refused({name}), HasSubstr("needs a value")) << name;
    EXPECT_THAT(refused({std::string(name) + "="}), HasSubstr("needs a value")) << name;
    EXPECT_THAT(refused({name, ""}), HasSubstr("needs a value")) << name;
  }
  EXPECT_THAT(refused({"--list=yes"}), HasSubstr("takes no value"));
}

TEST(Options, RefuseNumbersThatAreNone) {
  for (const char* value :
       {"0", "-1", "x", "1x", " 1", "+1", "1.5", "1e3", "99999999999999999999", "-99999999999999999999"}) {
    EXPECT_THAT(refused({"--limit", value}), HasSubstr("expected a number of sessions")) << value;
    EXPECT_THAT(refused({"--threads", value}), HasSubstr("expected a number of threads, from 1 to 1024")) << value;
  }
  EXPECT_THAT(refused({"--threads", "1025"}), HasSubstr("from 1 to 1024"));
}

TEST(Options, RefuseTheSameOptionTwice) {
  EXPECT_THAT(refused({"--limit", "1", "--limit=2"}), HasSubstr("--limit is given twice"));
  EXPECT_THAT(refused({"--list", "--list"}), HasSubstr("given twice"));
}

TEST(HelpText, NamesEveryOption) {
  for (const char* name : {"--strategy SPEC", "--cost CURVE", "--memory", "--by-category", "--format", "--output FILE",
                           "--limit N", "--threads N", "--list", "--help", "--version", "TRACE"})
    EXPECT_THAT(std::string(help_text()), HasSubstr(name));
}

}  // namespace
}  // namespace reprise::replay
