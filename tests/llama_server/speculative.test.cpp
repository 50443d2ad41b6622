// SPDX-License-Identifier: Apache-2.0
/// \file The speculation type of llama-server, its files and its draft models: its own code, with stand-ins for the types
/// of llama.cpp.
#include <gtest/gtest.h>

#if !defined(_WIN32)  // the tests cause faults with POSIX calls

#include <reprise_c/reprise.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <memory>
#include <random>
#include <set>
#include <stdexcept>
#include <string>
#include <string_view>
#include <system_error>
#include <utility>
#include <vector>

#include "private_files.h"
#include "siphash.h"
#include "support/file_size_limit.hpp"
#include "support/folder_test.hpp"

namespace reprise::speculative_test {
namespace {

namespace fs = std::filesystem;

std::string warnings;

// What reprise_speculative.h uses of common/speculative.cpp and llama.h. NOLINTBEGIN: the names are llama.cpp's.
#define SPC_WRN(...)                                      \
  do {                                                    \
    std::vector<char> line(4096);                         \
    std::snprintf(line.data(), line.size(), __VA_ARGS__); \
    warnings += line.data();                              \
  } while (false)
using llama_token = int32_t;
using llama_seq_id = int32_t;
using llama_tokens = std::vector<llama_token>;
using llama_pos = int32_t;
struct llama_vocab {};
struct llama_context {
  std::vector<llama_tokens> sequences;  // the ids in its memory
};
struct llama_model {};
enum common_speculative_type {
  COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE,
  COMMON_SPECULATIVE_TYPE_DRAFT_EAGLE3,
  COMMON_SPECULATIVE_TYPE_DRAFT_MTP,
  COMMON_SPECULATIVE_TYPE_DRAFT_DFLASH,
  COMMON_SPECULATIVE_TYPE_DRAFT_DSPARK,
  COMMON_SPECULATIVE_TYPE_REPRISE
};
std::string common_speculative_type_to_str(common_speculative_type type) { return "type-" + std::to_string(type); }
const llama_model* llama_get_model(const llama_context*) { return nullptr; }
const llama_vocab* llama_model_get_vocab(const llama_model*) { return nullptr; }
uint32_t llama_n_batch(const llama_context*) { return 512; }
int32_t llama_vocab_n_tokens(const llama_vocab*) { return 1000; }
llama_token end_of_generation = -1;
bool llama_vocab_is_eog(const llama_vocab*, llama_token id) { return id == end_of_generation; }
const char* llama_vocab_get_text(const llama_vocab*, llama_token) { return "token"; }
void llama_model_desc(const llama_model*, char* text, size_t room) { std::snprintf(text, room, "a model"); }
struct common_params_speculative {
  struct {
    llama_context* ctx_tgt = nullptr;
    llama_context* ctx_dft = nullptr;
  } draft;
  std::vector<common_speculative_type> types;
  std::string reprise_memory;
};
struct llama_batch {
  const llama_tokens& tokens;
  const std::vector<std::pair<llama_pos, llama_seq_id>>& places;
};
struct common_batch {
  common_batch(llama_tokens rows) : tokens(std::move(rows)) {}
  explicit common_batch(const llama_context*) {}
  void clear() { tokens.clear(), places.clear(); }
  void add(llama_token id, llama_pos at, llama_seq_id sequence, bool) {
    tokens.push_back(id);
    places.emplace_back(at, sequence);
  }
  llama_batch get() const { return {tokens, places}; }
  llama_tokens tokens;
  std::vector<std::pair<llama_pos, llama_seq_id>> places;
};
llama_context* llama_get_memory(llama_context* context) { return context; }
llama_pos llama_memory_seq_pos_max(const llama_context* memory, llama_seq_id sequence) {
  return static_cast<llama_pos>(memory->sequences[static_cast<std::size_t>(sequence)].size()) - 1;
}
enum { COMMON_CONTEXT_SEQ_RM_TYPE_NO, COMMON_CONTEXT_SEQ_RM_TYPE_PART };
int common_context_can_seq_rm(const llama_context*) { return COMMON_CONTEXT_SEQ_RM_TYPE_PART; }
enum { LLAMA_PROCESS_TYPE_DECODE };
int llama_process(llama_context* context, int, const llama_batch& rows) {
  for (std::size_t i = 0; i < rows.tokens.size(); ++i) {
    const auto [at, sequence] = rows.places[i];
    llama_tokens& ids = context->sequences[static_cast<std::size_t>(sequence)];
    if (static_cast<std::size_t>(at) != ids.size()) return -1;
    ids.push_back(rows.tokens[i]);
  }
  return 0;
}
struct common_speculative_draft_params {
  bool drafting = false;
  const llama_tokens* prompt = nullptr;
  llama_token id_last = 0;
  int32_t n_max = -1;
  llama_tokens* result = nullptr;
  std::string cache_salt = {};
};
using common_speculative_draft_params_vec = std::vector<common_speculative_draft_params>;
struct common_speculative_impl {
  common_speculative_impl(common_speculative_type its, uint32_t sequences, int32_t) : type(its), n_seq(sequences) {}
  virtual ~common_speculative_impl() = default;
  virtual void begin(llama_seq_id, const llama_tokens&) = 0;
  virtual void draft(common_speculative_draft_params_vec&) = 0;
  virtual bool process(const common_batch&) = 0;
  virtual void accept(llama_seq_id, uint16_t, bool) = 0;
  virtual bool get_state(llama_seq_id, std::vector<uint8_t>&) const { return false; }
  virtual void set_state(llama_seq_id, const std::vector<uint8_t>&) {}
  common_speculative_type type;
  uint32_t n_seq;
};
#include "reprise_speculative.h"
// NOLINTEND
#undef SPC_WRN

class ServerFiles : public testing::FolderTest {
 protected:
  /// Runs a server with one slot that answers one request. Returns true if it drafts from the text of an earlier one.
  bool run() {
    warnings.clear();
    common_params_speculative params;
    params.reprise_memory = path("history");
    common_speculative_impl_reprise server(params, 1);
    const llama_tokens prompt(text_.begin(), text_.begin() + 20);
    server.begin(0, prompt);
    llama_tokens draft;
    common_speculative_draft_params_vec passes = {{true, &prompt, text_[20], -1, &draft}};
    server.draft(passes);
    const bool known = !draft.empty() && draft[0] == text_[21];
    passes = {{true, &text_, 7, -1, &draft}};
    server.draft(passes);
    return known;
  }
  [[nodiscard]] std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.insert(entry.path().filename().string());
    return names;
  }
  [[nodiscard]] unsigned mode(const std::string& name) const {
    struct stat status = {};
    return ::stat(path(name).c_str(), &status) == 0 ? status.st_mode & 07777U : 0;
  }
  static bool warned(std::string_view words) { return warnings.find(words) != std::string::npos; }

  const std::set<std::string> all_ = {"history", "history.1", "history.key"};
  const llama_tokens text_ = [] {
    llama_tokens text;
    for (llama_token token = 100; token < 400; ++token) text.push_back(token);
    return text;
  }();
};

TEST_F(ServerFiles, AreForTheirOwnerAloneAndServeTheNextServer) {
  const auto before = ::umask(0);
  EXPECT_FALSE(run());
  ::chmod(path("history").c_str(), 0666);
  EXPECT_TRUE(run());
  ::umask(before);
  EXPECT_EQ(files(), all_);
  for (const std::string& name : all_) EXPECT_EQ(mode(name), 0600U) << name << ": not the mode of the old file";
  EXPECT_EQ(warnings, "");
}

TEST_F(ServerFiles, AreNotWrittenThroughPlantedLinks) {
  write("victim", "precious");
  std::set<std::string> expected = all_;
  for (const std::string& planted : {std::string("history.new"), "history." + std::to_string(::getpid()) + "-0.tmp"}) {
    fs::create_symlink(path("victim"), path(planted));
    expected.insert(planted);
  }
  run();
  EXPECT_TRUE(run());
  EXPECT_EQ(read(path("victim")), "precious");
  expected.insert("victim");
  EXPECT_EQ(files(), expected);
}

TEST_F(ServerFiles, OfADiskThatIsFullAreTheOldOnes) {
  run();
  const std::string old = read(path("history"));
  {
    const testing::FileSizeLimit full(old.size() / 2);
    run();
  }
  EXPECT_TRUE(warned("history cannot be written: ")) << warnings;
  EXPECT_EQ(read(path("history")), old);
  EXPECT_EQ(files(), all_);
}

TEST_F(ServerFiles, ThatCannotBeReplacedAreLeftAsTheyAre) {
  write("others", "text of somebody else");
  fs::create_symlink(path("others"), path("history"));
  run();
  EXPECT_TRUE(warned("history is a link: give the path of the file itself")) << warnings;
  EXPECT_TRUE(warned("nothing is kept in ")) << warnings;
  EXPECT_EQ(files(), (std::set<std::string>{"history", "others"}));
  EXPECT_EQ(read(path("others")), "text of somebody else");

  fs::remove(path("history"));
  ASSERT_EQ(::mkfifo(path("history").c_str(), 0600), 0);
  run();  // and does not wait for a writer of the pipe
  EXPECT_TRUE(warned("give the path of a regular file")) << warnings;
  EXPECT_FALSE(fs::is_regular_file(path("history")));

  fs::remove(path("history"));
  write("history", "no snapshot");
  run();
  EXPECT_TRUE(warned("nothing is kept in ")) << warnings;
  EXPECT_EQ(read(path("history")), "no snapshot");

  fs::remove(path("history.key"));
  fs::create_directory(path("history.key"));
  run();
  EXPECT_TRUE(warned("history.key: the path is a folder")) << warnings;
  EXPECT_EQ(read(path("history")), "no snapshot");
}

/// Returns the longest run of drafted tokens after `end`, in the second slot, which answers two requests. Each pass
/// also holds a prompt of another slot, so that no time is learned.
std::size_t drafted_after(llama_token end, const std::string& salt) {
  common_speculative_impl_reprise server({}, 2);
  std::size_t longest = 0;
  for (const llama_token first : {500, 600}) {
    llama_tokens text;
    const auto next = [&] { return first + static_cast<llama_token>(text.size() % 40); };
    while (text.size() < 200) text.push_back(next());
    server.begin(1, text);
    while (text.size() < 240) {
      llama_tokens draft;
      common_speculative_draft_params_vec passes(2);
      passes[1] = {true, &text, next(), -1, &draft, salt};
      server.draft(passes);
      const auto at = std::find(draft.begin(), draft.end(), end);
      if (at != draft.end()) longest = std::max(longest, static_cast<std::size_t>(draft.end() - at) - 1);
      server.process({llama_tokens(1 + draft.size() + 100)});
      text.push_back(next());
      for (const llama_token drafted : draft) {
        EXPECT_EQ(drafted, next()) << "the text repeats";
        text.push_back(drafted);
      }
      server.accept(1, static_cast<uint16_t>(draft.size()), false);
    }
  }
  return longest;
}

TEST(ServerDrafts, EndWhereTheServerEndsARequest) {
  for (const char* salt : {"", "a"}) {
    for (const llama_token end : {501, 620}) {
      EXPECT_GT(drafted_after(end, salt), 0U);
      end_of_generation = end;
      EXPECT_EQ(drafted_after(end, salt), 0U);
      end_of_generation = -1;
    }
  }
}

/// Answers a request with one text, whose tokens all differ. Returns the number of tokens that an earlier request with
/// that text lets it draft.
std::size_t drafted_again(common_speculative_impl_reprise& server, const std::string& salt, llama_seq_id slot = 0,
                          int32_t n_max = -1) {
  llama_tokens text;
  for (llama_token token = 100; token < 400; ++token) text.push_back(token);
  const llama_tokens prompt(text.begin(), text.begin() + 20);
  server.begin(slot, prompt);
  llama_tokens draft;
  common_speculative_draft_params_vec passes(server.n_seq);
  auto& pass = passes[static_cast<std::size_t>(slot)];
  pass = {true, &prompt, text[20], n_max, &draft, salt};
  server.draft(passes);
  const std::size_t drafted = draft.size();
  EXPECT_TRUE(std::equal(draft.begin(), draft.end(), text.begin() + 21));
  pass = {true, &text, 7, n_max, &draft, salt};
  server.draft(passes);
  return drafted;
}

TEST(ServerSalts, SeeTheirOwnTextOnly) {
  common_speculative_impl_reprise server({}, 1);
  for (const char* salt : {"a", "b", ""}) EXPECT_EQ(drafted_again(server, salt), 0U) << salt;
  for (const char* salt : {"a", "b", ""}) EXPECT_GT(drafted_again(server, salt), 0U) << salt;
  common_speculative_impl_reprise another({}, 1);
  EXPECT_NE(server.salt_number("a"), another.salt_number("a")) << "nobody can name the salt of another client";
  EXPECT_EQ(server.salt_number(""), 0U);
}

TEST(ServerSalts, AreKeptForEachSlot) {
  common_speculative_impl_reprise server({}, 6);
  const auto drafted = [&](llama_seq_id slot) { return drafted_again(server, "salt " + std::to_string(slot), slot); };
  for (llama_seq_id slot = 0; slot < 6; ++slot) EXPECT_EQ(drafted(slot), 0U) << slot;
  for (llama_seq_id slot = 0; slot < 6; ++slot) EXPECT_GT(drafted(slot), 0U) << slot;
}

TEST(ServerSalts, DoNotReplaceTextWithoutASalt) {
  common_speculative_impl_reprise server({}, 1);
  EXPECT_EQ(drafted_again(server, ""), 0U);
  for (int salt = 0; salt < 10; ++salt) EXPECT_EQ(drafted_again(server, std::to_string(salt)), 0U);
  EXPECT_EQ(drafted_again(server, "0"), 0U) << "the oldest salts are forgotten";
  EXPECT_GT(drafted_again(server, ""), 0U) << "the history is written from it";
}

TEST(ServerSalts, HaveNumbersBySipHash) {
  const std::array<uint64_t, 2> key = {0x0706050403020100U, 0x0f0e0d0c0b0a0908U};
  std::string text;
  const auto hash_of = [&](std::size_t size) {
    while (text.size() < size) text.push_back(static_cast<char>(text.size()));
    return reprise_server::siphash(key, text);
  };
  EXPECT_EQ(hash_of(0), 0x726fdb47dd0e0e31U) << "the vectors of its authors";
  EXPECT_EQ(hash_of(8), 0x93f5f5799a932462U);
  EXPECT_EQ(hash_of(15), 0xa129ca6149be45e5U);
}

TEST(ServerDrafts, AreBoundedByTheRequest) {
  common_speculative_impl_reprise server({}, 1);
  EXPECT_EQ(drafted_again(server, "", 0, 0), 0U);
  EXPECT_EQ(drafted_again(server, "", 0, 1), 1U) << "the text of a request that drafts nothing is kept";
  EXPECT_EQ(drafted_again(server, "", 0, 0), 0U);
  EXPECT_GT(drafted_again(server, ""), 1U);
}

/// A draft model whose drafts are `right`: the text goes on with the square of each position, so no lookup finds it.
struct DraftModel : common_speculative_impl {
  static llama_token next(std::size_t at) { return static_cast<llama_token>(at * at % 997); }

  DraftModel(llama_context& its, common_speculative_type kind) : common_speculative_impl(kind, 2, 8), context(&its) {}
  void begin(llama_seq_id, const llama_tokens&) override {}
  void draft(common_speculative_draft_params_vec& passes) override {
    for (std::size_t i = 0; i < passes.size(); ++i) {
      if (!passes[i].drafting) continue;
      llama_tokens& ids = context->sequences[i];
      EXPECT_EQ(ids.size(), passes[i].prompt->size()) << "it has not read all tokens, or some twice";
      ids.push_back(passes[i].id_last);
      for (int32_t k = 0; k < passes[i].n_max; ++k) {
        const llama_token token = right ? next(passes[i].prompt->size() + 1 + static_cast<std::size_t>(k)) : 998;
        passes[i].result->push_back(token);
        if (k + 1 < passes[i].n_max) ids.push_back(token);
      }
      ++runs;
    }
  }
  bool process(const common_batch& rows) override {
    processed += rows.tokens.size();
    return true;
  }
  void accept(llama_seq_id, uint16_t, bool) override { ++accepted; }

  llama_context* context;
  bool right = true;
  std::size_t runs = 0;
  std::size_t processed = 0;
  std::size_t accepted = 0;
};

struct ServerDraftModel : ::testing::Test {
  /// Returns the passes of one request of 600 tokens in the second of two slots. The server trims both memories.
  std::size_t passes_of_a_request() {
    draft_context.sequences.assign(2, {});
    target_context.sequences.assign(2, {});
    llama_tokens& kept = target_context.sequences[1];
    for (std::size_t i = 0; i < 20; ++i) kept.push_back(DraftModel::next(i));
    server->begin(1, kept);
    if (reads_each_pass) draft_context.sequences[1] = kept;
    std::size_t passes = 0;
    for (; kept.size() < 600; ++passes) {
      const llama_tokens prompt = kept;
      llama_tokens draft;
      common_speculative_draft_params_vec asked(2);
      asked[1] = {true, &prompt, DraftModel::next(prompt.size()), 8, &draft, {}};
      server->draft(asked);
      server->process(llama_tokens(1 + draft.size() + 100));  // other slots read their prompts: no time is learned
      std::size_t agreed = 0;
      while (agreed < draft.size() && draft[agreed] == DraftModel::next(kept.size() + 1 + agreed)) ++agreed;
      for (std::size_t i = 0; i <= agreed; ++i) kept.push_back(DraftModel::next(kept.size()));
      llama_tokens& read = draft_context.sequences[1];
      if (reads_each_pass) read = kept;
      read.resize(std::min(read.size(), kept.size()));
      server->accept(1, static_cast<uint16_t>(agreed), false);
    }
    return passes;
  }
  DraftModel& start(common_speculative_type type = COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE) {
    common_params_speculative params;
    params.draft.ctx_tgt = &target_context;
    params.draft.ctx_dft = &draft_context;
    params.types = {type};
    std::vector<std::unique_ptr<common_speculative_impl>> all;
    all.push_back(std::make_unique<common_speculative_impl_reprise>(params, 2));
    all.push_back(std::make_unique<DraftModel>(draft_context, type));
    auto& model = static_cast<DraftModel&>(*all[1]);
    common_speculative_impl_reprise::adopt(all);
    EXPECT_EQ(all.size(), 1U);
    server = std::move(all[0]);
    reads_each_pass = type != COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE;
    return model;
  }

  llama_context target_context;
  llama_context draft_context;
  std::unique_ptr<common_speculative_impl> server;
  bool reads_each_pass = false;  // the draft model
};

TEST_F(ServerDraftModel, SavesPassesAndReadsTokensOnlyBeforeItDrafts) {
  DraftModel& model = start();
  EXPECT_LT(passes_of_a_request(), 200U);
  EXPECT_GT(model.runs, 0U);
  EXPECT_EQ(model.processed, 0U);
  EXPECT_GT(model.accepted, 0U);
}

TEST_F(ServerDraftModel, ThatIsWrongIsSeldomRun) {
  DraftModel& model = start();
  model.right = false;
  EXPECT_EQ(passes_of_a_request(), 580U);
  EXPECT_LT(model.runs, 116U) << "a fifth of the passes";
}

TEST_F(ServerDraftModel, ThatNeedsTheTargetsStatesReadsEachPass) {
  DraftModel& model = start(COMMON_SPECULATIVE_TYPE_DRAFT_EAGLE3);
  const std::size_t passes = passes_of_a_request();
  EXPECT_LT(passes, 200U);
  EXPECT_GE(model.processed, passes * 101);
}

TEST_F(ServerDraftModel, IsNotReadPastImages) {
  DraftModel& model = start();
  draft_context.sequences.assign(2, {});
  target_context.sequences.assign(2, llama_tokens(50));  // an image has positions without ids
  const llama_tokens prompt(20, 1);
  llama_tokens draft;
  common_speculative_draft_params_vec asked(2);
  asked[1] = {true, &prompt, 1, 8, &draft, {}};
  server->begin(1, prompt);
  server->draft(asked);
  EXPECT_EQ(model.runs, 0U);
  EXPECT_TRUE(draft_context.sequences[1].empty());
}

TEST(ServerTypes, ThatNeedADraftModelAreRefusedWithoutOne) {
  common_params_speculative params;
  params.types = {COMMON_SPECULATIVE_TYPE_REPRISE, COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE};
  try {
    const common_speculative_impl_reprise server(params, 1);
    FAIL() << "it was not refused";
  } catch (const std::runtime_error& error) {
    EXPECT_NE(std::string(error.what()).find("give its GGUF file with -md"), std::string::npos) << error.what();
  }
}

TEST(ServerTypes, WithoutRepriseAreLeftAsTheyAre) {
  llama_context context;
  std::vector<std::unique_ptr<common_speculative_impl>> all;
  all.push_back(std::make_unique<DraftModel>(context, COMMON_SPECULATIVE_TYPE_DRAFT_SIMPLE));
  common_speculative_impl_reprise::adopt(all);
  all.push_back(std::make_unique<common_speculative_impl_reprise>(common_params_speculative{}, 1));
  common_speculative_impl_reprise::adopt(all);
  EXPECT_EQ(all.size(), 2U) << "reprise comes after it, or is not there";
}

TEST_F(ServerFiles, AreAtMost256MiB) {
  fs::resize_file(write("history", ""), (std::uintmax_t{256} << 20) + 1);
  run();
  EXPECT_TRUE(warned("the file is larger than allowed")) << warnings;
  EXPECT_EQ(fs::file_size(path("history")), (std::uintmax_t{256} << 20) + 1);
}

}  // namespace
}  // namespace reprise::speculative_test

#endif
