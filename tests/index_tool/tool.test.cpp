// SPDX-License-Identifier: Apache-2.0
#include "index/tool.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <sstream>
#include <string>
#include <vector>

#include "common/json.hpp"
#include "index/documents.hpp"
#include "index/output_file.hpp"
#include "reprise/history/history_snapshot.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise/history/snapshot_file.hpp"
#include "reprise_corpus/corpus_writer.hpp"
#include "reprise_testing/random.hpp"
#include "support/folder_test.hpp"

#if !defined(_WIN32)
#include <csignal>

#include "support/file_size_limit.hpp"
#endif

namespace reprise::indexing::index_tool_tool_test {
namespace {

namespace fs = std::filesystem;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using Ids = std::vector<std::uint32_t>;

/// Runs the tool, with a folder of its own for each test.
class IndexTool : public testing::FolderTest {
 protected:
  struct Ran {
    int status;
    std::string out;
    std::string error;
  };
  static Ran run(const std::vector<std::string>& arguments) {
    std::ostringstream out;
    std::ostringstream error;
    const int status = run_tool(arguments, {out, error});
    return {status, out.str(), error.str()};
  }
  /// Runs the tool, and expects that it is done.
  static Ran done(const std::vector<std::string>& arguments) {
    Ran ran = run(arguments);
    EXPECT_EQ(ran.status, exit_done) << ran.error;
    return ran;
  }
  /// Runs a build with a vocabulary of 1000 ids.
  Ran build(const std::string& output, std::vector<std::string> more) const {
    more.insert(more.begin(), {"build", "--vocabulary=1000", "--output", path(output)});
    return run(more);
  }

  std::string write_ids(const std::string& name, const Ids& ids) const {
    const std::size_t width = name.ends_with(".u16") ? 2 : 4;
    std::string bytes;
    for (const std::uint32_t id : ids)
      for (std::size_t i = 0; i < width; ++i) bytes += static_cast<char>(id >> (8 * i) & 255);
    return write(name, bytes);
  }
  /// Saves a history with one sequence, whose name is 77.
  void write_snapshot(const std::string& name, std::uint64_t fingerprint, const std::vector<Token>& tokens) const {
    auto history = HistoryStore::make({.max_bytes = HistoryStore::bytes_for(4096)});
    ASSERT_TRUE(history);
    history->begin_sequence(77);
    history->append(tokens, Origin::output);
    history->end_sequence();
    std::vector<std::byte> room(snapshot_bytes_of(*history));
    const auto bytes = save_history(room, fingerprint, *history, CalibrationState{});
    ASSERT_TRUE(bytes && save_file(path(name), *bytes));
  }
  [[nodiscard]] std::string read(const std::string& name) const { return FolderTest::read(path(name)); }
  /// The names of the files in the folder, sorted.
  [[nodiscard]] std::vector<std::string> files() const {
    std::vector<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.push_back(entry.path().filename().string());
    std::sort(names.begin(), names.end());
    return names;
  }
  static tools::Json json(const std::string& text) {
    tools::Json json;
    EXPECT_FALSE(tools::parse_json(text, json)) << text;
    return json;
  }
  static std::int64_t number(const tools::Json& json, const std::string& key) {
    return json.find(key)->number()->integer.value_or(-1);
  }
};

struct NamedIds {
  std::string name;
  Ids ids;
};

/// The bytes that the library writes for these documents.
std::string corpus_bytes(const std::vector<NamedIds>& documents, std::uint32_t vocabulary,
                         std::uint64_t fingerprint = 0) {
  std::vector<std::vector<Token>> tokens;
  for (const NamedIds& document : documents) tokens.emplace_back(document.ids.begin(), document.ids.end());
  std::vector<CorpusDocument> all;
  for (std::size_t i = 0; i < documents.size(); ++i) all.push_back({tokens[i], documents[i].name});
  const auto made = make_corpus(all, {vocabulary, fingerprint});
  std::string bytes;
  for (const std::byte byte : std::span(made->data(), made->size())) bytes += static_cast<char>(byte);
  return bytes;
}

Ids random_ids(testing::Random& random, std::size_t count, std::size_t alphabet) {
  Ids ids;
  for (std::size_t i = 0; i < count; ++i) ids.push_back(static_cast<std::uint32_t>(random.below(alphabet)));
  return ids;
}

// ---- build ---------------------------------------------------------------------------------------------------------

TEST_F(IndexTool, BuildsTheBytesThatTheLibraryWrites) {
  testing::Random random(1);
  for (const std::uint32_t vocabulary : {1000U, 70'000U}) {
    std::vector<NamedIds> documents;
    std::vector<std::string> arguments = {"build",    "--vocabulary",  std::to_string(vocabulary), "--fingerprint=0x1f",
                                          "--output", path("a.corpus")};
    for (int i = 0; i < 12; ++i) {
      const Ids ids = random_ids(random, 1 + random.below(400), i % 3 == 0 ? 2 : vocabulary);
      documents.push_back({write_ids(std::to_string(i) + ".u32", ids), ids});
      arguments.push_back(documents.back().name);
    }
    done(arguments);
    EXPECT_EQ(read("a.corpus"), corpus_bytes(documents, vocabulary, 0x1f)) << vocabulary;
  }
}

TEST_F(IndexTool, ReadsTracesIdsSnapshotsAndFolders) {
  const std::string trace = write("t.jsonl", R"({"id":"one","category":"x","turns":[{"prompt":[1,2],"output":[3]},)"
                                             R"({"prompt":[4],"output":[5,6]}]})"
                                             "\n\n"
                                             R"({"id":"two","category":"x","turns":[{"prompt":[],"output":[]}]})"
                                             "\n");
  write_ids("ids/b/z.u16", {7, 8, 999});
  write_ids("ids/a.u32", {9});
  write_snapshot("h.snapshot", 5, {10, 11, 12, 13, 14});

  const Ran ran = build("a.corpus", {"--format=json", trace, path("ids"), path("h.snapshot")});
  ASSERT_EQ(ran.status, exit_done) << ran.error;
  EXPECT_EQ(read("a.corpus"), corpus_bytes({{"one", {1, 2, 3, 4, 5, 6}},
                                            {path("ids/a.u32"), {9}},
                                            {path("ids/b/z.u16"), {7, 8, 999}},
                                            {path("h.snapshot") + "#77", {10, 11, 12, 13, 14}}},
                                           1000, 5));
  const tools::Json counts = json(ran.out);
  EXPECT_EQ(number(counts, "documents"), 4);
  EXPECT_EQ(number(counts, "empty"), 1);
  EXPECT_EQ(number(counts, "tokens"), 15);
  EXPECT_EQ(static_cast<std::uint64_t>(number(counts, "bytes")), fs::file_size(path("a.corpus")));
}

TEST_F(IndexTool, RunsATokenizerOnText) {
#if !defined(_WIN32)
  const std::string text = write("a b'.txt", "AB\n");
  // Prints the bytes as numbers, in brackets and with commas.
  const Ran ran = build("a.corpus", {"--tokenizer", "printf '['; od -An -v -tu1 | tr '\\n' ','; printf ']'", text});
  ASSERT_EQ(ran.status, exit_done) << ran.error;
  EXPECT_EQ(read("a.corpus"), corpus_bytes({{text, {65, 66, 10}}}, 1000));

  EXPECT_THAT(build("b.corpus", {"--tokenizer", "echo 12 x7", text}).error,
              HasSubstr("--tokenizer echo 12 x7: printed 'x7' after 1 ids; expected token ids"));
  EXPECT_THAT(build("b.corpus", {"--tokenizer", "echo 1; exit 3", text}).error, HasSubstr("ended with the status 3"));
  EXPECT_THAT(build("b.corpus", {"--tokenizer", "no-such-command", text}).error, HasSubstr("status 127"));
  EXPECT_THAT(build("b.corpus", {"--tokenizer", "echo 4294967296", text}).error, HasSubstr("'4294967296'"));
  EXPECT_THAT(build("b.corpus", {text}).error, HasSubstr("to read it as text, give --tokenizer COMMAND"));
  EXPECT_THAT(files(), ElementsAre("a b'.txt", "a.corpus"));
#endif
}

TEST_F(IndexTool, LeavesOutExcludedDocuments) {
  const std::string one = write_ids("1.u16", {1, 2});
  const std::string two = write_ids("2.u16", {1, 3});
  const std::string three = write_ids("3.u16", {1, 4});
  ASSERT_EQ(build("all.corpus", {one, two, three}).status, exit_done);
  const std::string names = done({"info", "--names", path("all.corpus")}).out;
  const std::string list = write("list", one + "\r\n\nnobody\n" + names.substr(names.find("\n0x") + 1, 18) + "\n");
  const Ran ran = build("a.corpus", {"--exclude", list, "--format=json", one, two, three});
  EXPECT_EQ(ran.status, exit_done) << ran.error;
  EXPECT_EQ(ran.error, "reprise-index: note: " + list + ": no document is named 'nobody'\n");
  EXPECT_EQ(number(json(ran.out), "excluded"), 2);
  EXPECT_EQ(read("a.corpus"), corpus_bytes({{three, {1, 4}}}, 1000));
  done({"merge", "--output", path("b.corpus"), "--exclude", list, path("all.corpus")});
  EXPECT_EQ(read("b.corpus"), read("a.corpus"));
}

TEST_F(IndexTool, RefusesInputsThatItCannotUse) {
  const std::string good = write_ids("good.u16", {1, 2, 3});
  const std::string large = write_ids("large.u32", {1, 70'000});
  const std::string empty = write("empty.u16", "");
  fs::create_directories(path("no-files"));
  write_ids("huge.u32", {});
  const auto before = files();
  const auto refused = [&](const std::string& input, const std::string& sentence) {
    const Ran ran = build("a.corpus", {input});
    EXPECT_EQ(ran.status, exit_bad_input) << sentence;
    EXPECT_THAT(ran.error, HasSubstr(sentence));
    EXPECT_EQ(files(), before) << "nothing half is left";
  };
  refused(large, large + ": token 1: the id 70000 is outside");
  refused(write_ids("huge.u32", {0x80000000U}), "the id 2147483648 is outside");
  refused(empty, "no document has tokens; check the inputs and --exclude");
  refused(path("no-files"), "no-files: the folder has no files");
  refused(path("none\x1b[1m"), "none\\x1b[1m");
}

TEST_F(IndexTool, RefusesMixedFingerprints) {
  write_snapshot("5", 5, {1, 2, 3});
  write_snapshot("6", 6, {1, 2, 3});
  const Ran ran = build("a.corpus", {path("5"), path("6")});
  EXPECT_EQ(ran.status, exit_bad_input);
  EXPECT_THAT(ran.error, HasSubstr(path("6") + ": its tokenizer has the fingerprint 0x0000000000000006, but that of " +
                                   path("5") + " is 0x0000000000000005; give inputs of one tokenizer"));
  EXPECT_THAT(build("a.corpus", {"--fingerprint=7", path("5")}).error,
              HasSubstr("--fingerprint is 0x0000000000000007"));
  EXPECT_EQ(build("a.corpus", {"--fingerprint=5", path("5")}).status, exit_done);
}

TEST_F(IndexTool, ReplacesACorpusOnlyByAWholeOne) {
  const std::string one = write_ids("1.u16", {1, 2});
  const std::string bad = write_ids("2.u16", {1, 2000});
  ASSERT_EQ(build("a.corpus", {one}).status, exit_done);
  const std::string before = read("a.corpus");
  EXPECT_EQ(build("a.corpus", {one, bad}).status, exit_bad_input);
  EXPECT_EQ(read("a.corpus"), before);
  EXPECT_EQ(build("a.corpus", {one, one}).status, exit_done);
  EXPECT_NE(read("a.corpus"), before);
  EXPECT_THAT(files(), ElementsAre("1.u16", "2.u16", "a.corpus"));
  EXPECT_THAT(build("1.u16", {one}).error, HasSubstr("would replace the input"));
  EXPECT_THAT(build("no/a.corpus", {one}).error, HasSubstr("does the folder exist?"));
}

#if !defined(_WIN32)
/// No file grows above `bytes`, and the system ends a process that tries, as under `ulimit -f`.
class DeadlyFileSizeLimit {
 public:
  explicit DeadlyFileSizeLimit(std::size_t bytes) : limit_(bytes) { std::signal(SIGXFSZ, SIG_DFL); }

 private:
  testing::FileSizeLimit limit_;  // puts the signal's handler back
};

TEST_F(IndexTool, SaysThatTheFileMayNotGrow) {
  testing::Random random(3);
  const std::string small = write_ids("1.u16", {1, 2, 3});
  const std::string large = write_ids("2.u16", random_ids(random, 400'000, 1000));
  ASSERT_EQ(build("small", {small}).status, exit_done);
  ASSERT_EQ(build("large", {large, small}).status, exit_done);
  const std::string before = read("small");
  const std::string list = write("list", small);
  const auto files_before = files();
  const std::size_t whole = read("large").size();
  const std::vector<std::vector<std::string>> commands = {
      {"build", "--vocabulary=1000", "--threads=2", large, small},
      {"merge", path("large")},
      {"merge", "--exclude", list, path("large")},
  };
  for (std::vector<std::string> command : commands) {
    command.insert(command.end(), {"--output", path("small")});
    // The text of 800,000 bytes fits into 900,000.
    for (const std::size_t bytes : {std::size_t{0}, std::size_t{300}, std::size_t{900'000}, whole - 10'000}) {
      const DeadlyFileSizeLimit limit(bytes);
      const Ran ran = run(command);
      EXPECT_EQ(ran.status, exit_failed) << command[0] << bytes;
      EXPECT_EQ(std::count(ran.error.begin(), ran.error.end(), '\n'), 1);
      EXPECT_THAT(ran.error, AllOf(HasSubstr("small: cannot be written: File too large; it needs "),
                                   HasSubstr("raise the limit for the size of a file (ulimit -f)"),
                                   HasSubstr("nothing was replaced")));
      if (bytes == 900'000 && command[1] != "--exclude") {
        EXPECT_THAT(ran.error, HasSubstr("it needs " + std::to_string(whole) + " bytes"));
      }
      EXPECT_EQ(read("small"), before);
      EXPECT_EQ(files(), files_before);
    }
  }
  const DeadlyFileSizeLimit limit(whole);
  EXPECT_EQ(build("small", {large, small}).status, exit_done) << "the limit is not too strict";
}

TEST_F(IndexTool, OnlyTheOwnerMayReadANewCorpusAndAReplacedOneKeepsItsPermissions) {
  using fs::perms;
  const auto mode = [&](const std::string& name) { return fs::status(path(name)).permissions(); };
  const std::string ids = write_ids("1.u16", {1, 2, 3});
  ASSERT_EQ(build("a.corpus", {ids}).status, exit_done);
  EXPECT_EQ(mode("a.corpus"), perms::owner_read | perms::owner_write);
  {
    OutputFile file(path("b.corpus"));
    EXPECT_EQ(fs::status(file.temporary()).permissions(), perms::owner_read | perms::owner_write);
  }
  fs::permissions(path("a.corpus"), perms::group_read | perms::others_read, fs::perm_options::add);
  const perms shared = mode("a.corpus");
  ASSERT_EQ(build("a.corpus", {ids}).status, exit_done);
  EXPECT_EQ(mode("a.corpus"), shared);
}

TEST_F(IndexTool, NothingIsLeftWhereverAWriteFails) {
  const std::vector<std::byte> bytes(std::size_t{3} << 20, std::byte{1});
  write("out", "before");
  // Each step of a file: the writes beyond the limit fail in another one. `announced` bytes were announced.
  const auto failed = [&](std::size_t limit_bytes, std::size_t written, std::size_t announced,
                          const std::string& needed) {
    const FileSizeSignalIgnored ignored;
    const testing::FileSizeLimit limit(limit_bytes);
    try {
      OutputFile file(path("out"));
      file.append(std::span(bytes).first(100));
      if (announced != 0) file.expect_size(announced);
      file.append(std::span(bytes).first(written));
      file.rewrite(0, std::span(bytes).first(50));
      file.publish();
      ADD_FAILURE() << "nothing failed";
    } catch (const BuildError& error) {
      EXPECT_THAT(error.what(), HasSubstr("File too large; it needs " + needed + " bytes; raise the limit"));
    }
    EXPECT_THAT(files(), ElementsAre("out"));
    EXPECT_EQ(read("out"), "before");
  };
  failed(1000, 1000, 0, "more than 1100");              // rewrite() or publish() writes the buffer
  failed(1000, 1000, 1000, "1000");                     // more is written than was announced
  failed(1000, 1000, 1001, "1001");                     // refused when announced
  failed(1'000'000, bytes.size(), 0, "more than 100");  // append() writes the buffer
  {
    OutputFile file(path("out"));
    file.append(bytes);
    try {
      file.expect_size(std::uint64_t{1} << 62);
      ADD_FAILURE() << "no disk is this large";
    } catch (const BuildError& error) {
      EXPECT_THAT(error.what(), AllOf(HasSubstr("No space left on device; it needs 4611686018427387904 bytes; free"),
                                      HasSubstr("nothing was replaced")));
    }
  }
  {
    OutputFile file(path("out"));
    file.append(bytes);
    fs::remove(path("out"));
    fs::create_directories(path("out"));  // a folder cannot be replaced by a file
    EXPECT_THROW(file.publish(), BuildError);
  }
  EXPECT_THAT(files(), ElementsAre("out"));
}

TEST_F(IndexTool, StopsAtAnInterrupt) {
  const std::string text = write("text.txt", "hello");
  const std::string ids = write_ids("1.u16", {1});
  // The command interrupts the tool, as Ctrl-C does.
  const Ran ran = build("a.corpus", {"--tokenizer", "kill -INT $PPID; echo 1", text, ids});
  EXPECT_EQ(ran.status, exit_failed);
  EXPECT_THAT(ran.error, HasSubstr("a.corpus: was not written, because of an interrupt"));
  EXPECT_THAT(files(), ElementsAre("1.u16", "text.txt"));
}
#endif

// ---- merge ---------------------------------------------------------------------------------------------------------

TEST_F(IndexTool, AMergeIsABuildOfAllDocuments) {
  testing::Random random(4);
  std::vector<std::string> files;
  for (int i = 0; i < 9; ++i)
    files.push_back(
        write_ids(std::to_string(i) + ".u16", random_ids(random, 1 + random.below(500), i % 2 == 0 ? 2 : 900)));
  files.push_back(files[2]);  // equal documents in several corpora
  files.push_back(files[2]);
  ASSERT_EQ(build("all", files).status, exit_done);
  std::vector<std::string> merge = {"merge", "--output", path("merged")};
  for (std::size_t i = 0, part = 0; i < files.size(); ++part) {
    std::vector<std::string> inputs;
    for (std::size_t left = 1 + random.below(4); left > 0 && i < files.size(); --left) inputs.push_back(files[i++]);
    merge.push_back(path("part" + std::to_string(part)));
    ASSERT_EQ(build("part" + std::to_string(part), inputs).status, exit_done);
  }
  done(merge);
  EXPECT_TRUE(read("merged") == read("all"));
}

TEST_F(IndexTool, MergesOnlyWholeCorpora) {
  ASSERT_EQ(build("a", {write_ids("1.u16", {1, 2, 3, 1, 2})}).status, exit_done);
  const auto before = files();
  const std::string whole = read("a");
  for (std::size_t at = 0; at < whole.size(); at += 7) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 1);
    write("d", damaged);
    const Ran merged = run({"merge", "--output", path("out"), path("d")});
    const Ran verified = run({"verify", path("d")});
    EXPECT_EQ(verified.status, exit_failed) << at;
    // The bytes between sections are 0 in a merged corpus again.
    if (merged.status == exit_done) {
      EXPECT_EQ(read("out"), whole);
      fs::remove(path("out"));
    } else {
      EXPECT_EQ(merged.status, exit_bad_input) << at;
    }
    fs::remove(path("d"));
    EXPECT_EQ(files(), before);
  }
}

TEST_F(IndexTool, ReadsAnEmptyCorpusAndMergesItWithOthers) {
  const std::string empty = write("empty", corpus_bytes({}, 1000));
  EXPECT_THAT(done({"verify", empty}).out, HasSubstr("is whole"));
  EXPECT_EQ(number(json(done({"info", "--format=json", empty}).out), "tokens"), 0);
  EXPECT_EQ(number(json(done({"query", "--tokens=1", "--format=json", empty}).out), "matched"), 0);
  const Ran refused = run({"merge", "--output", path("out"), empty, empty});
  EXPECT_EQ(refused.status, exit_bad_input);
  EXPECT_THAT(refused.error, HasSubstr("the corpora have no documents; give others"));
  EXPECT_THAT(files(), ElementsAre("empty"));
  ASSERT_EQ(build("a", {write_ids("1.u16", {1, 2})}).status, exit_done);
  done({"merge", "--output", path("out"), empty, path("a")});
  EXPECT_EQ(read("out"), read("a"));
}

TEST_F(IndexTool, SaysThatTheEndOfACorpusIsMissing) {
  ASSERT_EQ(build("a", {write_ids("1.u16", {1, 2, 3})}).status, exit_done);
  const std::string whole = read("a");
  for (const std::size_t size :
       {std::size_t{0}, std::size_t{5}, std::size_t{255}, std::size_t{256}, whole.size() - 1}) {
    const std::string cut = write("cut", whole.substr(0, size));
    const std::string sentence = cut + ": the end of the corpus is missing: take another copy of the file (it has " +
                                 std::to_string(size) + " bytes of " + std::to_string(size < 256 ? 256 : whole.size()) +
                                 ")";
    EXPECT_THAT(run({"info", cut}).error, HasSubstr(sentence));
    EXPECT_THAT(run({"query", "--tokens=1", cut}).error, HasSubstr(sentence));
    EXPECT_THAT(run({"merge", "--output", path("out"), path("a"), cut}).error, HasSubstr(sentence));
    EXPECT_THAT(run({"verify", cut}).out, HasSubstr(sentence));
    EXPECT_FALSE(fs::exists(path("out")));
  }
}

}  // namespace
}  // namespace reprise::indexing::index_tool_tool_test
