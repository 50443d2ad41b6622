// SPDX-License-Identifier: Apache-2.0
// Measures the choice between the default drafter and a trained draft head, for each pass. It runs on recorded requests
// with the accepted length of the head at each position.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <exception>
#include <limits>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "common/input_error.hpp"
#include "common/number.hpp"
#include "common/options.hpp"
#include "common/text.hpp"
#include "recording.hpp"
#include "reprise/control/detail/head_control.hpp"
#include "reprise/draft/detail/headed_drafter.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/loop/session.hpp"

namespace {

using namespace reprise;
using namespace reprise::head;
using reprise::detail::HeadControl;
using reprise::detail::HeadedDrafter;
using reprise::detail::HeadForecast;
using tools::InputError;

struct Options {
  std::vector<double> rows = {0, 0.02, 0.1};
  std::vector<double> heads = {0.05, 0.1, 0.3};
  bool for_each_token = false;
  bool chains = false;
  bool same_length = false;
  bool fresh = false;
  bool learned = false;
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

Decides in each pass whether a draft head runs beside NgramDrafter, as HeadedSpeculator
does, and prints tokens per plain pass. The files are those of
https://github.com/SpecDecode-Bench/simulator, data/llama3.1-8B/combined_*.jsonl.

  lookup   NgramDrafter with CostControl; the head never runs
  head     the head alone; the length of its draft is chosen for each pass
  both     the lookup, and the head where it pays: both drafts become one tree or chain
  oracle   lookup or head, chosen in hindsight from the same two drafts
  share    passes of `both` in which the head runs

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
      {.name = "--learned",
       .help = "all costs are learned from times instead of told",
       .read = tools::flag(options.learned)},
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

enum class Mode : std::uint8_t { lookup, head, both, oracle };

/// The costs of a pass, in plain passes.
struct Costs {
  double row = 0;         ///< of each drafted row
  double head_pass = 0;   ///< of the head's draft, whatever its length
  double head_token = 0;  ///< of each token that the head drafts
  [[nodiscard]] double pass(std::size_t rows) const { return 1 + row * static_cast<double>(rows); }
  [[nodiscard]] double draft(std::size_t tokens) const {
    return tokens == 0 ? 0 : head_pass + head_token * static_cast<double>(tokens);
  }
};

/// The default drafter, with a switch.
struct Lookup : NgramDrafter<> {
  using NgramDrafter<>::NgramDrafter;
  bool on = true;

  void propose(TokenSpan context, Draft& draft) {
    if (on) NgramDrafter<>::propose(context, draft);
  }
};

struct Sums {
  double tokens = 0;
  double cost = 0;
  double passes = 0;
  double head_passes = 0;
  [[nodiscard]] double speed() const { return cost == 0 ? 0 : tokens / cost; }
};

/// Replays requests one after the other. What is learned of the head, and the calibration of the lookup, continue.
class Replay {
  using Headed = Session<HeadedDrafter<Lookup>, HeadControl>;

 public:
  Replay(const Options& options, const Costs& costs, Mode mode)
      : options_(options),
        costs_(costs),
        mode_(mode),
        session_(HeadedDrafter<Lookup>(), options.learned ? HeadControl()
                                                          : HeadControl({.curve = CostCurve::linear(costs.row)},
                                                                        HeadCost{.draft = to_cost(costs.head_pass),
                                                                                 .token = to_cost(costs.head_token)})) {
    limits_.draft.max_nodes = 32;
    if (options.chains) limits_.draft.shape = DraftShape::chain;
  }

  void play(const Request& request) {
    if (request.output.size() < 2) return;
    session_.strategy() = Lookup(NgramOptions{.prior = calibration_});
    Capabilities capabilities;
    capabilities.max_leaves = options_.chains ? 1 : unlimited;
    check(session_.begin(request.prompt, capabilities));
    check(session_.append(TokenSpan(request.output).first(1), Origin::output));  // the prefill picks it
    const TokenSpan recorded = TokenSpan(request.output).subspan(1);
    for (std::size_t done = 0; done < recorded.size(); done = session_.output().size())
      pass(recorded, done, request.head[done + 1]);
    if (!std::ranges::equal(session_.output(), recorded))
      throw std::runtime_error("the output differs from the recording");
    if (!options_.fresh) calibration_ = session_.strategy().calibration();
  }
  [[nodiscard]] const Sums& sums() const { return sums_; }

 private:
  static void check(const Result<void>& result) {
    if (!result) throw std::runtime_error(std::string(result.error().message));
  }
  template <class T>
  static T value_of(const Result<T>& result) {
    if (!result) throw std::runtime_error(std::string(result.error().message));
    return *result;
  }

  /// The time of a cost, if a plain pass takes 10 ms.
  static Duration time_of(double cost) { return Duration(static_cast<std::int64_t>(cost * 1e7)); }

  /// Runs one pass. `right`: the tokens of the head's longest draft that agree with the recording.
  void pass(TokenSpan recorded, std::size_t done, std::size_t right) {
    const TokenSpan coming = recorded.subspan(done);
    right = std::min(right, coming.size());
    HeadedDrafter<Lookup>& drafter = session_.strategy();
    drafter.clear();
    drafter.on = mode_ != Mode::head;
    // A head alone has no loss budget, and neither has a choice in hindsight.
    if (mode_ == Mode::head || mode_ == Mode::oracle)
      session_.control().correct(session_.control().loss_budget().debt());
    static_cast<void>(session_.propose(limits_));
    const std::size_t tokens = head_tokens(coming, right);
    if (tokens > 0) {
      set_head(tokens, coming, right);
      drafter.on = mode_ == Mode::both;
      static_cast<void>(session_.propose(limits_));
    }
    const Pass planned = value_of(session_.plan());
    const auto picks = [&](std::size_t row) {
      const std::size_t depth = row == 0 ? 0 : planned.depths[row - 1];
      return coming[std::min(depth, coming.size() - 1)];
    };
    const auto ends_here = [&](TokenSpan output, Token) {
      return output.size() + 1 == recorded.size() ? StopDecision::stop_after : StopDecision::proceed;
    };
    const Decision decision = value_of(session_.resolve(planned.ticket, PicksByRow<decltype(picks)>{picks}, ends_here));
    const double cost = costs_.pass(planned.drafted);
    sums_.tokens += static_cast<double>(decision.tokens.size());
    sums_.cost += cost + costs_.draft(tokens);
    sums_.passes += 1;
    sums_.head_passes += tokens > 0 ? 1 : 0;
    check(session_.commit(planned.ticket, time_of(cost)));
  }

  template <class Pick>
  struct PicksByRow {
    const Pick& pick;
    Token operator[](std::size_t row) const { return pick(row); }
  };

  /// Returns how many tokens the head drafts in this pass.
  std::size_t head_tokens(TokenSpan coming, std::size_t right) {
    if (mode_ == Mode::lookup) return 0;
    HeadForecast forecast = session_.strategy().forecast();
    if (mode_ != Mode::both) forecast.gain = std::int64_t{1} << 30;  // it runs wherever the budget allows it
    const PassShape plain{1, session_.pending().size(), session_.context().size()};
    const std::size_t tokens = session_.control().ask_head(forecast, plain, options_.head_tokens);
    if (mode_ == Mode::both) return tokens;
    if (mode_ == Mode::head) return std::max<std::size_t>(tokens, 1);
    if (tokens == 0) return 0;
    const Pass lookup = value_of(session_.plan());
    const auto found = static_cast<double>(agreed(lookup, coming));
    const auto accepted = static_cast<double>(std::min(right, tokens));
    const double rate = static_cast<double>(session_.control().throughput()) / cost_one;
    const double more = costs_.pass(tokens) + costs_.draft(tokens) - costs_.pass(lookup.drafted);
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
    session_.control().head_ran(size, time_of(costs_.draft(size)));
  }

  const Options& options_;
  Costs costs_;
  Mode mode_;
  Limits limits_;
  CalibrationState calibration_;
  Headed session_;
  Sums sums_;
  std::vector<Token> tokens_;
};

Sums replay(const Options& options, const Costs& costs, Mode mode, const std::vector<Request>& requests) {
  Replay replay(options, costs, mode);
  for (const Request& request : requests) replay.play(request);
  return replay.sums();
}

void compare(const Options& options, const std::string& path) {
  std::vector<Request> requests = read_requests(path, options.limit);
  if (options.same_length) std::erase_if(requests, [](const Request& request) { return !request.same_length; });
  std::printf("\n%s: %zu requests\n", tools::printable(path).c_str(), requests.size());
  std::printf("| %5s | %5s | %6s | %6s | %6s | %6s | %6s |\n", "S", "H", "lookup", "head", "both", "oracle", "share");
  std::printf("|------:|------:|-------:|-------:|-------:|-------:|-------:|\n");
  for (const double row : options.rows) {
    const Sums lookup = replay(options, {.row = row}, Mode::lookup, requests);
    for (const double cost : options.heads) {
      Costs costs{.row = row};
      (options.for_each_token ? costs.head_token : costs.head_pass) = cost;
      const Sums both = replay(options, costs, Mode::both, requests);
      std::printf("| %5s | %5s | %6.2f | %6.2f | %6.2f | %6.2f | %5.0f%% |\n", tools::significant(row, 3).c_str(),
                  tools::significant(cost, 3).c_str(), lookup.speed(),
                  replay(options, costs, Mode::head, requests).speed(), both.speed(),
                  replay(options, costs, Mode::oracle, requests).speed(),
                  100 * both.head_passes / std::max(both.passes, 1.0));
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
