// SPDX-License-Identifier: Apache-2.0
#include "pass_record.hpp"

#include <utility>

namespace reprise::replay {

void PassRecorder::began(const TraceSession& session) {
  now_ = find_(session);
  bytes_ = 0;
  pass_ = {};
}

void PassRecorder::tested(const Outcome& outcome) {
  if (now_ == nullptr || !now_->complete) return;
  pass_.cut = outcome.cut;
  pass_.nodes.clear();
  for (const DraftNode& node : outcome.draft) {
    const auto percent = std::uint64_t{node.path_probability.raw()} * 100 / Probability::scale;
    pass_.nodes.push_back(
        {node.token, node.parent, node.source, ShownPass::Fate::not_sent, static_cast<std::uint8_t>(percent)});
  }
  for (const NodeIndex i : outcome.sent) pass_.nodes[static_cast<std::size_t>(i)].fate = ShownPass::Fate::rejected;
  for (const NodeIndex i : outcome.accepted) pass_.nodes[static_cast<std::size_t>(i)].fate = ShownPass::Fate::accepted;
}

void PassRecorder::passed(const Passed& pass) {
  if (now_ == nullptr || !now_->complete) return;
  // A node takes a token of up to 7 bytes, its parent, its percentage, its source and its fate; see page.cpp.
  bytes_ += 24 + 17 * pass_.nodes.size() + 8 * pass.committed;
  if (bytes_ > most_bytes_) {
    now_->complete = false;
    return;
  }
  pass_.committed = pass.committed;
  now_->passes.push_back(std::exchange(pass_, {}));
}

}  // namespace reprise::replay
