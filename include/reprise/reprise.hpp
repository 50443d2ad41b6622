// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file All of reprise but its testing kit. Every header can also be included on its own.

#include "reprise/core/buffer.hpp"
#include "reprise/core/capabilities.hpp"
#include "reprise/core/contract.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/probability.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/core/version.hpp"
#include "reprise/draft/any_strategy.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/none.hpp"
#include "reprise/draft/presets.hpp"
#include "reprise/index/lookup_index.hpp"
#include "reprise/index/naive.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "reprise/loop/generate.hpp"
#include "reprise/loop/round.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/stats/statistics.hpp"
