// SPDX-License-Identifier: Apache-2.0
// message: under a planner the session's control has to be SendAll
#include "reprise/reprise.hpp"

// A Speculator decides for itself how much it drafts, so a batch planner may not plan for it.
void use(reprise::Speculator& speculator) { static_cast<void>(speculator.offer()); }
