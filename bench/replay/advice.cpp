// SPDX-License-Identifier: Apache-2.0
#include "advice.hpp"

#include <algorithm>
#include <utility>

#include "reprise_testing/random.hpp"
#include "session_costs.hpp"
#include "strategies.hpp"

namespace reprise::replay {
namespace {

constexpr std::size_t captured_widths[] = {1, 2, 4, 8, 16, 32};

/// The replay of one group of settings.
struct Replayed {
  std::vector<SessionCost> costs;
  std::uint64_t memory_bytes = 0;
};

/// Tries settings, and keeps those that pay.
class Adviser {
 public:
  Adviser(const Assignment& assignment, std::span<const DatastoreRef> stores, tools::Progress& progress)
      : assignment_(assignment), stores_(stores), progress_(progress) {
    start_ = replay(AdvisedSettings());
    present_ = start_;
  }

  Advice advise() {
    AdvisedSettings next = advice_.settings;
    next.trees = true;
    offer("trees", "trees", next);
    for (const std::size_t mebibytes : {1U, 4U, 16U, 64U}) {
      next = advice_.settings;
      next.history_bytes = mebibytes * mebibyte;
      offer("history", std::to_string(mebibytes) + " MiB", next);
    }
    for (const auto& [drafter, name] :
         {std::pair(Drafter::suffix_array, "suffix array"), {Drafter::copy, "copies only"}}) {
      next = advice_.settings;
      next.drafter = drafter;
      if (drafter == Drafter::copy) next.history_bytes = 0;
      offer("drafter", name, next);
    }
    for (const std::size_t nodes : {4U, 8U, 16U}) {
      next = advice_.settings;
      next.max_nodes = nodes;
      offer("most nodes", std::to_string(nodes), next);
    }
    next = advice_.settings;
    next.graph_widths = true;
    offer("widths", graph_widths_text(), next);
    return finish();
  }

 private:
  Replayed replay(const AdvisedSettings& settings) {
    const bool copy = settings.drafter == Drafter::copy;
    const auto runs = make_runs(copy                                 ? "copy"
                                : settings.drafter == Drafter::ngram ? "ngram"
                                                                     : "ngram:index=suffix_array",
                                stores_);
    const ControlSpec controls[] = {{ControlKind::cost, 0}};
    Assignment one = assignment_;
    one.by_category = false;
    one.ceiling = false;
    one.snapshot_in = {};
    one.snapshot_out = nullptr;
    one.runs = runs;
    one.controls = controls;
    one.settings.trees = settings.trees;
    one.settings.max_nodes = settings.max_nodes;
    one.settings.kept = settings.history_bytes == 0 ? Kept::session : Kept::past;
    if (settings.history_bytes != 0) one.settings.memory_bytes = settings.history_bytes;
    if (settings.graph_widths) one.settings.widths = graph_widths();
    SessionCosts observer(assignment_.traces);
    one.observer = &observer;
    Replayed result;
    for (const Row& row : replay_all(one, progress_))
      result.memory_bytes = std::max(result.memory_bytes, row.memory_bytes);
    if (advice_.fault.empty()) advice_.fault = observer.fault;
    result.costs = std::move(observer.costs);
    return result;
  }

  void offer(const std::string& question, const std::string& setting, const AdvisedSettings& settings) {
    Replayed result = replay(settings);
    Tried tried{question,
                setting,
                settings,
                sum(result.costs).speedup(),
                change(present_.costs, result.costs),
                result.memory_bytes,
                result.memory_bytes - std::min(result.memory_bytes, present_.memory_bytes),
                false};
    // A setting that stays slower than plain decoding is not advised.
    tried.chosen = tried.change.pays(tried.added_bytes) && tried.speedup > 1 && !settings.graph_widths;
    if (tried.chosen) {
      // Only the last choice of a question counts.
      for (Tried& other : advice_.tried)
        if (other.question == question) other.chosen = false;
      advice_.settings = settings;
      present_ = std::move(result);
    }
    advice_.tried.push_back(std::move(tried));
  }

  Advice finish() {
    std::vector<SessionCost> plain = start_.costs;
    for (SessionCost& session : plain) {
      advice_.sessions += session.tokens != 0 ? 1 : 0;
      session.cost = static_cast<double>(session.tokens);
    }
    const SessionCost all = sum(start_.costs);
    advice_.tokens = all.tokens;
    advice_.default_speedup = all.speedup();
    advice_.against_plain = change(plain, start_.costs);
    advice_.toll = assignment_.curves.front().toll();
    advice_.speedup = sum(present_.costs).speedup();
    advice_.against_default = change(start_.costs, present_.costs);
    advice_.memory_bytes = present_.memory_bytes;
    return std::move(advice_);
  }

  const Assignment& assignment_;
  std::span<const DatastoreRef> stores_;
  tools::Progress& progress_;
  Advice advice_;
  Replayed start_;
  Replayed present_;
};

}  // namespace

Change change(std::span<const SessionCost> before, std::span<const SessionCost> after) {
  // With 2,000 resamples or more, 10 or more lie outside each end of the interval.
  constexpr std::size_t resamples = 4000;
  constexpr std::size_t most_draws = 40'000'000;
  struct Pair {
    double before;
    double after;
  };
  std::vector<Pair> pairs;
  for (std::size_t i = 0; i < before.size(); ++i)
    if (before[i].tokens != 0) pairs.push_back({before[i].cost, after[i].cost});
  const auto ratio_of = [](const Pair& sums) { return sums.after == 0 ? 1 : sums.before / sums.after; };
  Pair all{0, 0};
  for (const Pair& pair : pairs) all = {all.before + pair.before, all.after + pair.after};
  Change result{ratio_of(all)};
  if (pairs.size() < fewest_sessions) return result;

  testing::Random random(1);
  std::vector<double> ratios(std::clamp<std::size_t>(most_draws / pairs.size(), 2000, resamples));
  for (double& ratio : ratios) {
    Pair drawn{0, 0};
    for (std::size_t j = 0; j < pairs.size(); ++j) {
      const Pair& pair = pairs[random.below(pairs.size())];
      drawn = {drawn.before + pair.before, drawn.after + pair.after};
    }
    ratio = ratio_of(drawn);
  }
  result.interval = between_tails(std::move(ratios), 0.005);
  return result;
}

AllowedWidths graph_widths() {
  AllowedWidths all;
  for (const std::size_t width : captured_widths) all.add(width);
  return all;
}

std::string graph_widths_text() {
  std::string text;
  for (const std::size_t width : captured_widths) text += (text.empty() ? "" : ", ") + std::to_string(width);
  return text;
}

Advice advise(const Assignment& assignment, std::span<const DatastoreRef> stores, tools::Progress& progress) {
  return Adviser(assignment, stores, progress).advise();
}

}  // namespace reprise::replay
