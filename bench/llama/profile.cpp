// SPDX-License-Identifier: Apache-2.0
#include "profile.hpp"

#include <algorithm>
#include <numeric>

#include "common/input_error.hpp"
#include "reprise_testing/random.hpp"

namespace reprise::llama {
namespace {

using tools::InputError;

/// `values` and `least`, sorted and without duplicates.
std::vector<std::size_t> ascending(std::vector<std::size_t> values, std::size_t least) {
  values.push_back(least);
  std::ranges::sort(values);
  values.erase(std::unique(values.begin(), values.end()), values.end());
  return values;
}

std::string count(std::size_t number, const std::string& what) {
  return std::to_string(number) + " " + what + (number == 1 ? "" : "s");
}

/// The reason why passes of this shape cannot be measured; empty if they can.
std::string obstacle(const Passes& passes, std::size_t sequences, std::size_t context, std::size_t most_drafted) {
  const std::size_t rows = sequences * (most_drafted + 1);
  const std::size_t tokens = context + most_drafted + 1;
  if (sequences > passes.most_sequences())
    return "the context was made for " + count(passes.most_sequences(), "sequence");
  if (rows > passes.most_rows())
    return "a pass of " + std::to_string(rows) + " rows is more than the " + std::to_string(passes.most_rows()) +
           " that the context runs at once";
  if (tokens > passes.sequence_size() || sequences * tokens > passes.total_size())
    return "the context has room for " +
           std::to_string(std::min(passes.sequence_size(), passes.total_size() / sequences)) + " tokens of each";
  return {};
}

/// The quantile `share` of sorted values, interpolated linearly.
double quantile(const std::vector<double>& sorted, double share) {
  const double at = share * static_cast<double>(sorted.size() - 1);
  const auto below = static_cast<std::size_t>(at);
  const std::size_t above = std::min(below + 1, sorted.size() - 1);
  return sorted[below] + (sorted[above] - sorted[below]) * (at - static_cast<double>(below));
}

class Measurement {
 public:
  Measurement(Passes& passes, const ProfileSettings& settings, tools::Progress& progress)
      : passes_(passes),
        progress_(progress),
        drafted_(ascending(settings.drafted, 0)),
        repetitions_(settings.repetitions),
        keep_times_(settings.keep_times),
        random_(settings.seed),
        text_(settings.text) {
    for (const Token token : text_)
      if (token < 0 || static_cast<std::size_t>(token) >= passes.vocabulary())
        throw InputError("--profile: the text has token " + std::to_string(token) + ", and the model has " +
                         count(passes.vocabulary(), "token"));
    while (settings.text.empty() && text_.size() < 8191)
      text_.push_back(static_cast<Token>(random_.below(passes.vocabulary())));
  }

  [[nodiscard]] std::size_t most_drafted() const { return drafted_.back(); }

  /// Measures every width for `sequences` sequences. Each holds `held` tokens and is filled up to `context` first.
  void measure(std::size_t sequences, std::size_t held, std::size_t context, Profile& profile) {
    progress_.start(count(sequences, "sequence") + ", context " + std::to_string(context), repetitions_, "repetition");
    for (std::size_t s = 0; s < sequences; ++s) {
      std::vector<Token> more;
      for (std::size_t i = held; i < context; ++i) more.push_back(token(s, i));
      passes_.fill(more, held, s);
    }
    std::vector<Times> times(drafted_.size() - 1);  // of the widths after the plain pass
    for (const std::size_t drafted : drafted_) run(sequences, context, drafted);
    run(sequences, context, 0);
    std::vector<double> plain, recorded;
    std::vector<std::size_t> order(times.size());
    std::iota(order.begin(), order.end(), std::size_t{0});
    for (std::size_t repetition = 0; repetition < repetitions_; ++repetition) {
      for (std::size_t i = order.size(); i > 1; --i) std::swap(order[i - 1], order[random_.below(i)]);
      recorded.push_back(run(sequences, context, 0));
      for (const std::size_t i : order) {
        plain.push_back(run(sequences, context, 0));
        times[i].drafted.push_back(run(sequences, context, drafted_[1 + i]));
        times[i].lost.push_back(run(sequences, context, 0) - plain.back());
      }
      progress_.step();
    }
    if (order.empty()) plain = recorded;
    add(profile, {sequences, context, sequences}, recorded, plain, 0);
    for (std::size_t i = 0; i < times.size(); ++i)
      add(profile, {sequences, context, sequences * (drafted_[1 + i] + 1)}, times[i].drafted, times[i].drafted,
          std::max(0.0, median(times[i].lost)));
  }

 private:
  /// A different part of the text for each sequence, so that experts and caches see different tokens.
  [[nodiscard]] Token token(std::size_t sequence, std::size_t position) const {
    return text_[(position + 509 * sequence) % text_.size()];
  }

  /// Of passes of one width: their times, and how much longer the plain pass after each took than the one before it.
  struct Times {
    std::vector<double> drafted;
    std::vector<double> lost;
  };

  static double median(std::vector<double> times) {
    std::ranges::sort(times);
    return quantile(times, 0.5);
  }
  /// Adds a point: the quartiles of `times`, each plus `more`. `recorded`: the times to keep.
  void add(Profile& profile, ProfilePoint point, std::vector<double> recorded, std::vector<double> times, double more) {
    std::ranges::sort(times);
    point.ns = quantile(times, 0.5) + more;
    point.low_ns = quantile(times, 0.25) + more;
    point.high_ns = quantile(times, 0.75) + more;
    if (keep_times_ && point.sequences == 1) {
      std::ranges::sort(recorded);
      point.times = std::move(recorded);
    }
    profile.points.push_back(std::move(point));
  }

  double run(std::size_t sequences, std::size_t context, std::size_t drafted) {
    rows_.clear();
    for (std::size_t s = 0; s < sequences; ++s)
      for (std::size_t i = context; i <= context + drafted; ++i) rows_.push_back({token(s, i), i, s});
    const auto ns = static_cast<double>(passes_.run(rows_));
    for (std::size_t s = 0; s < sequences; ++s) passes_.truncate(s, context);
    return ns;
  }

  Passes& passes_;
  tools::Progress& progress_;
  std::vector<std::size_t> drafted_;
  std::size_t repetitions_;
  bool keep_times_;
  testing::Random random_;
  std::vector<Token> text_;
  std::vector<PassRow> rows_;
};

}  // namespace

std::vector<std::size_t> ProfileSettings::up_to(std::size_t last) {
  std::vector<std::size_t> numbers(last + 1);
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  return numbers;
}

Profile measure_profile(Passes& passes, const ProfileSettings& settings, tools::Progress& progress) {
  if (settings.repetitions < 7)
    throw InputError("--profile: the median of " + count(settings.repetitions, "repetition") +
                     " is unreliable; give at least 7");
  if (settings.contexts.empty() || std::ranges::count(settings.contexts, std::size_t{0}) != 0)
    throw InputError("--profile: contexts have at least 1 token each");
  if (std::ranges::count(settings.sequences, std::size_t{0}) != 0)
    throw InputError("--profile: a pass has at least 1 sequence");

  Measurement measurement(passes, settings, progress);
  const std::vector<std::size_t> contexts = ascending(settings.contexts, settings.contexts.front());
  Profile profile;
  for (const std::size_t sequences : ascending(settings.sequences, 1)) {
    passes.clear();
    std::size_t held = 0;
    for (const std::size_t context : contexts) {
      if (const std::string why = obstacle(passes, sequences, context, measurement.most_drafted()); !why.empty()) {
        profile.left_out.push_back(count(sequences, "sequence") + ", context " + std::to_string(context) +
                                   ": not measured: " + why);
        continue;
      }
      measurement.measure(sequences, held, context, profile);
      held = context;
    }
    if (profile.points.empty())
      throw InputError("--profile: nothing fits: " + profile.left_out.front() + "; give a larger --context");
  }
  passes.clear();
  progress.clear();
  return profile;
}

}  // namespace reprise::llama
