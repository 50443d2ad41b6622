// SPDX-License-Identifier: Apache-2.0
// The allocations of snapshots: none in memory, the bytes of a file when it is loaded, and the names when it is saved.
#include <gtest/gtest.h>

#include <cstddef>
#include <filesystem>
#include <iterator>
#include <numeric>
#include <optional>
#include <vector>

#include "reprise/history/history_snapshot.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise/history/snapshot_file.hpp"
#include "support/allocation_counter.hpp"
#include "support/folder_test.hpp"
#include "support/snapshots.hpp"

namespace reprise::snapshot_allocation_test {
namespace {

using testing::AllocationWatch;
using testing::Bytes;
using testing::some_tokenizer;

TEST(SnapshotAllocations, NoneToReadAndNoneToWrite) {
  const Bytes bytes = testing::sample_snapshot(10);
  Bytes again(bytes.size());
  std::size_t tokens = 0;
  bool finished = false;
  std::size_t allocations = 1;
  {
    const AllocationWatch watch;
    const auto reader = SnapshotReader::open(bytes, some_tokenizer);
    SnapshotWriter writer(again, some_tokenizer);
    write_calibration(writer, *read_calibration(*reader->section(SectionKind::calibration)));
    const auto section = reader->section(SectionKind::runs);
    writer.begin_section(SectionKind::runs);
    const auto read = detail::for_each_run(*section, [&](const detail::RunView& run) {
      tokens += run.size();
      testing::write_run(writer, run);
    });
    finished = read && writer.finish();
    allocations = watch.allocations();
  }
  EXPECT_EQ(allocations, 0U);
  EXPECT_TRUE(finished);
  EXPECT_EQ(tokens, 325U);
  EXPECT_EQ(again, bytes);
}

TEST(MemorySnapshotAllocations, NoneToSaveAndNoneToLoad) {
  auto memory = HistoryStore::make({.max_bytes = 50'000});
  auto again = HistoryStore::make({.max_bytes = 50'000});
  ASSERT_TRUE(memory && again);
  std::vector<Token> tokens(5000);
  std::iota(tokens.begin(), tokens.end(), 0);
  memory->begin_sequence(1);
  memory->append(tokens, Origin::output);
  memory->end_sequence();
  CalibrationState calibration;
  Bytes bytes(snapshot_bytes_of(*memory));
  bool loaded = false;
  std::size_t allocations = 1;
  {
    const AllocationWatch watch;
    const auto saved = save_history(bytes, some_tokenizer, *memory, calibration);
    loaded = saved && load_history(*saved, some_tokenizer, *again, calibration);
    allocations = watch.allocations();
  }
  EXPECT_EQ(allocations, 0U);
  EXPECT_TRUE(loaded);
  EXPECT_GT(again->counts().stored, 2000U);
}

class SnapshotFileAllocations : public testing::FolderTest {
 protected:
  [[nodiscard]] std::ptrdiff_t files() const {
    return std::distance(std::filesystem::directory_iterator(folder_), std::filesystem::directory_iterator());
  }

  const std::filesystem::path path_ = folder_ / "a";
};

TEST_F(SnapshotFileAllocations, SavingWithoutMemoryLeavesTheOldFile) {
  const Bytes old(5, std::byte{1});
  ASSERT_TRUE(save_file(path_, old));
  std::optional<Result<void>> saved;
  for (const std::size_t fail_at : {1U, 2U}) {  // the names of the folder and of the temporary file
    {
      const AllocationWatch watch(fail_at);
      saved = save_file(path_, Bytes());
    }
    ASSERT_FALSE(*saved) << fail_at;
    EXPECT_EQ(saved->error().code, ErrorCode::out_of_memory);
    reprise::Bytes back;
    ASSERT_TRUE(load_file(path_, back));
    EXPECT_EQ(back.size(), 5U);
    EXPECT_EQ(files(), 1);
  }
  {
    const AllocationWatch watch(3);
    saved = save_file(path_, Bytes());
  }
  EXPECT_TRUE(*saved) << "no third allocation";
}

TEST_F(SnapshotFileAllocations, LoadingAllocatesOnceAndFailsWithoutIt) {
  ASSERT_TRUE(save_file(path_, Bytes(5000)));
  reprise::Bytes bytes;
  std::size_t allocations = 0;
  {
    const AllocationWatch watch;
    EXPECT_TRUE(load_file(path_, bytes));
    allocations = watch.allocations();
  }
  EXPECT_EQ(allocations, 1U);
  EXPECT_EQ(bytes.memory_bytes(), 5000U);
  std::optional<Result<void>> loaded;
  {
    const AllocationWatch watch(1);
    loaded = load_file(path_, bytes);
  }
  ASSERT_FALSE(*loaded);
  EXPECT_EQ(loaded->error().code, ErrorCode::out_of_memory);
  EXPECT_EQ(loaded->error().value, 5000U);
  EXPECT_EQ(bytes.size(), 0U);
}

}  // namespace
}  // namespace reprise::snapshot_allocation_test
