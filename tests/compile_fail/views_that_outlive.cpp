// SPDX-License-Identifier: Apache-2.0
// message: 12 errors generated
// Only clang warns, with -Werror=return-stack-address -Werror=dangling; each line marked with "dangles" gives an error.
#include <span>
#include <vector>

#include "reprise/batch/batch_follower.hpp"
#include "reprise/batch/packing.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/loop/follower.hpp"
#include "reprise/loop/generate.hpp"

using namespace reprise;
using Plain = Session<NoDrafter>;

Result<Generation> generated(archetype::Engine& engine, TokenSpan prompt) {
  Plain session;
  return generate(session, engine, prompt, Limits{});  // dangles
}
Result<Generation> continued(archetype::Engine& engine) {
  Plain session;
  return generate(session, engine, Limits{});  // dangles
}
TokenSpan context() {
  Plain session;
  return session.context();  // dangles
}
TokenSpan output() {
  Plain session;
  return session.output();  // dangles
}
Result<Pass> pass() {
  Plain session;
  return session.plan();  // dangles
}
DraftView draft(const Limits& limits) {
  Plain session;
  return session.propose(limits);  // dangles
}
Result<TokenSpan> followed(TokenSpan ids) {
  Follower<Plain> follower;
  return follower.draft(ids);  // dangles
}
Result<std::span<const TokenSpan>> batch(std::span<const FollowedSlot> slots) {
  auto follower = *BatchFollower<NoDrafter>::make(4);
  return follower.draft(slots);  // dangles
}
BatchPlan planned(std::span<const BatchEntry> entries) {
  BatchPlanner planner;
  return planner.plan(entries);  // dangles
}
const CalibrationState& calibration() {
  NgramDrafter<> drafter;
  return drafter.calibration();  // dangles
}
std::size_t temporary(TokenSpan ids) {
  const auto known = Follower<Plain>().context();       // dangles
  const auto& drafted = *Follower<Plain>().draft(ids);  // dangles: the Result is gone
  return known.size() + drafted.size();
}

// Right.
std::size_t kept(archetype::Engine& engine, TokenSpan prompt) {
  Plain session;
  const auto generated = generate(session, engine, prompt, Limits{});
  const std::vector<Token> copy(session.context().begin(), session.context().end());
  return generated->tokens.size() + copy.size();
}
