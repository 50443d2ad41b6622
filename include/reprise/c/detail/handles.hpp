// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "reprise/c/detail/arguments.hpp"
#include "reprise/c/detail/errors.hpp"
#include "reprise/c/reprise.h"
#include "reprise/control/cost_control.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/core/buffer.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/ngram_options.hpp"
#include "reprise/evidence/calibration_state.hpp"
#include "reprise/history/cost_snapshot.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise/history/snapshot.hpp"
#include "reprise/index/next_token_counts.hpp"
#include "reprise/loop/follower.hpp"
#include "reprise/loop/round.hpp"
#include "reprise/speculator.hpp"
#include "reprise/stats/statistics.hpp"
#include "reprise/stats/statistics_text.hpp"

/// \file The objects that the handles of the C interface point to.

struct reprise_curve {
  reprise::CostCurve curve;
};

struct reprise_history {
  reprise::HistoryStore store;
  reprise::NextTokenCounts next_tokens;  // without lines if there is no table
  reprise::CalibrationState calibration = {};
  reprise::c::LastError last = {};
};

struct reprise_follower {
  reprise::Follower<reprise::Speculator> follower;
  reprise::c::LastError last = {};
};

struct reprise_session {
  /// The open pass.
  struct Open {
    reprise::Ticket ticket;
    std::size_t drafted = 0;
    bool chain = true;
  };

  reprise::Speculator session;
  reprise::Limits limits = {};  // a round refers to it
  // Not in `limits`, because a std::vector can only report that memory ran out by an exception.
  reprise::Buffer<reprise::Token> eos = {};
  std::optional<Open> open = {};
  reprise::c::LastError last = {};

  /// Returns the status of a call that gives up the open pass, unless it fails.
  template <class T>
  reprise_status gives_up(const reprise::Result<T>& result) noexcept {
    if (result || result.error().code == reprise::ErrorCode::out_of_memory) open.reset();
    return last.status(result);
  }
};

namespace reprise::inline v0::c {

/// Returns a new object on the heap. Error: out_of_memory.
template <class Handle, class... Values>
[[nodiscard]] Result<void> make(Handle*& made, Values&&... values) noexcept {
  made = new (std::nothrow) Handle{std::forward<Values>(values)...};
  if (made == nullptr) return no_memory(sizeof(Handle));
  return {};
}

/// The number that identifies the tokenizer in snapshots of pass costs, which contain no tokens.
inline constexpr std::uint64_t no_tokenizer = 0;

/// Copies a curve. CostCurve itself becomes the default curve if memory runs out.
[[nodiscard]] inline Result<CostCurve> copy_of(const CostCurve& curve) noexcept {
  CostCurve copy = curve;
  if (copy.memory_bytes() == 0 && curve.memory_bytes() != 0)
    return Error{ErrorCode::out_of_memory, "there is no memory for a copy of the cost curve: free some",
                 curve.memory_bytes(), 0};
  return copy;
}

/// Returns the costs that were saved, or no costs if `options` has none.
[[nodiscard]] inline Result<CostPrior> saved_costs_of(const reprise_options& options) noexcept {
  const auto bytes = array_of(static_cast<const std::byte*>(options.saved_costs), options.saved_costs_size);
  if (!bytes) return bytes.error();
  if (options.saved_costs == nullptr) return CostPrior();
  const auto name = name_of(options.engine, most_engine_name_bytes);
  if (!name) return name.error();
  const auto reader = SnapshotReader::open(*bytes, no_tokenizer);
  if (!reader) return reader.error();
  return load_costs(*reader, *name);
}

/// Creates the session of a follower or a session.
[[nodiscard]] inline Result<Speculator> speculator_of(const reprise_options* in) noexcept {
  const auto read = read_struct(in);
  if (!read) return read.error();
  const auto prior = saved_costs_of(*read);
  if (!prior) return prior.error();
  CostOptions costs;
  costs.prior = *prior;
  costs.max_nodes = limit_of(read->max_draft_nodes, costs.max_nodes);
  if (read->curve != nullptr) {
    auto curve = copy_of(read->curve->curve);
    if (!curve) return curve.error();
    costs.curve = *std::move(curve);
  }
  NgramOptions drafter;
  if (read->key != 0) drafter.key = read->key;
  drafter.max_bytes = limit_of(read->max_bytes);
  if (const reprise_history* const history = read->history; history != nullptr) {
    drafter.stores = {history->store};
    if (history->next_tokens.lines() != 0) drafter.next_tokens = &history->next_tokens;
    drafter.prior = history->calibration;
  }
  return Speculator(drafter, std::move(costs));
}

/// Writes learned costs as a snapshot to `room`, and the bytes needed to `needed`.
[[nodiscard]] inline Result<void> save_costs_of(const Speculator& session, const char* engine, void* buffer,
                                                std::size_t room, std::size_t& needed) noexcept {
  const auto bytes = buffer_of(buffer, room);
  if (!bytes) return bytes.error();
  const auto name = name_of(engine, most_engine_name_bytes);
  if (!name) return name.error();
  const CostPrior prior = session.control().learned().prior();
  needed = snapshot_bytes({cost_bytes(prior, *name)});
  if (needed > room)
    return Error{ErrorCode::out_of_room, "the buffer is too small for the pass costs: provide the bytes needed", needed,
                 room};
  SnapshotWriter writer(*bytes, no_tokenizer);
  if (auto written = save_costs(prior, *name, writer); !written) return written;
  const auto snapshot = writer.finish();
  if (!snapshot) return snapshot.error();
  return {};
}

/// Writes statistics as JSON with a final 0 to `buffer`, and the bytes needed to `needed`. If they do not fit, the
/// buffer holds an empty string.
[[nodiscard]] inline Result<void> write_statistics(const Statistics& statistics, char* buffer, std::size_t room,
                                                   std::size_t& needed) noexcept {
  if (buffer == nullptr && room != 0) return refused("a buffer is null, but its size is not 0", room);
  std::size_t written = 0;
  write_json(statistics, [&](std::string_view piece) noexcept {
    for (const char letter : piece) {
      if (written < room) buffer[written] = letter;
      ++written;
    }
  });
  needed = written + 1;
  if (room != 0) buffer[needed > room ? 0 : written] = 0;
  if (needed > room)
    return Error{ErrorCode::out_of_room, "the buffer is too small for the statistics: provide the bytes needed", needed,
                 room};
  return {};
}

}  // namespace reprise
