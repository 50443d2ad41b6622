// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <span>
#include <tuple>
#include <utility>

#include "reprise/core/strategy.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// Translates the outcome of a combined draft into the outcome for one member, as if only that member's draft had been
/// proposed.
///
/// The accepted nodes are the member's nodes along the committed path, up to the first token that the member did not
/// propose. The pick is the target's token at that point: the token of another member's node, or the pick after the
/// path. for_each_tested() then reports on the member's nodes as if all of them had been sent.
///
/// `Own`: the maximum number of nodes in a member's draft. `Rows`: the maximum number of nodes in the combined draft.
/// `Reveals`: true if a member learns from ranked tokens (Outcome::top_k). These tokens may follow nodes of other
/// members. The sent nodes of other members are therefore appended to the member's own nodes and marked as padding.
///
/// Cost: linear in `Own` + `Rows`. The returned views are valid until the next translate(). No allocation.
template <std::size_t Own, std::size_t Rows, bool Reveals>
class MemberOutcome {
 public:
  /// Returns the outcome `combined`, translated for one member.
  ///
  /// `own`: the member's draft. `places`: for each node of `own`, the corresponding node of the combined draft, or
  /// anchor_parent if there is none. No two nodes correspond to the same node, and the parents of corresponding nodes
  /// correspond. `left_out`: see Draft::leave_out(). `reveal`: whether to translate Outcome::top_k.
  Outcome translate(DraftView own, std::span<const NodeIndex> places, bool left_out, const Outcome& combined,
                    bool reveal) noexcept {
    rows_.fill({});
    for (std::size_t i = 0; i < own.size(); ++i)
      if (Row* row = row_of(places[i])) row->own = static_cast<NodeIndex>(i);
    for (const NodeIndex node : combined.sent)
      if (Row* row = row_of(node)) row->sent = true;

    Outcome outcome{.draft = own, .sent = {}, .accepted = {}, .pick = {}, .cut = Cut::none, .top_k = {}};
    std::size_t sent = 0;
    bool all_placed = true;
    for (std::size_t i = 0; i < own.size(); ++i) {
      const Row* row = row_of(places[i]);
      all_placed = all_placed && row != nullptr;
      if (row != nullptr && row->sent) sent_[sent++] = static_cast<NodeIndex>(i);
    }
    outcome.sent = std::span(sent_).first(sent);

    std::size_t accepted = 0;
    while (accepted < combined.accepted.size()) {
      const Row* row = row_of(combined.accepted[accepted]);
      if (row == nullptr || row->own == anchor_parent) break;
      accepted_[accepted++] = row->own;
    }
    outcome.accepted = std::span(accepted_).first(accepted);
    outcome.pick = accepted == combined.accepted.size()
                       ? combined.pick
                       : combined.draft[static_cast<std::size_t>(combined.accepted[accepted])].token;

    if (own.empty())
      outcome.cut = left_out ? Cut::unlikely : Cut::no_match;
    else if (sent < own.size())
      outcome.cut = all_placed ? combined.cut : Cut::budget;  // for example, others used up the budget
    if constexpr (Reveals) {
      if (reveal && !combined.top_k.empty()) this->reveal(combined, outcome);
    }
    return outcome;
  }

 private:
  /// A node of the combined draft.
  struct Row {
    NodeIndex own = anchor_parent;  // the corresponding node of the member's draft
    bool sent = false;
  };

  [[nodiscard]] Row* row_of(NodeIndex node) noexcept {
    const bool known = node >= 0 && static_cast<std::size_t>(node) < Rows;
    return known ? &rows_[static_cast<std::size_t>(node)] : nullptr;
  }

  /// Appends the other members' sent nodes to the member's draft. Copies the ranked tokens and renumbers their nodes to
  /// match.
  void reveal(const Outcome& combined, Outcome& outcome) noexcept {
    std::size_t nodes = 0;
    for (const DraftNode& node : outcome.draft) nodes_[nodes++] = node;
    for (const NodeIndex i : combined.sent) {
      Row* row = row_of(i);
      if (row == nullptr || row->own != anchor_parent || static_cast<std::size_t>(i) >= combined.draft.size()) continue;
      DraftNode other = combined.draft[static_cast<std::size_t>(i)];
      const Row* parent = row_of(other.parent);
      if (parent != nullptr) other.parent = parent->own;
      other.source = DraftSource::padding;
      row->own = static_cast<NodeIndex>(nodes);
      nodes_[nodes++] = other;
    }
    outcome.draft = DraftView(std::span(nodes_).first(nodes), outcome.draft.kind());
    std::size_t revealed = 0;
    for (reprise::Outcome::RankedToken candidate : combined.top_k) {
      if (candidate.after != anchor_parent) {
        const Row* row = row_of(candidate.after);
        if (row == nullptr || row->own == anchor_parent) continue;
        candidate.after = row->own;
      }
      if (revealed == revealed_.size()) break;
      revealed_[revealed++] = candidate;
    }
    outcome.top_k = std::span(revealed_).first(revealed);
  }

  static constexpr std::size_t candidates_per_row = 8;

  std::array<Row, Rows> rows_{};
  std::array<NodeIndex, Own> sent_{};
  std::array<NodeIndex, Rows> accepted_{};
  std::array<DraftNode, Reveals ? Own + Rows : 0> nodes_{};
  std::array<reprise::Outcome::RankedToken, Reveals ? Rows * candidates_per_row : 0> revealed_{};
};

/// The base of the combinators FirstMatch, UnionDrafter and BestOf. It holds several strategies that follow the same
/// sequence, and forwards the calls that are the same for all of them.
template <DraftStrategy... Strategies>
class Members {
  static_assert(sizeof...(Strategies) > 0, "a combinator needs at least one strategy");

 public:
  void begin(TokenSpan context) {
    drafted_ = false;
    for_each([&](auto& member) { member.begin(context); });
  }
  void observe(TokenSpan context, std::size_t fresh, Origin origin) {
    drafted_ = false;
    for_each([&](auto& member) { member.observe(context, fresh, origin); });
  }
  void truncate(TokenSpan context, std::size_t size) {
    drafted_ = false;
    for_each([&](auto& member) { member.truncate(context, size); });
  }
  /// Calls begin() for members that cannot rebase.
  void rebase(TokenSpan before, TokenSpan context) requires(RebasableStrategy<Strategies> || ...) {
    drafted_ = false;
    for_each([&]<class Member>(Member& member) {
      if constexpr (RebasableStrategy<Member>)
        member.rebase(before, context);
      else
        member.begin(context);
    });
  }
  void reserve(std::size_t max_context) {
    for_each([&]<class Member>(Member& member) {
      if constexpr (ReservableStrategy<Member>) member.reserve(max_context);
    });
  }
  /// Returns the heap bytes of the members that report them.
  [[nodiscard]] std::size_t memory_bytes() const {
    std::size_t bytes = 0;
    for_each([&]<class Member>(const Member& member) {
      if constexpr (MeasurableStrategy<Member>) bytes += member.memory_bytes();
    });
    return bytes;
  }
  /// Returns the largest top_k_wanted() of the members.
  [[nodiscard]] std::size_t top_k_wanted() const requires(TopKLearner<Strategies> || ...) {
    std::size_t most = 0;
    for_each([&]<class Member>(const Member& member) {
      if constexpr (TopKLearner<Member>) most = std::max<std::size_t>(most, member.top_k_wanted());
    });
    return most;
  }
  void learn_row(TokenSpan context, TokenSpan likeliest) requires(RowLearner<Strategies> || ...) {
    for_each([&]<class Member>(Member& member) {
      if constexpr (RowLearner<Member>) member.learn_row(context, likeliest);
    });
  }

  /// Returns the i-th member, in the order of the template arguments.
  template <std::size_t i>
  [[nodiscard]] auto& member() noexcept {
    return std::get<i>(members_);
  }
  template <std::size_t i>
  [[nodiscard]] const auto& member() const noexcept {
    return std::get<i>(members_);
  }

 protected:
  explicit Members(Strategies... strategies) : members_(std::move(strategies)...) {}

  /// Calls visit(member, i) for each member in order, starting with i = 0.
  template <class Visit>
  void for_each_member(Visit visit) {
    std::size_t i = 0;
    for_each([&](auto& member) { visit(member, i++); });
  }

  bool drafted_ = false;  // propose() has made the draft of this round, and feedback() has not learned from it yet

 private:
  template <class Visit>
  void for_each(Visit&& visit) {
    std::apply([&](auto&... members) { (visit(members), ...); }, members_);
  }
  template <class Visit>
  void for_each(Visit&& visit) const {
    std::apply([&](const auto&... members) { (visit(members), ...); }, members_);
  }

  std::tuple<Strategies...> members_;
};

}}}  // namespace reprise::detail
