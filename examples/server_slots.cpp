// SPDX-License-Identifier: Apache-2.0
// A server that owns its loop: up to 16 slots share each pass, prompts arrive in the middle, requests end, are
// cancelled and go on in other slots. The server tells the follower nothing but token ids.
#include <reprise/batch.hpp>
#include <reprise/reprise.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <iterator>
#include <optional>
#include <string_view>
#include <vector>

namespace {

using reprise::Token;
using reprise::TokenSpan;

constexpr std::string_view songs[] = {
    "the wheels on the bus go round and round, round and round, round and round. ",
    "row, row, row your boat, gently down the stream, merrily, merrily, merrily, merrily. ",
    "old macdonald had a farm, e-i-e-i-o, and on that farm he had a cow, e-i-e-i-o. ",
    "0123456789 abcdefghijklmnopqrstuvwxyz: nothing here is said twice before its end. ",
};

// The toy engine: the token after position `at` of song `song`.
Token pick(std::size_t song, std::size_t at) { return songs[song][at % songs[song].size()]; }

struct Request {
  std::size_t song = 0;
  std::size_t length = 0;  // tokens in total
  std::vector<Token> ids;  // committed
};

struct Result {
  std::size_t passes = 0;
  std::size_t rows = 0;
  bool right = true;  // every text is what plain decoding writes
};

Result serve(std::size_t places, std::size_t requests) {
  auto follower = reprise::BatchFollower<reprise::NgramDrafter<>>::make(places);
  if (!follower) return {.right = false};
  std::vector<std::optional<Request>> slots(places);
  std::deque<Request> waiting;
  std::chrono::nanoseconds now{1};
  Result result;
  for (std::size_t arrived = 0;;) {
    // Requests arrive, one each seventh pass.
    if (arrived < requests && (result.passes % 7 == 0 || waiting.empty())) {
      Request request{arrived % std::size(songs), 150 + 30 * (arrived % 5), {}};
      for (std::size_t i = 0; i < 30; ++i) request.ids.push_back(pick(request.song, i));
      waiting.push_back(std::move(request));
      ++arrived;
    }
    std::size_t prompt_rows = 0;
    for (auto& slot : slots)
      if (!slot && !waiting.empty()) {
        slot = std::move(waiting.front());
        waiting.pop_front();
        prompt_rows += slot->ids.size() - 1;
      }
    for (auto& slot : slots)
      if (slot && slot->song == 3 && slot->ids.size() > 100) slot.reset();  // cancelled
    if (result.passes % 40 == 39) std::swap(slots.front(), slots.back());   // goes on in another slot

    std::vector<reprise::FollowedSlot> call;
    for (std::size_t i = 0; i < places; ++i)
      if (slots[i]) call.push_back({.slot = i, .ids = slots[i]->ids});
    if (call.empty() && arrived == requests && waiting.empty()) return result;
    if (call.empty()) continue;
    const auto drafts = follower->draft(call, now);
    if (!drafts) return {.right = false};

    // One pass of the engine: each slot's anchor and draft, and the prompts that have just arrived.
    std::size_t rows = call.size() + prompt_rows;
    for (std::size_t i = 0; i < call.size(); ++i) {
      Request& request = *slots[call[i].slot];
      const TokenSpan draft = (*drafts)[i];
      rows += draft.size();
      for (std::size_t k = 0; request.ids.size() < request.length; ++k) {
        const Token token = pick(request.song, request.ids.size());
        request.ids.push_back(token);
        if (k >= draft.size() || draft[k] != token) break;
      }
      for (std::size_t at = 0; at < request.ids.size(); ++at)
        result.right = result.right && request.ids[at] == pick(request.song, at);
      if (request.ids.size() == request.length) slots[call[i].slot].reset();  // ended
    }
    follower->ran(rows);
    now += std::chrono::microseconds(10'000 + 50 * rows);
    result.rows += rows;
    ++result.passes;
  }
}

}  // namespace

int main() {
  bool right = true;
  for (const std::size_t places : {1U, 4U, 16U}) {
    const Result result = serve(places, 24);
    std::printf("%2zu slots: %4zu passes, %.1f rows each\n", places, result.passes,
                static_cast<double>(result.rows) / static_cast<double>(result.passes));
    right = right && result.right;
  }
  return right ? 0 : 1;
}
