// SPDX-License-Identifier: Apache-2.0
#include "server.hpp"

#include <algorithm>
#include <chrono>
#include <memory>
#include <optional>
#include <vector>

#include "common/input_error.hpp"
#include "replay/replay.hpp"
#include "replay/simulated_clock.hpp"
#include "reprise/batch/planner.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/loop/session.hpp"

namespace reprise::server {
namespace {

using ServedSession = Session<NgramDrafter<RollingHashIndex>, SendAll>;

/// The recorded tokens as the target's picks, as in replay.cpp. Only rows that agree with the recording are read.
struct RecordedPicks {
  std::span<const std::uint32_t> depths;
  TokenSpan recorded;

  Token operator[](std::size_t row) const { return recorded[row == 0 ? 0 : depths[row - 1]]; }
};

/// A place in the batch and its current session.
class Place {
 public:
  explicit Place(const ServerSetup& setup)
      : session_(NgramDrafter<RollingHashIndex>(), SendAll(), std::max<std::size_t>(setup.max_nodes, 1)) {
    capabilities_.max_leaves = setup.trees ? unlimited : 1;
  }

  void begin(const replay::TraceSession& recorded) {
    recorded_ = &recorded;
    turn_ = 0;
    done_ = 0;
    begun_ = false;
  }
  /// Advances to the next token that needs a pass. Returns false if the session has none left: the place is free.
  bool ready() {
    while (recorded_ != nullptr && turn_ < recorded_->turns.size()) {
      const replay::Turn& turn = recorded_->turns[turn_];
      if (done_ == 0 && !begin_turn(turn)) return false;
      if (done_ < turn.output.size()) return true;
      ++turn_;
      done_ = 0;
    }
    return false;
  }
  void propose(const Limits& limits) { static_cast<void>(session_.propose(limits)); }
  [[nodiscard]] BatchEntry entry() {
    const auto offer = session_.offer();
    return {offer ? *offer : Offer{{}, {}, 1}, session_.context().size()};
  }
  [[nodiscard]] std::size_t context() const { return session_.context().size(); }

  struct Result {
    std::size_t rows = 0;
    std::size_t drafted = 0;
    std::size_t accepted = 0;
    std::size_t committed = 0;
  };
  /// Runs the place's part of a pass, with `nodes` drafted tokens.
  Result run(std::size_t nodes, Cut why) {
    const TokenSpan output = recorded_->turns[turn_].output;
    const TokenSpan coming = output.subspan(done_);
    const auto ends_here = [&](TokenSpan so_far, Token) {
      return so_far.size() + 2 == output.size() ? StopDecision::stop_after : StopDecision::proceed;
    };
    const auto pass = session_.plan(nodes, why);
    if (!pass) return fail(pass.error().message);
    const auto decision = session_.resolve(pass->ticket, RecordedPicks{pass->depths, coming}, ends_here);
    if (!decision) return fail(decision.error().message);
    const Result result{pass->batch.size(), pass->drafted, decision->accepted, decision->tokens.size()};
    if (const auto kept = session_.commit(pass->ticket); !kept) return fail(kept.error().message);
    const TokenSpan given = session_.context().last(result.committed);
    if (result.committed == 0 || !std::equal(given.begin(), given.end(), coming.begin()))
      return fail("the output differs from the recording");
    done_ += result.committed;
    return result;
  }
  [[nodiscard]] const std::string& fault() const { return fault_; }

 private:
  /// Begins a turn. The prompt and the first token are free, because the prefill gives them.
  bool begin_turn(const replay::Turn& turn) {
    const TokenSpan output = turn.output;
    const TokenSpan free = output.first(std::min<std::size_t>(output.size(), 1));
    const bool stands_in = !begun_ && turn.prompt.empty();  // a session cannot begin empty
    if (begun_ || !turn.prompt.empty() || !free.empty()) {
      const auto taken =
          begun_ ? session_.append(turn.prompt) : session_.begin(stands_in ? free : turn.prompt, capabilities_);
      if (!taken) return fail(taken.error().message), false;
      begun_ = true;
      if (!stands_in) {
        if (const auto added = session_.append(free, Origin::output); !added) return fail(added.error().message), false;
      }
    }
    done_ = 1;
    return true;
  }
  Result fail(std::string_view what) {
    if (fault_.empty())
      fault_ = "session " + recorded_->id + ", turn " + std::to_string(turn_ + 1) + ": " + std::string(what);
    return {};
  }

  ServedSession session_;
  Capabilities capabilities_;
  const replay::TraceSession* recorded_ = nullptr;
  std::size_t turn_ = 0;
  std::size_t done_ = 0;  // output tokens of the turn, including the free one; 0: the turn has not begun
  bool begun_ = false;
  std::string fault_;
};

class Server {
 public:
  Server(std::span<const replay::TraceSession* const> sessions, const ServerSetup& setup)
      : sessions_(sessions), setup_(setup), planner_(options(setup)), clock_(setup.noise, setup.seed, {.percent = 0}) {
    for (std::size_t i = 0; i < setup.sequences; ++i) places_.push_back(std::make_unique<Place>(setup));
    limits_.draft.max_nodes = setup.method.kind == Method::Kind::none ? 0 : setup.max_nodes;
    if (setup.method.kind == Method::Kind::fixed)
      limits_.draft.max_nodes = std::min(setup.method.nodes, setup.max_nodes);
    limits_.draft.shape = setup.trees ? DraftShape::tree : DraftShape::chain;
  }

  ServerCounts run() {
    while (fill() && counts_.fault.empty()) pass();
    return counts_;
  }

 private:
  static BatchOptions options(const ServerSetup& setup) {
    BatchOptions options;
    if (!setup.learned) options.curve = told_curve(*setup.curve);
    options.max_nodes = setup.max_nodes;
    return options;
  }
  /// Gives every place a session. Returns false if none are left.
  bool fill() {
    for (const auto& place : places_) {
      while (!place->ready()) {
        if (!place->fault().empty()) return counts_.fault = place->fault(), true;
        if (next_ == sessions_.size()) return false;
        place->begin(*sessions_[next_++]);
        ++counts_.sessions;
      }
    }
    return true;
  }
  template <class Call>
  auto timed(Call&& call) {
    const auto start = std::chrono::steady_clock::now();
    auto answer = call();
    counts_.planning_ns += static_cast<std::uint64_t>((std::chrono::steady_clock::now() - start).count());
    return answer;
  }
  void pass() {
    const bool planned = setup_.method.kind == Method::Kind::planner;
    const std::size_t n = places_.size();
    std::size_t context = 0;
    for (const auto& place : places_) context += place->context();
    context /= n;
    Limits limits = limits_;
    if (planned) limits.draft = timed([&] { return planner_.budget(limits_.draft, {n, n, context}); });
    entries_.clear();
    for (const auto& place : places_) {
      place->propose(limits);
      if (planned) entries_.push_back(place->entry());
    }
    BatchPlan plan;
    if (planned) plan = timed([&] { return planner_.plan(entries_); });
    std::size_t rows = 0;
    committed_.clear();
    for (std::size_t i = 0; i < n; ++i) {
      const Place::Result result =
          places_[i]->run(planned ? plan.nodes_of(i) : unlimited, planned ? plan.cut : Cut::budget);
      if (!places_[i]->fault().empty()) counts_.fault = places_[i]->fault();
      rows += result.rows;
      counts_.tokens += result.committed;
      counts_.drafted += result.drafted;
      counts_.accepted += result.accepted;
      committed_.push_back(result.committed);
    }
    const double cost = setup_.curve->batch_cost({n, rows, context});
    counts_.cost += cost;
    ++counts_.passes;
    std::optional<std::chrono::nanoseconds> time;
    if (setup_.learned) time = clock_.time(cost);
    if (planned) timed([&] { return planner_.learn(committed_, time), 0; });
  }

  std::span<const replay::TraceSession* const> sessions_;
  const ServerSetup& setup_;
  BatchPlanner planner_;
  replay::SimulatedClock clock_;
  std::vector<std::unique_ptr<Place>> places_;
  std::vector<BatchEntry> entries_;
  std::vector<std::size_t> committed_;
  Limits limits_;
  std::size_t next_ = 0;
  ServerCounts counts_;
};

}  // namespace

std::string Method::text() const {
  return kind == Kind::none ? "none" : kind == Kind::planner ? "planner" : "k=" + std::to_string(nodes);
}

CostCurve told_curve(const replay::CostCurve& curve) {
  const replay::LinearCost* linear = curve.linear();
  if (linear == nullptr) return curve.for_planner();
  // The planner's curve counts all rows, the linear one only drafted rows.
  const CostPoint points[] = {{1, 0, 1, 1e6}, {1, 0, 2, 1e6 * (1 + linear->slope)}};
  auto told = CostCurve::from_points(points);
  if (!told) throw tools::InputError(curve.spec() + ": " + std::string(told.error().message));
  return *told;
}

ServerCounts serve(std::span<const replay::TraceSession* const> sessions, const ServerSetup& setup) {
  return Server(sessions, setup).run();
}

}  // namespace reprise::server
