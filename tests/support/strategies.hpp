// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Strategies whose drafts a test dictates.
///
/// * Dictated    drafts the nodes that it is given, and ignores everything else
/// * Following   the same, and tracks the context from the calls alone
/// * Listening   the same as Dictated, and keeps the last outcome and budget
/// * Scripted    the same as Dictated, and its copies record all calls in one log
/// * Calibrated, Keeping, Curious   Scripted with optional functions of a strategy

#include <array>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"

namespace reprise::testing {

using Tokens = std::vector<Token>;
using Nodes = std::vector<DraftNode>;

inline DraftNode node(Token token, NodeIndex parent, std::uint32_t percent, DraftSource source = DraftSource::unknown) {
  return {.token = token, .parent = parent, .path_probability = Probability::ratio(percent, 100), .source = source};
}
inline Tokens tokens_of(const Nodes& nodes) {
  Tokens tokens;
  for (const DraftNode& node : nodes) tokens.push_back(node.token);
  return tokens;
}

/// Pushes at most 256 nodes in order, without allocating. A parent is an index into `nodes`, even if the draft has
/// refused earlier ones; children of refused nodes are left out. Malformed parents are pushed as they are: the node
/// itself, a later node, or less than the anchor.
inline void push_all(Draft& draft, const Nodes& nodes) noexcept {
  constexpr NodeIndex refused = -2;
  std::array<NodeIndex, 256> places;  // NOLINT(*-member-init): filled as far as it is read
  for (std::size_t i = 0; i < nodes.size() && i < places.size(); ++i) {
    const auto place = static_cast<NodeIndex>(draft.size());
    DraftNode pushed = nodes[i];
    const bool earlier = pushed.parent >= 0 && pushed.parent < static_cast<NodeIndex>(i);
    if (earlier) pushed.parent = places[static_cast<std::size_t>(pushed.parent)];
    if (!earlier && pushed.parent >= 0) pushed.parent += place - static_cast<NodeIndex>(i);  // as far ahead as it was
    const bool orphan = earlier && pushed.parent == refused;
    places[i] = !orphan && draft.push(pushed) ? place : refused;
  }
}

/// Drafts the nodes that it is given for every context.
struct Dictated {
  Nodes nodes = {};
  DraftKind kind = DraftKind::ordered;

  void begin(TokenSpan) noexcept {}
  void observe(TokenSpan, std::size_t, Origin) noexcept {}
  void feedback(TokenSpan, const Outcome&) noexcept {}
  void truncate(TokenSpan, std::size_t) noexcept {}
  void propose(TokenSpan, Draft& draft) const noexcept {
    draft.clear(kind);
    push_all(draft, nodes);
  }
};
static_assert(DraftStrategy<Dictated>);

/// Tracks the context from the calls. In step, it equals the session's.
struct Following : Dictated {
  Tokens told = {};

  void begin(TokenSpan context) { told.assign(context.begin(), context.end()); }
  void observe(TokenSpan context, std::size_t fresh, Origin) {
    told.insert(told.end(), context.end() - static_cast<std::ptrdiff_t>(fresh), context.end());
  }
  void truncate(TokenSpan, std::size_t size) { told.resize(size); }
};
static_assert(DraftStrategy<Following>);

/// An outcome that outlives feedback().
struct KeptOutcome {
  Nodes draft;
  std::vector<NodeIndex> sent;
  std::vector<NodeIndex> accepted;
  std::optional<Token> pick;
  Cut cut = Cut::none;
  std::vector<Outcome::RankedToken> top_k;

  KeptOutcome() = default;
  explicit KeptOutcome(const Outcome& outcome)
      : draft(outcome.draft.begin(), outcome.draft.end()),
        sent(outcome.sent.begin(), outcome.sent.end()),
        accepted(outcome.accepted.begin(), outcome.accepted.end()),
        pick(outcome.pick),
        cut(outcome.cut),
        top_k(outcome.top_k.begin(), outcome.top_k.end()) {}
  [[nodiscard]] DraftView view() const { return {draft, DraftKind::ordered}; }
};

/// Keeps the arguments of its last calls.
struct Listening : Dictated {
  std::size_t wanted = 0;  ///< top-k tokens of each row
  KeptOutcome heard = {};
  DraftBudget asked = {};
  int proposals = 0;

  void propose(TokenSpan context, Draft& draft) {
    ++proposals;
    asked = draft.budget();
    Dictated::propose(context, draft);
  }
  void feedback(TokenSpan, const Outcome& outcome) { heard = KeptOutcome(outcome); }
  [[nodiscard]] std::size_t top_k_wanted() const noexcept { return wanted; }
};
static_assert(TopKLearner<Listening>);

/// All calls of a Scripted strategy.
struct Told {
  std::vector<std::string> calls;
  std::vector<KeptOutcome> outcomes;
  Nodes proposed;  ///< the last draft, without the refused nodes
};

/// Drafts the given nodes for every context, and records its calls. Copies write to the same log.
struct Scripted {
  Nodes nodes;
  DraftKind kind = DraftKind::ordered;
  bool left_out = false;
  std::shared_ptr<Told> told = std::make_shared<Told>();

  void begin(TokenSpan context) { told->calls.push_back("begin " + std::to_string(context.size())); }
  void observe(TokenSpan, std::size_t fresh, Origin) { told->calls.push_back("observe " + std::to_string(fresh)); }
  void truncate(TokenSpan, std::size_t size) { told->calls.push_back("truncate " + std::to_string(size)); }
  void propose(TokenSpan, Draft& draft) {
    told->calls.emplace_back("propose");
    draft.clear(kind);
    push_all(draft, nodes);
    if (left_out) draft.leave_out();
    told->proposed.assign(draft.view().begin(), draft.view().end());
  }
  void feedback(TokenSpan, const Outcome& outcome) {
    told->calls.emplace_back("feedback");
    told->outcomes.emplace_back(outcome);
  }
};
/// A strategy whose claims are taken as calibrated.
struct Calibrated : Scripted {
  static constexpr bool calibrated = true;
};
/// A strategy with all optional functions that concern the context.
struct Keeping : Scripted {
  std::size_t bytes = 0;
  void rebase(TokenSpan, TokenSpan context) { told->calls.push_back("rebase " + std::to_string(context.size())); }
  void reserve(std::size_t max_context) { told->calls.push_back("reserve " + std::to_string(max_context)); }
  [[nodiscard]] std::size_t memory_bytes() const { return bytes; }
};
/// A strategy that learns from top-k rows.
struct Curious : Scripted {
  std::size_t wanted = 1;
  [[nodiscard]] std::size_t top_k_wanted() const { return wanted; }
};

}  // namespace reprise::testing
