// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file How much each of many sequences drafts in a pass that they share.
///
/// Requests are served to their end, so what counts is how long a given amount of text takes. A pass of n sequences
/// takes c, and sequence i gets 1 + s_i tokens from it on average; it goes on at (1 + s_i) / c. The logarithms of these
/// add up to
///
///   ln(1 + s_1) + ... + ln(1 + s_n) - n ln(c),
///
/// and raising that is what is best for the text at hand: a token of path probability p is worth p / (1 + s_i), since
/// one token more matters less where there are many. With one sequence this is the rule of draft_length.hpp, a token
/// priced by what the pass at hand gives. As there, waiting for better evidence is an option that has a price: near
/// plain decoding the time of a lone sequence is weighed 1.3 times. Among n sequences the price is that of one of them.
///
/// The drafts are merged by that worth, the highest first. It falls along each of them, so each gives a prefix. Worth
/// is counted in a histogram (worth.hpp), and the number of rows is found by walking down it, so that nothing is sorted
/// and each offered node is looked at once. What still fits of the last class is given out sequence by sequence,
/// beginning with another one in each pass.
/// Sources: marginal allocation of concave gains (Fox 1966); proportional fairness (Kelly 1997).

#include <algorithm>
#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "reprise/batch/batch_cost.hpp"
#include "reprise/batch/batch_plan.hpp"
#include "reprise/batch/worth.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/control/draft_length.hpp"
#include "reprise/control/loss_guard.hpp"
#include "reprise/control/throughput.hpp"
#include "reprise/core/buffer.hpp"
#include "reprise/core/capabilities.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"

namespace reprise {

/// Plans passes of many sequences under one token budget, one cost curve, or both. One for each engine; sequences come
/// and go as they like, for it keeps nothing of any of them. Their sessions use SendAll as their control. A pass:
///
///   limits.draft = planner.budget(asked, {sequences, pending rows, mean context});
///   for each: session.propose(limits), and an entry from session.offer()
///   plan = planner.plan(entries);  // and then, for less room, planner.shrink(rows)
///   for each: session.plan(plan.nodes_of(i), plan.cut)
///   one pass of the engine; for each: resolve, commit
///   planner.learn(committed, time);
///
/// Hardly ever below plain decoding: in the costs that it reads, any 1,000 consecutive passes lose at most the time of
/// 10 plain ones (LossGuard, over the whole batch; a learned curve can be wrong). A strategy whose claims are wrong
/// takes rows from others: give its entry a BatchCredit.
///
/// Sampled drafts: whether a node is sent may depend only on what was stated before its token was drawn, or rejection
/// sampling would be biased. Each is followed as long as the next stated probability is worth what a row costs at the
/// size of the last pass, and goes before ordered drafts. If rows are uniform and any draft is sampled, the width grows
/// step by step, as long as the first node of the next step is worth it over all sequences.
///
/// Plans are a pure function of settings and calls so far, times included: ranks that plan for themselves have to be
/// told the same times (those of one of them). Integers decide. Of equal nodes those of the sequence that comes first
/// are sent, counting from one that moves on with each pass.
///
/// Only reserve() and a plan for more sequences than ever before allocate. 7 KB of histograms, 39 KB of learned
/// curves, 2 bytes for each node of max_nodes of each sequence. Threads: one at a time.
class BatchPlanner {
 public:
  static constexpr std::size_t most_nodes = 256;

  explicit BatchPlanner(BatchOptions options = {}) noexcept
      : options_(checked(std::move(options))),
        cost_(std::exchange(options_.curve, {}), options_.uniform ? AllowedWidths() : options_.widths,
              options_.max_drafted) {}

  /// Room for plans of so many sequences. False: out of memory; what was there stays.
  [[nodiscard]] bool reserve(std::size_t sequences) noexcept {
    if (sequences > unlimited / most_nodes) return false;
    return cost_.reserve() && classes_.reserve(sequences * options_.max_nodes) && sequences_.reserve(sequences) &&
           nodes_.reserve(sequences);
  }

  /// Narrows what strategies are asked for before a pass like `plain` (its rows: all pending and other ones). No nodes
  /// at all when none could pay at this load, so that drafting costs nothing.
  [[nodiscard]] DraftBudget budget(const DraftBudget& asked, const PassShape& plain) noexcept {
    DraftBudget narrowed = asked;
    narrowed.max_nodes = std::min(asked.max_nodes, options_.max_nodes);
    if (!cost_.reserve()) narrowed.max_nodes = 0;
    if (narrowed.max_nodes == 0) return narrowed;
    cost_.prepare(plain);
    const std::size_t room = room_behind(plain.rows, options_.max_rows);
    bool may_pay = false;
    for (std::size_t k = 1; k <= room && !may_pay; ++k) may_pay = allowed(k);
    narrowed.max_nodes = may_pay ? std::min(narrowed.max_nodes, room) : 0;
    const std::int64_t step = static_cast<std::int64_t>(plain.sequences) * cost_.least_step();
    narrowed.min_path_probability = std::max(
        asked.min_path_probability, least_worthwhile(std::max(rate_one, least_tokens()),
                                                     static_cast<Cost>(std::min<std::int64_t>(step, cost_one))));
    return narrowed;
  }

  /// How much each of `entries` drafts. `other_rows`: rows of the pass that belong to none of them (a prefill).
  /// Planning again gives the same. Without memory nothing is drafted (Cut::memory): BatchPlan::nodes is empty.
  BatchPlan plan(std::span<const BatchEntry> entries, std::size_t other_rows = 0) noexcept {
    plain_ = {entries.size(), other_rows, 0};
    for (const BatchEntry& entry : entries) {
      plain_.rows += entry.offer.pending;
      plain_.context += entry.context;
    }
    plain_.context /= std::max<std::size_t>(entries.size(), 1);
    other_rows_ = other_rows;
    nodes_.clear();
    sequences_.clear();
    if (!reserve(entries.size()) || !nodes_.resize(entries.size(), 0)) return shrink(0);
    cost_.prepare(plain_);
    count(entries);
    return shrink(options_.max_rows);
  }

  /// The same plan with at most `rows` rows in all, padding not counted (no room in the KV cache): of each draft a
  /// prefix of what it was. Where more rows are pending than that, nothing is drafted.
  BatchPlan shrink(std::size_t rows) noexcept {
    paid_ = 0;
    if (nodes_.empty())
      return {{}, 0, plain_.rows, cost_.width(plain_.rows), 0, plain_.sequences == 0 ? Cut::none : Cut::memory};
    rows = std::min(rows, options_.max_rows);
    return options_.uniform ? uniform_plan(rows) : ragged_plan(rows);
  }

  /// The pass of the last plan was committed. `committed`: what each entry got from it (0: it failed, or was stopped
  /// before its first token). `time`: how long it took, if that is measured. Of a pass that failed as a whole, nothing
  /// is learned: leave the call out.
  void learn(std::span<const std::size_t> committed, std::optional<std::chrono::nanoseconds> time = {}) noexcept {
    ++turn_;
    if (committed.empty() || nodes_.empty()) return;
    cost_.prepare(plain_);
    std::size_t tokens = 0;
    for (const std::size_t count : committed) tokens += std::clamp<std::size_t>(count, 1, most_committed);
    const auto sequences = static_cast<std::int64_t>(committed.size());
    const std::int64_t took = cost_.extra(paid_) + cost_one;
    throughput_.add(tokens, took * sequences);
    pace_.add(tokens, std::int64_t{cost_one} * sequences);
    // In plain passes, each of which gives one token to every sequence. Learned costs are charged a 32nd more.
    const std::int64_t saved = (static_cast<std::int64_t>(tokens) - sequences) * cost_one / sequences;
    guard_.add(as_cost(cost_.told() || paid_ == 0 ? took : took + took / 32), as_cost(saved + cost_one), 1);
    cost_.learn(paid_, time);
    last_paid_ = paid_;
  }

  /// Tokens per sequence in the time of a plain pass, lately.
  [[nodiscard]] Rate throughput() const noexcept { return throughput_.rate(); }
  [[nodiscard]] const LossGuard& guard() const noexcept { return guard_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return cost_.memory_bytes() + classes_.memory_bytes() + sequences_.memory_bytes() + nodes_.memory_bytes();
  }

 private:
  static constexpr std::size_t most_committed = 1 << 12;
  static constexpr std::size_t most_row_width = 512;

  /// What plan() keeps of an entry.
  struct Offered {
    std::uint32_t nodes = 0;  // that are worth anything
    std::uint32_t pending = 0;
  };
  struct Choice {
    std::size_t rows = 0;  // drafted ones, padding included if uniform
    std::int64_t gain = 0;
    bool guarded = false;  // other lengths were beyond what may be lost
  };

  static BatchOptions checked(BatchOptions options) noexcept {
    options.max_nodes = std::min(options.max_nodes, most_nodes);
    options.max_drafted = std::min<std::size_t>(options.max_drafted, 1 << 16);
    return options;
  }
  static Cost as_cost(std::int64_t cost) noexcept {
    return static_cast<Cost>(std::clamp<std::int64_t>(cost, 0, ~Cost{0}));
  }
  [[nodiscard]] bool allowed(std::size_t k) const noexcept { return cost_.extra(k) <= guard_.allowance(); }
  [[nodiscard]] std::size_t room_behind(std::size_t plain_rows, std::size_t rows) const noexcept {
    return std::min(
        {rows - std::min(rows, plain_rows), cost_.room(plain_rows), cost_.most_worthwhile(), cost_.reach()});
  }
  /// What the logarithm of the time of a pass weighs: n, and the price of the option to wait. 2^16 is one.
  [[nodiscard]] std::int64_t price() const noexcept {
    const Rate rate = std::min(throughput_.rate(), cost_.top());
    // The price of the option is that of one sequence: with several, weighing time more only lost.
    return static_cast<std::int64_t>(plain_.sequences - std::min<std::size_t>(plain_.sequences, 1)) * rate_one +
           (value_of_time(rate, cost_.top()) << 16) / rate;
  }
  static std::int64_t times(std::int64_t price, std::int64_t log) noexcept { return price * log >> 16; }
  /// The fewest tokens that a sequence is said to get: 0.6 of what all got lately, or one hard token would make those
  /// behind it look worthwhile.
  [[nodiscard]] Rate least_tokens() const noexcept { return pace_.rate() * 6 / 10; }

  /// Counts what is offered, by class and, if uniform, by row.
  void count(std::span<const BatchEntry> entries) noexcept {
    counts_.fill(0);
    by_row_.fill(0);
    offered_ = 0;
    worthwhile_ = 0;
    any_sampled_ = false;
    const auto least = static_cast<std::uint64_t>(least_tokens());
    std::size_t least_class = detail::class_below(times(price(), cost_.least_step())) + 2;
    const std::size_t stop_class = detail::class_below(times(price(), step_of_last_pass()));
    const std::size_t room = room_behind(plain_.rows, options_.max_rows);
    std::size_t enough = 2 * room;  // then it is time to see what nobody can get any more
    for (const BatchEntry& entry : entries) {
      if (worthwhile_ > enough && !options_.uniform) {
        least_class = std::min(least_class, first_left_out(room));
        enough = worthwhile_ + room;
      }
      std::uint16_t* const classes = classes_.data() + sequences_.size() * options_.max_nodes;
      const bool sampled = entry.offer.draft.kind() == DraftKind::sampled;
      const std::size_t first_refused = sampled && !options_.uniform ? stop_class : least_class;
      const std::size_t size = std::min(entry.offer.sendable.size(), options_.max_nodes);
      std::uint64_t sum = 0;
      std::size_t last = 1;
      std::size_t n = 0;
      for (; n < size; ++n) {
        std::uint32_t path =
            entry.offer.draft[static_cast<std::size_t>(entry.offer.sendable[n])].path_probability.raw();
        if (entry.credit != nullptr) path = credited(entry, n, path);
        last = std::max(last, detail::worth_class(path, sum, least));  // also of a draft that is out of order, a prefix
        if (last >= std::min(first_refused, detail::worth_classes)) break;
        sum += path >> 14;
        classes[n] = static_cast<std::uint16_t>(sampled ? 0 : last);
        ++counts_[classes[n]];
        if (options_.uniform && entry.offer.pending + n < most_row_width)
          by_row_[entry.offer.pending + n] += detail::worth_of_class[last];
      }
      sequences_.push_reserved({static_cast<std::uint32_t>(n), static_cast<std::uint32_t>(entry.offer.pending)});
      worthwhile_ += n;
      offered_ += entry.offer.sendable.size();
      any_sampled_ = any_sampled_ || (sampled && n > 0);
    }
  }
  /// The first class of which nothing can be sent: those before it hold `room` nodes already.
  [[nodiscard]] std::size_t first_left_out(std::size_t room) const noexcept {
    std::size_t c = 0;
    for (std::size_t nodes = 0; c < detail::worth_classes && nodes < room; ++c) nodes += counts_[c];
    return std::max<std::size_t>(c, 1);
  }
  /// A path probability of an entry that is not taken at its word.
  [[nodiscard]] std::uint32_t credited(const BatchEntry& entry, std::size_t n, std::uint32_t path) noexcept {
    const NodeIndex parent = entry.offer.draft[static_cast<std::size_t>(entry.offer.sendable[n])].parent;
    std::size_t at = n;  // nearly always the node before
    while (at > 0 && entry.offer.sendable[at - 1] != parent) --at;
    const std::uint64_t before = at == 0 ? cost_one : credited_[at - 1];
    credited_[n] = static_cast<std::uint32_t>(before * entry.credit->factor() >> 16);
    return static_cast<std::uint32_t>(std::uint64_t{path} * credited_[n] >> 16);
  }
  /// What a row costs at the size of the last pass, as BatchCost::log(): over one row more for each sequence, since
  /// single ones may be free.
  [[nodiscard]] std::int64_t step_of_last_pass() const noexcept {
    const std::size_t from = std::min(last_paid_, options_.max_drafted);
    const std::size_t to = std::min(from + plain_.sequences, options_.max_drafted);
    return to == from ? most_rate : (cost_.log(to) - cost_.log(from)) / static_cast<std::int64_t>(to - from);
  }

  void weigh(Choice& best, std::size_t k, std::int64_t gain) const noexcept {
    if (gain <= best.gain) return;
    if (allowed(k)) {
      best = {k, gain, best.guarded};
    } else {
      best.guarded = true;
    }
  }
  /// Where costs are learned, plain passes have to be timed now and then.
  [[nodiscard]] bool is_time_for_plain(const Choice& best) const noexcept {
    const auto sequences = static_cast<std::int64_t>(std::max<std::size_t>(1, plain_.sequences));
    const std::int64_t gain = any_sampled_ ? std::int64_t{most_rate} : best.gain / sequences;
    return best.rows > 0 && cost_.wants_plain(gain, guard_.debt() > LossGuard::burst / 2);
  }

  BatchPlan ragged_plan(std::size_t rows) noexcept {
    const std::size_t room = room_behind(plain_.rows, rows);
    const std::size_t most = std::min(worthwhile_, room);
    const std::int64_t price = this->price();
    std::size_t k = std::min<std::size_t>(counts_[0], most);
    while (k > 0 && !allowed(k)) --k;
    Choice best{k, -times(price, cost_.log(k)), k < counts_[0]};
    std::int64_t gain = 0;
    for (std::size_t c = 1; c < detail::worth_classes && k < most && best.rows >= counts_[0]; ++c) {
      for (std::size_t left = std::min<std::size_t>(counts_[c], most - k); left > 0; --left) {
        gain += detail::worth_of_class[c];
        ++k;
        weigh(best, k, gain - times(price, cost_.log(k)));
      }
    }
    if (is_time_for_plain(best)) best = {0, 0, true};
    give_out(best.rows);
    paid_ = best.rows;
    const std::size_t all = plain_.rows + best.rows;
    return {{nodes_.data(), nodes_.size()}, best.rows, all, cost_.width(all), 0, why(best, best.rows, room)};
  }
  /// Shares `rows` drafted rows out, the worthiest first.
  void give_out(std::size_t rows) noexcept {
    std::size_t last = 0;  // the class that does not fit whole
    while (last < detail::worth_classes && counts_[last] <= rows) rows -= counts_[last++];
    const auto take = [&](std::size_t i, std::size_t bound, std::size_t most) {
      const std::uint16_t* const classes = classes_.data() + i * options_.max_nodes;
      std::uint32_t& n = nodes_[i];
      const std::uint32_t before = n;
      while (n < sequences_[i].nodes && n - before < most && classes[n] < bound) ++n;
      return n - before;
    };
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      nodes_[i] = 0;
      take(i, last, unlimited);
    }
    for (std::size_t i = 0; i < nodes_.size() && rows > 0; ++i)
      rows -= take((turn_ + i) % nodes_.size(), last + 1, rows);
  }

  [[nodiscard]] std::size_t next_width(std::size_t row_width) const noexcept {
    const auto widths = options_.widths.values();
    if (widths.empty()) return row_width;
    const auto at = std::lower_bound(widths.begin(), widths.end(), row_width);
    return at == widths.end() ? unlimited : *at;
  }
  BatchPlan uniform_plan(std::size_t rows) noexcept {
    const std::size_t room = room_behind(plain_.rows, rows);
    const std::int64_t price = this->price();
    std::uint32_t pending = 1;  // most of any sequence
    for (const Offered& sequence : sequences_) pending = std::max(pending, sequence.pending);
    Choice best;
    std::size_t best_width = 0;
    std::int64_t gain = 0;
    std::size_t counted = 1;  // rows of each sequence that `gain` holds
    for (std::size_t width = next_width(pending); width <= most_row_width && !nodes_.empty();
         width = next_width(width + 1)) {
      const std::size_t k = width * nodes_.size() + other_rows_ - plain_.rows;
      if (k > room) break;
      if (any_sampled_) {  // never looks further ahead than to the first node of the step
        gain += by_row_[counted] * static_cast<std::int64_t>(width - counted);
        counted = width;
      }
      for (; counted < width; ++counted) gain += by_row_[counted];
      const std::size_t before = best_width;
      if (weigh(best, k, gain - times(price, cost_.log(k))); best.rows == k && k > 0) best_width = width;
      if (any_sampled_ && best_width == before && width > pending) break;
    }
    if (is_time_for_plain(best)) best = {0, 0, true}, best_width = 0;
    std::size_t drafted = 0;
    for (std::size_t i = 0; i < nodes_.size(); ++i) {
      const std::size_t free = best_width - std::min<std::size_t>(best_width, sequences_[i].pending);
      nodes_[i] = static_cast<std::uint32_t>(std::min<std::size_t>(free, sequences_[i].nodes));
      drafted += nodes_[i];
    }
    paid_ = best.rows;
    return {{nodes_.data(), nodes_.size()}, drafted, plain_.rows + drafted, plain_.rows + paid_, best_width,
            why(best, drafted, room)};
  }

  [[nodiscard]] Cut why(const Choice& best, std::size_t drafted, std::size_t room) const noexcept {
    if (drafted == offered_) return Cut::none;
    if (best.guarded) return Cut::gated;
    return best.rows == room && best.rows < worthwhile_ ? Cut::budget : Cut::unlikely;
  }

  BatchOptions options_;
  BatchCost cost_;
  Throughput throughput_;  // in the time of plain passes
  Throughput pace_;        // in passes
  LossGuard guard_;
  std::size_t turn_ = 0;
  std::size_t last_paid_ = 0;

  // The last plan.
  PassShape plain_{0, 0, 0};
  std::size_t other_rows_ = 0;
  std::size_t offered_ = 0;     // nodes
  std::size_t worthwhile_ = 0;  // those that are worth anything
  std::size_t paid_ = 0;        // drafted rows, padding included
  bool any_sampled_ = false;
  std::array<std::uint32_t, detail::worth_classes> counts_{};
  std::array<std::int64_t, most_row_width> by_row_{};
  std::array<std::uint32_t, most_nodes> credited_{};
  Buffer<std::uint16_t> classes_;  // of the nodes of sequence i from i x max_nodes on
  Buffer<Offered> sequences_;
  Buffer<std::uint32_t> nodes_;
};

}  // namespace reprise
