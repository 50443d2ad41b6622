// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace reprise::testing {

/// The settings of check_verifier().
struct VerifierCheck {
  std::size_t tokens = 32;  ///< tokens to decode in each run
  /// A drafted chain has about this many right tokens at most, and as many wrong ones. Trees have more nodes.
  std::size_t max_draft = 4;
  std::size_t mixed_runs = 8;  ///< runs that mix variations at random; for trees, as many again
  double epsilon = 0;          ///< a difference at a pick whose margin is at most this is a near tie (MarginVerifier)
  /// Maximum total variation distance between distributions with and without draft. The weights of a distribution may
  /// differ from a sum of 1 by as much.
  double tolerance = 1e-3;
  bool sampled = false;  ///< picks come from a sampler whose state truncate() does not restore
  std::uint64_t seed = 1;
};

}  // namespace reprise::testing
