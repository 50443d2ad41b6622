// SPDX-License-Identifier: Apache-2.0
// Measures the choice between the default drafter and a trained draft head, for each pass. It runs on recorded requests
// with the accepted length of the head at each position.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <span>
#include <stdexcept>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "arbiter.hpp"
#include "common/input_error.hpp"
#include "common/number.hpp"
#include "common/options.hpp"
#include "common/text.hpp"
#include "recording.hpp"
#include "reprise/control/cost_control.hpp"
#include "reprise/draft/external_drafter.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/draft/union_drafter.hpp"
#include "reprise/loop/session.hpp"

namespace {

using namespace reprise;
using namespace reprise::head;
using tools::InputError;

struct Options {
  std::vector<double> rows = {0, 0.02, 0.1};
  std::vector<double> heads = {0.05, 0.1, 0.3};
  bool for_each_token = false;
  bool chains = false;
  bool same_length = false;
  bool fresh = false;
  std::size_t head_tokens = most_head_tokens;
  std::size_t limit = unlimited;
  bool help = false;
  std::vector<std::string> files;
};

/// Reads numbers from 0 to 10 between commas.
tools::ReadValue reals(std::vector<double>& into) {
  return [&into](const std::string& name, const std::string& value) {
    into.clear();
    for (const std::string& part : tools::split_at_commas(value)) {
      const auto number = tools::parse_real(part);
      if (!number || *number < 0 || *number > 10) throw InputError(name + " " + value + ": needs numbers from 0 to 10");
      into.push_back(*number);
    }
  };
}

tools::OptionTable table_of(Options& options) {
  tools::OptionTable table;
  table.help_column = 21;
  table.operand = [&](const std::string&, const std::string& argument) { options.files.push_back(argument); };
  table.rows = {
      {.help = R"(usage: reprise-bench-head [options] FILE ...

Chooses for each pass between the draft of NgramDrafter and that of a draft head, by
expected tokens and costs, and prints tokens per plain pass. The files are those of
https://github.com/SpecDecode-Bench/simulator, data/llama3.1-8B/combined_*.jsonl.

  lookup   NgramDrafter with CostControl; the head never runs
  head     the head alone; the length of its draft is chosen for each pass
  choice   lookup or head, whichever is expected to be worth more
  tree     as choice, but if the head runs, both drafts are sent as one tree
  oracle   the choice made in hindsight, from the same two drafts
  share    passes of `choice` in which the head runs

A pass with k drafted rows costs 1 + S x k, and the head's draft costs H more.

)"},
      {.name = "--row-cost",
       .value = "S,...",
       .help = "costs of a drafted row; default 0,0.02,0.1",
       .read = reals(options.rows)},
      {.name = "--head-cost",
       .value = "H,...",
       .help = "costs of a draft of the head; default 0.05,0.1,0.3",
       .read = reals(options.heads)},
      {.name = "--per-token",
       .help = "H is the cost of each token that the head drafts",
       .read = tools::flag(options.for_each_token)},
      {.name = "--head-tokens",
       .value = "K",
       .help = "the head's longest draft, 1..20; default 20",
       .read = tools::whole(options.head_tokens, 1, most_head_tokens, "a whole number")},
      {.name = "--chains", .help = "the engine verifies only chains", .read = tools::flag(options.chains)},
      {.name = "--same-length",
       .help = "skip requests whose two recordings differ in length",
       .read = tools::flag(options.same_length)},
      {.name = "--fresh",
       .help = "each request begins with the calibration of the library",
       .read = tools::flag(options.fresh)},
      {.name = "--limit",
       .value = "N",
       .help = "the first N requests of each file",
       .read = tools::whole(options.limit, 1, 1000000000, "a whole number")},
      {.name = "--help", .help = "this text", .read = tools::flag(options.help), .short_name = "-h"},
      {.help = R"(
Exit: 0 done; 1 a replay differs from the recording, or it failed; 2 an argument or a file
cannot be used.
)"},
  };
  return table;
}

enum class Mode : std::uint8_t { lookup, head, choice, oracle };

/// CostControl for the lookup's drafts. A draft of the head is sent whole: its length was chosen before it was made.
/// CostControl learns from all passes, but it does not know the cost of the head's drafts.
struct HeadControl {
  CostControl cost;
  bool whole = false;

  void begin() noexcept { cost.begin(); }
  void cancel() noexcept { cost.cancel(); }
  [[nodiscard]] DraftBudget budget(const DraftBudget& asked, const PassLimits& room) const noexcept {
    return whole ? asked : cost.budget(asked, room);
  }
  [[nodiscard]] DraftChoice choose(DraftView draft, std::span<const NodeIndex> sendable,
                                   const PassLimits& room) noexcept {
    return whole ? SendAll().choose(draft, sendable, room) : cost.choose(draft, sendable, room);
  }
  void learn(const Outcome& outcome, const PassReport& report) noexcept { cost.learn(outcome, report); }
};

using OneDraft = FirstMatch<ExternalDrafter, NgramDrafter<>>;
using OneTree = UnionDrafter<ExternalDrafter, NgramDrafter<>>;

struct Sums {
  double tokens = 0;
  double cost = 0;
  double passes = 0;
  double head_passes = 0;
  [[nodiscard]] double speed() const { return cost == 0 ? 0 : tokens / cost; }
};

/// Replays requests one after the other. What it learns of the head and of the rate of tokens continues.
template <class Strategy>
class Replay {
 public:
  Replay(const Options& options, const Costs& costs, Mode mode) : options_(options), costs_(costs), mode_(mode) {
    limits_.draft.max_nodes = 32;
    if (options.chains) limits_.draft.shape = DraftShape::chain;
  }

  void play(const Request& request) {
    if (request.output.size() < 2) return;
    const CostOptions cost{.curve = CostCurve::linear(costs_.row), .calibrated = true};
    Session<Strategy, HeadControl> session(Strategy(ExternalDrafter(), NgramDrafter<>({.prior = calibration_})),
                                           {CostControl(cost)});
    Capabilities capabilities;
    capabilities.max_leaves = options_.chains ? 1 : unlimited;
    check(session.begin(request.prompt, capabilities));
    check(session.append(TokenSpan(request.output).first(1), Origin::output));  // the prefill picks it
    HeadForecast forecast(rates_);
    rate_.restart();
    const TokenSpan recorded = TokenSpan(request.output).subspan(1);
    for (std::size_t done = 0; done < recorded.size(); done = session.output().size())
      pass(session, forecast, recorded, done, request.head[done + 1]);
    if (!std::ranges::equal(session.output(), recorded))
      throw std::runtime_error("the output differs from the recording");
    if (!options_.fresh) calibration_ = session.strategy().template member<1>().calibration();
  }
  [[nodiscard]] const Sums& sums() const { return sums_; }

 private:
  static constexpr bool one_tree = std::is_same_v<Strategy, OneTree>;

  static void check(const Result<void>& result) {
    if (!result) throw std::runtime_error(std::string(result.error().message));
  }
  template <class T>
  static T value_of(const Result<T>& result) {
    if (!result) throw std::runtime_error(std::string(result.error().message));
    return *result;
  }

  /// Runs one pass. `right`: the tokens of the head's longest draft that agree with the recording.
  template <class S>
  void pass(S& session, HeadForecast& forecast, TokenSpan recorded, std::size_t done, std::size_t right) {
    const TokenSpan coming = recorded.subspan(done);
    right = std::min(right, coming.size());
    session.control().whole = false;
    const DraftView draft = session.propose(limits_);
    Pass planned = value_of(session.plan(mode_ == Mode::head ? 0 : unlimited));
    const double expected = expected_tokens(draft, planned);
    forecast.begin(expected);
    const HeadDraft head = best_head_draft(forecast, costs_, rate_(), options_.head_tokens);
    const bool asked = head.tokens > 0 && prefers_head(head, expected, planned, coming, right);
    if (asked) {
      check(session.cancel(planned.ticket));
      set_head(session.strategy().template member<0>(), forecast, head.tokens, coming, right);
      session.control().whole = !one_tree;
      static_cast<void>(session.propose(limits_));
      planned = value_of(session.plan());
    }
    const std::size_t rows = planned.drafted;
    const auto picks = [&](std::size_t row) {
      const std::size_t depth = row == 0 ? 0 : planned.depths[row - 1];
      return coming[std::min(depth, coming.size() - 1)];
    };
    const auto ends_here = [&](TokenSpan output, Token) {
      return output.size() + 1 == recorded.size() ? StopDecision::stop_after : StopDecision::proceed;
    };
    const Decision decision = value_of(session.resolve(planned.ticket, PicksByRow<decltype(picks)>{picks}, ends_here));
    const std::size_t committed = decision.tokens.size();
    const double cost = costs_.pass(rows) + (asked ? costs_.draft(head.tokens) : 0);
    check(session.commit(planned.ticket));
    forecast.learn(asked ? std::min(head.tokens, coming.size()) : 0, std::min(right, head.tokens));
    rate_.add(committed, cost);
    sums_.tokens += static_cast<double>(committed);
    sums_.cost += cost;
    sums_.passes += 1;
    sums_.head_passes += asked ? 1 : 0;
  }

  template <class Pick>
  struct PicksByRow {
    const Pick& pick;
    Token operator[](std::size_t row) const { return pick(row); }
  };

  /// Returns how many drafted tokens of a pass are expected to be accepted.
  static double expected_tokens(DraftView draft, const Pass& pass) {
    double sum = 0;
    for (const NodeIndex node : pass.nodes) sum += draft[static_cast<std::size_t>(node)].path_probability.to_double();
    return sum;
  }
  /// Returns whether the head drafts in this pass, given the pass that would send the lookup's draft.
  bool prefers_head(const HeadDraft& head, double expected, const Pass& lookup, TokenSpan coming,
                    std::size_t right) const {
    if (mode_ == Mode::lookup) return false;
    if (mode_ == Mode::head) return true;
    const double rate = rate_();
    const double lookup_cost = costs_.pass(lookup.drafted);
    if (mode_ == Mode::oracle) {
      const double own = value(static_cast<double>(agreed(lookup, coming)), lookup_cost, rate);
      const auto accepted = static_cast<double>(std::min(right, head.tokens));
      return value(accepted, costs_.pass(head.tokens) + costs_.draft(head.tokens), rate) > own;
    }
    return head.value > value(expected, lookup_cost, rate);
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
  void set_head(ExternalDrafter& drafter, const HeadForecast& forecast, std::size_t size, TokenSpan coming,
                std::size_t right) {
    constexpr Token wrong = std::numeric_limits<Token>::max();  // in no recording
    tokens_.assign(size, wrong);
    std::copy_n(coming.begin(), std::min(size, right), tokens_.begin());
    probabilities_.clear();
    for (std::size_t depth = 0; depth < size; ++depth)
      probabilities_.push_back(static_cast<float>(forecast.rate(depth)));
    check(drafter.set({.tokens = tokens_, .probabilities = probabilities_}));
  }

  const Options& options_;
  Costs costs_;
  Mode mode_;
  Limits limits_;
  CalibrationState calibration_;
  HeadRates rates_;
  Rate rate_;
  Sums sums_;
  std::vector<Token> tokens_;
  std::vector<float> probabilities_;
};

template <class Strategy>
Sums replay(const Options& options, const Costs& costs, Mode mode, const std::vector<Request>& requests) {
  Replay<Strategy> replay(options, costs, mode);
  for (const Request& request : requests) replay.play(request);
  return replay.sums();
}

void compare(const Options& options, const std::string& path) {
  std::vector<Request> requests = read_requests(path, options.limit);
  if (options.same_length) std::erase_if(requests, [](const Request& request) { return !request.same_length; });
  std::printf("\n%s: %zu requests\n", tools::printable(path).c_str(), requests.size());
  std::printf("| %5s | %5s | %6s | %6s | %6s | %6s | %6s | %6s |\n", "S", "H", "lookup", "head", "choice", "tree",
              "oracle", "share");
  std::printf("|------:|------:|-------:|-------:|-------:|-------:|-------:|-------:|\n");
  for (const double row : options.rows) {
    const Sums lookup = replay<OneDraft>(options, {.row = row}, Mode::lookup, requests);
    for (const double cost : options.heads) {
      Costs costs{.row = row};
      (options.for_each_token ? costs.head_token : costs.head_pass) = cost;
      const auto speed = [&](Mode mode) { return replay<OneDraft>(options, costs, mode, requests).speed(); };
      const Sums choice = replay<OneDraft>(options, costs, Mode::choice, requests);
      std::printf("| %5s | %5s | %6.2f | %6.2f | %6.2f | %6.2f | %6.2f | %5.0f%% |\n",
                  tools::significant(row, 3).c_str(), tools::significant(cost, 3).c_str(), lookup.speed(),
                  speed(Mode::head), choice.speed(), replay<OneTree>(options, costs, Mode::choice, requests).speed(),
                  speed(Mode::oracle), 100 * choice.head_passes / std::max(choice.passes, 1.0));
      std::fflush(stdout);
    }
  }
}

}  // namespace

int main(int argc, char** argv) {
  try {
    const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
    Options options;
    const tools::OptionTable table = table_of(options);
    tools::parse(table, arguments);
    if (options.help) {
      std::fputs(table.help().c_str(), stdout);
      return 0;
    }
    if (options.files.empty()) throw InputError("name at least one file; see --help");
    for (const std::string& path : options.files) compare(options, path);
    return 0;
  } catch (const InputError& error) {
    std::fprintf(stderr, "reprise-bench-head: %s\n", error.what());
    return 2;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "reprise-bench-head: %s\n", error.what());
    return 1;
  }
}
