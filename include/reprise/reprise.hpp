// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file The public interface of reprise. It includes most public headers; each header can also be included alone.
///
/// Other public headers must be included separately:
///
///  * reprise_methods/: drafters of published methods, with a weaker stability promise.
///  * reprise_corpus/: text of any size in a file.
///  * reprise_testing/: helpers for your tests.
///  * history/snapshot_file.hpp: snapshots in files. It and reprise_corpus/mapped_corpus.hpp are the only public
///  headers
///    that call the operating system.
///
/// Headers in <layer>/detail/ are private to the library.

#include "reprise/batch/batch_follower.hpp"
#include "reprise/batch/packing.hpp"
#include "reprise/batch/planner.hpp"
#include "reprise/control/cost_control.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/control/loss_budget.hpp"
#include "reprise/core/control.hpp"
#include "reprise/core/datastore.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/verifier.hpp"
#include "reprise/draft/external_drafter.hpp"
#include "reprise/draft/model_drafter.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/ngram_options.hpp"
#include "reprise/draft/predicted_output_drafter.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "reprise/engine/rejection.hpp"
#include "reprise/engine/sampler_history.hpp"
#include "reprise/engine/top_k.hpp"
#include "reprise/engine/tree.hpp"
#include "reprise/evidence/calibration_state.hpp"
#include "reprise/history/history_snapshot.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise/history/snapshot.hpp"
#include "reprise/history/table_snapshots.hpp"
#include "reprise/history/tenants.hpp"
#include "reprise/index/lookup_index.hpp"
#include "reprise/index/next_token_counts.hpp"
#include "reprise/index/ranked_rows.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/suffix_array.hpp"
#include "reprise/loop/follower.hpp"
#include "reprise/loop/generate.hpp"
#include "reprise/loop/round.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/speculator.hpp"
#include "reprise/stats/statistics.hpp"
#include "reprise/stats/statistics_text.hpp"
