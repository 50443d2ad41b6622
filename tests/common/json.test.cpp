// SPDX-License-Identifier: Apache-2.0
#include "common/json.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <string>
#include <string_view>

#include "common/json_writer.hpp"
#include "common/utf8.hpp"

namespace reprise::tools::json_test {
namespace {

Json good(std::string_view text) {
  Json json;
  const auto error = parse_json(text, json);
  EXPECT_FALSE(error) << text << ": " << (error ? error->message : "");
  return json;
}

std::string bad(std::string_view text) {
  Json json;
  const auto error = parse_json(text, json);
  if (!error) return "no error";
  return std::to_string(error->line) + ":" + std::to_string(error->column) + " " + error->message;
}

TEST(Json, ReadsEveryKindOfValue) {
  const Json json = good(R"( {"a": [1, -2.5e1, true, false, null, "x"], "b": {}, "c": []} )");
  const Json::Array& items = *json.find("a")->array();
  ASSERT_EQ(items.size(), 6U);
  EXPECT_EQ(items[0].number()->integer, 1);
  EXPECT_EQ(items[1].number()->value, -25);
  EXPECT_FALSE(items[1].number()->integer);
  EXPECT_TRUE(*items[2].boolean());
  EXPECT_FALSE(*items[3].boolean());
  EXPECT_EQ(items[4].kind(), "null");
  EXPECT_EQ(*items[5].string(), "x");
  EXPECT_TRUE(json.find("b")->object()->keys.empty());
  EXPECT_TRUE(json.find("c")->array()->empty());
  EXPECT_EQ(json.find("d"), nullptr);
  EXPECT_EQ(items[0].find("a"), nullptr);
}

TEST(Json, KnowsWhichNumbersAreWhole) {
  EXPECT_EQ(good("-9223372036854775808").number()->integer, INT64_MIN);
  EXPECT_FALSE(good("9223372036854775808").number()->integer) << "does not fit";
  EXPECT_FALSE(good("1.0").number()->integer);
  EXPECT_FALSE(good("1e2").number()->integer);
  EXPECT_EQ(good("-0").number()->integer, 0);
}

TEST(Json, ReadsEscapes) {
  EXPECT_EQ(*good(R"("\"\\\/\b\f\n\r\t\u0041\u00e9\u20ac\ud83d\ude00")").string(),
            "\"\\/\b\f\n\r\tA\xc3\xa9\xe2\x82\xac\xf0\x9f\x98\x80");
}

TEST(Json, SaysWhereATextGoesWrong) {
  EXPECT_EQ(bad("[1,\n 2,\n x]"), "3:2 expected a value");
  EXPECT_EQ(bad(""), "1:1 the text ends where a value should be");
  EXPECT_EQ(bad("{\"a\" 1}"), "1:6 expected ':'");
  EXPECT_EQ(bad("{\"a\": 1, \"a\": 2}"), "1:10 the key \"a\" occurs twice");
  EXPECT_EQ(bad("{a: 1}"), "1:2 expected a key in quotes");
  EXPECT_EQ(bad("[1 2]"), "1:4 expected ',' or ']'");
  EXPECT_EQ(bad("1 2"), "1:3 text after the end of the value");
}

TEST(Json, RefusesWhatOnlyLooksLikeJson) {
  for (const char* text : {"[1,]",
                           "{\"a\":1,}",
                           "01",
                           "+1",
                           ".5",
                           "1.",
                           "1e",
                           "1e+",
                           "-",
                           "--1",
                           "0x1",
                           "NaN",
                           "Infinity",
                           "tru",
                           "nul",
                           "'a'",
                           "\"\\x\"",
                           "\"\\u12\"",
                           "\"\\u12g4\"",
                           "\"\\ud800\"",
                           "\"\\udc00\"",
                           "\"\\ud800\\u0041\"",
                           "\"\n\"",
                           "\"\xff\"",
                           "\"\xc0\xaf\"",
                           "\"\xed\xa0\x80\"",
                           "1e999",
                           "[",
                           "{",
                           "\"",
                           "// x\n1",
                           "\xef\xbb\xbf[]"})
    EXPECT_NE(bad(text), "no error") << text;
}

TEST(Json, StopsAtSixtyFourLevels) {
  EXPECT_EQ(bad(std::string(65, '[') + std::string(65, ']')), "no error");
  EXPECT_NE(bad(std::string(66, '[') + std::string(66, ']')), "no error");
  EXPECT_NE(bad(std::string(1'000'000, '[')), "no error") << "no stack overflow either";
}

TEST(Json, RefusesATextThatIsCutAnywhere) {
  const std::string text =
      R"({"id":"a\u20ac\n","category":"c","turns":[{"prompt":[1,-2],"output":[3.5e1,true,null]}]})";
  ASSERT_EQ(bad(text), "no error");
  for (std::size_t size = 0; size < text.size(); ++size)
    EXPECT_NE(bad(std::string_view(text).substr(0, size)), "no error") << size;
}

TEST(QuoteJson, GivesWhatTheReaderReads) {
  const std::string text = "a \"b\" \\ \n\t\x01 \xe2\x82\xac";
  EXPECT_EQ(*good(quote_json(text)).string(), text);
  EXPECT_EQ(*good(quote_json("a\xff")).string(), "a\xef\xbf\xbd") << "paths may hold any bytes, JSON may not";
}

TEST(Utf8, CountsCharactersNotBytes) {
  EXPECT_EQ(utf8_columns("a\xc3\xa9\xe2\x82\xac"), 3U);
  EXPECT_EQ(utf8_length("\xf4\x90\x80\x80"), 0U) << "above U+10FFFF";
  EXPECT_EQ(utf8_length("\xe0\x80\xaf"), 0U) << "overlong";
  EXPECT_EQ(utf8_length("\xe2\x82"), 0U) << "cut";
}

}  // namespace
}  // namespace reprise::tools::json_test
