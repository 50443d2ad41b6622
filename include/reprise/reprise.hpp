// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file For an engine with one sequence: the recommended composition, and the loop that calls a verifier. All other
/// headers are included by name, so that a program compiles only the parts that it uses:
///
///  * reprise/batch.hpp: sequences that share passes, and engines that call back.
///  * reprise/history.hpp: text and costs that outlive a request, and snapshots of them.
///  * reprise/draft/, reprise/engine/: other drafters, trees, rejection sampling.
///  * reprise_methods/, reprise_corpus/, reprise_testing/: the parts beside the core.
///
/// Headers in a folder detail/ are private to the library.

#include "reprise/control/cost_control.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/loop/generate.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/speculator.hpp"
