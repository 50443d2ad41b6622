// SPDX-License-Identifier: Apache-2.0
#include "replay.hpp"

#include <algorithm>
#include <string_view>

#include "reprise/core/limits.hpp"
#include "reprise/loop/session.hpp"

namespace reprise::replay {
namespace {

using ReplaySession = Session<TimedStrategy<AnyStrategy>>;

/// Decodes what is recorded after the first token of a turn. `session` holds everything before. Answers what went
/// wrong, or nothing.
std::string decode(ReplaySession& session, TokenSpan recorded, std::span<const CostCurve> curves, Counts& counts) {
  Limits limits;
  limits.draft.max_nodes = most_drafted_nodes;
  const auto ends_here = [&](TokenSpan output, Token) {
    return output.size() + 1 == recorded.size() ? StopDecision::stop_after : StopDecision::proceed;
  };
  std::size_t done = 0;
  while (done < recorded.size()) {
    static_cast<void>(session.propose(limits));
    const auto pass = session.plan();
    if (!pass) return std::string(pass.error().message);
    // A span that ends with the recording: reading further would be a fault of the session, and stops there.
    const auto decision = session.resolve(pass->ticket, recorded.subspan(done), ends_here);
    if (!decision) return std::string(decision.error().message);
    const std::size_t keep = decision->keep;
    for (std::size_t i = 0; i < curves.size(); ++i) counts.cost[i] += curves[i].cost(pass->shape);
    if (const auto kept = session.commit(pass->ticket); !kept) return std::string(kept.error().message);

    const TokenSpan output = session.output();
    const std::size_t same = first_difference(output, recorded);
    if (same < output.size() || output.size() <= done || keep != output.size() - done)
      return "token " + std::to_string(std::min(same, output.size()) + 1) + " of the output differs from the recording";
    done = output.size();
  }
  if (session.finish_reason() != FinishReason::predicate)
    return "generation ended with '" + std::string(name(session.finish_reason())) + "', not where the recording ends";
  return {};
}

/// Plays one turn; answers what went wrong, or nothing.
std::string play(ReplaySession& session, bool first, const Turn& turn, std::span<const CostCurve> curves,
                 Counts& counts) {
  const TokenSpan output = turn.output;
  const TokenSpan free = output.first(std::min<std::size_t>(output.size(), 1));
  const bool no_prompt = turn.prompt.empty();
  // A session cannot begin with nothing; where a recording has no prompt, its first token stands in.
  const TokenSpan start = no_prompt ? free : TokenSpan(turn.prompt);
  const Result<void> begun = first ? session.begin(start) : session.append(turn.prompt, Origin::prompt);
  if (!begun) return std::string(begun.error().message);
  if (!(first && no_prompt)) {
    if (const auto added = session.append(free, Origin::output); !added) return std::string(added.error().message);
  }
  if (output.size() <= 1) return {};
  counts.tokens += output.size() - 1;
  const std::string fault = decode(session, output.subspan(1), curves, counts);
  counts.passes += session.statistics().passes;
  counts.drafted += session.statistics().drafted;
  counts.accepted += session.statistics().accepted;
  return fault;
}

}  // namespace

Counts& Counts::operator+=(const Counts& other) {
  sessions += other.sessions;
  turns += other.turns;
  tokens += other.tokens;
  passes += other.passes;
  drafted += other.drafted;
  accepted += other.accepted;
  cost.resize(std::max(cost.size(), other.cost.size()));
  for (std::size_t i = 0; i < other.cost.size(); ++i) cost[i] += other.cost[i];
  time += other.time;
  peak_bytes = std::max(peak_bytes, other.peak_bytes);
  if (fault.empty()) fault = other.fault;
  return *this;
}

std::size_t first_difference(TokenSpan output, TokenSpan recorded) {
  const auto [end, other] = std::mismatch(output.begin(), output.end(), recorded.begin(), recorded.end());
  return static_cast<std::size_t>(end - output.begin());
}

Counts replay_session(const TraceSession& recorded, const AnyStrategy& strategy, std::span<const CostCurve> curves) {
  Counts counts;
  counts.sessions = 1;
  counts.cost.resize(curves.size());
  ReplaySession session(TimedStrategy<AnyStrategy>(strategy), most_drafted_nodes);
  bool first = true;
  for (const Turn& turn : recorded.turns) {
    ++counts.turns;
    if (first && turn.prompt.empty() && turn.output.empty()) continue;
    const std::string fault = play(session, first, turn, curves, counts);
    first = false;
    counts.peak_bytes = std::max<std::uint64_t>(counts.peak_bytes, session.strategy().memory_bytes());
    if (fault.empty()) continue;
    counts.fault = "session " + recorded.id + ", turn " + std::to_string(counts.turns) + ": " + fault;
    break;
  }
  counts.time = session.strategy().time();
  return counts;
}

}  // namespace reprise::replay
