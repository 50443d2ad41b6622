// SPDX-License-Identifier: Apache-2.0
// message: under a planner the session's control has to be SendAll
#include "reprise/speculator.hpp"

// A Speculator chooses its own draft lengths, so a batch planner must not plan for it.
void use(reprise::Speculator& speculator) { static_cast<void>(speculator.offer()); }
