// SPDX-License-Identifier: Apache-2.0
// The default composition, compiled once for all files that link the target reprise::compiled.
#undef REPRISE_COMPILED
#define REPRISE_COMPILED 2
#include "reprise/speculator.hpp"

namespace reprise { inline namespace v0 {

template class Session<NgramDrafter<RollingHashIndex>, CostControl>;

}}  // namespace reprise
