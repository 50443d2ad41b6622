// SPDX-License-Identifier: Apache-2.0
// The time of drafting beside the code of other systems, on recorded sessions.
#include "drafting_time.hpp"

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <exception>
#include <limits>
#include <memory>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include "common/input_error.hpp"
#include "common/options.hpp"
#include "replay/trace.hpp"
#include "reprise/draft/prompt_lookup_drafter.hpp"
#include "reprise/loop/session.hpp"
#include "reprise/speculator.hpp"

namespace reprise::bench {
namespace {

using Clock = std::chrono::steady_clock;

double ns_since(Clock::time_point begin) {
  return std::chrono::duration<double, std::nano>(Clock::now() - begin).count();
}

/// Drafts nothing: the time of the loop itself.
class Nothing : public Method {
 public:
  void begin_turn(TokenSpan, Token) override {}
  TokenSpan propose() override { return {}; }
  void commit(TokenSpan, std::size_t) override {}
};

/// A whole round of reprise: propose() includes control and plan(), commit() includes resolve().
template <class Session>
class Reprise : public Method {
 public:
  Reprise(Session session, std::size_t max_nodes) : session_(std::move(session)) {
    limits_.draft.max_nodes = max_nodes;
    limits_.draft.shape = DraftShape::chain;
  }
  void begin_turn(TokenSpan prompt, Token first) override {
    const auto begun = begun_ ? session_.append(prompt) : session_.begin(prompt);
    if (!begun || !session_.append({&first, 1}, Origin::output))
      throw tools::InputError("a session cannot be replayed; each needs a prompt");
    begun_ = true;
  }
  TokenSpan propose() override {
    session_.propose(limits_);
    const auto pass = session_.plan();
    ticket_ = pass->ticket;
    return pass->batch.last(pass->drafted);
  }
  void commit(TokenSpan tokens, std::size_t) override {
    static_cast<void>(session_.resolve(ticket_, tokens));
    static_cast<void>(session_.commit(ticket_));
  }

 private:
  Session session_;
  Limits limits_;
  Ticket ticket_;
  bool begun_ = false;
};

std::vector<MethodRow> all_rows() {
  std::vector<MethodRow> rows;
  rows.push_back({"nothing (the loop itself)", [] { return std::make_unique<Nothing>(); }});
  rows.push_back({"reprise Speculator, s = 0.02",
                  [] { return std::make_unique<Reprise<Speculator>>(Speculator(CostCurve::linear(0.02)), 32); }});
  rows.push_back({"reprise PromptLookupDrafter", [] {
                    using Copy = Session<PromptLookupDrafter<>>;
                    return std::make_unique<Reprise<Copy>>(Copy(PromptLookupDrafter<>()), 32);
                  }});
#ifdef REPRISE_PEERS_ARCTIC
  for (MethodRow& row : arctic_rows()) rows.push_back(std::move(row));
#endif
#ifdef REPRISE_PEERS_LLAMA
  for (MethodRow& row : llama_rows()) rows.push_back(std::move(row));
#endif
  return rows;
}

struct Counts {
  std::size_t tokens = 0;  // output tokens except the first of each turn
  std::size_t passes = 0;
  std::size_t drafted = 0;
};

/// Decodes the recorded answer of a turn after its first token.
template <class Propose>
void decode(Method& method, TokenSpan left, Counts& counts, const Propose& propose) {
  counts.tokens += left.size();
  while (!left.empty()) {
    const TokenSpan draft = propose();
    std::size_t accepted = 0;
    while (accepted < std::min(draft.size(), left.size()) && draft[accepted] == left[accepted]) ++accepted;
    ++counts.passes;
    counts.drafted += draft.size();
    const std::size_t committed = std::min(accepted + 1, left.size());
    method.commit(left.first(committed), accepted);
    left = left.subspan(committed);
  }
}

/// Replays all sessions, each with a new method. Calls timed(method, answer after its first token) for each turn.
template <class Timed>
void replay(const MethodRow& row, const std::vector<replay::Trace>& traces, const Timed& timed) {
  for (const replay::Trace& trace : traces)
    for (const replay::TraceSession& session : trace.sessions) {
      const std::unique_ptr<Method> method = row.make();
      for (const replay::Turn& turn : session.turns) {
        if (turn.output.empty()) continue;
        method->begin_turn(turn.prompt, turn.output.front());
        timed(*method, TokenSpan(turn.output).subspan(1));
      }
    }
}

/// Decodes all sessions once. Lowers `turns`, the time of each turn in ns, to the time of this run where that is less.
Counts time_turns(const MethodRow& row, const std::vector<replay::Trace>& traces, std::vector<double>& turns) {
  Counts counts;
  std::size_t turn = 0;
  replay(row, traces, [&](Method& method, TokenSpan answer) {
    const auto begin = Clock::now();
    decode(method, answer, counts, [&] { return method.propose(); });
    const double ns = ns_since(begin);
    if (turn == turns.size()) turns.push_back(ns);
    turns[turn] = std::min(turns[turn], ns);
    ++turn;
  });
  return counts;
}

/// Returns the 99th percentile of the times of propose() in ns.
double time_proposals(const MethodRow& row, const std::vector<replay::Trace>& traces) {
  std::vector<double> calls;
  Counts counts;
  replay(row, traces, [&](Method& method, TokenSpan answer) {
    decode(method, answer, counts, [&] {
      const auto begin = Clock::now();
      const TokenSpan draft = method.propose();
      calls.push_back(ns_since(begin));
      return draft;
    });
  });
  if (calls.empty()) return 0;
  const auto at = calls.begin() + static_cast<std::ptrdiff_t>(calls.size() * 99 / 100);
  std::nth_element(calls.begin(), at, calls.end());
  return *at;
}

struct Options {
  std::vector<std::string> files;
  std::size_t runs = 5;
  bool help = false;
};

tools::OptionTable table_of(Options& options) {
  tools::OptionTable table;
  table.operand = [&](const std::string&, const std::string& argument) { options.files.push_back(argument); };
  table.rows = {
      {.help = R"(usage: reprise-bench-peers [--runs N] TRACE ...

Replays recorded sessions with chains. Prints for each method: tokens and drafted
tokens per pass, the time of propose and commit in ns per output token, and the 99th
percentile of one propose. The time is the sum over the turns of the lowest run; the
percentile is the lowest of the runs.

The rows of other systems are there if the program was built with their sources:
  -DREPRISE_PEERS_ARCTIC=DIR   the unpacked source package arctic-inference
  -DREPRISE_PEERS_LLAMA=DIR    vendor/llama.cpp of the source package llama-cpp-python

)"},
      {.name = "--runs",
       .value = "N",
       .help = "runs of each method, alternated; default 5",
       .read = tools::whole(options.runs, 1, 1000, "a number")},
      {.name = "--help", .help = "this text", .read = tools::flag(options.help), .short_name = "-h"},
  };
  return table;
}

void measure(const Options& options) {
  std::vector<replay::Trace> traces;
  for (const std::string& path : options.files) traces.push_back(replay::read_trace(path));
  struct Result {
    Counts counts;
    std::vector<double> turns;
    double slow_proposal = std::numeric_limits<double>::infinity();
  };
  std::vector<Result> results(all_rows().size());
  for (std::size_t run = 0; run < options.runs; ++run)
    for (std::size_t i = 0; i < results.size(); ++i) {
      Result& result = results[i];
      result.counts = time_turns(all_rows()[i], traces, result.turns);
      result.slow_proposal = std::min(result.slow_proposal, time_proposals(all_rows()[i], traces));
    }
  std::printf("| method | tokens per pass | drafted per pass | ns per token | p99 of propose, ns |\n");
  std::printf("|---|---|---|---|---|\n");
  for (std::size_t i = 0; i < results.size(); ++i) {
    const Result& result = results[i];
    const auto tokens = static_cast<double>(result.counts.tokens);
    const auto passes = static_cast<double>(result.counts.passes);
    const double ns = std::accumulate(result.turns.begin(), result.turns.end(), 0.0);
    std::printf("| %s | %.3f | %.1f | %.0f | %.0f |\n", all_rows()[i].name.c_str(), tokens / passes,
                static_cast<double>(result.counts.drafted) / passes, ns / tokens, result.slow_proposal);
  }
}

}  // namespace
}  // namespace reprise::bench

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    reprise::bench::Options options;
    const reprise::tools::OptionTable table = reprise::bench::table_of(options);
    reprise::tools::parse(table, arguments);
    if (options.help) {
      std::fputs(table.help().c_str(), stdout);
      return 0;
    }
    if (options.files.empty()) throw reprise::tools::InputError("name at least one file; see --help");
    reprise::bench::measure(options);
    return 0;
  } catch (const reprise::tools::InputError& error) {
    std::fprintf(stderr, "reprise-bench-peers: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reprise-bench-peers: %s\n", error.what());
    return 1;
  }
}
