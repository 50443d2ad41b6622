// SPDX-License-Identifier: Apache-2.0
#include "replay/vocabulary.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

namespace reprise::replay::vocabulary_test {
namespace {

using ::testing::Pointee;

TEST(Vocabulary, ReadsAnArrayOfTexts) {
  const Vocabulary words = Vocabulary::parse("v.json", R"(["a", "\u2581b"])");
  EXPECT_THAT(words.find(0), Pointee(std::string("a")));
  EXPECT_THAT(words.find(1), Pointee(std::string(" b")));
  EXPECT_EQ(words.find(2), nullptr);
  EXPECT_EQ(words.find(-1), nullptr);
}

TEST(Vocabulary, DecodesBytes) {
  // A blank, a line feed, and the two bytes of "é"; a special token has characters that stand for no byte.
  const Vocabulary words =
      Vocabulary::parse("v.json", R"({"\u0120a": 5, "\u010a": 6, "\u00c3\u00a9": 7, "<\u4e2d>": 8})");
  EXPECT_THAT(words.find(5), Pointee(std::string(" a")));
  EXPECT_THAT(words.find(6), Pointee(std::string("\n")));
  EXPECT_THAT(words.find(7), Pointee(std::string("\xc3\xa9")));
  EXPECT_THAT(words.find(8), Pointee(std::string("<\xe4\xb8\xad>")));
}

TEST(Vocabulary, ReadsTokenizers) {
  const Vocabulary words = Vocabulary::parse(
      "t.json", R"({"model": {"vocab": {"a": 0}}, "added_tokens": [{"id": 1, "content": "<s>"}, {"id": "x"}, 3]})");
  EXPECT_THAT(words.find(0), Pointee(std::string("a")));
  EXPECT_THAT(words.find(1), Pointee(std::string("<s>")));
}

}  // namespace
}  // namespace reprise::replay::vocabulary_test
