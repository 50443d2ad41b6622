// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>

namespace reprise::testing {

/// The settings of check_verifier().
struct VerifierCheck {
  std::size_t tokens = 32;     ///< tokens to decode in each run
  std::size_t max_draft = 4;   ///< longest draft tried, in tokens; trees have more nodes
  std::size_t mixed_runs = 8;  ///< runs in which all variations are mixed at random
  double epsilon = 0;          ///< a difference at a pick whose margin is at most this is a near tie (MarginVerifier)
  double tolerance = 1e-3;     ///< maximum total variation distance between distributions with and without draft
  bool sampled = false;        ///< picks come from a sampler whose state truncate() does not restore
  std::uint64_t seed = 1;
};

}  // namespace reprise::testing
