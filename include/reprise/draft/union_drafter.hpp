// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <type_traits>
#include <utility>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/draft/detail/members.hpp"
#include "reprise/draft/detail/merged_draft.hpp"
#include "reprise/evidence/detail/claim_calibrator.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// The draft of one member of a combination, its calibrated claims, and the corresponding nodes of the combined draft.
class SubDraft {
 public:
  /// The maximum number of nodes that are read from a member's draft.
  static constexpr std::size_t most = 128;

  template <class Member>
  void propose(Member& member, TokenSpan context, const DraftBudget& budget) {
    Draft draft(nodes_, budget);
    member.propose(context, draft);
    size_ = draft.size();
    kind_ = draft.view().kind();
    left_out_ = draft.left_out();
    held_back_ = draft.held_back();
    malformed_ = draft.malformed();
    places_.fill(anchor_parent);
  }
  [[nodiscard]] DraftView view() const noexcept { return {std::span(nodes_).first(size_), kind_}; }
  [[nodiscard]] bool left_out() const noexcept { return left_out_; }
  [[nodiscard]] bool held_back() const noexcept { return held_back_; }
  [[nodiscard]] bool malformed() const noexcept { return malformed_; }
  [[nodiscard]] std::span<const NodeIndex> places() const noexcept { return std::span(places_).first(size_); }

  /// Calibrates the claims with `trust`, except those of forced and auxiliary nodes: forced tokens are certain, and the
  /// target never confirms or rejects auxiliary ones. Returns the sum of all path probabilities, in units of 2^-30: the
  /// number of tokens that the draft is expected to save.
  std::uint64_t weigh(const ClaimCalibrator& trust) noexcept {
    std::uint64_t sum = 0;
    std::array<Probability, most> paths;  // NOLINT(*-member-init): filled as far as it is read
    for (std::size_t i = 0; i < size_; ++i) {
      claims_[i] = conditional_probability(view(), i);
      if (nodes_[i].source != DraftSource::jump_forward && !nodes_[i].auxiliary)
        claims_[i] = Probability::from_raw(trust.trusted(ClaimCalibrator::claim(view(), i)) *
                                           (Probability::scale / ClaimCalibrator::one));
      paths[i] = claims_[i] * (nodes_[i].parent == anchor_parent ? Probability::one() : paths[at(nodes_[i].parent)]);
      sum += paths[i].raw();
    }
    return sum;
  }

  /// Adds the calibrated claims to a tree, and sets places() to their nodes in it. A node that does not fit is omitted
  /// with its children.
  template <std::size_t Most>
  void add_to(MergedDraft<Most>& merged) noexcept {
    place([&](std::size_t i, NodeIndex parent) {
      const DraftNode& node = nodes_[i];
      return merged.add(parent, {.token = node.token,
                                 .probability = claims_[i],
                                 .match_length = node.match_length,
                                 .source = node.source,
                                 .auxiliary = node.auxiliary});
    });
  }
  /// Sets places() to the corresponding nodes of a tree, without adding any.
  template <std::size_t Most>
  void find_in(const MergedDraft<Most>& merged) noexcept {
    place([&](std::size_t i, NodeIndex parent) {
      return nodes_[i].auxiliary ? anchor_parent : merged.find(parent, nodes_[i].token);
    });
  }
  /// Converts places() from nodes of the tree to nodes of the written draft.
  template <std::size_t Most>
  void follow(const MergedDraft<Most>& merged) noexcept {
    for (std::size_t i = 0; i < size_; ++i)
      if (places_[i] != anchor_parent) places_[i] = merged.written(places_[i]);
  }

 private:
  [[nodiscard]] static std::size_t at(NodeIndex i) noexcept { return static_cast<std::size_t>(i); }
  template <class Place>
  void place(Place where) noexcept {
    for (std::size_t i = 0; i < size_; ++i) {
      places_[i] = anchor_parent;
      const NodeIndex parent = nodes_[i].parent;
      if (parent != anchor_parent && places_[at(parent)] == anchor_parent) continue;
      places_[i] = where(i, parent == anchor_parent ? anchor_parent : places_[at(parent)]);
    }
  }

  std::array<DraftNode, most> nodes_{};
  std::array<Probability, most> claims_{};
  std::array<NodeIndex, most> places_{};
  std::size_t size_ = 0;
  DraftKind kind_ = DraftKind::ordered;
  bool left_out_ = false;
  bool held_back_ = false;
  bool malformed_ = false;
};

/// The common base of BestOf and UnionDrafter. It holds a draft and a calibrator for each member, and one combined
/// draft. It translates each outcome for every member.
///
/// A member's sampled draft is treated like any other: the combined draft is ordered, and verified by agreement.
template <DraftStrategy... Strategies>
class SubDrafts : public Members<Strategies...> {
  using Base = Members<Strategies...>;

 public:
  void begin(TokenSpan context) {
    trusts_ = beginnings();
    Base::begin(context);
  }
  void feedback(TokenSpan context, const Outcome& outcome) {
    feedback_each(context, outcome, [](std::size_t, const Outcome&) {});
  }

  static constexpr bool calibrated = true;  ///< see CalibratedStrategy

  /// Returns the calibrator of the i-th member's claims.
  [[nodiscard]] const ClaimCalibrator& trust(std::size_t i) const noexcept REPRISE_LIFETIMEBOUND { return trusts_[i]; }

 protected:
  explicit SubDrafts(Strategies... strategies) : Base(std::move(strategies)...) {}

  /// Calls propose() of all members. Returns the expected savings of each draft; see SubDraft::weigh().
  std::array<std::uint64_t, sizeof...(Strategies)> propose_all(TokenSpan context, const DraftBudget& budget) {
    std::array<std::uint64_t, sizeof...(Strategies)> worth{};
    this->for_each_member([&](auto& member, std::size_t i) {
      drafts_[i].propose(member, context, budget);
      worth[i] = drafts_[i].weigh(trusts_[i]);
    });
    merged_.clear();
    this->drafted_ = true;
    return worth;
  }
  /// Gives every member the outcome of its own draft, and `visit` too: visit(member, outcome).
  template <class Visit>
  void feedback_each(TokenSpan context, const Outcome& outcome, Visit&& visit) {
    const std::size_t most = std::exchange(this->drafted_, false) ? SubDraft::most : 0;
    this->for_each_member([&]<class Member>(Member& member, std::size_t i) {
      const SubDraft& draft = drafts_[i];
      const Outcome own =
          outcome_.translate(draft.view().prefix(most), draft.places(), draft.left_out(), outcome, TopKLearner<Member>);
      trusts_[i].learn(own);
      visit(i, own);
      member.feedback(context, own);
    });
  }
  [[nodiscard]] DraftView draft_of(std::size_t i) const noexcept { return drafts_[i].view(); }
  void add(std::size_t i) noexcept { drafts_[i].add_to(merged_); }
  void find(std::size_t i) noexcept { drafts_[i].find_in(merged_); }
  void write(Draft& draft) noexcept {
    merged_.write(draft);
    for (SubDraft& own : drafts_) {
      own.follow(merged_);
      if (own.left_out() || own.view().size() > 0) draft.leave_out();
      if (own.held_back()) draft.hold_back();
      if (own.malformed()) draft.mark_malformed();
    }
  }

 private:
  static constexpr std::size_t rows = std::min<std::size_t>(sizeof...(Strategies) * SubDraft::most, 256);

  static std::array<ClaimCalibrator, sizeof...(Strategies)> beginnings() noexcept {
    return {CalibratedStrategy<Strategies> ? ClaimCalibrator::of_calibrated() : ClaimCalibrator()...};
  }

  std::array<SubDraft, sizeof...(Strategies)> drafts_;
  std::array<ClaimCalibrator, sizeof...(Strategies)> trusts_ = beginnings();
  MergedDraft<rows> merged_;
  MemberOutcome<SubDraft::most, rows, (TopKLearner<Strategies> || ...)> outcome_;
};

}}}  // namespace reprise::detail

namespace reprise { inline namespace v0 {

/// Merges the drafts of several strategies into one ordered tree. member<i>() returns the i-th strategy.
///
/// The same token under the same parent becomes one node, except for auxiliary nodes. The node has the source and the
/// probability of the member that claims the highest probability for it. One member can thus continue a path that
/// another member has started.
///
/// Each member's claims are first calibrated by the target's verdicts on earlier claims (ClaimCalibrator). A member
/// that claims too much thus does not crowd out the others. The draft states the calibrated probabilities, so
/// CostOptions::calibrated may be set. If the budget asks for a chain, only the most probable child of each node is
/// drafted.
///
/// Two kinds of nodes are not calibrated. Auxiliary nodes keep their stated probability. Forced tokens
/// (JumpForwardDrafter) keep probability one and come first. Siblings that the grammar excludes are omitted. Drafts of
/// other members that agree with the forced tokens continue after them.
///
/// After every committed round, each member receives the outcome of its own draft, even if other members proposed the
/// same nodes; see MemberOutcome.
///
/// A member's sampled draft becomes part of an ordered draft. The output stays exact, because an ordered draft is
/// verified by agreement, but agreement accepts fewer tokens than rejection sampling. FirstMatch keeps sampled drafts
/// as they are.
///
/// Limits: at most 128 nodes per member are read, and 256 in all. Cost of propose(): the costs of the members, plus
/// about the cost of sorting the nodes. Size: 4 KB per member plus 20 KB, or plus 44 KB if a member is a TopKLearner;
/// no allocation of its own. Threads: one at a time; copies are independent.
template <DraftStrategy... Strategies>
class UnionDrafter : public detail::SubDrafts<Strategies...> {
 public:
  explicit UnionDrafter(Strategies... strategies) : detail::SubDrafts<Strategies...>(std::move(strategies)...) {}

  void propose(TokenSpan context, Draft& draft) {
    static_cast<void>(this->propose_all(context, draft.budget()));
    for (std::size_t i = 0; i < sizeof...(Strategies); ++i) this->add(i);
    this->write(draft);
  }
};

/// Uses the draft of the first strategy that proposes any node; propose() of later strategies is not called. Suits
/// strategies that are expensive and whose order of quality is known. member<i>() returns the i-th strategy.
///
/// The draft is passed on unchanged. A sampled draft keeps its distributions. Rejection sampling stays unbiased: the
/// choice depends only on whether members propose any node, not on the tokens that they draw. Every member gets
/// feedback in every committed round. If a member drafted nothing or its propose() was not called, its outcome has an
/// empty draft. For a TopKLearner, the draft may instead hold the sent nodes, marked as padding.
///
/// Cost: that of the members whose propose() is called. Size: 3 KB, or 32 KB if a member is a TopKLearner; no
/// allocation of its own. Threads: one at a time; copies are independent.
template <DraftStrategy... Strategies>
class FirstMatch : public detail::Members<Strategies...> {
 public:
  static constexpr bool calibrated = (CalibratedStrategy<Strategies> && ...);  ///< see CalibratedStrategy

  explicit FirstMatch(Strategies... strategies) : detail::Members<Strategies...>(std::move(strategies)...) {}

  void propose(TokenSpan context, Draft& draft) {
    chosen_ = none;
    this->drafted_ = true;
    bool left_out = false;
    bool held_back = false;
    bool malformed = false;
    this->for_each_member([&](auto& member, std::size_t i) {
      if (chosen_ != none) return;
      draft.clear();
      member.propose(context, draft);
      if (!draft.empty()) chosen_ = i;
      left_out = left_out || draft.left_out();
      held_back = held_back || draft.held_back();
      malformed = malformed || draft.malformed();
    });
    if (left_out) draft.leave_out();
    if (held_back) draft.hold_back();
    if (malformed) draft.mark_malformed();
  }

  void feedback(TokenSpan context, const Outcome& outcome) {
    if (!std::exchange(this->drafted_, false)) chosen_ = none;
    this->for_each_member([&]<class Member>(Member& member, std::size_t i) {
      member.feedback(context,
                      i == chosen_ ? outcome : outcome_.translate({}, {}, false, outcome, TopKLearner<Member>));
    });
  }

  /// Returns the distribution from which a node of the draft was drawn. Returns an empty span if the member that
  /// proposed the draft provides none.
  [[nodiscard]] std::span<const float> distribution(NodeIndex node) const
      requires(DistributionStrategy<Strategies> || ...) {
    return this->drafted_ ? distribution_of<0>(node) : std::span<const float>();
  }

 private:
  static constexpr std::size_t none = sizeof...(Strategies);
  static constexpr std::size_t rows = 256;

  template <std::size_t i>
  [[nodiscard]] std::span<const float> distribution_of(NodeIndex node) const {
    if constexpr (i < sizeof...(Strategies)) {
      using Member = std::remove_cvref_t<decltype(this->template member<i>())>;
      if (chosen_ != i) return distribution_of<i + 1>(node);
      if constexpr (DistributionStrategy<Member>) return this->template member<i>().distribution(node);
    }
    return {};
  }

  std::size_t chosen_ = none;
  detail::MemberOutcome<1, rows, (TopKLearner<Strategies> || ...)> outcome_;
};

}}  // namespace reprise
