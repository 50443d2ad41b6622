// SPDX-License-Identifier: Apache-2.0
#include "common/options.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>

#include "support/refusal.hpp"

namespace reprise::tools::common_options_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

struct OptionTables : ::testing::Test {
  bool verbose = false;
  std::string name;
  std::vector<std::string> many, files, operands;
  std::uint32_t count = 0;
  double share = 0;
  int mode = 0;
  OptionTable table = [this] {
    OptionTable made;
    made.help_column = 16;
    made.operand = [this](const auto&, const auto& value) { operands.push_back(value); };
    made.rows = {{"", "", "usage: x\n\n"},
                 {"FILE", "", "is read"},
                 {.name = "--verbose", .help = "says more", .read = flag(verbose), .short_name = "-v"},
                 {"--name", "TEXT", "is shown,\n  twice", text(name)},
                 {.name = "--many", .value = "TEXT", .help = "and more", .read = texts(many), .repeats = true},
                 {.name = "--files", .value = "FILE...", .read = texts(files), .repeats = true, .list = true},
                 {.name = "--count", .value = "N", .help = "of them", .read = whole(count, 1, 9, "a digit")},
                 {"--share", "X", "", real(share, 0, 1, "from 0 to 1")},
                 {.name = "--mode",
                  .value = "MODE",
                  .help = "a long one",
                  .read = word<int>(mode, {{"one", 1}, {"two", 2}, {"three", 3}}),
                  .wanted = "one, two or three"}};
    return made;
  }();

  GivenOptions read(const std::vector<std::string>& arguments) { return parse(table, arguments); }
  std::string refused(const std::vector<std::string>& arguments) {
    return testing::refusal([&] { return read(arguments); });
  }
};

TEST_F(OptionTables, ReadValuesWithAnEqualsSignOrWithout) {
  const GivenOptions given = read({"--name", "a=b", "--count=7", "--share=0.5", "--mode", "two", "-v"});
  EXPECT_EQ(name, "a=b");
  EXPECT_EQ(count, 7U);
  EXPECT_EQ(share, 0.5);
  EXPECT_EQ(mode, 2);
  EXPECT_TRUE(verbose);
  EXPECT_TRUE(given("--name") && given("--verbose"));
  EXPECT_FALSE(given("--many"));
}
TEST_F(OptionTables, TakeAValueThatLooksLikeAnOption) {
  read({"--name", "--verbose"});
  EXPECT_EQ(name, "--verbose");
  EXPECT_FALSE(verbose);
}
TEST_F(OptionTables, TakeOperandsAndAfterDashesNothingElse) {
  read({"a", "-", "--many", "b", "--", "--many", "-v"});
  EXPECT_THAT(operands, ElementsAre("a", "-", "--many", "-v"));
  EXPECT_THAT(many, ElementsAre("b"));
  table.ends_with_dashes = false;
  EXPECT_EQ(refused({"--"}), "there is no option --; see --help");
}
TEST_F(OptionTables, GiveOperandsToAListUntilTheNextOption) {
  read({"--files", "a", "b", "--verbose", "c", "--files=d", "e", ""});
  EXPECT_THAT(files, ElementsAre("a", "b", "d", "e"));
  EXPECT_THAT(operands, ElementsAre("c", ""));
}
TEST_F(OptionTables, NameAnOptionThatIsSimilar) {
  EXPECT_EQ(refused({"--verbos"}), "there is no option --verbos; did you mean --verbose? see --help");
  EXPECT_EQ(refused({"--nmae"}), "there is no option --nmae; see --help") << "half of its letters differ";
  EXPECT_EQ(refused({"--counts=3"}), "there is no option --counts; did you mean --count? see --help");
}
TEST_F(OptionTables, RefuseWhatNoRowAllows) {
  EXPECT_EQ(refused({"--none=3"}), "there is no option --none; see --help");
  EXPECT_EQ(refused({"FILE"}), "accepted") << "an operand, though a row is called so";
  EXPECT_EQ(refused({"--name", "a", "--name=b"}), "--name is given twice; once is enough");
  EXPECT_EQ(refused({"--many", "a", "--many=b"}), "accepted");
  EXPECT_EQ(refused({"--verbose=yes"}), "--verbose takes no value, but got 'yes'");
  EXPECT_EQ(refused({"-v=yes"}), "--verbose takes no value, but got 'yes'");
  for (const std::vector<std::string>& missing :
       std::vector<std::vector<std::string>>{{"--name"}, {"--name="}, {"--name", ""}})
    EXPECT_EQ(refused(missing), "--name needs a value: --name TEXT");
  EXPECT_EQ(refused({"--mode"}), "--mode needs a value: --mode one, two or three");
  EXPECT_EQ(refused({"--count", "10"}), "--count 10: expected a digit from 1 to 9");
  EXPECT_EQ(refused({"--count", "7x"}), "--count 7x: expected a digit from 1 to 9");
  EXPECT_EQ(refused({"--share", "2"}), "--share 2: expected a number from 0 to 1");
  EXPECT_EQ(refused({"--mode", "four"}), "--mode four: the choices are one, two and three");
}
TEST(WholeNumbers, HaveBoundsAboveThirtyTwoBits) {
  std::size_t number = 0;
  const ReadValue read = whole(number, 1, std::uint64_t{1} << 40, "a number");
  read("--bytes", "4294967295");
  EXPECT_EQ(number, 4'294'967'295U);
  EXPECT_THROW(read("--bytes", "1099511627777"), InputError);
  EXPECT_EQ(number, 4'294'967'295U);
}
TEST_F(OptionTables, ShowTheRowsAsHelp) {
  EXPECT_EQ(table.help(),
            "usage: x\n\n"
            "  FILE          is read\n"
            "  --verbose     says more\n"
            "  --name TEXT   is shown,\n"
            "                  twice\n"
            "  --many TEXT   and more\n"
            "  --count N     of them\n"
            "  --mode MODE   a long one\n");
}
TEST_F(OptionTables, WrapHelpAt80Columns) {
  table.rows = {{"", "", "usage: x\n\n"},
                {"--a-name-as-long-as-the-column", "", "starts on the next line"},
                {"--kind", "KIND",
                 "a sentence that is long enough for two lines of a terminal, whatever the source has,\nof lines:\n"
                 "  one    the first kind, whose meaning continues under itself on the next line\n"
                 "         of the terminal\n"
                 "  three  the other"}};
  EXPECT_EQ(table.help(),
            "usage: x\n\n"
            "  --a-name-as-long-as-the-column\n"
            "                starts on the next line\n"
            "  --kind KIND   a sentence that is long enough for two lines of a terminal,\n"
            "                whatever the source has, of lines:\n"
            "                  one    the first kind, whose meaning continues under itself on\n"
            "                         the next line of the terminal\n"
            "                  three  the other\n");
}
TEST_F(OptionTables, ShowTheCommonRowsFirstAndAllOfThemWhenAsked) {
  Help help = Help::none;
  bool version = false;
  table.rows = {{"", "", "usage: x\n"}};
  table.add(help_and_version(help, version));
  table.common_rows = table.rows.size();
  table.add({{"--name", "TEXT", "is shown", text(name)}});
  const std::string common =
      "usage: x\n"
      "  --help [all]  this list; --help all: every option\n"
      "  --version     print the version\n";
  EXPECT_EQ(table.help(false), common);
  EXPECT_EQ(table.help(true), common + "  --name TEXT   is shown\n");
  const auto asked = [&](const std::vector<std::string>& arguments) {
    help = Help::none;
    read(arguments);
    return help;
  };
  EXPECT_EQ(asked({"--name", "a"}), Help::none);
  EXPECT_EQ(asked({"--help"}), Help::common);
  EXPECT_EQ(asked({"-h", "--version"}), Help::common);
  EXPECT_EQ(asked({"--help", "b", "all"}), Help::common) << "operands";
  EXPECT_EQ(asked({"--help", "all"}), Help::all);
  EXPECT_EQ(asked({"--help=all"}), Help::all);
  EXPECT_EQ(refused({"--help=short"}), "--help short: the only value is all; --help alone is possible too");
}
TEST_F(OptionTables, CheckWhatGoesTogether) {
  const GivenOptions given = read({"--name=a", "--verbose"});
  EXPECT_NO_THROW(given.only(true, {"--name"}, "is of nothing"));
  EXPECT_NO_THROW(given.only(false, {"--count"}, "is of nothing"));
  EXPECT_THROW(given.only(false, {"--count", "--name"}, "is of nothing"), InputError);
  EXPECT_NO_THROW(given.never_both("--name", "--count", "why"));
  EXPECT_THROW(given.never_both("--name", "--verbose", "why"), InputError);
}
TEST(SplitAtCommas, GivesEveryPiece) {
  EXPECT_THAT(split_at_commas("1,,2,"), ElementsAre("1", IsEmpty(), "2", IsEmpty()));
  EXPECT_THAT(split_at_commas(""), ElementsAre(IsEmpty()));
}

}  // namespace
}  // namespace reprise::tools::common_options_test
