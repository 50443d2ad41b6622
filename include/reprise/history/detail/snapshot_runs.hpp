// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <concepts>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/detail/contract.hpp"
#include "reprise/core/result.hpp"
#include "reprise/history/detail/byte_format.hpp"
#include "reprise/history/snapshot.hpp"

/// \file The section `runs` of a snapshot: runs as bytes, without a history. This file is separate from
/// history_snapshot.hpp, because tests and fuzzers forge such runs.

namespace reprise::inline v0::detail {

/// A stored token in a snapshot: the token, 0 to 2^31 - 2, and its origin.
struct RunWord {
  static constexpr std::uint32_t output = std::uint32_t{1} << 31;  ///< set for a generated token (Origin::output)
  static constexpr std::uint32_t token = output - 1;  ///< mask of the token's bits; no token has all of them set
};

/// The number of tokens that share a use count.
inline constexpr std::size_t tokens_per_use_count = 32;

/// Returns the size in bytes of a run of `tokens` tokens in a section of kind `runs`.
constexpr std::size_t run_bytes(std::size_t tokens) noexcept {
  return sizeof(std::uint64_t) + sizeof(std::uint32_t) + tokens * sizeof(std::uint32_t) +
         (tokens + tokens_per_use_count - 1) / tokens_per_use_count;
}

/// A run: the name of its sequence, its words, and one use count for every 32 words (the last group may be smaller).
/// Callers first read all words, then all use counts, each once and in order.
template <class R>
concept RunSource = requires(R& run, std::size_t i) {
  { run.sequence() } -> std::convertible_to<std::uint64_t>;
  { run.size() } -> std::convertible_to<std::size_t>;         // tokens: 1 to 2^32 - 1
  { run.word(i) } -> std::convertible_to<std::uint32_t>;      // the word of token i, see RunWord
  { run.use_count(i) } -> std::convertible_to<std::uint8_t>;  // the use count of the tokens from 32 * i on
};

/// A view of a run in the bytes of a snapshot.
class RunView {
 public:
  [[nodiscard]] constexpr std::uint64_t sequence() const noexcept { return sequence_; }
  [[nodiscard]] constexpr std::size_t size() const noexcept { return words_.size() / sizeof(std::uint32_t); }
  [[nodiscard]] constexpr std::uint32_t word(std::size_t i) const noexcept {
    REPRISE_EXPECTS(i < size());
    return load_little<std::uint32_t>(words_.data() + i * sizeof(std::uint32_t));
  }
  [[nodiscard]] constexpr std::uint8_t use_count(std::size_t i) const noexcept {
    REPRISE_EXPECTS(i < use_counts_.size());
    return std::to_integer<std::uint8_t>(use_counts_[i]);
  }

 private:
  template <class Visit>
  friend Result<void> for_each_run(SnapshotReader::Cursor section, Visit visit) noexcept;
  constexpr RunView(std::uint64_t sequence, std::span<const std::byte> words,
                    std::span<const std::byte> use_counts) noexcept
      : sequence_(sequence), words_(words), use_counts_(use_counts) {}

  std::uint64_t sequence_;
  std::span<const std::byte> words_;
  std::span<const std::byte> use_counts_;
};
static_assert(RunSource<RunView>);

/// Writes a run, which needs run_bytes() bytes, into the section begun last. Requires a section of kind `runs` and 1 to
/// 2^32 - 1 tokens.
template <RunSource R>
void write_run(SnapshotWriter& writer, R&& run) noexcept {
  const std::size_t size = run.size();
  REPRISE_EXPECTS(size != 0 && size <= UINT32_MAX);
  writer.put(static_cast<std::uint64_t>(run.sequence()));
  writer.put(static_cast<std::uint32_t>(size));
  for (std::size_t i = 0; i < size; ++i) writer.put(static_cast<std::uint32_t>(run.word(i)));
  for (std::size_t i = 0; i * tokens_per_use_count < size; ++i) writer.put(static_cast<std::uint8_t>(run.use_count(i)));
}

/// Calls visit(RunView) for the runs of a section of kind `runs`, in the order in which they are stored. For
/// all-or-nothing semantics, call it twice: first to validate, then to apply.
///
/// Error: snapshot_forged (`value`: the offset of the run in the section, `limit`: the section's kind). A run is
/// refused if its bytes are incomplete, if it has no tokens, or if it has a word without a token. Does not call visit
/// for that run or any later one.
///
/// Cost: a pass over the words, plus the cost of the visits; no allocation.
template <class Visit>
[[nodiscard]] Result<void> for_each_run(SnapshotReader::Cursor section, Visit visit) noexcept {
  while (section.left() != 0) {
    const Error forged = {ErrorCode::snapshot_forged,
                          "a run of the snapshot breaks the rules of the format, though its checksum is right: do "
                          "not trust where it comes from",
                          section.offset(), static_cast<std::uint64_t>(SectionKind::runs)};
    const auto sequence = section.take<std::uint64_t>();
    const auto size = section.take<std::uint32_t>();
    if (!sequence || !size || *size == 0 || *size > section.left() / sizeof(std::uint32_t)) return forged;
    const auto words = section.take_bytes(*size * sizeof(std::uint32_t));
    const auto use_counts = section.take_bytes((std::size_t{*size} + tokens_per_use_count - 1) / tokens_per_use_count);
    if (!words || !use_counts) return forged;
    const RunView run(*sequence, *words, *use_counts);
    for (std::size_t i = 0; i < run.size(); ++i)
      if ((run.word(i) & RunWord::token) == RunWord::token) return forged;
    visit(run);
  }
  return {};
}

}  // namespace reprise::detail
