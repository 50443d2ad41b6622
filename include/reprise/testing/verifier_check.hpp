// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

#include "reprise/core/detail/language.hpp"

namespace reprise::testing {

/// The settings of check_verifier().
struct VerifierCheck {
  std::size_t tokens = 32;  ///< tokens to decode in each run
  /// A drafted chain has up to about this many right tokens, and up to about as many wrong ones. Trees can have more
  /// nodes.
  std::size_t max_draft = 4;
  std::size_t mixed_runs = 8;  ///< runs that mix variations at random; for trees, the same number in addition
  double epsilon = 0;          ///< a difference is a near tie if the pick's margin (MarginVerifier) is at most this
  /// Maximum total variation distance between distributions with and without draft. The sum of a distribution's weights
  /// may differ from 1 by as much.
  double tolerance = 1e-3;
  bool sampled = false;  ///< picks come from a sampler whose state truncate() does not restore
  std::uint64_t seed = 1;
};

}  // namespace reprise::testing
