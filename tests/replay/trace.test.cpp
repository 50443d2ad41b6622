// SPDX-License-Identifier: Apache-2.0
#include "replay/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "support/refusal.hpp"

namespace reprise::replay::trace_test {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;
using ::testing::StartsWith;

const std::string line = R"({"id":"a","category":"chat","turns":[{"prompt":[1,-2],"output":[3]}]})";

Trace read(const std::string& text, std::size_t limit = unlimited) {
  std::istringstream in(text);
  return read_trace(in, "t.jsonl", limit);
}

std::string refused(const std::string& text) {
  return testing::refusal([&] { return read(text); });
}

TEST(Trace, HoldsWhatTheLinesSay) {
  const Trace trace = read(line + "\r\n\n" +
                           R"({"turns":[{"output":[],"prompt":[2147483647]},{"prompt":[],"output":[-2147483648],)"
                           R"("extra":1}],"id":"b","category":"","more":{}})");
  ASSERT_EQ(trace.sessions.size(), 2U);
  EXPECT_EQ(trace.path, "t.jsonl");
  EXPECT_EQ(trace.sessions[0].id, "a");
  EXPECT_EQ(trace.sessions[0].category, "chat");
  ASSERT_EQ(trace.sessions[0].turns.size(), 1U);
  EXPECT_THAT(trace.sessions[0].turns[0].prompt, ElementsAre(1, -2));
  EXPECT_THAT(trace.sessions[0].turns[0].output, ElementsAre(3));
  ASSERT_EQ(trace.sessions[1].turns.size(), 2U);
  EXPECT_THAT(trace.sessions[1].turns[0].prompt, ElementsAre(2147483647));
  EXPECT_THAT(trace.sessions[1].turns[0].output, IsEmpty());
  EXPECT_THAT(trace.sessions[1].turns[1].output, ElementsAre(INT32_MIN));
}

TEST(Trace, EndsAtTheLimit) {
  EXPECT_EQ(read(line + "\n" + line + "\nbroken", 2).sessions.size(), 2U) << "what is not read is not checked";
}

TEST(Trace, HoldsTheTopKRowsOfTurnsThatHaveThem) {
  const Trace trace = read(line + "\n" +
                           R"({"id":"b","category":"","turns":[{"prompt":[1],"output":[3,4,5],"top_k_logprobs":"any",)"
                           R"("top_k":[[3,-7,3,2147483647],[],[9]]},{"prompt":[],"output":[6]},)"
                           R"({"prompt":[],"output":[],"top_k":[]}]})");
  EXPECT_FALSE(trace.sessions[0].turns[0].top_k);
  const std::vector<Turn>& turns = trace.sessions[1].turns;
  ASSERT_TRUE(turns[0].top_k);
  ASSERT_EQ(turns[0].top_k->size(), 3U);
  EXPECT_THAT((*turns[0].top_k)[0], ElementsAre(3, -7, 3, 2147483647));
  EXPECT_THAT((*turns[0].top_k)[1], IsEmpty());
  EXPECT_THAT((*turns[0].top_k)[2], ElementsAre(9));
  EXPECT_FALSE(turns[1].top_k);
  ASSERT_TRUE(turns[2].top_k);
  EXPECT_EQ(turns[2].top_k->size(), 0U);
  EXPECT_TRUE(has_top_k({&trace, 1}));
  const Trace without = read(line);
  EXPECT_FALSE(has_top_k({&without, 1}));
}

TEST(Trace, HoldsTheAcceptedLengthsOfAHead) {
  const auto with = [](const std::string& head) {
    return R"({"id":"a","category":"","turns":[{"prompt":[1],"output":[3,4],"head":)" + head + "}]}";
  };
  const Trace trace = read(line + "\n" + with("[0,64]"));
  EXPECT_FALSE(trace.sessions[0].turns[0].head);
  EXPECT_THAT(trace.sessions[1].turns[0].head.value(), ElementsAre(0, 64));
  EXPECT_EQ(refused(with("[0]")),
            "t.jsonl:1: turns[0].head: has the length 1, but output has the length 2; give one number for each output "
            "token");
  for (const char* wrong : {"[0,65]", "[0,-1]", "[0,1.5]", "[0,\"1\"]"})
    EXPECT_EQ(refused(with(wrong)), "t.jsonl:1: turns[0].head[1]: expected a number of tokens from 0 to 64");
  EXPECT_THAT(refused(with("7")), StartsWith("t.jsonl:1: turns[0].head: expected an array of numbers"));
}

TEST(TopKRows, KeepTheFirstRows) {
  TopKRows rows;
  for (const std::vector<Token>& row : {std::vector<Token>{1, 2}, {}, {3}}) rows.add_row(row);
  TopKRows two;
  two.add_row(std::vector<Token>{1, 2});
  two.add_row({});
  rows.truncate(4);
  EXPECT_EQ(rows.size(), 3U);
  rows.truncate(2);
  EXPECT_EQ(rows, two);
  rows.truncate(0);
  EXPECT_EQ(rows, TopKRows());
  rows.add_row(std::vector<Token>{5});
  EXPECT_THAT(rows[0], ElementsAre(5));
}

TEST(Trace, RefusesALineThatIsCutAnywhere) {
  for (std::size_t size = 1; size < line.size(); ++size)
    EXPECT_THAT(refused(line + "\n" + line.substr(0, size)), StartsWith("t.jsonl:2: column ")) << size;
}

TEST(Trace, SaysThatAFileIsACostCurve) {
  const std::string curve = REPRISE_SOURCE_DIR "/bench/profiles/step-8.json";
  for (const std::string_view option : {"--cost", "--curve"})
    EXPECT_EQ(testing::refusal([&] { return read_trace(curve, unlimited, option); }),
              curve + " is a cost curve, not a trace; give it with " + std::string(option));
}

TEST(TracePart, IsTheLowestBitOfTheHashOfTheId) {
  // Known values of the 64-bit FNV-1a hash.
  EXPECT_EQ(fnv1a(""), 0xcbf29ce484222325U);
  EXPECT_EQ(fnv1a("a"), 0xaf63dc4c8601ec8cU);
  EXPECT_EQ(fnv1a("foobar"), 0x85944171f73967e8U);
  EXPECT_EQ(part_of(""), TracePart::b);
  EXPECT_EQ(part_of("a"), TracePart::a);
}

}  // namespace
}  // namespace reprise::replay::trace_test
