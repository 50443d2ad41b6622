// SPDX-License-Identifier: Apache-2.0
// One step of an engine that keeps ids where a device writes them: everything from the sampled tokens to the drafts in
// one call without Python, so that a stream of a device can make the call in its order (cuLaunchHostFunc).
// reprise_decoding/_vllm_speculator.py declares the structs once more.
#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>

#include "reprise_c/reprise.h"

extern "C" {

enum { reprise_python_goes_on, reprise_python_begins, reprise_python_waits };

/// A request of the step, of one of these kinds. One that waits has run a part of its prompt.
typedef struct reprise_python_row {
  std::size_t slot;
  std::size_t most;  // upper bound on the drafted tokens
  std::size_t kind;
  const reprise_options* options;   // of a slot with another salt; null: the slot keeps its options
  const reprise_token* prediction;  // of a new request; null: there is none
  std::size_t predicted;
  std::size_t prompt;  // tokens before the first sampled one; only for a prediction
} reprise_python_row;

/// A step: what it needs must stay until `done` is 1.
typedef struct reprise_python_step {
  reprise_batch* batch;
  const reprise_token* ids;  // those of slot 0; the ids of the next slot begin `stride` ids later
  std::size_t stride;
  std::size_t longest;             // ids of a sequence
  const std::int32_t* lengths;     // ids of each slot now
  std::size_t* known;              // ids of each slot in its last step
  const reprise_python_row* rows;  // those of the batch, and then slots whose requests have ended
  std::size_t size;                // those of the batch
  std::size_t count;               // all
  reprise_slot* slots;             // room for `size`
  std::int64_t* drafts;  // result: `width` ids for each row of the batch; those after the draft are its last id
  std::size_t width;
  std::int32_t status;  // result: the first that is not REPRISE_OK
  std::atomic<std::int32_t> done;
} reprise_python_step;

#if defined(_WIN32)
__declspec(dllexport)
#else
__attribute__((visibility("default")))
#endif
    void reprise_python_run_step(void* address) noexcept {
  auto& step = *static_cast<reprise_python_step*>(address);
  step.status = REPRISE_OK;
  const auto check = [&](reprise_status status) {
    if (step.status == REPRISE_OK) step.status = status;
  };
  const auto renew = [&](const reprise_python_row& row) {
    step.known[row.slot] = 0;
    check(row.options != nullptr ? reprise_batch_assign(step.batch, row.slot, row.options)
                                 : reprise_batch_forget(step.batch, row.slot));
  };
  for (std::size_t i = step.size; i < step.count; ++i) renew(step.rows[i]);  // these need not have their salts any more
  std::size_t drafting = 0;
  for (std::size_t i = 0; i < step.size; ++i) {
    const reprise_python_row& row = step.rows[i];
    if (row.kind == reprise_python_waits) continue;
    if (row.kind == reprise_python_begins) renew(row);
    const auto length = static_cast<std::size_t>(step.lengths[row.slot]);
    const reprise_token* const ids = step.ids + row.slot * step.stride;
    if (row.kind == reprise_python_begins && row.prediction != nullptr) {
      // The sampled tokens are the beginning of the prediction, or else the next ones may be anywhere in it.
      const std::size_t sampled = length - std::min(length, row.prompt);
      const bool begun = sampled <= row.predicted && std::equal(ids + length - sampled, ids + length, row.prediction);
      const std::size_t skipped = begun ? sampled : 0;
      check(reprise_batch_predict(step.batch, row.slot, row.prediction + skipped, row.predicted - skipped));
    }
    const std::size_t known = std::min(step.known[row.slot], length);
    const std::size_t room = step.longest - std::min(step.longest, length + 1);
    step.slots[drafting++] = {row.slot, ids + known, length - known, std::min({row.most, step.width, room}), 0,
                              nullptr,  0,           known};
    step.known[row.slot] = length;
  }
  const auto now =
      std::chrono::duration_cast<std::chrono::nanoseconds>(std::chrono::steady_clock::now().time_since_epoch());
  if (drafting > 0) check(reprise_batch_draft(step.batch, step.slots, drafting, now.count()));
  const reprise_slot* slot = step.slots;
  for (std::size_t i = 0; i < step.size; ++i) {
    std::int64_t* const draft = step.drafts + i * step.width;
    if (step.rows[i].kind == reprise_python_waits) {
      std::fill_n(draft, step.width, 0);
      continue;
    }
    std::fill(std::copy_n(slot->draft, slot->drafted, draft), draft + step.width, (slot->ids + slot->count)[-1]);
    if (step.status != REPRISE_OK) step.known[slot->slot] = 0;  // the next step passes all ids
    ++slot;
  }
  step.done.store(1, std::memory_order_release);
}
}
