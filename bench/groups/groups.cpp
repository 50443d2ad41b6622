// SPDX-License-Identifier: Apache-2.0
#include "groups.hpp"

#include <algorithm>
#include <utility>

#include "common/input_error.hpp"
#include "reprise/batch/batch_follower.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/history/memory.hpp"
#include "server/server.hpp"

namespace reprise::groups {
namespace {

/// A place in the batch and its answer.
struct Place {
  const replay::TraceSession* answer = nullptr;
  std::vector<Token> ids;
  std::size_t done = 0;

  [[nodiscard]] TokenSpan rest() const {
    return answer == nullptr ? TokenSpan() : TokenSpan(answer->turns[0].output).subspan(done);
  }
};

bool same_prompt(const replay::TraceSession& a, const replay::TraceSession& b) {
  return a.turns[0].prompt == b.turns[0].prompt;
}

template <class T>
T must(Result<T> made) {
  if (!made) throw tools::InputError(std::string(made.error().message));
  return *std::move(made);
}

class Engine {
 public:
  explicit Engine(const Setup& setup)
      : setup_(setup),
        memory_(must(Memory::make({.max_bytes = setup.sharing < Sharing::ended ? 0 : MemoryOptions{}.max_bytes}))),
        follower_(must(BatchFollower<NgramDrafter<>>::make(setup.order == Order::single ? 1 : setup.answers,
                                                           NgramDrafter<>(memory_.options()), options(setup)))),
        places_(follower_.slots()) {}

  Counts run(std::span<const Group> groups) {
    for (std::size_t group = 0, next = 0;;) {
      const bool idle = std::all_of(places_.begin(), places_.end(), [](const Place& p) { return p.rest().empty(); });
      bool filling = setup_.order != Order::batch || idle;
      for (std::size_t i = 0; i < places_.size() && filling; ++i) {
        if (!places_[i].rest().empty()) continue;
        if (group == groups.size()) break;
        begin(i, *groups[group][next++]);
        if (next < groups[group].size()) continue;
        ++group, next = 0;
        filling = setup_.order != Order::batch;  // the answers of another group wait
      }
      if (!pass()) return counts_;
    }
  }

 private:
  static BatchOptions options(const Setup& setup) {
    BatchOptions options;
    options.curve = server::told_curve(*setup.curve);
    return options;
  }
  void begin(std::size_t i, const replay::TraceSession& answer) {
    Place& place = places_[i];
    place = {&answer, answer.turns[0].prompt, 1};
    place.ids.push_back(answer.turns[0].output.front());
    if (setup_.sharing != Sharing::ended) return;
    // The follower takes requests that begin with prompts of different lengths for strangers. The rest of the prompt
    // comes with the next call.
    const TokenSpan ids = place.ids;
    const FollowedSlot part{i, ids.first(std::max<std::size_t>(ids.size() - std::min(ids.size(), i + 1), 1)), 0};
    static_cast<void>(must(follower_.draft(std::span(&part, 1))));
  }
  /// Returns false if no answer is running.
  bool pass() {
    std::size_t most = 0;
    std::size_t context = 0;
    slots_.clear();
    for (std::size_t i = 0; i < places_.size(); ++i) {
      if (places_[i].rest().empty()) continue;
      slots_.push_back({i, places_[i].ids});
      most = std::max(most, places_[i].rest().size());
      context += places_[i].ids.size();
    }
    if (slots_.empty()) return false;
    for (FollowedSlot& slot : slots_) {
      const auto remaining = static_cast<double>(places_[slot.slot].rest().size());
      if (setup_.sharing == Sharing::plain || remaining < setup_.least_remaining * static_cast<double>(most))
        slot.most = 0;
    }
    const std::span<const TokenSpan> drafts = must(follower_.draft(slots_));
    std::size_t rows = slots_.size();
    for (std::size_t i = 0; i < slots_.size(); ++i) rows += commit(places_[slots_[i].slot], drafts[i]);
    counts_.cost += setup_.curve->batch_cost({slots_.size(), rows, context / slots_.size()});
    ++counts_.passes;
    return true;
  }
  /// Commits what a pass gives: the recorded tokens, as far as the draft agrees, and one more. Returns the drafted
  /// rows.
  std::size_t commit(Place& place, TokenSpan draft) {
    const TokenSpan rest = place.rest();
    const auto agreed = std::mismatch(draft.begin(), draft.end(), rest.begin(), rest.end()).first - draft.begin();
    const std::size_t committed = std::min(static_cast<std::size_t>(agreed) + 1, rest.size());
    place.ids.insert(place.ids.end(), rest.begin(), rest.begin() + static_cast<std::ptrdiff_t>(committed));
    place.done += committed;
    counts_.tokens += committed;
    counts_.drafted += draft.size();
    return draft.size();
  }

  const Setup& setup_;
  Memory memory_;
  BatchFollower<NgramDrafter<>> follower_;
  std::vector<Place> places_;
  std::vector<FollowedSlot> slots_;
  Counts counts_;
};

}  // namespace

std::vector<Group> groups_of(std::span<const replay::Trace> traces, std::size_t answers) {
  std::vector<Group> groups;
  for (const replay::Trace& trace : traces)
    for (const replay::TraceSession& session : trace.sessions) {
      if (session.turns.size() != 1 || session.turns[0].output.size() < 2) continue;
      if (groups.empty() || groups.back().size() == answers || !same_prompt(*groups.back().front(), session))
        groups.emplace_back();
      groups.back().push_back(&session);
    }
  return groups;
}

Counts run(std::span<const Group> groups, const Setup& setup) {
  std::vector<std::vector<Group>> runs;  // the first group of each prompt, the second one, ...
  for (std::size_t i = 0, before = 0; i < groups.size(); ++i) {
    before = i > 0 && same_prompt(*groups[i - 1].front(), *groups[i].front()) ? before + 1 : 0;
    if (before == runs.size()) runs.emplace_back();
    runs[before].push_back(groups[i]);
  }
  Counts all;
  for (const std::vector<Group>& one : runs) {
    const Counts counts = Engine(setup).run(one);
    all.tokens += counts.tokens;
    all.passes += counts.passes;
    all.drafted += counts.drafted;
    all.cost += counts.cost;
  }
  return all;
}

}  // namespace reprise::groups
