// SPDX-License-Identifier: Apache-2.0
#include "common/text.hpp"

#include <gtest/gtest.h>

#include "common/progress.hpp"

namespace reprise::tools::text_test {
namespace {

TEST(Printable, EscapesWhatATerminalObeys) {
  EXPECT_EQ(printable("a\x1b[2Jb\x07"), "a\\x1b[2Jb\\x07");
  EXPECT_EQ(printable("a\nb\tc\rd\x7f"), "a\\nb\\tc\\rd\\x7f");
  EXPECT_EQ(printable(std::string_view("\0", 1)), "\\x00");
  EXPECT_EQ(printable("\xe2\x80\xa8"), "\\xe2\\x80\\xa8");
  EXPECT_EQ(printable("\xe2\x80\xa9"), "\\xe2\\x80\\xa9");
  EXPECT_EQ(printable("\xe2\x80\xa6"), "\xe2\x80\xa6");
  EXPECT_EQ(printable("\xc2\x9b"
                      "2J"),
            "\\xc2\\x9b"
            "2J")
      << "C1 as UTF-8 spells it";
  EXPECT_EQ(printable("\x9b"
                      "2J"),
            "\\x9b"
            "2J")
      << "and as one byte";
}
TEST(Printable, LeavesTextAsItIs) {
  for (const char* text : {"", "plain", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80", "\xc2\xa0", "C:\\x\\n"})
    EXPECT_EQ(printable(text), text);
}
TEST(Numbers, AreSpeltTheSameInEveryLocale) {
  EXPECT_EQ(decimal(1.25, 1), "1.2");
  EXPECT_EQ(decimal(-0.5, 3), "-0.500");
  EXPECT_EQ(significant(0.25, 6), "0.25");
  EXPECT_EQ(significant(1e-7, 6), "1e-07");
  EXPECT_EQ(shortest(0.1), "0.1");
  EXPECT_EQ(grouped(1234567), "1,234,567");
  EXPECT_EQ(grouped(123), "123");
}

TEST(WithoutByteOrderMark, RemovesOneAtTheBeginning) {
  EXPECT_EQ(without_byte_order_mark("\xEF\xBB\xBFx"), "x");
  EXPECT_EQ(without_byte_order_mark("\xEF\xBB\xBF\xEF\xBB\xBF"), "\xEF\xBB\xBF");
  EXPECT_EQ(without_byte_order_mark("x\xEF\xBB\xBF"), "x\xEF\xBB\xBF");
  EXPECT_EQ(without_byte_order_mark("\xEF\xBB"), "\xEF\xBB");
}
TEST(Wrapped, FillsLinesAndKeepsParagraphs) {
  const std::string ten = "123456789 ";
  std::string line;
  for (int i = 0; i < 9; ++i) line += ten;
  const std::string full = "123456789 123456789 123456789 123456789 123456789 123456789 123456789 123456789";
  EXPECT_EQ(wrapped(line.substr(0, 89)), full + "\n123456789") << "79 columns, and 9 more";
  EXPECT_EQ(wrapped("123456789 123456789\nabc\n\nabc\n", 60),
            "123456789 123456789\n" + std::string(60, ' ') + "abc\n\n" + std::string(60, ' ') + "abc\n");
  EXPECT_EQ(wrapped(full + "x"), full + "x") << "80 columns";
  EXPECT_EQ(wrapped(std::string(100, 'x')), std::string(100, 'x')) << "a word is not divided";
  EXPECT_EQ(wrapped(""), "");
  EXPECT_EQ(wrapped("\na"), "\na");
}
TEST(DurationText, ChoosesAUnitForPeople) {
  EXPECT_EQ(duration_text(0.2), "1 s");
  EXPECT_EQ(duration_text(99), "99 s");
  EXPECT_EQ(duration_text(601), "11 min");
  EXPECT_EQ(duration_text(12'600), "3.5 h");
}
TEST(CountText, ShowsTheShareAndTheTimeThatIsLeft) {
  EXPECT_EQ(count_text("session", 0, 50, 0), "  session 0 of 50");
  EXPECT_EQ(count_text("session", 5, 50, 0.5), "  session 5 of 50, 10%") << "too early for an estimate";
  EXPECT_EQ(count_text("session", 5, 50, 10), "  session 5 of 50, 10%, 90 s left");
  EXPECT_EQ(count_text("session", 50, 50, 100), "  session 50 of 50");
}

}  // namespace
}  // namespace reprise::tools::text_test
