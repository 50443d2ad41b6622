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
#include <utility>

namespace {

using reprise::CostControl;
using reprise::CostCurve;
using reprise::CostOptions;
using reprise::CostPoint;

const std::string text =
    "she sells sea shells on the sea shore. the shells she sells are sea shells, I am sure, for if she sells sea "
    "shells "
    "on the sea shore, then I am sure she sells sea shore shells. ";

double decode(const CostOptions& options) {
  reprise::Speculator session(reprise::NgramOptions{}, options);
  Player engine(text, 12);
  const auto generated = reprise::generate(session, engine, to_tokens(text.substr(0, 12)), {.eos = {0}});
  return generated ? generated->statistics.mean_accepted_tokens() : 0;
}

}  // namespace

int main() {
  // Measured on this machine with testing::measure_cost_curve(), or read from a file: one sequence, nanoseconds.
  const std::array<CostPoint, 3> points = {
      {{1, 512, 1, 10'000'000.0}, {1, 512, 8, 11'000'000.0}, {1, 512, 32, 16'000'000.0}}};
  const auto curve = CostCurve::from_points(points);
  if (!curve) return std::puts(curve.error().message.data()), 1;
  const reprise::Cost eight_rows = curve->cost(reprise::PassShape{1, 8, 512});
  std::printf("a pass of 8 rows costs %.2f plain passes\n",
              static_cast<double>(eight_rows) / static_cast<double>(reprise::cost_one));

  reprise::LossBudget budget;  // shared by all sequences of this engine
  const double told = decode({.curve = *curve, .loss_budget = &budget});
  const double dear = decode({.curve = CostCurve::linear(0.5), .loss_budget = &budget});
  // Not measured yet: begin with the costs that such machines have. Pass times correct them.
  const double assumed = decode({.prior = reprise::CostPrior::gpu_batch_1()});
  std::printf("tokens per pass: %.2f with this curve, %.2f if each row costs half a pass, %.2f with a prior\n", told,
              dear, assumed);

  // A scheduler of your own can learn the costs by itself. Save learned.prior(), and begin the next start from it.
  reprise::LearnedCurve learned(reprise::CostPrior::gpu_batch_1());
  for (int pass = 0; pass < 20; ++pass) {
    learned.learn(1, true, std::chrono::milliseconds(10));
    learned.learn(9, false, std::chrono::milliseconds(13));
  }
  std::printf("learned: a pass of 9 rows costs %.2f plain passes\n",
              static_cast<double>(learned.cost(9)) / static_cast<double>(reprise::cost_one));

  // Rows that only some widths allow, for captured graphs: the draft is cut to one of them, or padded.
  const reprise::Capabilities graphs{.allowed_widths = reprise::AllowedWidths{1, 4, 8}};
  std::printf("%zu widths\n", graphs.allowed_widths.values().size());
  return told > dear && assumed > 1 && learned.cost(9) > learned.cost(2) && !budget.strained() ? 0 : 1;
}
