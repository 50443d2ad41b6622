// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Knowledge that outlives a request: past text and counts of next tokens as sources of drafts, and snapshots of
/// them and of learned costs. Snapshots in files call the operating system, so history/snapshot_file.hpp is included by
/// name.

#include "reprise/history/history_snapshot.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise/history/memory.hpp"
#include "reprise/history/snapshot.hpp"
#include "reprise/history/table_snapshots.hpp"
#include "reprise/index/next_tokens.hpp"
