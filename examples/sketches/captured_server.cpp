// SPDX-License-Identifier: Apache-2.0
// A server with continuous batching whose passes are captured graphs of fixed widths (CUDA graphs). Sequences are
// packed into flat arrays, and the pass is padded to the next captured width. Picks come back for all rows at once.
#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <vector>

#include "reprise/batch/packing.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/token.hpp"
#include "reprise_testing/check_batch.hpp"
#include "toy.hpp"

namespace {

/// The device: one cache per sequence, and graphs captured for certain numbers of rows.
class Device {
 public:
  static constexpr std::array<std::size_t, 7> widths = {1, 2, 4, 8, 16, 32, 64};

  std::vector<std::vector<reprise::Token>> caches;

  [[nodiscard]] std::vector<reprise::Token> launch(const reprise::PackedBatch& batch) const {
    std::vector<reprise::Token> picks(batch.rows());
    if (std::find(widths.begin(), widths.end(), batch.rows()) == widths.end()) return picks;  // no graph of this width
    for (std::size_t i = 0; i + 1 < batch.offsets.size(); ++i)
      for (std::size_t row = batch.offsets[i]; row < batch.offsets[i + 1]; ++row) {
        // The row sees its sequence's cache, its ancestors and itself.
        std::vector<reprise::Token> seen = {batch.tokens[row]};
        for (auto up = batch.parents[row]; up != reprise::anchor_parent;
             up = batch.parents[batch.offsets[i] + static_cast<std::size_t>(up)])
          seen.push_back(batch.tokens[batch.offsets[i] + static_cast<std::size_t>(up)]);
        const auto& cache = caches[static_cast<std::size_t>(batch.sequences[row])];
        seen.insert(seen.end(), cache.rbegin(), cache.rend());
        std::reverse(seen.begin(), seen.end());
        picks[row] = toy::next(seen);
      }
    return picks;
  }
};

// [sketch]
class Server {
 public:
  explicit Server(Device device) : device_(std::move(device)) {}

  /// One pass over the parts of several sequences. With sessions, Session::plan() gives the parts.
  std::vector<std::span<const reprise::Token>> verify(std::span<const reprise::SequencePass> parts) {
    packer_.clear();
    sequences_.clear();
    for (const auto& part : parts) {
      if (!packer_.add(part)) return {};
      sequences_.push_back(part.sequence);
    }
    // The next captured width. Pad rows belong to no sequence, and the rows that they write are dropped.
    const std::size_t rows = packer_.batch().rows();
    const auto* const width = std::lower_bound(Device::widths.begin(), Device::widths.end(), rows);
    if (width == Device::widths.end() || !packer_.pad_to(*width)) return {};
    picks_ = device_.launch(packer_.batch());

    std::vector<std::span<const reprise::Token>> answers;
    for (std::size_t i = 0; i < parts.size(); ++i) answers.push_back(packer_.picks_of(i, std::span(picks_)));
    return answers;
  }
  /// Keeps these rows of a sequence's part. Only here do rows reach the caches, so V5 costs nothing.
  void commit(std::size_t sequence, std::span<const std::size_t> rows) {
    const auto at = std::find(sequences_.begin(), sequences_.end(), sequence) - sequences_.begin();
    for (const std::size_t row : rows)
      device_.caches[sequence].push_back(packer_.batch().tokens[packer_.flat_row(static_cast<std::size_t>(at), row)]);
  }

 private:
  Device device_;
  reprise::BatchPacker packer_;
  std::vector<std::size_t> sequences_;
  std::vector<reprise::Token> picks_;
};
// [/sketch]

}  // namespace

int main() {
  const std::vector<std::vector<reprise::Token>> prompts = {{3, 1, 4, 1, 5}, {9, 2, 6}, {5, 3, 5, 8}, {1, 2}};
  const auto make = [&] {
    Device device;  // prefilled: all but the last token
    for (const auto& prompt : prompts) device.caches.emplace_back(prompt.begin(), prompt.end() - 1);
    return Server(device);
  };
  const auto report = reprise::testing::check_batch(make, prompts);
  std::puts(report.to_string().c_str());
  return report.passed() ? 0 : 1;
}
