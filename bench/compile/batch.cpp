// SPDX-License-Identifier: Apache-2.0
// A server that hands over token ids: one follower for all slots.
#include "reprise/batch/batch_follower.hpp"
#include "reprise/draft/ngram_drafter.hpp"

bool draft(std::span<const reprise::FollowedSlot> slots) {
  static auto follower = reprise::BatchFollower<reprise::NgramDrafter<>>::make(8);
  return follower && follower->draft(slots);
}
