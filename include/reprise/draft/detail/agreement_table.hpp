// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/probability.hpp"

namespace reprise::inline v0 {

/// Estimates how likely the output is to continue like another text at a given place. The table is indexed by the kind
/// of the place, the number of tokens that agreed so far, and whether a likelier place competes. It learns from the
/// tokens that the target picks. Used by PredictedOutputDrafter.
///
/// Every entry is the running mean of its examples: 1 if the output agreed, otherwise 0. It starts at a built-in value.
/// An example moves it by 1 / `prior` of the error at first, and by 1 / (`prior` + `memory`) in the long run. The
/// arithmetic uses integers only. Size: 1 KB; no allocation. Threads: one at a time.
class AgreementCalibrator {
 public:
  static constexpr std::size_t kinds = 6;  ///< number of cursor kinds, see CursorKind

  /// The index of an entry.
  struct Evidence {
    std::uint8_t kind = 0;
    std::uint8_t run = 0;    ///< the class of the run length, see class_of()
    bool contested = false;  ///< a likelier place competes for this token
  };

  [[nodiscard]] static constexpr Evidence evidence(std::size_t kind, std::size_t run, bool alone) noexcept {
    return {static_cast<std::uint8_t>(std::min(kind, kinds - 1)), class_of(run), !alone};
  }
  [[nodiscard]] constexpr Probability probability(const Evidence& evidence) const noexcept {
    return Probability::from_raw(
        detail::rescaled<detail::UnitScale, detail::ProbabilityScale>(entries_[place(evidence)].value));
  }
  /// Learns from one pick. `picked`: true if the pick is the predicted token.
  constexpr void learn(const Evidence& evidence, bool picked) noexcept {
    Entry& entry = entries_[place(evidence)];
    const std::int32_t error = (picked ? one : 0) - static_cast<std::int32_t>(entry.value);
    const std::int32_t moved = static_cast<std::int32_t>(entry.value) + error / (prior + entry.examples);
    entry.value = static_cast<std::uint32_t>(std::clamp(moved, least, most));
    entry.examples = std::min(entry.examples + 1, memory);
  }

 private:
  static constexpr std::int32_t one = detail::UnitScale::one;
  static constexpr std::int32_t least = one / 1000;
  static constexpr std::int32_t most = one - one / 1000;  // no number of examples leads to certainty
  static constexpr std::int32_t prior = 4;
  static constexpr std::int32_t memory = 124;
  static constexpr std::size_t runs = 9;

  struct Entry {
    std::uint32_t value = 0;  // in UnitScale
    std::int32_t examples = 0;
  };

  /// Returns the class of a run length. The classes are 0, 1, 2, 3, 4-5, 6-7, 8-15, 16-31, 32 and more.
  static constexpr std::uint8_t class_of(std::size_t run) noexcept {
    constexpr std::array<std::uint8_t, 8> few = {0, 1, 2, 3, 4, 4, 5, 5};
    if (run < few.size()) return few[run];
    return run < 16 ? 6 : run < 32 ? 7 : 8;
  }
  static constexpr std::size_t place(const Evidence& evidence) noexcept {
    return (std::size_t{evidence.kind} * runs + evidence.run) * 2 + (evidence.contested ? 1 : 0);
  }
  /// Initial values in thousandths, measured on edited texts. Rows: CursorKind; columns: class_of() of the run length.
  /// Contested entries start at a quarter of these values.
  static constexpr std::array<std::array<std::uint16_t, runs>, kinds> beginnings = {{
      {{700, 900, 910, 920, 930, 940, 950, 975, 995}},
      {{200, 270, 600, 700, 800, 860, 950, 975, 995}},
      {{150, 250, 640, 680, 820, 890, 950, 975, 995}},
      {{330, 720, 860, 880, 890, 930, 950, 975, 995}},
      {{100, 800, 850, 880, 910, 940, 950, 975, 995}},
      {{100, 200, 390, 530, 640, 760, 950, 975, 995}},
  }};
  static constexpr std::array<Entry, kinds * runs * 2> entries() noexcept {
    std::array<Entry, kinds * runs * 2> made{};
    for (std::size_t kind = 0; kind < kinds; ++kind) {
      for (std::size_t run = 0; run < runs; ++run) {
        const std::uint32_t value = std::uint32_t{beginnings[kind][run]} * one / 1000;
        made[(kind * runs + run) * 2].value = value;
        made[(kind * runs + run) * 2 + 1].value = value / 4;
      }
    }
    return made;
  }

  std::array<Entry, kinds* runs* 2> entries_ = entries();
};

}  // namespace reprise
