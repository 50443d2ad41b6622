// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file The planner of shared passes: it decides how many tokens each of several sequences drafts.
///
/// Every request is decoded to its end, so the time for a given amount of text counts. A pass of n sequences takes time
/// c. Let s_i be the sum of the path probabilities of the tokens that sequence i drafts. The sequence gets 1 + s_i
/// tokens from the pass on average, so it advances at the rate (1 + s_i) / c. The logarithms of these rates add up to
///
///   ln(1 + s_1) + ... + ln(1 + s_n) - n ln(c).
///
/// Maximizing this sum is best for the current text. A token of path probability p is worth p / (1 + s_i): one more
/// token matters less to a sequence that already gets many. With one sequence, this is the second rule in
/// draft_length.hpp, where the yield of the current pass sets the price of a token. As in that rule, waiting for better
/// evidence is an option that has a price. Near plain decoding, the time of a single sequence therefore has a weight
/// of 1.3. With n sequences, only one of them has that weight.
///
/// The drafts are merged by worth, the highest first. The worth falls along each draft, so each draft contributes a
/// prefix. A histogram (OfferedNodes) counts nodes in classes by worth. Reading it from the most valuable class down
/// gives the number of rows, so nothing is sorted. Each offered node is read at most once. If the last class does
/// not fit in full, its rows go to one sequence after the other. Each pass begins with a different sequence. Sources:
/// marginal allocation of concave gains (Fox 1966); proportional fairness (Kelly 1997).

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <utility>

#include "reprise/batch/detail/batch_cost.hpp"
#include "reprise/batch/detail/offered_nodes.hpp"
#include "reprise/batch/detail/row_choice.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/control/detail/draft_length.hpp"
#include "reprise/control/detail/sequence_control.hpp"
#include "reprise/control/loss_budget.hpp"
#include "reprise/core/control.hpp"
#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/loop/round.hpp"

namespace reprise { inline namespace v0 {

/// One sequence of the next pass.
struct BatchEntry {
  Offer offer;              ///< from Session::offer(); its draft may be empty
  std::size_t context = 0;  ///< number of committed tokens of the sequence
};

/// Settings of BatchPlanner. All have working defaults.
struct BatchOptions {
  /// The cost of a pass as a function of its total rows. Without a curve, costs are learned from the times passed to
  /// learn(); until the first measured time, the default curve applies. Use CostCurve::linear(0) if only a token budget
  /// should limit drafts.
  std::optional<CostCurve> curve = {};
  /// Token budget of a pass: all rows, including pending rows and the `other_rows` of BatchPlanner::plan().
  std::size_t max_rows = unlimited;
  /// Upper bound on the drafted rows of one sequence. A BatchPlanner takes larger values than its most_nodes, 256, for
  /// 256. Longer drafts than most_draft_nodes of a sequence alone are cut by the rule for many. BatchFollower::make()
  /// refuses values above the largest draft of its strategy. By default, the bound is that
  /// of the budget asked or of the slot, up to most_draft_nodes. If that is unlimited, it is 63: a pass of 64 rows.
  std::size_t max_nodes = unlimited;
  /// The row counts that the engine can run for a whole pass (captured graphs). The caller pads the rows of a plan up
  /// to the next allowed count.
  AllowedWidths widths = {};
  /// The cost of the engine's draft head or draft model, for a BatchFollower with a head. Tell it if the curve is told.
  /// Without it, the cost is learned from times.
  std::optional<HeadCost> head = {};
  /// The loss budget of one engine and one tenant, shared by all planners and controls that serve this tenant. It must
  /// outlive the planner. Null: the planner has a budget of its own.
  LossBudget* loss_budget = nullptr;
};

/// The number of tokens that each sequence drafts. The view is valid until the next plan(), shrink() or reserve().
struct BatchPlan {
  std::span<const std::uint32_t> nodes;  ///< one element per entry, in the same order; see nodes_of()
  std::size_t drafted = 0;               ///< sum of `nodes`
  std::size_t rows = 0;                  ///< rows of the pass, without padding
  std::size_t width = 0;                 ///< rows of the pass, with padding
  Cut cut = Cut::none;                   ///< why some offered nodes are not drafted; pass it to Session::plan()

  /// Returns nodes[i], or 0 for a plan that ran out of memory (Cut::out_of_memory), because its `nodes` is empty.
  [[nodiscard]] std::size_t nodes_of(std::size_t i) const noexcept { return i < nodes.size() ? nodes[i] : 0; }
};

/// Plans passes of many sequences under one token budget, one cost curve, or both. Use one planner per engine. It keeps
/// no state of any sequence, so sequences may join and leave at any time. The control of their sessions must be SendAll
/// or a class derived from it; otherwise, Session::offer() does not compile. A pass:
///
///   limits.draft = planner.budget(asked, {sequences, pending rows, mean context});
///   for each: session.propose(limits), and an entry from session.offer()
///   plan = planner.plan(entries);  // and then, for fewer rows, planner.shrink(rows)
///   for each: session.plan(plan.nodes_of(i), plan.cut)
///   one pass of the engine; for each: resolve, commit
///   planner.learn(committed, time);
///
/// Loss bound: with a given curve, the passes of one LossBudget together lose at most 10 plain passes in any 1,000.
/// Each pass is charged at the exact mean context of its sequences. A pass of n sequences saves one plain pass for each
/// n tokens after the first n. A replay (Rollback::snapshot) is charged as if the next pass had the same sequences and
/// no other rows. With a learned curve, which can be wrong, the bound is not guaranteed.
///
/// A strategy that states too high probabilities takes rows from other sequences.
///
/// Sampled drafts: the decision to send a node may depend only on numbers stated before its token was drawn; otherwise
/// rejection sampling is biased. Each sampled draft continues while the next stated probability is worth the price of a
/// row at the size of the last pass. Sampled drafts get rows before ordered ones.
///
/// Plans are a pure function of the settings, of all calls so far (times included) and, if there is one, of a shared
/// budget. All decisions use integer arithmetic. Ranks that plan independently must get the same times (those of one
/// rank). Among nodes of equal worth, those of earlier sequences are sent first. The sequence that counts as the first
/// changes with each pass.
///
/// Allocates only in reserve(), in the first budget(), and in a plan for more sequences than ever before. Memory: 1.4
/// KB of counts, 60 KB of learned curves, and 6 KB of costs. Each sequence adds 16 bytes, and
/// 2 bytes for each of max_nodes nodes. Threads: one at a time.
class BatchPlanner {
  using Rate = detail::Rate;
  using Throughput = detail::Throughput;

 public:
  static constexpr std::size_t most_nodes = detail::OfferedNodes::most_nodes;
  /// Upper bound on the drafted rows of a pass, over all sequences.
  static constexpr std::size_t most_drafted = 512;
  /// For learn(): the rows of an entry did not run.
  static constexpr std::size_t did_not_run = unlimited;
  /// For learn(): the result of an entry is not known yet.
  static constexpr std::size_t not_known = unlimited - 1;

  /// What the planner has to know of a pass when the result of an entry comes later. In the unit of Cost.
  struct Late {
    std::int64_t sequences = 1;  ///< of its pass
    std::int64_t took = 0;       ///< the cost of its pass
    std::int64_t rows = 0;       ///< the loss that its drafted rows were charged
    std::int64_t leak = 0;       ///< its share of the leak
    std::int64_t lowest = 0;     ///< the lowest debt since then, without corrections
  };

  explicit BatchPlanner(BatchOptions options = {}) noexcept
      : usual_nodes_(options.max_nodes == unlimited ? 63 : std::min(options.max_nodes, most_nodes)),
        options_(bounded(std::move(options))),
        cost_(std::exchange(options_.curve, {}), options_.widths, most_drafted),
        one_(detail::LossAccount(LossBudget(), options_.loss_budget)),
        offered_(options_.max_nodes) {}

  /// Reserves memory for plans of `sequences` sequences. Errors: out_of_memory; in that case earlier memory stays, and
  /// plan() allocates on demand.
  Result<void> reserve(std::size_t sequences) noexcept {
    if (!grow(sequences))
      return Error{ErrorCode::out_of_memory, "no memory for plans of so many sequences: reserve fewer", sequences, 0};
    return {};
  }

  /// Returns the budget of strategies for a pass like `plain`, narrowed from `asked`. The rows of `plain` are all
  /// pending rows and the `other_rows` of plan(). To save the time of drafting, max_nodes is 0 if memory runs out. With
  /// several sequences, it is also 0 if no node could be worth its cost at this load, or if the loss budget allows
  /// none.
  [[nodiscard]] DraftBudget budget(const DraftBudget& asked, const PassShape& plain) noexcept {
    DraftBudget narrowed = asked;
    narrowed.max_nodes = asked.max_nodes == unlimited ? usual_nodes_ : std::min(asked.max_nodes, options_.max_nodes);
    if (!cost_.reserve()) narrowed.max_nodes = 0;
    if (narrowed.max_nodes == 0) return narrowed;
    prepare(plain);
    if (plain.sequences == 1 && options_.widths.empty()) {
      narrowed.max_nodes = std::min(narrowed.max_nodes, options_.max_rows - std::min(options_.max_rows, plain.rows));
      narrowed.min_path_probability =
          std::max(asked.min_path_probability, one_.least_probability(cost_.pass_costs(), plain, most_alone(), true));
      return narrowed;
    }
    // A trial needs a draft, whatever its cost is believed to be.
    const bool may_try = cost_.may_try();
    const std::size_t limit = row_limit(plain.rows, options_.max_rows);
    const std::int64_t allowance = one_.losses.allowance();
    if (!may_try) {
      bool may_pay = false;
      for (std::size_t k = 1; k <= limit && !may_pay; ++k) may_pay = cost_.extra(k) <= allowance;
      narrowed.max_nodes = may_pay ? std::min(narrowed.max_nodes, limit) : 0;
    }
    const std::size_t sequences = std::min(plain.sequences, detail::BatchCost::most_sequences);
    const std::int64_t step = static_cast<std::int64_t>(sequences) * cost_.least_step();
    const std::int64_t most = may_try ? cost_one / 4 : cost_one;
    narrowed.min_path_probability = std::max(
        asked.min_path_probability,
        detail::least_worthwhile(std::max(detail::rate_one, least_tokens()), static_cast<Cost>(std::min(step, most))));
    return narrowed;
  }

  /// Returns how many nodes each of `entries` drafts. `other_rows`: rows of the pass that belong to none of them (a
  /// prefill). Until learn(), a second call with the same arguments returns the same plan, unless a shared budget has
  /// changed. If memory runs out, nothing is drafted (Cut::out_of_memory) and BatchPlan::nodes is empty.
  BatchPlan plan(std::span<const BatchEntry> entries, std::size_t other_rows = 0) noexcept REPRISE_LIFETIMEBOUND {
    plain_ = {entries.size(), other_rows, 0};
    for (const BatchEntry& entry : entries) {
      plain_.rows += entry.offer.pending;
      plain_.context += entry.context;
    }
    contexts_ = plain_.context;
    plain_.context /= std::max<std::size_t>(entries.size(), 1);
    other_rows_ = other_rows;
    nodes_.clear();
    offered_.clear();
    sums_size_ = 0;
    if (!grow(entries.size()) || !nodes_.resize(entries.size(), 0)) return shrink(0);
    prepare(plain_);
    if (entries.size() == 1 && other_rows == 0) read_alone(entries.front().offer);
    const bool may_try = cost_.may_try() && !alone();
    if (may_try) cost_.be_optimistic(true);
    offered_.count(entries, bounds());
    trial_ = may_try && !offered_.any_sampled()
                 ? cost_.trial(detail::choose_rows(offered_, terms(detail::most_rate, options_.max_rows)).rows)
                 : 0;
    if (may_try) cost_.be_optimistic(false);
    if (offered_.any_replayed() && !alone()) prepare_replays();
    return shrink(options_.max_rows);
  }

  /// Returns the last plan, reduced to at most `rows` rows in total without padding; for example if the KV cache is
  /// full. Each sequence drafts a prefix of its earlier draft. If the pending rows and the `other_rows` of plan()
  /// exceed `rows` already, nothing is drafted.
  BatchPlan shrink(std::size_t rows) noexcept REPRISE_LIFETIMEBOUND {
    one_.cancel();
    if (plain_.sequences == 0) one_.losses.close();
    if (nodes_.empty()) return planned(0, plain_.sequences == 0 ? Cut::none : Cut::out_of_memory);
    return plan_within(std::min(rows, options_.max_rows));
  }

  /// Corrects the last plan: only the first `nodes` drafted rows of entry `i` run. Call it before learn().
  void shorten(std::size_t i, std::size_t nodes) noexcept {
    if (i >= nodes_.size() || nodes >= nodes_[i]) return;
    paid_ -= nodes_[i] - nodes;
    nodes_[i] = static_cast<std::uint32_t>(nodes);
    one_.instead.reset();
  }

  /// Learns from the pass of the last plan, after its commit. `committed`: the number of tokens that the pass committed
  /// for each entry; 0 if the entry failed or was stopped before its first token; did_not_run or not_known. `time`: the
  /// duration of the pass, if measured. `as_planned`: false if the pass had other rows than those of the plan, such as
  /// those of a prompt, or if its time is unknown for another reason that lies outside of it. Then nothing is learned
  /// of costs, and the missing time does not delay the next plain pass. The rows of entries that are did_not_run or
  /// not_known count as lost until learn_late() or correct(). Do not call it for a pass that failed as a whole.
  void learn(std::span<const std::size_t> committed, std::optional<Duration> time = {},
             bool as_planned = true) noexcept {
    const auto count = [&](std::size_t what) { return std::ranges::count(committed, what); };
    if (committed.empty() || nodes_.empty()) return one_.losses.cancel();
    const std::int64_t left_out = count(did_not_run);
    const std::int64_t known = std::ssize(committed) - left_out - count(not_known);
    late_ = {};
    left_paid_ = paid_;
    if (left_out == std::ssize(committed)) {
      left_loss_ = one_.losses.abandon();
      return;
    }
    ++turn_;
    prepare(plain_);
    if (alone() && committed.size() == 1 && known == 1) return learn_alone(committed[0], time, as_planned);
    const std::int64_t charged = charge();
    if (left_out > 0) leave_out(committed);
    left_paid_ -= paid_;
    late_.rows = std::min(charged, charge());
    left_loss_ = charged - late_.rows;
    late_.sequences = static_cast<std::int64_t>(plain_.sequences);
    late_.took = cost_.extra(paid_) + cost_one;
    std::size_t tokens = 0;
    for (const std::size_t one : committed)
      if (one < not_known) tokens += std::clamp<std::size_t>(one, 1, most_committed);
    if (known > 0) add(tokens, known);
    // A pass without a known result may not have run, so its leak waits, too.
    const std::int64_t waits = known > 0 ? 0 : LossBudget::leak;
    late_.leak = waits / late_.sequences;
    // In units of plain passes, each of which gives one token to every sequence.
    const std::int64_t saved = (static_cast<std::int64_t>(tokens) - known) * cost_one / late_.sequences;
    one_.losses.settle(charged - saved + waits, one_.instead ? 0 : replay(committed));
    cost_.learn(paid_, time, one_.instead, as_planned && left_out == 0, contexts_);
    last_paid_ = paid_;
  }
  /// Returns what learn_late() or correct() needs for entry `i` of the plan that was learned last, which was not_known
  /// or did_not_run. Call it before the next plan.
  [[nodiscard]] Late late(std::size_t i, bool ran) const noexcept {
    Late late = late_;
    const std::size_t paid = ran ? paid_ : left_paid_;
    const std::int64_t loss = ran ? late_.rows : left_loss_;
    late.rows = i < nodes_.size() && paid > 0 ? loss * nodes_[i] / static_cast<std::int64_t>(paid) : 0;
    late.lowest = one_.losses.uncorrected();
    return late;
  }
  /// Notes the debt of today. Call it after each learn(), for each result that is not known yet.
  void note(Late& late) const noexcept { late.lowest = std::min(late.lowest, one_.losses.uncorrected()); }
  /// Learns how many tokens an earlier pass committed for an entry that was not_known. So sequences may take turns:
  /// each pass is learned while others are under way.
  void learn_late(const Late& late, std::size_t committed) noexcept {
    const std::size_t tokens = std::clamp<std::size_t>(committed, 1, most_committed);
    one_.throughput.add(tokens, late.took, 1, late.sequences);
    pace_.add(tokens, cost_one, 1, late.sequences);
    one_.losses.correct(static_cast<std::int64_t>(tokens - 1) * cost_one / late.sequences + late.leak, late.lowest);
  }
  /// Adds `more` to `doubted`, the losses of rows that seem not to have run.
  void doubt(Late& doubted, const Late& more) const noexcept {
    doubted.rows = one_.losses.open(doubted.rows, doubted.lowest) + one_.losses.open(more.rows, more.lowest);
    doubted.lowest = one_.losses.uncorrected();
  }
  /// Takes back the loss of `part` of `all` drafted rows of an entry that was not_known: they did not run.
  void shorten(Late& late, std::size_t part, std::size_t all) noexcept {
    const std::int64_t loss = late.rows * static_cast<std::int64_t>(part) / static_cast<std::int64_t>(all);
    late.rows -= loss;
    one_.losses.correct(loss, late.lowest);
  }
  /// Takes back losses: the rows did not run, as later results of the sequence show.
  void correct(const Late& doubted) noexcept { one_.losses.correct(doubted.rows, doubted.lowest); }

  /// Reserves the cost of drafting outside of the passes; see CostControl::afford().
  [[nodiscard]] bool afford(Cost cost) noexcept { return one_.losses.afford(cost); }
  /// Charges what it has cost, and adds that to the cost of the tokens that come next in `sequences` sequences.
  void spend(Cost cost, std::size_t sequences) noexcept {
    const auto all = static_cast<std::int64_t>(sequences);
    one_.losses.spend(cost);
    one_.throughput.add(0, std::int64_t{cost} * all, 0, std::max<std::int64_t>(all, 1));
  }
  /// Gives back what afford() has reserved: it has not run.
  void spare() noexcept { one_.losses.spare(); }
  /// Returns the extra cost of `rows` more rows in a pass like that of the last budget() or plan(), in plain passes.
  [[nodiscard]] std::int64_t extra(std::size_t rows) const noexcept {
    return cost_.extra(std::min(rows, most_drafted));
  }
  /// Returns how many drafted rows fit into that pass, as far as their costs are known.
  [[nodiscard]] std::size_t room(const PassShape& plain) const noexcept {
    return row_limit(plain.rows, options_.max_rows);
  }
  /// Returns the learned time of a plain pass of about `sequences` sequences, in nanoseconds; 0: unknown.
  [[nodiscard]] std::int64_t plain_time(std::size_t sequences) const noexcept {
    return cost_.learned(sequences).plain_time();
  }

  /// Returns the upper bound on the drafted rows of a sequence that asks for none; see BatchOptions::max_nodes.
  [[nodiscard]] std::size_t usual_nodes() const noexcept { return usual_nodes_; }
  /// Returns the recent throughput: tokens per sequence in the time of one plain pass, in 1/65,536.
  [[nodiscard]] std::int64_t throughput() const noexcept { return one_.throughput.rate(); }
  /// Returns the curve that is learned from batches of about `sequences` sequences: there is one for each power of two.
  /// One drafted row of the curve represents `sequences` / 8 drafted rows, rounded down to a power of two, but at least
  /// 1. LearnedCurve::prior() of the result can be saved with save_costs(); use a name for each number of sequences. As
  /// long as nothing is known of a curve, passes are planned with the costs of the nearest one with times, or else with
  /// assumed costs.
  [[nodiscard]] const LearnedCurve& learned(std::size_t sequences) const noexcept REPRISE_LIFETIMEBOUND {
    return cost_.learned(sequences);
  }
  /// Starts the curve of batches of about `sequences` sequences again, from assumed costs in the rows of learned(). Has
  /// no effect if a curve was given.
  void assume(std::size_t sequences, const CostPrior& prior) noexcept {
    cost_.assume(sequences, prior);
    one_.forget_costs();
  }
  /// Returns the budget that limits the losses: the shared one, or the planner's own.
  [[nodiscard]] const LossBudget& loss_budget() const noexcept REPRISE_LIFETIMEBOUND { return one_.losses.budget(); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return cost_.memory_bytes() + offered_.memory_bytes() + nodes_.memory_bytes();
  }

 private:
  static constexpr std::size_t most_committed = 1 << 12;

  static BatchOptions bounded(BatchOptions options) noexcept {
    options.max_nodes = options.max_nodes == unlimited ? most_draft_nodes : std::min(options.max_nodes, most_nodes);
    return options;
  }
  [[nodiscard]] bool grow(std::size_t sequences) noexcept {
    if (sequences > unlimited / most_nodes) return false;
    return cost_.reserve() && offered_.reserve(sequences) && nodes_.reserve(sequences);
  }
  /// Returns the largest number of drafted rows in a pass with `plain_rows` plain rows and at most `rows` rows in
  /// total.
  [[nodiscard]] std::size_t row_limit(std::size_t plain_rows, std::size_t rows) const noexcept {
    return std::min({rows - std::min(rows, plain_rows), cost_.width_limit(plain_rows), cost_.most_worthwhile(),
                     cost_.explored_rows()});
  }
  /// Returns the terms of a plan with at most `rows` rows in total, in which drafts may lose `allowance`.
  [[nodiscard]] detail::PlanTerms terms(std::int64_t allowance, std::size_t rows) const noexcept {
    return {.cost = cost_, .allowance = allowance, .price = price(), .row_limit = row_limit(plain_.rows, rows)};
  }
  /// Returns the weight of the logarithm of the pass time, in UnitScale. One sequence adds value_of_time() / rate, that
  /// is, 1 plus the surcharge for the option to wait; every other sequence adds 1.
  [[nodiscard]] std::int64_t price() const noexcept {
    const Rate rate = std::min(one_.throughput.rate(), cost_.max_throughput());
    // Only one sequence adds the surcharge: with several sequences, more weight on time only caused losses.
    return static_cast<std::int64_t>(plain_.sequences - std::min<std::size_t>(plain_.sequences, 1)) * detail::rate_one +
           detail::UnitScale::divide(detail::value_of_time(rate, cost_.max_throughput()), rate);
  }
  /// Returns the minimum number of tokens that a sequence is assumed to get in a pass, in UnitScale. It is 0.6 of the
  /// recent mean per sequence and pass. Without this minimum, the tokens after one that is hard to predict would look
  /// worthwhile.
  [[nodiscard]] Rate least_tokens() const noexcept { return pace_.rate() * 6 / 10; }

  [[nodiscard]] detail::OfferedNodes::Bounds bounds() const noexcept {
    const std::int64_t price = this->price();
    return {.least_tokens = static_cast<std::uint64_t>(least_tokens()),
            .least_class = alone() ? detail::worth_classes
                                   : detail::class_below(detail::UnitScale::multiply(price, cost_.least_step())) + 2,
            .stop_class = detail::class_below(detail::UnitScale::multiply(price, step_of_last_pass())),
            .row_limit = row_limit(plain_.rows, options_.max_rows)};
  }
  /// Returns the increase of BatchCost::log() for one more row, at the size of the last pass. It is the mean over one
  /// more row for each sequence, because single rows may be free.
  [[nodiscard]] std::int64_t step_of_last_pass() const noexcept {
    const std::size_t from = std::min(last_paid_, most_drafted);
    const std::size_t to = std::min(from + plain_.sequences, most_drafted);
    return to == from ? detail::most_rate : (cost_.log(to) - cost_.log(from)) / static_cast<std::int64_t>(to - from);
  }

  /// Reads the costs of passes like `plain`.
  void prepare(const PassShape& plain) noexcept {
    if (cost_.prepare(plain)) one_.forget_costs();
  }

  /// Returns true if the last plan is that of one sequence alone.
  [[nodiscard]] bool alone() const noexcept { return sums_size_ > 0; }
  /// Returns the upper bound on the drafted rows of a sequence alone.
  [[nodiscard]] std::size_t most_alone() const noexcept { return std::min(options_.max_nodes, most_draft_nodes); }
  /// Reads what SequenceControl needs to know of the draft of a sequence alone. Reads nothing if the pass has fixed
  /// widths or the draft is longer than SequenceControl allows.
  void read_alone(const Offer& offer) noexcept {
    const std::span<const NodeIndex> nodes = offer.sendable.first(std::min(offer.sendable.size(), options_.max_nodes));
    if (!options_.widths.empty() || nodes.size() > most_draft_nodes) return;
    detail::add_path_probabilities(offer.draft, nodes, sums_);
    sums_size_ = nodes.size() + 1;
    alone_ = {.kind = offer.draft.kind(),
              .nodes = offer.sendable.size(),
              .sums = {},
              .chain = detail::chain_length_of(offer.draft, nodes)};
  }
  /// Returns the plan for the only sequence of the pass, with at most `rows` rows in total.
  BatchPlan plan_alone(std::size_t rows) noexcept {
    const PassLimits room{
        .plain = plain_, .nodes = rows - std::min(rows, plain_.rows), .replayed = offered_.any_replayed()};
    alone_.sums = std::span(sums_).first(sums_size_);
    DraftChoice choice = one_.choose(cost_.pass_costs(), alone_, room, most_alone(), 0);
    if (choice.nodes < alone_.nodes && choice.cut == Cut::none) choice.cut = Cut::budget;
    nodes_[0] = static_cast<std::uint32_t>(choice.nodes);
    return planned(choice.nodes, choice.cut);
  }
  /// Learns from a pass of one sequence alone that committed `committed` tokens.
  void learn_alone(std::size_t committed, std::optional<Duration> time, bool as_planned) noexcept {
    if (!as_planned) time = {};
    LearnedCurve* learned = cost_.learned_from(time);
    const std::size_t tokens = std::clamp<std::size_t>(committed, 1, most_committed);
    const PassReport report{.plain = plain_,
                            .sent = {1, plain_.rows + paid_, plain_.context},
                            .committed = tokens,
                            .time = time,
                            .replayed = offered_.any_replayed() && paid_ > 0 && tokens <= paid_};
    one_.learn(cost_.pass_costs(), learned, report, 0, as_planned);
    pace_.add(tokens, cost_one);
    last_paid_ = paid_;
  }

  /// Returns the plan that `nodes_` describes, with `drafted` drafted rows.
  BatchPlan planned(std::size_t drafted, Cut cut) noexcept {
    paid_ = drafted;
    return {.nodes = {nodes_.data(), nodes_.size()},
            .drafted = drafted,
            .rows = plain_.rows + drafted,
            .width = cost_.width(plain_.rows + drafted),
            .cut = cut};
  }
  /// Returns the plan with at most `rows` rows in total.
  BatchPlan plan_within(std::size_t rows) noexcept {
    prepare(plain_);
    if (alone()) return plan_alone(rows);
    detail::PlanTerms terms = this->terms(one_.losses.allowance(), rows);
    const std::size_t limit = terms.row_limit;
    // Later tokens of a sampled draft must not decide whether a token is sent. So the budget has to cover every smaller
    // number of rows as well.
    if (offered_.any_sampled()) terms.row_limit = reserve_each(limit);
    detail::RowChoice best = detail::choose_rows(offered_, terms);
    if (is_time_for_plain(best)) best = {.guarded = true};
    bool guarded = terms.row_limit < limit;
    while (!one_.losses.change(worst_loss(best.rows))) {
      terms.row_limit = best.rows - 1;
      best = detail::choose_rows(offered_, terms);
      guarded = true;
    }
    best.guarded = best.guarded || guarded;
    // The loss budget does not limit trials: LearnedCurve::may_try() does.
    if (trial_ > 0 && plain_.rows + trial_ <= rows) one_.instead = std::exchange(best.rows, trial_);
    detail::share_rows(offered_, best.rows, turn_, {nodes_.data(), nodes_.size()});
    return planned(best.rows, why(best, limit));
  }
  /// Adds the tokens of `part` sequences to the rates.
  void add(std::size_t tokens, std::int64_t part) noexcept {
    one_.throughput.add(tokens, late_.took * part, part, late_.sequences);
    pace_.add(tokens, std::int64_t{cost_one} * part, part, late_.sequences);
  }
  /// Returns the loss that the drafted rows of the pass are charged, before what they save.
  [[nodiscard]] std::int64_t charge() const noexcept {
    const std::size_t charged = one_.instead.value_or(paid_);  // a trial is charged as the pass that it replaced
    return charged == 0 ? 0 : cost_.charged(cost_.exact_extra(plain_, charged) + cost_one) - cost_one;
  }
  /// Removes the entries that did not run from the pass. Their contexts are taken to be the mean.
  void leave_out(std::span<const std::size_t> committed) noexcept {
    for (std::size_t i = 0; i < std::min(committed.size(), nodes_.size()); ++i) {
      if (committed[i] != did_not_run) continue;
      --plain_.sequences;
      plain_.rows -= offered_.pending_of(i);
      contexts_ -= plain_.context;
      paid_ -= nodes_[i];
    }
    prepare(plain_);
  }
  /// Returns the loss of a pass with k drafted rows if all are rejected and the replay is the most expensive one.
  [[nodiscard]] std::int64_t worst_loss(std::size_t k) const noexcept {
    if (k == 0) return 0;
    return one_.losses.worst(cost_.exact_extra(plain_, k), offered_.any_replayed() ? cost_.highest_replay(k) : 0);
  }
  /// Reads the costs of all replays that the pass can cause: of all numbers of rows, and at all mean contexts.
  void prepare_replays() noexcept {
    const std::size_t drafted = std::min(row_limit(plain_.rows, options_.max_rows), offered_.worthwhile());
    cost_.prepare_replays(plain_.rows - other_rows_, drafted, plain_.context,
                          (contexts_ + plain_.sequences + drafted) / plain_.sequences);
  }
  /// Returns the extra cost of the replays that the last pass has caused. A rejection makes the accepted tokens
  /// pending, after the tokens that were already pending.
  [[nodiscard]] std::int64_t replay(std::span<const std::size_t> committed) const noexcept {
    if (paid_ == 0 || !offered_.any_replayed()) return 0;
    std::size_t rows = plain_.sequences;
    std::size_t context = contexts_;
    const std::size_t sequences = std::min({committed.size(), nodes_.size(), offered_.sequences()});
    for (std::size_t i = 0; i < sequences; ++i) {
      if (committed[i] == did_not_run) continue;
      const std::size_t count = committed[i] == not_known ? 0 : std::min<std::size_t>(committed[i], nodes_[i] + 1);
      context += count;
      const bool rejected = nodes_[i] > 0 && count <= nodes_[i];
      if (offered_.replayed(i) && rejected) rows += offered_.pending_of(i) + count - 1;
    }
    return cost_.exact_replay(rows, context / plain_.sequences);
  }
  /// Reserves the highest loss of a pass with up to `limit` drafted rows. Returns the largest number of rows for which
  /// the budget covers every smaller number.
  [[nodiscard]] std::size_t reserve_each(std::size_t limit) noexcept {
    std::size_t rows = 0;
    while (rows < limit && one_.losses.change(std::max(one_.losses.planned(), worst_loss(rows + 1)))) ++rows;
    return rows;
  }
  /// Returns true if the next pass should be plain, so that it is timed. Learned costs need a timed plain pass now and
  /// then.
  [[nodiscard]] bool is_time_for_plain(const detail::RowChoice& best) const noexcept {
    const auto sequences = static_cast<std::int64_t>(std::max<std::size_t>(1, plain_.sequences));
    const std::int64_t gain = offered_.any_sampled() ? std::int64_t{detail::most_rate} : best.gain / sequences;
    return best.rows > 0 && cost_.pass_costs().should_probe_plain(gain, one_.losses.budget());
  }
  [[nodiscard]] Cut why(const detail::RowChoice& best, std::size_t limit) const noexcept {
    if (best.rows == offered_.offered()) return Cut::none;
    if (best.guarded) return Cut::throttled;
    return best.rows == limit && best.rows < offered_.worthwhile() ? Cut::budget : Cut::unlikely;
  }

  std::size_t usual_nodes_;  // the bound of a budget that asks for none
  BatchOptions options_;
  detail::BatchCost cost_;
  // The control of a sequence alone. Its throughput (tokens per sequence in the time of a plain pass) and its losses
  // are those of all passes.
  detail::SequenceControl one_;
  Throughput pace_;  // tokens per sequence in a pass
  std::size_t turn_ = 0;
  std::size_t last_paid_ = 0;
  // Of the pass that was learned last.
  Late late_;                   // `rows`: the loss that all rows that ran were charged
  std::size_t left_paid_ = 0;   // the drafted rows that did not run
  std::int64_t left_loss_ = 0;  // the loss that they were charged

  // The last plan.
  PassShape plain_{0, 0, 0};
  std::size_t contexts_ = 0;  // sum of the contexts
  std::size_t other_rows_ = 0;
  std::size_t paid_ = 0;   // drafted rows
  std::size_t trial_ = 0;  // drafted rows of the trial that is due; 0: none
  detail::OfferedNodes offered_;
  detail::Buffer<std::uint32_t> nodes_;
  detail::SendableDraft alone_;                           // the draft of a sequence alone
  std::array<std::uint32_t, most_draft_nodes + 1> sums_;  // NOLINT(*-member-init): filled up to sums_size_
  std::size_t sums_size_ = 0;                             // 0: the pass is not one of a sequence alone
};

}}  // namespace reprise
