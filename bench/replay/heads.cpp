// SPDX-License-Identifier: Apache-2.0
#include "heads.hpp"

#include <algorithm>
#include <limits>
#include <stdexcept>
#include <utility>

#include "common/in_parallel.hpp"
#include "common/input_error.hpp"
#include "common/table.hpp"
#include "common/text.hpp"
#include "past.hpp"
#include "reprise/control/detail/head_control.hpp"
#include "reprise/draft/detail/headed_drafter.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/loop/session.hpp"
#include "simulated_clock.hpp"

namespace reprise::replay {
namespace {

using detail::HeadControl;
using detail::HeadedDrafter;
using detail::HeadForecast;

/// The default drafter, with a switch.
struct Lookup : NgramDrafter<> {
  using NgramDrafter<>::NgramDrafter;
  explicit Lookup(const NgramDrafter<>& drafter) : NgramDrafter<>(drafter) {}
  bool on = true;

  void propose(TokenSpan context, Draft& draft) {
    if (on) NgramDrafter<>::propose(context, draft);
  }
};

/// Returns true if each turn of the session says where the head was right.
bool has_head(const TraceSession& session) {
  return std::ranges::all_of(session.turns, [](const Turn& turn) { return turn.head || turn.output.size() < 2; });
}

/// Replays the sessions of a trace in one way.
class HeadReplay {
  using Headed = Session<HeadedDrafter<Lookup>, HeadControl>;

 public:
  HeadReplay(const Assignment& assignment, const HeadRow& row, HeadWay way, std::size_t longest)
      : settings_(assignment.settings),
        run_(assignment.runs.front()),
        curve_(assignment.curves[row.curve]),
        head_cost_(row.head_cost),
        way_(way),
        longest_(longest),
        clock_(settings_.noise, settings_.seed, settings_.outliers),
        session_(HeadedDrafter<Lookup>(), control()) {
    const bool chains = !settings_.trees || way == HeadWay::choice;
    limits_.draft.max_nodes = settings_.max_nodes;
    limits_.draft.shape = chains ? DraftShape::chain : DraftShape::tree;
    limits_.draft.stops.eos = settings_.eos;
    capabilities_.max_leaves = chains ? 1 : unlimited;
    if (settings_.kept != Kept::session)
      give_room(past_, settings_.kept == Kept::past ? settings_.memory_bytes : 0, settings_.next_token_bytes, false);
  }

  void play(const TraceSession& session) {
    const AnyStrategy fresh = past_.memory ? run_.with_past(past_) : run_.strategy;
    session_.strategy() = Lookup(*fresh.get<NgramDrafter<>>());
    bool begun = false;
    for (const Turn& turn : session.turns) {
      const TokenSpan free = TokenSpan(turn.output).first(std::min<std::size_t>(turn.output.size(), 1));
      for (const auto& [text, origin] : {std::pair(TokenSpan(turn.prompt), Origin::prompt), {free, Origin::output}}) {
        if (text.empty()) continue;
        check(begun ? session_.append(text, origin) : session_.begin(text, capabilities_));
        begun = true;
      }
      if (turn.output.size() < 2) continue;
      const TokenSpan recorded = TokenSpan(turn.output).subspan(1);
      for (std::size_t done = 0; done < recorded.size(); done = session_.output().size())
        pass(recorded, done, (*turn.head)[done + 1]);
      if (!std::ranges::equal(session_.output(), recorded))
        throw std::runtime_error(session.id + ": with a head, the output differs from the recording");
    }
    if (past_.memory) leave(past_, session, static_cast<NgramDrafter<>&>(session_.strategy()));
  }
  [[nodiscard]] const HeadSums& sums() const { return sums_; }

 private:
  [[nodiscard]] HeadControl control() const {
    if (settings_.cost_known != CostKnown::told) return HeadControl();
    return HeadControl({.curve = curve_.for_control()}, HeadCost{.draft = to_cost(head_cost_)});
  }
  static void check(const Result<void>& result) {
    if (!result) throw std::runtime_error(std::string(result.error().message));
  }
  template <class T>
  static T value_of(const Result<T>& result) {
    if (!result) throw std::runtime_error(std::string(result.error().message));
    return *result;
  }

  /// Runs one pass. `right`: the tokens of the head's longest draft that agree with the recording.
  void pass(TokenSpan recorded, std::size_t done, std::size_t right) {
    const TokenSpan coming = recorded.subspan(done);
    right = std::min(right, coming.size());
    HeadedDrafter<Lookup>& drafter = session_.strategy();
    drafter.clear();
    drafter.on = way_ != HeadWay::head;
    if (unbounded()) session_.control().correct(session_.control().loss_budget().debt());
    static_cast<void>(session_.propose(limits_));
    const std::size_t tokens = head_tokens(coming, right);
    if (tokens > 0) {
      set_head(tokens, coming, right);
      drafter.on = !unbounded();
      static_cast<void>(session_.propose(limits_));
    }
    const Pass planned = value_of(session_.plan());
    const auto pick = [&](std::size_t row) {
      const std::size_t depth = row == 0 ? 0 : planned.depths[row - 1];
      return coming[std::min(depth, coming.size() - 1)];
    };
    const auto ends_here = [&](TokenSpan output, Token) {
      return output.size() + 1 == recorded.size() ? StopDecision::stop_after : StopDecision::proceed;
    };
    const Decision decision = value_of(session_.resolve(planned.ticket, PicksByRow<decltype(pick)>{pick}, ends_here));
    const double cost = curve_.cost(planned.shape);
    sums_.tokens += decision.tokens.size();
    sums_.cost += cost + (tokens > 0 ? head_cost_ : 0);
    ++sums_.passes;
    sums_.head_passes += tokens > 0 ? 1 : 0;
    check(session_.commit(planned.ticket, clock_.time(cost)));
  }

  template <class Pick>
  struct PicksByRow {
    const Pick& pick;
    Token operator[](std::size_t row) const { return pick(row); }
  };

  /// A head alone has no loss budget, and neither has a choice in hindsight; nor do both drafts ever go together.
  [[nodiscard]] bool unbounded() const { return way_ == HeadWay::head || way_ == HeadWay::hindsight; }

  /// Returns how many tokens the head drafts in this pass.
  std::size_t head_tokens(TokenSpan coming, std::size_t right) {
    if (way_ == HeadWay::lookup) return 0;
    HeadForecast forecast = session_.strategy().forecast();
    if (unbounded()) forecast.gain = std::int64_t{1} << 40;  // it runs wherever the budget allows it
    const PassShape plain{1, session_.pending().size(), session_.context().size()};
    const std::size_t tokens = session_.control().ask_head(forecast, plain, longest_);
    if (way_ == HeadWay::head) return std::max<std::size_t>(tokens, 1);
    if (way_ != HeadWay::hindsight || tokens == 0) return tokens;
    const Pass lookup = value_of(session_.plan());
    const auto found = static_cast<double>(agreed(lookup, coming));
    const auto accepted = static_cast<double>(std::min(right, tokens));
    const double rate = static_cast<double>(session_.control().throughput()) / cost_one;
    const PassShape with_head{1, plain.rows + tokens, plain.context};
    const double more = curve_.cost(with_head) + head_cost_ - curve_.cost(lookup.shape);
    check(session_.cancel(lookup.ticket));
    static_cast<void>(session_.propose(limits_));
    return accepted - found > rate * more ? tokens : 0;
  }

  /// Returns how many drafted tokens of a pass agree with the recording.
  static std::size_t agreed(const Pass& pass, TokenSpan coming) {
    std::size_t count = 0;
    NodeIndex last = anchor_parent;
    for (std::size_t row = 0; row < pass.drafted && count < coming.size(); ++row) {
      if (pass.parents[row] != last || pass.batch[pass.pending + row] != coming[count]) continue;
      last = static_cast<NodeIndex>(row);
      ++count;
    }
    return count;
  }

  /// Sets the head's draft: the recorded tokens as far as the head found them, then wrong ones.
  void set_head(std::size_t size, TokenSpan coming, std::size_t right) {
    constexpr Token wrong = std::numeric_limits<Token>::max();  // in no recording
    tokens_.assign(size, wrong);
    std::copy_n(coming.begin(), std::min(size, right), tokens_.begin());
    check(session_.strategy().set(tokens_));
    session_.control().head_ran(size, clock_.time(head_cost_));
  }

  const ReplaySettings& settings_;
  const StrategyRun& run_;
  const CostCurve& curve_;
  double head_cost_;
  HeadWay way_;
  std::size_t longest_;
  SimulatedClock clock_;
  Limits limits_;
  Capabilities capabilities_;
  Past past_;
  Headed session_;
  HeadSums sums_;
  std::vector<Token> tokens_;
};

/// The rows without their sums.
std::vector<HeadRow> empty_rows(const Assignment& assignment, std::span<const double> head_costs) {
  std::vector<HeadRow> rows;
  for (const Trace& trace : assignment.traces) {
    const auto sessions = static_cast<std::size_t>(std::ranges::count_if(trace.sessions, has_head));
    if (sessions == 0)
      throw tools::InputError("--head-cost: " + trace.path +
                              ": no session has the field head in each turn; docs/formats.md describes it");
    for (std::size_t curve = 0; curve < assignment.curves.size(); ++curve)
      for (const double cost : head_costs)
        rows.push_back({trace.path, sessions, curve, cost, assignment.settings.trees});
  }
  return rows;
}

/// The longest draft of the head that was accepted.
std::size_t longest_draft(const Trace& trace) {
  std::size_t longest = 0;
  for (const TraceSession& session : trace.sessions)
    for (const Turn& turn : session.turns)
      if (turn.head)
        for (const std::uint8_t right : *turn.head) longest = std::max<std::size_t>(longest, right);
  return longest;
}

std::string share(std::uint64_t part, std::uint64_t whole) {
  return tools::decimal(whole == 0 ? 0 : 100 * static_cast<double>(part) / static_cast<double>(whole), 0) + "%";
}

}  // namespace

std::vector<HeadRow> replay_heads(const Assignment& assignment, std::span<const double> head_costs,
                                  tools::Progress& progress) {
  const StrategyRun& run = assignment.runs.front();
  if (run.strategy.get<NgramDrafter<>>() == nullptr)
    throw tools::InputError("--head-cost: replays a head beside the strategy ngram, and " + run.spec +
                            " is the first one given; leave out --strategy, or give ngram first");
  std::vector<HeadRow> rows = empty_rows(assignment, head_costs);
  const std::size_t per_trace = rows.size() / assignment.traces.size();
  struct Task {
    std::size_t row;
    HeadWay way;
  };
  std::vector<Task> tasks;
  std::size_t sessions = 0;
  for (std::size_t row = 0; row < rows.size(); ++row)
    for (std::size_t i = 0; i < head_way_names.size(); ++i) {
      const auto way = static_cast<HeadWay>(i);
      // The cost of a head that never runs changes nothing.
      if (!rows[row].has(way) || (way == HeadWay::lookup && row % head_costs.size() != 0)) continue;
      tasks.push_back({row, way});
      sessions += rows[row].sessions;
    }
  progress.start(std::to_string(tasks.size()) + " replays with a head", sessions);
  tools::in_parallel(tasks.size(), assignment.threads, [&](std::size_t i) {
    HeadRow& row = rows[tasks[i].row];
    const Trace& trace = assignment.traces[tasks[i].row / per_trace];
    HeadReplay replay(assignment, row, tasks[i].way, longest_draft(trace));
    for (const TraceSession& session : trace.sessions) {
      if (!has_head(session)) continue;
      replay.play(session);
      progress.step();
    }
    row.ways[static_cast<std::size_t>(tasks[i].way)] = replay.sums();
  });
  for (std::size_t row = 0; row < rows.size(); ++row) rows[row].ways[0] = rows[row - row % head_costs.size()].ways[0];
  progress.clear();
  return rows;
}

void write_head_table(std::ostream& out, std::span<const HeadRow> rows, std::span<const CostCurve> curves) {
  std::vector<tools::Column> columns = {{14, tools::Align::left, true}, {6}};
  columns.resize(columns.size() + head_way_names.size() + 1, {10});
  const tools::Table table(out, columns);
  const std::string* trace = nullptr;
  for (const HeadRow& row : rows) {
    if (trace == nullptr || *trace != row.trace) {
      out << "beside a draft head: " << tools::printable(row.trace) << ", " << tools::grouped(row.sessions)
          << (row.sessions == 1 ? " session" : " sessions") << "\n";
      std::vector<tools::Cell> heading = {"speedup under", "head"};
      for (std::size_t i = 0; i < head_way_names.size(); ++i)
        if (row.has(static_cast<HeadWay>(i))) heading.emplace_back(std::string(head_way_names[i]));
      heading.emplace_back("head runs");
      table.line(heading);
    }
    trace = &row.trace;
    std::vector<tools::Cell> cells = {curves[row.curve].spec(), tools::significant(row.head_cost, 3)};
    for (std::size_t i = 0; i < head_way_names.size(); ++i)
      if (row.has(static_cast<HeadWay>(i))) cells.emplace_back(tools::decimal(row.ways[i].speedup(), 3));
    const HeadSums& both = row[row.trees ? HeadWay::tree : HeadWay::choice];
    cells.emplace_back(share(both.head_passes, both.passes));
    table.line(cells);
  }
  out << tools::wrapped(
             "head: the cost of its draft, in plain passes. choice: the head runs beside the lookup where it pays, and "
             "one chain is sent; tree: one tree of both. hindsight: the better draft of the two, known "
             "after the pass. head runs: in so many passes of the column before hindsight.")
      << "\n\n";
}

void write_heads(tools::JsonWriter& json, std::span<const HeadRow> rows, std::span<const CostCurve> curves) {
  json.key("heads").begin_array();
  for (const HeadRow& row : rows)
    for (std::size_t i = 0; i < head_way_names.size(); ++i) {
      if (!row.has(static_cast<HeadWay>(i))) continue;
      const HeadSums& sums = row.ways[i];
      json.new_line().begin_object().member("trace", row.trace).member("cost", curves[row.curve].spec());
      json.raw_member("head_cost", tools::shortest(row.head_cost)).member("way", head_way_names[i]);
      json.member("sessions", row.sessions).member("tokens", sums.tokens).member("passes", sums.passes);
      json.member("head_passes", sums.head_passes).raw_member("speedup", tools::shortest(sums.speedup())).end();
    }
  json.new_line().end();
}

}  // namespace reprise::replay
