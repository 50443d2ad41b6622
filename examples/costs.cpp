// SPDX-License-Identifier: Apache-2.0
// Control needs the cost of passes: a measured curve, or a prior that pass times correct. The budget bounds the losses
// of drafts, for all sequences of an engine together.
#include "player.hpp"

#include <reprise/reprise.hpp>

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

namespace {

using reprise::CostControl;
using reprise::CostCurve;
using reprise::CostOptions;
using reprise::CostPoint;

const std::string text =
    "she sells sea shells on the sea shore. the shells she sells are sea shells, I am sure, for if she sells sea "
    "shells "
    "on the sea shore, then I am sure she sells sea shore shells. ";

// An engine that times its passes: each drafted row takes a tenth of a plain pass.
class TimedPlayer : public Player {
 public:
  using Player::Player;
  const std::vector<reprise::Token>& verify(reprise::TokenSpan batch, std::size_t drafted) {
    rows_ = batch.size();
    return Player::verify(batch, drafted);
  }
  // A time of std::chrono converts to a Duration, unless it is inexact in nanoseconds.
  [[nodiscard]] reprise::Duration pass_time() const noexcept { return std::chrono::microseconds(9000 + 1000 * rows_); }
  [[nodiscard]] std::size_t rows() const noexcept { return rows_; }

 private:
  std::size_t rows_ = 0;
};
static_assert(reprise::TimedVerifier<TimedPlayer>);

// An engine with captured graphs: a pass with a draft has one of these widths, and token 0 fills spare rows.
class GraphPlayer : public Player {
 public:
  using Player::Player;
  [[nodiscard]] reprise::Capabilities capabilities() const {
    return {.allowed_widths = reprise::AllowedWidths{4, 8}, .pad_token = 0};
  }
  const std::vector<reprise::Token>& verify(reprise::TokenSpan batch, std::size_t drafted) {
    fits_ = fits_ && (drafted == 0 || batch.size() == 4 || batch.size() == 8);
    return Player::verify(batch, drafted);
  }
  [[nodiscard]] bool fits() const { return fits_; }

 private:
  bool fits_ = true;
};

template <class Engine>
double decode(const CostOptions& options, Engine& engine) {
  reprise::Speculator session(reprise::NgramOptions{}, options);
  const auto generated = reprise::generate(session, engine, to_tokens(text.substr(0, 12)), {.eos = {0}});
  return generated ? generated->statistics.mean_accepted_tokens() : 0;
}

}  // namespace

int main() {
  // Example values, in nanoseconds: one sequence. Measure yours with testing::measure_cost_curve().
  const std::array<CostPoint, 3> points = {
      {{1, 512, 1, 10'000'000.0}, {1, 512, 8, 11'000'000.0}, {1, 512, 32, 16'000'000.0}}};
  const auto curve = CostCurve::from_points(points);
  if (!curve) return std::puts(curve.error().message.data()), 1;
  const reprise::Cost eight_rows = curve->cost(reprise::PassShape{1, 8, 512});
  std::printf("a pass of 8 rows costs %.2f plain passes\n",
              static_cast<double>(eight_rows) / static_cast<double>(reprise::cost_one));

  reprise::LossBudget budget;  // shared by all sequences of this engine
  Player cheap(text, 12);
  Player dear(text, 12);
  const double told = decode({.curve = *curve, .loss_budget = &budget}, cheap);
  const double half = decode({.curve = CostCurve::linear(0.5)}, dear);
  std::printf("tokens per pass: %.2f with this curve, %.2f if each row costs half a pass\n", told, half);

  // Not measured yet: begin with the costs that such machines usually have. The pass times of the engine correct them.
  TimedPlayer timed(text, 12);
  const double assumed = decode({.prior = reprise::CostPrior::gpu_batch_1()}, timed);
  GraphPlayer graphs(text, 12);
  const double padded = decode({.curve = *curve}, graphs);
  std::printf("tokens per pass: %.2f with a prior, %.2f with widths of 4 and 8 rows\n", assumed, padded);

  // A scheduler of your own can learn the costs by itself. Save learned.prior(), and begin the next start from it.
  reprise::LearnedCurve learned(reprise::CostPrior::gpu_batch_1());
  for (int pass = 0; pass < 20; ++pass) {
    learned.learn(1, true, std::chrono::milliseconds(10));
    learned.learn(9, false, std::chrono::milliseconds(13));
  }
  std::printf("learned: a pass of 9 rows costs %.2f plain passes\n",
              static_cast<double>(learned.cost(9)) / static_cast<double>(reprise::cost_one));
  return told > half && assumed > 1 && padded > 1 && graphs.fits() && !budget.strained() ? 0 : 1;
}
