// SPDX-License-Identifier: Apache-2.0
#include "pass_tally.hpp"

#include <algorithm>

namespace reprise::replay {
namespace {

std::size_t position_class(std::uint64_t position) {
  std::size_t i = 0;
  while (i + 1 < PassSums::positions && position >= PassSums::first_of(i + 1)) ++i;
  return i;
}

template <class Array>
void add_each(Array& to, const Array& from) {
  for (std::size_t i = 0; i < to.size(); ++i) to[i] += from[i];
}

}  // namespace

PassSums::Drafted& PassSums::Drafted::operator+=(const Drafted& other) {
  proposed += other.proposed;
  sent += other.sent;
  accepted += other.accepted;
  return *this;
}

PassSums::Position& PassSums::Position::operator+=(const Position& other) {
  passes += other.passes;
  tokens += other.tokens;
  cost += other.cost;
  return *this;
}

PassSums& PassSums::operator+=(const PassSums& other) {
  drafted += other.drafted;
  add_each(by_source, other.by_source);
  add_each(withheld, other.withheld);
  add_each(passes, other.passes);
  add_each(by_position, other.by_position);
  tokens += other.tokens;
  undrafted += other.undrafted;
  all_accepted += other.all_accepted;
  return *this;
}

void PassSums::add(const Outcome& outcome) {
  const std::size_t proposed = outcome.draft.size();
  const std::size_t sent = outcome.sent.size();
  const std::size_t accepted = outcome.accepted.size();
  drafted += {proposed, sent, accepted};
  const auto source = [&](NodeIndex i) -> PassSums::Drafted& {
    return by_source[static_cast<std::size_t>(outcome.draft[static_cast<std::size_t>(i)].source)];
  };
  for (std::size_t i = 0; i < proposed; ++i) ++source(static_cast<NodeIndex>(i)).proposed;
  for (const NodeIndex i : outcome.sent) ++source(i).sent;
  for (const NodeIndex i : outcome.accepted) ++source(i).accepted;
  const auto cut = static_cast<std::size_t>(outcome.cut);
  ++passes[cut];
  withheld[cut] += proposed - sent;
  if (sent == 0) ++undrafted;
  if (sent != 0 && sent == proposed && accepted == sent) ++all_accepted;
}

void PassSums::add(std::uint64_t position, std::uint64_t committed, double cost) {
  by_position[position_class(position)] += {1, committed, cost};
  tokens += committed;
}

void PassTally::began(const TraceSession& session) {
  CurveWatcher::began(session);
  position_ = 0;
}

void PassTally::tested(const Outcome& outcome) { sums_.add(outcome); }

void PassTally::passed(const Passed& pass) {
  CurveWatcher::passed(pass);
  sums_.add(position_, pass.committed, curve_->cost(pass.shape));
  position_ += pass.committed;
}

}  // namespace reprise::replay
