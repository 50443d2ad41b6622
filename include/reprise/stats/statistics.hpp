// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"

namespace reprise { inline namespace v0 {

/// Counts of one generation: the gain and the cost of drafting, and the reasons why drafts were cut. It is a plain
/// struct of about 640 bytes, without atomics or a clock. It can be copied, added with += and printed
/// (statistics_text.hpp).
///
/// The counts of a session start at begin() or at its last append(). Session::truncate() reduces `tokens`; the other
/// counts stay, because that work was done.
struct Statistics {
  /// The numbers of drafted tokens that were sent and that were accepted.
  struct Sent {
    std::uint64_t sent = 0;
    std::uint64_t accepted = 0;

    /// Returns accepted / sent; 0 if nothing was sent.
    [[nodiscard]] double acceptance_rate() const noexcept { return ratio(accepted, sent); }
    Sent& operator+=(const Sent& other) noexcept {
      sent += other.sent;
      accepted += other.accepted;
      return *this;
    }
    friend bool operator==(const Sent&, const Sent&) = default;
  };

  /// The sum of times that the caller has measured, in nanoseconds.
  struct Time {
    std::uint64_t count = 0;        ///< number of measurements
    std::uint64_t nanoseconds = 0;  ///< sum of the measurements

    /// Adds one measurement. A negative time counts as 0.
    void add(Duration time) noexcept {
      ++count;
      nanoseconds += static_cast<std::uint64_t>(std::max<std::int64_t>(time.count(), 0));
    }
    /// Returns the mean in nanoseconds; 0 if there are no measurements.
    [[nodiscard]] double mean() const noexcept { return ratio(nanoseconds, count); }
    Time& operator+=(const Time& other) noexcept {
      count += other.count;
      nanoseconds += other.nanoseconds;
      return *this;
    }
    friend bool operator==(const Time&, const Time&) = default;
  };

  /// The number of bins of `by_depth`: one for each depth from 1 to 16, and one for all greater depths.
  static constexpr std::size_t depth_count = 17;

  std::uint64_t tokens = 0;                     ///< output tokens committed by passes
  std::uint64_t passes = 0;                     ///< committed verify passes, including those without a draft
  std::uint64_t drafted_passes = 0;             ///< passes with a draft or pad rows
  std::uint64_t drafted = 0;                    ///< draft tokens sent, including pad rows and auxiliary tokens
  std::uint64_t accepted = 0;                   ///< draft tokens accepted, including pad rows
  std::uint64_t padding = 0;                    ///< pad rows sent; `drafted` includes them
  std::uint64_t auxiliary = 0;                  ///< auxiliary tokens sent, never accepted; `drafted` includes them
  std::array<std::uint64_t, cut_count> cuts{};  ///< passes by the reason why their draft was cut; see Cut
  /// Tokens by depth in the draft; by_depth[0] counts those directly after the anchor. Excludes pad rows and auxiliary
  /// tokens.
  std::array<Sent, depth_count> by_depth{};
  /// Tokens by DraftSource. Includes pad rows and excludes auxiliary tokens.
  std::array<Sent, draft_source_count> by_source{};
  Time pass_time;      ///< times of the passes that were committed with a time
  Time drafting_time;  ///< see Session::add_drafting_time()

  /// Returns the mean accepted tokens (MAT), tokens per pass: 1.0 without drafting, 0 before the first pass.
  [[nodiscard]] double mean_accepted_tokens() const noexcept { return ratio(tokens, passes); }
  /// Returns accepted / drafted; 0 if nothing was drafted.
  [[nodiscard]] double acceptance_rate() const noexcept { return ratio(accepted, drafted); }
  [[nodiscard]] double drafted_per_pass() const noexcept { return ratio(drafted, passes); }
  /// Returns the number of drafted rows that were verified and not accepted.
  [[nodiscard]] std::uint64_t wasted() const noexcept { return drafted - std::min(accepted, drafted); }
  /// Returns tokens - passes: the extra passes that plain decoding would have needed. It can be negative
  /// after truncate(), or if a predicate has refused the first pick of a pass.
  [[nodiscard]] std::int64_t passes_saved() const noexcept { return static_cast<std::int64_t>(tokens - passes); }
  [[nodiscard]] std::uint64_t count(Cut cut) const noexcept { return cuts[static_cast<std::size_t>(cut)]; }
  [[nodiscard]] const Sent& from(DraftSource source) const noexcept REPRISE_LIFETIMEBOUND {
    return by_source[static_cast<std::size_t>(source)];
  }
  /// Returns the counts for one depth. Depth 1 is directly after the anchor. All depths above 16 share one count.
  [[nodiscard]] const Sent& at_depth(std::size_t depth) const noexcept REPRISE_LIFETIMEBOUND {
    return by_depth[depth_bin(depth)];
  }

  /// Adds one committed round. Cost: a few additions for each sent node.
  ///
  ///  * `depths`: the depth of each sent node, in the order of `outcome.sent` (Pass::depths).
  ///  * `pads`: the number of pad rows. They are the last nodes of the draft, and all of them were sent.
  ///  * `committed`: the number of tokens that the pass committed.
  ///  * `time`: the duration of the pass, if it was measured.
  void record(const Outcome& outcome, std::span<const std::uint32_t> depths, std::size_t pads, std::size_t committed,
              std::optional<Duration> time = {}) noexcept {
    ++passes;
    tokens += committed;
    ++cuts[static_cast<std::size_t>(outcome.cut)];
    if (time) pass_time.add(*time);
    if (outcome.sent.empty()) return;
    ++drafted_passes;
    drafted += outcome.sent.size();
    accepted += outcome.accepted.size();
    padding += pads;
    Sent& from_pads = by_source[static_cast<std::size_t>(DraftSource::padding)];
    from_pads.sent += pads;
    for (std::size_t row = 0; row + pads < outcome.sent.size(); ++row) {
      const DraftNode& node = outcome.draft[static_cast<std::size_t>(outcome.sent[row])];
      if (node.auxiliary) {
        ++auxiliary;
        continue;
      }
      ++by_source[source_bin(node.source)].sent;
      ++by_depth[depth_bin(depths[row])].sent;
    }
    for (std::size_t i = 0; i < outcome.accepted.size(); ++i) {
      const auto index = static_cast<std::size_t>(outcome.accepted[i]);
      if (index + pads >= outcome.draft.size()) {
        ++from_pads.accepted;
        continue;
      }
      ++by_source[source_bin(outcome.draft[index].source)].accepted;
      ++by_depth[depth_bin(i + 1)].accepted;
    }
  }

  /// Adds the counts of `other`.
  Statistics& operator+=(const Statistics& other) noexcept {
    tokens += other.tokens;
    passes += other.passes;
    drafted_passes += other.drafted_passes;
    drafted += other.drafted;
    accepted += other.accepted;
    padding += other.padding;
    auxiliary += other.auxiliary;
    for (std::size_t i = 0; i < cuts.size(); ++i) cuts[i] += other.cuts[i];
    for (std::size_t i = 0; i < by_depth.size(); ++i) by_depth[i] += other.by_depth[i];
    for (std::size_t i = 0; i < by_source.size(); ++i) by_source[i] += other.by_source[i];
    pass_time += other.pass_time;
    drafting_time += other.drafting_time;
    return *this;
  }
  friend bool operator==(const Statistics&, const Statistics&) = default;

 private:
  static double ratio(std::uint64_t part, std::uint64_t whole) noexcept {
    return whole == 0 ? 0.0 : static_cast<double>(part) / static_cast<double>(whole);
  }
  static constexpr std::size_t depth_bin(std::size_t depth) noexcept {
    return std::min(depth == 0 ? 0 : depth - 1, depth_count - 1);
  }
  /// Returns the bin of a source. A strategy may write any number; invalid sources and `padding` count as unknown.
  static constexpr std::size_t source_bin(DraftSource source) noexcept {
    const auto bin = static_cast<std::size_t>(source);
    return bin < draft_source_count && source != DraftSource::padding ? bin : 0;
  }
};

}}  // namespace reprise
