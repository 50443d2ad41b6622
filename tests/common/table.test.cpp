// SPDX-License-Identifier: Apache-2.0
#include "common/table.hpp"

#include <gtest/gtest.h>

#include <sstream>

namespace reprise::tools::table_test {
namespace {

struct Tables : ::testing::Test {
  std::ostringstream out;
};

TEST_F(Tables, FillColumnsWithBlanks) {
  const Table table(out, {{6, Align::left}, {5}, {5}});
  table.line({"name", "one", "two"}, "  rest");
  table.line({"caf\xc3\xa9", "1"});
  table.line({});
  EXPECT_EQ(out.str(), "name    one  two  rest\ncaf\xc3\xa9      1\n\n");
}
TEST_F(Tables, PutATextAboveSeveralColumns) {
  const Table table(out, {{3}, {4}, {5}});
  table.line({"", {"both", 2}});
  EXPECT_EQ(out.str(), "        both\n");
}
TEST_F(Tables, KeepTextsThatAreTooLong) {
  Table(out, {{3, Align::left, true}, {3}}).line({"long", "1"});
  EXPECT_EQ(out.str(), "long\n     1\n") << "on a line of its own";
  out.str("");
  Table(out, {{3, Align::left}, {3}}).line({"long", "1234"});
  EXPECT_EQ(out.str(), "long1234\n");
}
TEST_F(Tables, ShowControlCharactersEscapedAndCountTheirColumns) {
  Table(out, {{8, Align::left}, {2}})
      .line({"a\x1b"
             "b",
             "1"});
  EXPECT_EQ(out.str(), "a\\x1bb   1\n");
}

}  // namespace
}  // namespace reprise::tools::table_test
