// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/detail/new_array.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise_c/detail/arguments.hpp"
#include "reprise_c/detail/handles.hpp"
#include "reprise_c/reprise.h"

/// \file One step of an engine whose ids are in a table, see reprise_batch_step().

namespace reprise { inline namespace v0 { namespace c {

/// The ids of a row.
[[nodiscard]] inline TokenSpan ids_of(const reprise_step& step, const reprise_row& row) noexcept {
  const auto length = static_cast<std::size_t>(std::max(step.lengths[row.at], 0));
  return {step.ids + row.at * step.stride, std::min(length, step.stride)};
}

/// Ends the request of a slot, and gives the slot the options of the next one.
[[nodiscard]] inline Result<void> renew(reprise_batch& handle, const reprise_row& row) noexcept {
  if (row.options != nullptr) return assign(handle, row.slot, row.options);
  const auto known = check_slot(handle, row.slot);
  forget(handle, row.slot);
  return known;
}

/// Gives its prediction to the slot of a request that begins. The sampled ids are the beginning of the prediction, or
/// else the next ones may be anywhere in it.
[[nodiscard]] inline Result<void> predict(reprise_batch& handle, const reprise_row& row, TokenSpan ids) noexcept {
  const auto given = array_of(row.prediction, row.predicted);
  if (!given) return given.error();
  const TokenSpan sampled = ids.subspan(std::min(row.prompt, ids.size()));
  const bool begun = sampled.size() <= given->size() && std::equal(sampled.begin(), sampled.end(), given->begin());
  return handle.follower.predict(row.slot, given->subspan(begun ? sampled.size() : 0));
}

/// Lets the slot of a row have its new ids. Returns true if its request goes on, without rows of a prompt.
[[nodiscard]] inline Result<bool> enter(const reprise_step& step, const reprise_row& row) noexcept {
  reprise_batch& handle = *step.batch;
  if (auto known = check_slot(handle, row.slot); !known) return known.error();
  const TokenSpan ids = ids_of(step, row);
  if (row.kind == REPRISE_ROW_BEGINS) {
    handle.failed[row.slot] = true;  // until all of this is done
    if (auto renewed = renew(handle, row); !renewed) return renewed.error();
    if (row.prediction != nullptr)
      if (auto predicted = predict(handle, row, ids); !predicted) return predicted.error();
    handle.failed[row.slot] = false;
  }
  if (row.kind == REPRISE_ROW_WAITS || handle.failed[row.slot]) return false;
  if (handle.follower.context(row.slot).size() > ids.size()) forget(handle, row.slot);  // the engine has cut its text
  const std::size_t known = handle.follower.context(row.slot).size();
  const TokenSpan added = ids.subspan(known);
  const auto outside = [&](Token id) { return id < 0 || static_cast<std::size_t>(id) >= step.below; };
  if (ids.empty() || (step.below != 0 && std::any_of(added.begin(), added.end(), outside))) {
    forget(handle, row.slot);
    return false;
  }
  const std::size_t longest = step.longest == 0 ? unlimited : step.longest;
  const std::size_t room = longest - std::min(longest, ids.size() + 1);
  handle.slots.push_reserved({row.slot, added, std::min({row.most, step.width, room}), {}, known});
  return known != 0 && !added.empty();
}

/// Writes the draft of a row, and after it the last id of its text.
inline void write(const reprise_step& step, std::size_t row, TokenSpan draft) noexcept {
  const TokenSpan ids = ids_of(step, step.rows[row]);
  std::int64_t* const out = step.drafts + row * step.width;
  std::fill(std::copy(draft.begin(), draft.end(), out), out + step.width, ids.empty() ? 0 : ids.back());
}

[[nodiscard]] inline Result<void> run_step(const reprise_step& step) noexcept {
  reprise_batch& handle = *step.batch;
  const std::size_t slots = handle.follower.slots();
  if (step.size != sizeof(reprise_step)) return refused("reprise_step.size is not its size", step.size, sizeof step);
  if (step.count > slots) return refused("the step has more rows than the batch has slots", step.count, slots);
  const auto rows = array_of(step.rows, step.count + step.ended);
  if (!rows) return rows.error();
  for (std::size_t i = 0; i < step.count; ++i) step.rows[i].drafted = 0, write(step, i, {});
  if (handle.failed == nullptr) handle.failed = detail::new_array<bool>(slots);
  if (handle.failed == nullptr) return no_memory(slots);
  Result<void> result;
  for (const reprise_row& row : rows->subspan(step.count))  // first, because these salts are not needed any more
    if (auto renewed = renew(handle, row); !renewed && result) result = renewed;
  bool prompts = false;
  handle.slots.clear();
  for (std::size_t i = 0; i < step.count; ++i) {
    const auto entered = enter(step, step.rows[i]);
    if (!entered && result) result = entered.error();  // the other rows draft
    prompts = prompts || !entered || !*entered;
  }
  handle.proposed.reset();
  if (prompts) handle.follower.ran(0);  // not the planned rows alone, so the time of the pass teaches no cost
  const auto now =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch());
  const auto drafts = handle.follower.draft({handle.slots.data(), handle.slots.size()},
                                            time_of(step.now_ns < 0 ? now.count() : step.now_ns));
  if (!drafts) return drafts.error();
  for (std::size_t i = 0, entry = 0; i < step.count && entry < drafts->size(); ++i) {
    if (handle.slots.data()[entry].slot != step.rows[i].slot) continue;  // drafts nothing
    const TokenSpan draft = (*drafts)[entry++];
    step.rows[i].drafted = draft.size();
    write(step, i, draft);
  }
  return result;
}

}}}  // namespace reprise::c
