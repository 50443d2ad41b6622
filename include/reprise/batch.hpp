// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file For an engine with many sequences: one control for the rows of a shared pass, and followers for engines that
/// hand over token ids.

#include "reprise/batch/batch_follower.hpp"
#include "reprise/batch/packing.hpp"
#include "reprise/batch/planner.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/loop/follower.hpp"
#include "reprise/loop/session.hpp"
