// SPDX-License-Identifier: Apache-2.0
#include "record.hpp"

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "common/input_error.hpp"
#include "common/text.hpp"

namespace reprise::llama {
namespace {

/// The callbacks of one request: finds loops, stops them, and removes them from the context.
class LoopWatch {
 public:
  explicit LoopWatch(const LoopRule& rule) : rule_(rule), detector_({}, rule) {}

  Watch watch() {
    return {[this](const TurnRun& turn) { begin(turn); }, [this](TokenSpan tokens) { return more(tokens); },
            [this](const TurnRun& turn) { return end(turn); }};
  }
  /// The number of tokens cut, for each turn; nullopt without a loop.
  [[nodiscard]] const std::vector<std::optional<std::size_t>>& cuts() const { return cuts_; }

 private:
  void begin(const TurnRun& turn) {
    context_.resize(std::min(context_.size(), turn.kept));
    context_.insert(context_.end(), turn.prompt.begin(), turn.prompt.end());
    detector_ = LoopDetector(context_, rule_);
    loop_.reset();
  }
  bool more(TokenSpan tokens) {
    for (const Token token : tokens)
      if (!loop_) loop_ = detector_.add(token);
    return !loop_;
  }
  std::size_t end(const TurnRun& turn) {
    const std::size_t keep = loop_ ? loop_->keep : turn.output.size();
    cuts_.push_back(loop_ ? std::optional(turn.output.size() - keep) : std::nullopt);
    context_.insert(context_.end(), turn.output.begin(), turn.output.begin() + static_cast<std::ptrdiff_t>(keep));
    return keep;
  }

  LoopRule rule_;
  LoopDetector detector_;
  std::vector<Token> context_;
  std::optional<Loop> loop_;
  std::vector<std::optional<std::size_t>> cuts_;
};

struct Recorded {
  replay::TraceSession session;
  std::vector<Finish> finishes;
  std::size_t cut = 0;
  std::string shortened;  ///< the reason; empty if it is not
};

Recorded recorded(const Request& request, const RequestRun& run, const LoopWatch& watch) {
  Recorded recorded{{request.id, request.category, {}}, {}, 0, {}};
  for (const TurnRun& turn : run.turns) {
    if (turn.rewritten) {
      recorded.shortened = "its chat template writes earlier turns differently";
      return recorded;
    }
    const std::optional<std::size_t> cut = watch.cuts().at(recorded.session.turns.size());
    recorded.session.turns.push_back({turn.prompt, turn.output, turn.top_k});
    recorded.cut += cut.value_or(0);
    recorded.finishes.push_back(cut ? Finish::loop : turn.finish == FinishReason::eos ? Finish::eos : Finish::length);
  }
  if (run.context_full) recorded.shortened = "the context is full";
  return recorded;
}

}  // namespace

RecordCounts record(std::span<const Request> requests, TraceWriter& trace, const RunRequest& run,
                    tools::Progress& progress, const LoopRule& rule) {
  RecordCounts counts;
  progress.start("recording", requests.size());
  for (const Request& request : requests) {
    if (trace.has(request.id)) {
      ++counts.skipped;
      progress.step();
      continue;
    }
    LoopWatch watch(rule);
    const RequestRun answered = run(request, watch.watch());
    const Recorded session = recorded(request, answered, watch);
    const std::size_t turns = session.session.turns.size();
    if (!session.shortened.empty())
      counts.shortened.push_back(request.where + ": session " + request.id + " ends after " + std::to_string(turns) +
                                 " of " + std::to_string(request.turns.size()) + " turns: " + session.shortened);
    progress.step();
    if (turns == 0) continue;
    trace.append(session.session, session.finishes);
    ++counts.sessions;
    counts.turns += turns;
    counts.cut += session.cut;
    for (const replay::Turn& turn : session.session.turns) counts.tokens += turn.output.size();
    for (const Finish finish : session.finishes) ++counts.finishes.at(static_cast<std::size_t>(finish));
  }
  progress.clear();
  return counts;
}

RecordCounts record(Engine& engine, std::span<const Request> requests, const Settings& settings, TraceWriter& trace,
                    tools::Progress& progress, std::size_t top_k) {
  if (!settings.sampling.plain())
    throw tools::InputError("--record records the likeliest tokens: leave out --temperature");
  Drafting drafting = no_drafting();
  return record(
      requests, trace,
      [&](const Request& request, const Watch& watch) {
        Watch ranked = watch;
        ranked.top_k = top_k;
        return run_request(engine, request, drafting, settings, ranked);
      },
      progress);
}

void write_counts(std::ostream& out, const RecordCounts& counts) {
  out << counts.sessions << " sessions, " << counts.turns << " turns and " << counts.tokens << " tokens recorded";
  for (const Finish finish : {Finish::eos, Finish::length, Finish::loop})
    out << (finish == Finish::eos ? "; turns that ended by " : ", ") << name(finish) << ": "
        << counts.finishes.at(static_cast<std::size_t>(finish));
  if (counts.cut != 0) out << "; " << counts.cut << " tokens of loops left out";
  if (counts.skipped != 0) out << "; sessions that were there already: " << counts.skipped;
  out << "\n";
  for (const std::string& line : counts.shortened) out << tools::printable(line) << "\n";
}

}  // namespace reprise::llama
