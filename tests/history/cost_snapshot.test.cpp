// SPDX-License-Identifier: Apache-2.0
#include "reprise/history/table_snapshots.hpp"

#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "support/fails.hpp"
#include "support/snapshots.hpp"

namespace reprise::cost_snapshot_test {
namespace {

using testing::Bytes;
using testing::some_tokenizer;

constexpr std::string_view some_engine = "engine 1, 8 threads";

CostPrior some_costs() {
  CostPrior costs;
  costs.assume(2, to_cost(1.5));
  costs.assume(3, CostPrior::least_cost);
  costs.assume(9, to_cost(2.75));
  costs.assume(64, CostPrior::most_cost);
  return costs;
}

Bytes with_costs(const CostPrior& costs, std::string_view name = some_engine) {
  Bytes bytes(snapshot_bytes({cost_bytes(costs, name)}));
  SnapshotWriter writer(bytes, some_tokenizer);
  EXPECT_TRUE(save_costs(costs, name, writer));
  EXPECT_TRUE(writer.finish()) << "cost_bytes() is the length";
  return bytes;
}

ErrorCode error_of(const Bytes& bytes, std::string_view name = some_engine) {
  const auto reader = SnapshotReader::open(bytes, some_tokenizer);
  if (!reader) return reader.error().code;
  const auto costs = load_costs(*reader, name);
  EXPECT_FALSE(costs);
  return costs.error().code;
}

/// A section of kind `costs` with any contents and correct checksums.
Bytes forged(const std::vector<std::uint8_t>& contents) {
  Bytes bytes(snapshot_bytes({contents.size()}));
  SnapshotWriter writer(bytes, some_tokenizer);
  writer.begin_section(SectionKind::costs);
  for (const std::uint8_t byte : contents) writer.put(byte);
  EXPECT_TRUE(writer.finish());
  return bytes;
}

TEST(CostSnapshot, BringsBackWhatWasSaved) {
  for (const CostPrior& costs : {CostPrior(), some_costs(), CostPrior::gpu_batch_1(), CostPrior::cpu_quantised()})
    for (const std::string& name : {std::string(), std::string(some_engine), std::string(100, '\xc3')}) {
      const Bytes bytes = with_costs(costs, name);
      const auto reader = SnapshotReader::open(bytes, some_tokenizer);
      ASSERT_TRUE(reader);
      const auto loaded = load_costs(*reader, name);
      ASSERT_TRUE(loaded) << loaded.error().message;
      EXPECT_EQ(*loaded, costs);
    }
  EXPECT_LT(with_costs(CostPrior::gpu_batch_1(), std::string(100, 'x')).size(), 512U) << "a few hundred bytes";
}

TEST(CostSnapshot, HasTheBytesOfTheFormat) {
  CostPrior costs;
  costs.assume(3, to_cost(1.5));
  const Bytes bytes = with_costs(costs, "ab");
  const std::vector<std::uint8_t> contents = {2, 'a', 'b', 1, 3, 0x00, 0x80, 0x01, 0x00};
  ASSERT_EQ(bytes.size(), snapshot_bytes({contents.size()}));
  for (std::size_t i = 0; i < contents.size(); ++i)
    EXPECT_EQ(std::to_integer<int>(bytes[snapshot_bytes({0}) + i]), contents[i]) << i;
}

TEST(CostSnapshot, IsRefusedWithoutCostsAndForAnotherEngine) {
  EXPECT_EQ(error_of(testing::sample_snapshot(2)), ErrorCode::no_such_section);
  for (const std::string_view name : {"", "engine 1", "engine 1, 8 threads ", "Engine 1, 8 threads"})
    EXPECT_EQ(error_of(with_costs(some_costs()), name), ErrorCode::other_engine) << name;
  Bytes room(1000);
  SnapshotWriter writer(room, some_tokenizer);
  EXPECT_THAT(save_costs(some_costs(), std::string(101, 'x'), writer),
              testing::fails(ErrorCode::invalid_argument, 101U, 100U));
  EXPECT_EQ(writer.finish()->size(), snapshot_bytes({})) << "nothing was written";
}

TEST(CostSnapshot, ForgedContentsAreRefused) {
  const std::vector<std::uint8_t> good = {1, 'a', 2, 2, 0, 0, 1, 0, 3, 0, 0, 1, 0};
  const auto reader_of = [](const Bytes& bytes) { return SnapshotReader::open(bytes, some_tokenizer).value(); };
  const Bytes valid = forged(good);
  ASSERT_TRUE(load_costs(reader_of(valid), "a"));
  // Every other length of the contents.
  for (std::size_t size = 0; size < good.size() + 10; ++size) {
    std::vector<std::uint8_t> contents = good;
    contents.resize(size);
    if (size != good.size()) {
      EXPECT_EQ(error_of(forged(contents), "a"), ErrorCode::snapshot_forged) << size;
    }
  }
  const auto with = [&](std::size_t at, std::uint8_t byte) {
    std::vector<std::uint8_t> contents = good;
    contents[at] = byte;
    return error_of(forged(contents), "a");
  };
  EXPECT_EQ(with(0, 101), ErrorCode::snapshot_forged) << "a name that is too long";
  EXPECT_EQ(with(2, 1), ErrorCode::snapshot_forged) << "fewer costs than bytes";
  EXPECT_EQ(with(2, 255), ErrorCode::snapshot_forged) << "more costs than bytes";
  EXPECT_EQ(with(3, 1), ErrorCode::snapshot_forged) << "a plain pass";
  EXPECT_EQ(with(3, 3), ErrorCode::snapshot_forged) << "the same row count twice";
  EXPECT_EQ(with(8, 65), ErrorCode::snapshot_forged) << "too many rows";
  EXPECT_EQ(with(6, 0), ErrorCode::snapshot_forged) << "a cost of 0";
  EXPECT_EQ(with(7, 4), ErrorCode::snapshot_forged) << "a cost above 1,024";
  std::vector<std::uint8_t> long_name(102, 'x');
  long_name[0] = 101;
  long_name.push_back(0);
  EXPECT_EQ(error_of(forged(long_name), std::string(101, 'x')), ErrorCode::snapshot_forged);
}

TEST(CostSnapshot, WithAnyDamageAndRightChecksumsIsReadOrRefused) {
  const Bytes wholes[] = {with_costs(some_costs()), with_costs(CostPrior::cpu_quantised()), with_costs({}, "")};
  testing::SnapshotCoverage coverage;
  ASSERT_EQ(testing::read_damaged_snapshots(wholes, coverage), "");
  EXPECT_GT(coverage.costs, 1000U);
  EXPECT_GT(coverage.forged_contents, 500U);
}

}  // namespace
}  // namespace reprise::cost_snapshot_test
