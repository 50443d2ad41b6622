// SPDX-License-Identifier: Apache-2.0
#include "replay.hpp"

#include <algorithm>
#include <chrono>
#include <cmath>
#include <functional>
#include <optional>
#include <string_view>

#include "loss_window.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/loop/session.hpp"
#include "simulated_clock.hpp"

namespace reprise::replay {
namespace {

using ReplaySession = Session<TimedStrategy<AnyStrategy>, ReplayControl>;

/// The recorded tokens as the target's picks: the pick after a row is the token at its depth. This is right only after
/// rows that agree with the recording, and no other rows are read.
class RecordedPicks {
 public:
  RecordedPicks(const Pass& pass, TokenSpan recorded) : pass_(pass), recorded_(recorded) {}

  Token operator[](std::size_t row) const {
    const std::size_t depth = row == 0 ? 0 : pass_.depths[row - 1];
    if (depth < recorded_.size()) return recorded_[depth];
    past_end_ = true;
    return 0;
  }
  /// True if a pick past the end of the recording was read.
  [[nodiscard]] bool past_end() const { return past_end_; }

 private:
  const Pass& pass_;
  TokenSpan recorded_;
  mutable bool past_end_ = false;
};

std::function<void(const Outcome&)> watched(PassWatcher* watcher) {
  if (watcher == nullptr) return {};
  return [watcher](const Outcome& outcome) { watcher->tested(outcome); };
}

/// The replay of one session, turn by turn.
class Replay {
 public:
  Replay(const TraceSession& recorded, const AnyStrategy& strategy, const ReplaySetup& setup,
         const ReplayControl& control, StreamPosition stream)
      : recorded_(recorded),
        setup_(setup),
        stream_(stream),
        session_(TimedStrategy<AnyStrategy>(strategy, watched(setup.watcher)),
                 setup.control.kind == ControlKind::hindsight ? ReplayControl(SendHindsight{&coming_}) : control,
                 setup.settings.max_nodes),
        control_ns_before_(control.total_ns()),
        windows_(setup.curves.size()) {
    const std::uint64_t seed = testing::mix(setup.settings.seed) ^ fnv1a(recorded.id);
    wrong_ = testing::Random(testing::mix(seed));
    if (setup.control.kind == ControlKind::cost && timed(setup.settings.cost_known))
      clock_.emplace(setup.settings.noise, seed, setup.settings.outliers);
    limits_.draft.max_nodes = setup.settings.max_nodes;
    limits_.draft.shape = setup.settings.trees ? DraftShape::tree : DraftShape::chain;
    limits_.draft.stops.eos = setup.settings.eos;
    counts_.sessions = 1;
    counts_.charges.resize(setup.curves.size());
  }

  Counts run() {
    if (setup_.watcher != nullptr) setup_.watcher->began(recorded_);
    bool first = true;
    for (const Turn& turn : recorded_.turns) {
      ++counts_.turns;
      if (first && turn.prompt.empty() && turn.output.empty()) continue;
      const std::string fault = play(first, turn);
      first = false;
      counts_.peak_bytes = std::max<std::uint64_t>(counts_.peak_bytes, session_.strategy().memory_bytes());
      if (fault.empty()) continue;
      counts_.fault = "session " + recorded_.id + ", turn " + std::to_string(counts_.turns) + ": " + fault;
      break;
    }
    for (std::size_t i = 0; i < windows_.size(); ++i) counts_.charges[i].worst_loss = windows_[i].worst();
    counts_.reliability = session_.strategy().reliability();
    counts_.time = session_.strategy().time();
    counts_.control_ns = session_.control().total_ns() - control_ns_before_;
    return counts_;
  }
  [[nodiscard]] const ReplayControl& control() const { return session_.control(); }
  [[nodiscard]] const StreamPosition& stream() const { return stream_; }
  [[nodiscard]] const AnyStrategy& strategy() const { return session_.strategy().strategy(); }

 private:
  /// Plays one turn. Returns a description of the fault, empty if there is none.
  std::string play(bool first, const Turn& turn) {
    const TokenSpan output = turn.output;
    const TokenSpan free = output.first(std::min<std::size_t>(output.size(), 1));
    const bool no_prompt = turn.prompt.empty();
    // A session cannot begin empty. If the recording has no prompt, the first output token replaces it.
    const TokenSpan start = no_prompt ? free : TokenSpan(turn.prompt);
    Capabilities capabilities;
    capabilities.max_leaves = setup_.settings.trees ? unlimited : 1;
    capabilities.allowed_widths = setup_.settings.widths;
    if (!setup_.settings.widths.empty()) capabilities.pad_token = 0;
    const Result<void> begun =
        first ? session_.begin(start, capabilities) : session_.append(turn.prompt, Origin::prompt);
    if (!begun) return std::string(begun.error().message);
    if (!(first && no_prompt)) {
      if (const auto added = session_.append(free, Origin::output); !added) return std::string(added.error().message);
    }
    if (output.size() <= 1) return {};
    counts_.tokens += output.size() - 1;
    const std::string fault = decode(turn);
    const Statistics& statistics = session_.statistics();
    counts_.passes += statistics.passes;
    counts_.drafted += statistics.drafted;
    counts_.accepted += statistics.accepted;
    for (std::size_t i = 0; i < cut_count; ++i) counts_.cuts[i] += statistics.cuts[i];
    return fault;
  }

  /// Decodes the recorded tokens after the first of a turn. Returns a description of the fault, empty if there is none.
  std::string decode(const Turn& turn) {
    const TokenSpan recorded = TokenSpan(turn.output).subspan(1);
    const auto ends_here = [&](TokenSpan output, Token) {
      return output.size() + 1 == recorded.size() ? StopDecision::stop_after : StopDecision::proceed;
    };
    std::size_t done = 0;
    while (done < recorded.size()) {
      coming_ = recorded.subspan(done);
      static_cast<void>(session_.propose(limits_));
      const auto pass = session_.plan();
      if (!pass) return std::string(pass.error().message);
      const RecordedPicks picks(*pass, coming_);
      const auto decision = session_.resolve(pass->ticket, picks, ends_here);
      if (!decision) return std::string(decision.error().message);
      if (picks.past_end()) return "a pick past the end of the recording was read";
      if (turn.top_k && setup_.settings.top_k) show_top_k(*pass, *decision, *turn.top_k, done + 1);
      const std::size_t keep = decision->keep;
      const std::size_t committed = decision->tokens.size();
      charge(pass->shape, committed);
      std::optional<std::chrono::nanoseconds> time;
      if (clock_) time = simulated_time(pass->shape, pass->drafted > 0);
      ++stream_.passes;
      stream_.tokens += committed;
      if (const auto kept = session_.commit(pass->ticket, time); !kept) return std::string(kept.error().message);
      if (setup_.watcher != nullptr)
        setup_.watcher->passed(
            {pass->shape, committed, setup_.curves.front().cost(pass->shape), session_.control().learned()});

      const TokenSpan output = session_.output();
      const std::size_t same = first_difference(output, recorded);
      if (same < output.size() || output.size() <= done || keep != output.size() - done)
        return "token " + std::to_string(std::min(same, output.size()) + 1) +
               " of the output differs from the recording";
      done = output.size();
    }
    if (session_.finish_reason() != FinishReason::predicate)
      return "generation ended with '" + std::string(reprise::to_string(session_.finish_reason())) +
             "', not where the recording ends";
    return {};
  }

  /// Shows the strategy the rows that picked the committed tokens, from rows[first] on, if it wants some.
  void show_top_k(const Pass& pass, const Decision& decision, const TopKRows& rows, std::size_t first) {
    const std::size_t wanted = session_.strategy().strategy().top_k_wanted();
    if (wanted == 0) return;
    const std::size_t anchor = pass.pending - 1;
    for (std::size_t i = 0; i < decision.tokens.size(); ++i) {
      const TokenSpan row = rows[first + i];
      // A row is optional knowledge: the session drops it if memory runs out.
      static_cast<void>(
          session_.report_top_k(pass.ticket, decision.tokens[i].row - anchor, row.first(std::min(wanted, row.size()))));
    }
    counts_.top_k_rows += decision.tokens.size();
  }

  std::optional<std::chrono::nanoseconds> simulated_time(const PassShape& shape, bool drafted) {
    const CostCurve& curve = setup_.curves.front();
    const PassTimes* recorded = curve.pass_times();
    const std::chrono::nanoseconds time =
        recorded != nullptr ? clock_->time(*recorded, shape) : clock_->time(curve.cost(shape));
    const auto poisoned = stream_.poisoned(setup_.settings.poison, shape.rows, drafted, wrong_);
    if (!poisoned) return std::nullopt;
    const double factor = stream_.factor(setup_.settings.slowdown) * *poisoned;
    if (factor == 1) return time;
    constexpr double most = 1e18;  // prevents overflow
    return std::chrono::nanoseconds(std::llround(std::min(static_cast<double>(time.count()) * factor, most)));
  }

  void charge(const PassShape& shape, std::size_t committed) {
    for (std::size_t i = 0; i < windows_.size(); ++i) {
      const double cost = setup_.curves[i].cost(shape);
      counts_.charges[i].cost += cost;
      windows_[i].add(cost, committed);
    }
  }

  const TraceSession& recorded_;
  const ReplaySetup& setup_;
  StreamPosition stream_;
  TokenSpan coming_;  // the recorded tokens after the anchor
  ReplaySession session_;
  std::uint64_t control_ns_before_;
  std::vector<LossWindow> windows_;
  std::optional<SimulatedClock> clock_;
  testing::Random wrong_{0};  // draws wrong times; the right ones are those of a replay without Poison
  Limits limits_;
  Counts counts_;
};

}  // namespace

Charge& Charge::operator+=(const Charge& other) {
  cost += other.cost;
  worst_loss = std::max(worst_loss, other.worst_loss);
  return *this;
}

Counts& Counts::operator+=(const Counts& other) {
  sessions += other.sessions;
  turns += other.turns;
  tokens += other.tokens;
  passes += other.passes;
  drafted += other.drafted;
  accepted += other.accepted;
  for (std::size_t i = 0; i < cut_count; ++i) cuts[i] += other.cuts[i];
  charges.resize(std::max(charges.size(), other.charges.size()));
  for (std::size_t i = 0; i < other.charges.size(); ++i) charges[i] += other.charges[i];
  reliability += other.reliability;
  time += other.time;
  control_ns += other.control_ns;
  peak_bytes = std::max(peak_bytes, other.peak_bytes);
  top_k_rows += other.top_k_rows;
  if (fault.empty()) fault = other.fault;
  return *this;
}

std::size_t first_difference(TokenSpan output, TokenSpan recorded) {
  const auto [end, other] = std::mismatch(output.begin(), output.end(), recorded.begin(), recorded.end());
  return static_cast<std::size_t>(end - output.begin());
}

ReplayControl make_control(const ReplaySetup& setup) {
  switch (setup.control.kind) {
    case ControlKind::automatic:
    case ControlKind::all:
      return ReplayControl(SendAll());
    case ControlKind::best:
      return ReplayControl(SendBest{setup.control.nodes});
    case ControlKind::hindsight:  // made by Replay, because it needs the recording
      return ReplayControl();
    case ControlKind::marginal:
      return ReplayControl(SendMarginal{setup.curves.front().for_control()});
    case ControlKind::cost:
      break;
  }
  CostOptions options;
  if (setup.settings.cost_known == CostKnown::told) options.curve = setup.curves.front().for_control();
  options.prior = setup.settings.prior;
  options.max_nodes = setup.settings.max_nodes;
  options.calibrated = setup.calibrated;
  return ReplayControl(CostControl(options));
}

std::uint64_t tokens_of(const TraceSession& session) {
  std::uint64_t tokens = 0;
  for (const Turn& turn : session.turns) tokens += turn.output.size() - std::min<std::size_t>(turn.output.size(), 1);
  return tokens;
}

Counts replay_session(const TraceSession& recorded, const AnyStrategy& strategy, const ReplaySetup& setup) {
  return Replay(recorded, strategy, setup, make_control(setup), {tokens_of(recorded)}).run();
}

Counts replay_session(const TraceSession& recorded, AnyStrategy& strategy, const ReplaySetup& setup,
                      ReplayControl& control, StreamPosition& stream) {
  Replay replay(recorded, strategy, setup, control, stream);
  Counts counts = replay.run();
  control = replay.control();
  strategy = replay.strategy();
  stream = replay.stream();
  return counts;
}

Counts replay_session(const TraceSession& recorded, AnyStrategy& strategy, const ReplaySetup& setup,
                      ReplayControl& control) {
  StreamPosition stream{tokens_of(recorded)};
  return replay_session(recorded, strategy, setup, control, stream);
}

}  // namespace reprise::replay
