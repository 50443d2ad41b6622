// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <vector>

#include "pass_watcher.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/token.hpp"
#include "trace.hpp"

namespace reprise::replay {

/// A pass of a session that is shown token by token.
struct ShownPass {
  /// What became of a drafted token.
  enum class Fate : std::uint8_t { accepted, rejected, not_sent };
  struct Node {
    Token token = 0;
    NodeIndex parent = anchor_parent;
    DraftSource source = DraftSource::unknown;
    Fate fate = Fate::not_sent;
    std::uint8_t percent = 0;  ///< probability of the whole path
  };
  std::vector<Node> nodes;    ///< the draft as proposed
  std::size_t committed = 0;  ///< tokens: the accepted ones, then the model's own
  Cut cut = Cut::none;
};

/// The passes of a session, in order. The first output token of a turn belongs to no pass.
struct ShownSession {
  std::size_t index = 0;  ///< of the session among all sessions of a page
  const TraceSession* session = nullptr;
  std::vector<ShownPass> passes;
  bool complete = true;  ///< false: the passes at the end were left out
};

/// Records the passes of some sessions of a replay.
class PassRecorder : public PassWatcher {
 public:
  /// `find` returns the record of a session; nullptr: the session is not recorded. A record ends before its passes take
  /// more than `most_bytes` on the page.
  PassRecorder(std::function<ShownSession*(const TraceSession&)> find, std::size_t most_bytes)
      : find_(std::move(find)), most_bytes_(most_bytes) {}

  void began(const TraceSession& session) override;
  void tested(const Outcome& outcome) override;
  void passed(const Passed& pass) override;

 private:
  std::function<ShownSession*(const TraceSession&)> find_;
  std::size_t most_bytes_;
  ShownSession* now_ = nullptr;
  std::size_t bytes_ = 0;
  ShownPass pass_;
};

}  // namespace reprise::replay
