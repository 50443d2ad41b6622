// SPDX-License-Identifier: Apache-2.0
#include "replay/trace.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>
#include <string>
#include <string_view>
#include <vector>

#include "common/input_error.hpp"
#include "support/refusal.hpp"

namespace reprise::replay::trace_test {
namespace {

using ::testing::ElementsAre;
using ::testing::EndsWith;
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

TEST(Trace, NamesFileLineAndField) {
  const auto second = [](const std::string& text) { return refused(line + "\n" + text); };
  EXPECT_EQ(second("[]"), "t.jsonl:2: expected an object for each session, found an array");
  EXPECT_EQ(second(R"({"category":"c","turns":[]})"), "t.jsonl:2: id: missing");
  EXPECT_EQ(second(R"({"id":7,"category":"c","turns":[]})"), "t.jsonl:2: id: expected a string, found a number");
  EXPECT_EQ(second(R"({"id":"b","turns":[]})"), "t.jsonl:2: category: missing");
  EXPECT_EQ(second(R"({"id":"b","category":"c"})"), "t.jsonl:2: turns: missing");
  EXPECT_EQ(second(R"({"id":"b","category":"c","turns":{}})"), "t.jsonl:2: turns: expected an array, found an object");
  EXPECT_EQ(second(R"({"id":"b","category":"c","turns":[]})"),
            "t.jsonl:2: turns: is empty; a session has at least one turn");
  EXPECT_EQ(second(R"({"id":"b","category":"c","turns":[1]})"),
            "t.jsonl:2: turns[0]: expected an object, found a number");
  EXPECT_EQ(second(R"({"id":"b","category":"c","turns":[{"prompt":[1]}]})"), "t.jsonl:2: turns[0].output: missing");
  EXPECT_EQ(second(R"({"id":"b","category":"c","turns":[{"prompt":"x","output":[]}]})"),
            "t.jsonl:2: turns[0].prompt: expected an array, found a string");
}

TEST(Trace, TakesWholeNumbersOf32BitsOnly) {
  for (const char* id : {"1.5", "1e3", "2147483648", "-2147483649", "99999999999999999999", "\"1\"", "null", "[1]"})
    EXPECT_THAT(refused(R"({"id":"b","category":"c","turns":[{"prompt":[1],"output":[4,)" + std::string(id) + "]}]}"),
                StartsWith("t.jsonl:1: turns[0].output[1]: expected a token id"))
        << id;
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

TEST(Trace, NamesFileLineAndTurnOfBadTopKRows) {
  const auto second = [](const std::string& top_k) {
    return refused(line + "\n" + R"({"id":"b","category":"c","turns":[{"prompt":[1],"output":[]},)" +
                   R"({"prompt":[1],"output":[4,5],"top_k":)" + top_k + "}]}");
  };
  EXPECT_EQ(second("[[4],[5]]"), "accepted");
  EXPECT_EQ(second("[[4]]"),
            "t.jsonl:2: turns[1].top_k: has the length 1, but output has the length 2; give one list of token ids for "
            "each output token");
  EXPECT_EQ(second("[[4],[5],[6]]"),
            "t.jsonl:2: turns[1].top_k: has the length 3, but output has the length 2; give one list of token ids for "
            "each output token");
  EXPECT_EQ(second("[]"),
            "t.jsonl:2: turns[1].top_k: has the length 0, but output has the length 2; give one list of token ids for "
            "each output token");
  EXPECT_EQ(second("null"), "t.jsonl:2: turns[1].top_k: expected an array of lists of token ids, found null");
  EXPECT_EQ(second("[[4],5]"), "t.jsonl:2: turns[1].top_k[1]: expected a list of token ids, found a number");
  EXPECT_EQ(second("[[4],null]"), "t.jsonl:2: turns[1].top_k[1]: expected a list of token ids, found null");
  for (const char* id : {"1.5", "1e3", "2147483648", "-2147483649", "\"1\"", "null", "[1]"})
    EXPECT_THAT(second("[[4],[5," + std::string(id) + "]]"),
                StartsWith("t.jsonl:2: turns[1].top_k[1][1]: expected a token id"))
        << id;
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

TEST(Trace, RefusesAFileWithoutSessions) {
  EXPECT_THAT(refused(""), StartsWith("t.jsonl: no sessions"));
  EXPECT_THAT(refused("\n \n"), StartsWith("t.jsonl: no sessions"));
}

TEST(Trace, NamesTheFormatOfAFileOfAnotherKind) {
  using namespace std::string_literals;
  const std::string remedy = ": convert it with python3 bench/replay/to_trace.py";
  const std::string chat = R"({"conversations": [{"from": "human", "value": "a"}]})";
  const std::string json = "t.jsonl:1: the file is ";
  EXPECT_EQ(refused("[\n  " + chat + "\n]\n"), json + "a JSON array, not one object a line" + remedy);
  EXPECT_EQ(refused("[" + chat + "]"), json + "a JSON array, not one object a line" + remedy);
  EXPECT_EQ(refused("{\n  \"id\": \"a\"\n}\n"), json + "an indented JSON object, not one object a line" + remedy);
  EXPECT_EQ(refused("\n \n" + ("[" + chat)).substr(0, 12), "t.jsonl:3: t");
  EXPECT_EQ(refused("\x1f\x8b\x08\0rest"s), json + "compressed by gzip" + remedy);
  EXPECT_EQ(refused("\x28\xb5\x2f\xfdrest"s), json + "compressed by zstd: unpack it first");
  EXPECT_EQ(refused("BZh9rest"s), json + "compressed by bzip2: unpack it first");
  EXPECT_EQ(refused("\xfd\x37zXZrest"s), json + "compressed by xz: unpack it first");
  EXPECT_EQ(refused("PK\x03\x04rest"s), json + "a zip archive: unpack it first");
  EXPECT_EQ(refused("PAR1rest"s), json + "a Parquet table: save its records as JSON first");
  EXPECT_EQ(refused("<!DOCTYPE html>"s), json + "a page in HTML or XML: save its records as JSON first");
  for (const std::string& text : {"\xff\xfe{\0\n\0"s, "\xfe\xff\0{\0\n"s, "{\0\"\0i\0"s, "\0{\0\"\0i"s})
    EXPECT_EQ(refused(text), json + "text in UTF-16" + remedy);
  EXPECT_EQ(refused("\xff\xfe\0\0{\0\0\0"s), json + "text in UTF-32" + remedy);
  EXPECT_EQ(refused(chat), "t.jsonl:1: \"conversations\": the file has ShareGPT conversations, not sessions" + remedy);
  for (const char* const key : {"messages", "prompt_token_ids", "prompt", "instruction", "text"})
    EXPECT_THAT(refused("{\"" + std::string(key) + "\": []}"), EndsWith(remedy)) << key;
  EXPECT_EQ(refused("{\"prompt\": [], \"turns\": []}"), "t.jsonl:1: id: missing");
}

TEST(Trace, RefusesWhatIsNoFile) {
  EXPECT_THROW(read_trace("no-such-folder/x.jsonl"), tools::InputError);
  EXPECT_THROW(read_trace("."), tools::InputError);
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
