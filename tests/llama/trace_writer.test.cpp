// SPDX-License-Identifier: Apache-2.0
#include "trace_writer.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <filesystem>
#include <sstream>

#include "common/input_error.hpp"
#include "common/json.hpp"
#include "engine_error.hpp"
#include "support/folder_test.hpp"

#ifdef __linux__
#include "support/file_size_limit.hpp"
#include "support/refusal.hpp"
#endif

namespace reprise::llama::trace_writer_test {
namespace {

using replay::TraceSession;
using ::testing::HasSubstr;
using tools::InputError;

const TraceSession first = {"chat/1", "chat", {{{1, 2, 3}, {4, -5}}, {{6}, {}}}};
const TraceSession second = {"chat/\"2\"\n", "chat", {{{2147483647}, {7, 8}}}};
constexpr std::array two = {Finish::eos, Finish::loop};
constexpr std::array one = {Finish::length};

class TraceFile : public testing::FolderTest {
 protected:
  void put(const std::string& bytes) const { write("t.jsonl", bytes); }
  std::string get() const { return read(path); }
  std::string refused() const {
    return testing::refusal([&] { return TraceWriter::open(path); });
  }

  const std::string path = FolderTest::path("t.jsonl");
  const std::string both = trace_line(first, two) + trace_line(second, one);
};

void expect_equal(const TraceSession& a, const TraceSession& b) {
  EXPECT_EQ(a.id, b.id);
  EXPECT_EQ(a.category, b.category);
  ASSERT_EQ(a.turns.size(), b.turns.size());
  for (std::size_t i = 0; i < a.turns.size(); ++i) {
    EXPECT_EQ(a.turns[i].prompt, b.turns[i].prompt);
    EXPECT_EQ(a.turns[i].output, b.turns[i].output);
    EXPECT_EQ(a.turns[i].top_k, b.turns[i].top_k);
  }
}

#if !defined(_WIN32)
TEST_F(TraceFile, OnlyItsOwnerMayReadANewOneAndAnOldOneKeepsItsPermissions) {
  using std::filesystem::perms;
  TraceWriter::open(path).append(first, two);
  EXPECT_EQ(std::filesystem::status(path).permissions(), perms::owner_read | perms::owner_write);
  std::filesystem::permissions(path, perms::group_read, std::filesystem::perm_options::add);
  TraceWriter::open(path).append(second, one);
  EXPECT_EQ(std::filesystem::status(path).permissions(), perms::owner_read | perms::owner_write | perms::group_read);
}
#endif

TEST_F(TraceFile, WhatIsWrittenIsRead) {
  {
    TraceWriter writer = TraceWriter::open(path);
    EXPECT_FALSE(writer.has(first.id));
    writer.append(first, two);
    EXPECT_EQ(get(), trace_line(first, two)) << "a session is in the file when append() returns";
    EXPECT_TRUE(writer.has(first.id));
    writer.append(second, one);
  }
  const auto trace = replay::read_trace(path);
  ASSERT_EQ(trace.sessions.size(), 2U);
  expect_equal(trace.sessions[0], first);
  expect_equal(trace.sessions[1], second);
}

TEST_F(TraceFile, ALineSaysHowItsTurnsEnded) {
  EXPECT_EQ(
      trace_line(first, two),
      "{\"id\":\"chat/1\",\"category\":\"chat\",\"turns\":[{\"prompt\":[1,2,3],\"output\":[4,-5],\"finish\":\"eos\"},"
      "{\"prompt\":[6],\"output\":[],\"finish\":\"loop\"}]}\n");
  tools::Json json;
  EXPECT_FALSE(tools::parse_json(trace_line(second, one), json));
}

TEST_F(TraceFile, CutAnywhereItIsGoneOnWithToTheSameBytes) {
  const std::string line = trace_line(first, two);
  for (std::size_t length = 0; length <= both.size(); ++length) {
    put(both.substr(0, length));
    std::ostringstream messages;
    TraceWriter writer = TraceWriter::open(path, &messages);
    const std::size_t complete = both.size() - 1 <= length ? 2 : line.size() - 1 <= length ? 1 : 0;
    ASSERT_EQ(writer.size(), complete) << length;
    const bool at_end = length == 0 || length == line.size() || length == both.size();
    const bool only_end_missing = length == line.size() - 1 || length == both.size() - 1;
    EXPECT_EQ(messages.str().empty(), at_end || only_end_missing) << length << messages.str();
    EXPECT_EQ(get(), complete == 2 ? both : complete == 1 ? line : "") << length;
    if (!writer.has(first.id)) writer.append(first, two);
    if (!writer.has(second.id)) writer.append(second, one);
    EXPECT_EQ(get(), both) << length;
  }
}

TEST_F(TraceFile, WhatIsNoTraceIsRefusedAndLeftAsItIs) {
  const std::string line = trace_line(first, two);
  const std::string others[] = {"a text",
                                "a text\n",
                                "{\"other\": 1}\n",
                                "{\"other\": 1}",
                                line + "a text",
                                "a text\n" + line,
                                line.substr(0, 20) + "\n" + line,
                                std::string(100, '\0'),
                                line + std::string(5, '\0'),
                                "GGUF\x03"};
  for (const std::string& bytes : others) {
    put(bytes);
    EXPECT_THAT(refused(), HasSubstr("left this file unchanged")) << bytes;
    EXPECT_THAT(refused(), HasSubstr(path)) << bytes;
    EXPECT_EQ(get(), bytes);
  }
  put(line + "a text\n");
  EXPECT_THAT(refused(), HasSubstr(path + ":2: "));
}

TEST_F(TraceFile, OfAnotherVocabularyIsRefusedWithThePlaceAndLeftAsItIs) {
  const auto refused = [&](const std::string& bytes, std::size_t vocabulary) {
    put(bytes);
    const std::string message = testing::refusal([&] { return TraceWriter::open(path, nullptr, vocabulary); });
    EXPECT_TRUE(message == "accepted" || get() == bytes);
    return message;
  };
  const std::string line = trace_line({"a", "c", {{{1, 2}, {7, 8}}}}, one);
  const std::string ended = line + "\n" + trace_line({"b", "c", {{{1}, {2}}, {{9}, {3, 300}}}}, two);
  EXPECT_THAT(refused(ended, 300), HasSubstr(path + ":3: turns[1].output[1]: token 300 is not in this model's"));
  EXPECT_THAT(refused(ended, 300), HasSubstr("give another file"));
  EXPECT_EQ(refused(ended, 301), "accepted");
  // The last session is complete except for its line end; then an incomplete session follows a complete one.
  EXPECT_THAT(refused(ended.substr(0, ended.size() - 1), 300), HasSubstr(path + ":3: turns[1].output[1]"));
  EXPECT_THAT(refused(line + line.substr(0, 20), 8), HasSubstr(path + ":1: turns[0].output[1]: token 8 "));
  EXPECT_THAT(refused(trace_line(first, two), 300), HasSubstr("turns[0].output[1]: token -5"));
}

TEST_F(TraceFile, EmptyLinesAreNoSessions) {
  put("\n\n");
  TraceWriter writer = TraceWriter::open(path);
  writer.append(second, one);
  EXPECT_EQ(get(), "\n\n" + trace_line(second, one));
}

TEST_F(TraceFile, AFolderThatIsNotThereIsRefused) {
  EXPECT_THROW(TraceWriter::open("no/such/folder/trace.jsonl"), InputError);
  EXPECT_THROW(TraceWriter::open(std::filesystem::temp_directory_path().string()), InputError);
}

#ifdef __linux__
std::string failure(TraceWriter& writer, const TraceSession& session) {
  try {
    writer.append(session, one);
  } catch (const EngineError& error) {
    return error.what();
  }
  return {};
}

TEST_F(TraceFile, AFullDiskIsTold) {
  TraceWriter writer = TraceWriter::open("/dev/full");
  EXPECT_THAT(failure(writer, second), HasSubstr("0 sessions in it are complete"));
  EXPECT_FALSE(writer.has(second.id));
}

TEST_F(TraceFile, WhereRoomEndsInTheMiddleOfASessionTheFileEndsBeforeIt) {
  TraceSession long_one = second;
  long_one.turns[0].output.assign(20000, 12345);  // more than the buffer of any stream
  for (const TraceSession* session : {&second, static_cast<const TraceSession*>(&long_one)}) {
    std::filesystem::remove(path);
    TraceWriter writer = TraceWriter::open(path);
    writer.append(first, two);
    const std::string before = get();
    {
      const testing::FileSizeLimit limit(before.size() + trace_line(*session, one).size() / 2);
      EXPECT_THAT(failure(writer, *session), HasSubstr("1 sessions in it are complete"));
      EXPECT_EQ(get(), before);
      EXPECT_FALSE(writer.has(session->id));
    }
    writer.append(*session, one);
    EXPECT_EQ(get(), before + trace_line(*session, one)) << "room again";
  }
}
#endif

}  // namespace
}  // namespace reprise::llama::trace_writer_test
