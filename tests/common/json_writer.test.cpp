// SPDX-License-Identifier: Apache-2.0
#include "common/json_writer.hpp"

#include <gtest/gtest.h>

#include <sstream>

#include "common/json.hpp"

namespace reprise::tools::json_writer_test {
namespace {

TEST(JsonWriter, WritesWhatTheReaderReads) {
  std::ostringstream out;
  JsonWriter json(out);
  json.begin_object().member("text", "a \"b\"\n").member("count", std::size_t{3}).member("less", -1);
  json.member("yes", true).raw_member("real", "0.50").key("none").null().key("list").begin_array();
  json.value(1).begin_array().end().begin_object().end().end().end();
  EXPECT_EQ(out.str(), R"({"text": "a \"b\"\u000a", "count": 3, "less": -1, "yes": true, "real": 0.50, "none": null, )"
                       R"("list": [1, [], {}]})");
  Json read;
  EXPECT_FALSE(parse_json(out.str(), read));
  EXPECT_EQ(*read.find("text")->string(), "a \"b\"\n");
}
TEST(JsonWriter, LeavesOutBlanksWhereAsked) {
  std::ostringstream out;
  JsonWriter json(out, JsonWriter::Spacing::compact);
  json.begin_object().member("a", 1).key("b").begin_array().value(1).value(2).end().end();
  EXPECT_EQ(out.str(), R"({"a":1,"b":[1,2]})");
}
TEST(JsonWriter, BreaksLinesBeforeItemsAndEnds) {
  std::ostringstream out;
  JsonWriter json(out);
  json.begin_object().key("rows").begin_array().new_line().value(1).new_line(2).value(2).new_line().end();
  json.new_line(1).member("end", 0).end();
  EXPECT_EQ(out.str(), "{\"rows\": [\n1,\n  2\n],\n \"end\": 0}");
}

}  // namespace
}  // namespace reprise::tools::json_writer_test
