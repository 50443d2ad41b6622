// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/core/strategy.hpp"
#include "reprise/draft/followed_context.hpp"
#include "reprise/draft/frontier.hpp"
#include "reprise/evidence/calibration.hpp"
#include "reprise/evidence/match_weight.hpp"
#include "reprise/index/lookup_index.hpp"
#include "reprise/index/rolling_hash.hpp"
#include "reprise/index/token_counts.hpp"
#include "reprise/memory/shared_memory.hpp"

namespace reprise {

/// Settings of NgramDrafter. None needs to be changed.
struct NgramOptions {
  /// Less likely paths are not proposed. DraftBudget can only ask for more.
  Probability min_path_probability = Probability::ratio(1, 500);
  CalibrationState prior;                  ///< what is known of the target before the first token
  std::uint64_t key = IndexOptions{}.key;  ///< see IndexOptions
  std::size_t max_bytes = unlimited;       ///< see IndexOptions; for the index
  std::size_t max_evidence = 1 << 16;      ///< tokens that rebase() keeps of what is no longer the context; 0: none
  const SharedMemory* memory = nullptr;    ///< sequences of the past, which vote too. It outlives the drafter and its
                                           ///< copies; the drafter reads it while another thread may write
};

/// Drafts from what the context has said before, and says how likely it is.
///
/// Earlier places that end like the context (n-grams of 4, 2 and 1 tokens), and the places whose copy is under way,
/// vote for what comes next (match_weight.hpp). Shares of the vote become probabilities, corrected by what the target
/// accepts (calibration.hpp). The draft is a tree, grown best first: the most probable path that is left is always
/// taken next, so every prefix is the best smaller draft. Where a chain is asked for, only the best token of each place
/// is taken. How many of them are worth sending is for control to say.
///
/// With a memory, up to twelve places in it that end like the context vote too. They are looked up anew for each
/// draft, so what is drafted is a function of the context and of what the memory holds at that time.
///
/// Cost of propose: a few dozen nanoseconds for each node, whatever the length of the context. observe: an append to
/// the index, three lookups and one step of the matches that are followed. A memory adds one
/// to three microseconds to propose. Memory: the index over three n-gram lengths, 11 to 21 bytes for each distinct
/// token, below two bytes for each token, and 25 KB. truncate: see FollowedContext. Threads: one at a time; copies are
/// independent.
template <LookupIndex Index = RollingHashIndex>
class NgramDrafter {
 public:
  /// Most nodes of a draft.
  static constexpr std::size_t max_nodes = 64;
  static constexpr bool calibrated = true;  ///< see CalibratedStrategy

  explicit NgramDrafter(const NgramOptions& options = {})
      : options_(options), context_(options.key, options.max_bytes), calibration_(options.prior) {}

  void begin(TokenSpan tokens) {
    context_.clear();
    calibration_ = Calibration(options_.prior);
    observe(tokens, Origin::prompt);
  }

  void observe(TokenSpan tokens, Origin origin) {
    forget_proposal();
    context_.observe(tokens, origin);
  }
  void truncate(std::size_t size) {
    forget_proposal();
    context_.truncate(size);
  }
  /// See RebasableStrategy. What was between the common beginning and the common end of the two contexts stays as
  /// evidence, the latest NgramOptions::max_evidence tokens of all that was so replaced; so does what was learned about
  /// the target. Where NgramOptions::max_bytes, or the memory, has no room for both, the evidence is dropped. Cost:
  /// that of begin() with evidence and context, also in memory, and 4 bytes for each of their tokens meanwhile; where
  /// the context has only grown, that of observe().
  void rebase(TokenSpan tokens) {
    forget_proposal();
    context_.rebase(tokens, options_.max_evidence);
  }
  /// Afterwards observe() does not allocate up to there, as long as there are no more than 32,768 distinct tokens, and
  /// no more than 1,024 changes between prompt and output.
  void reserve(std::size_t max_context) { context_.reserve(max_context); }

  void propose(const DraftBudget& budget, Draft& draft) {
    forget_proposal();
    const std::size_t most = std::min({budget.max_nodes, max_nodes, draft.capacity()});
    if (exhausted() || context_.context().empty() || most == 0 || budget.max_depth == 0) return;
    const bool chain = budget.shape == DraftShape::chain || budget.max_leaves <= 1;
    least_ = std::max(options_.min_path_probability, budget.min_path_probability);
    gather();
    frontier_.reset(chain ? 1 : most);
    expand(anchor_parent);
    for (std::size_t leaves = 0; !frontier_.empty();) {
      const Node& node = nodes_[proposed_] = frontier_.pop();
      bool& inner = node.parent == anchor_parent ? root_inner_ : nodes_[static_cast<std::size_t>(node.parent)].inner;
      const bool new_leaf = inner || node.parent == anchor_parent;
      if (new_leaf && leaves == budget.max_leaves) continue;
      leaves += new_leaf ? 1 : 0;
      inner = true;
      static_cast<void>(draft.push({.token = node.token,
                                    .parent = node.parent,
                                    .path_probability = node.path,
                                    .match_length = node.length,
                                    .source = node.source}));
      if (++proposed_ == most) break;
      if (chain)
        frontier_.reset(1);
      else
        frontier_.want_one_less();
      if (node.depth < budget.max_depth) expand(static_cast<NodeIndex>(proposed_ - 1));
    }
    if (considered_count_ > 0) draft.leave_out();
  }

  /// Everything that was considered after the anchor is a lesson, proposed or not: from what is proposed alone, one who
  /// is too pessimistic would never learn better.
  void feedback(const Outcome& outcome) noexcept {
    give_credit(outcome);
    for_each_tested(outcome, [&](std::size_t i, bool picked) {
      if (i < proposed_ && nodes_[i].parent != anchor_parent) calibration_.learn(nodes_[i].lesson, picked);
    });
    std::optional<Token> first = outcome.pick;
    if (!outcome.accepted.empty()) first = outcome.draft[static_cast<std::size_t>(outcome.accepted[0])].token;
    if (first) {
      for (const Considered& considered : std::span(considered_).first(considered_count_))
        calibration_.learn(considered.lesson, considered.token == *first);
      if (considered_count_ != 0) calibration_.learn_recent(considered_[likeliest_].token == *first);
    }
    forget_proposal();
  }

  [[nodiscard]] const NgramOptions& options() const noexcept { return options_; }
  /// Of [evidence | context]; see rebase().
  [[nodiscard]] const Index& index() const noexcept { return context_.index(); }
  /// Tokens of evidence that rebase() has kept.
  [[nodiscard]] std::size_t evidence() const noexcept { return context_.evidence(); }
  /// What has been learned since begin(): the prior of the next sequence, if the caller wants that.
  [[nodiscard]] const CalibrationState& calibration() const noexcept { return calibration_.state(); }
  /// Indexing has stopped for want of memory (see NgramOptions::max_bytes); nothing is drafted until begin(),
  /// or until truncate() leaves only what is indexed.
  [[nodiscard]] bool exhausted() const noexcept { return context_.index().exhausted(); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept { return context_.memory_bytes(); }

 private:
  static constexpr std::size_t compared_again = 8;
  static constexpr Probability worth_looking_again = Probability::ratio(1, 10);

  /// An occurrence that votes, at any depth of the draft.
  struct Voter {
    Position next = 0;  // in the text; of a remembered one in the memory, moving on as it is read
    std::uint32_t standing = 0;
    const detail::LengthWeights* weights = nullptr;
    int length = 0;                // agreement with the context; below 0 for one found by the draft alone
    SharedMemory::Slot begin = 0;  // of a remembered one
  };
  using Voters = std::uint64_t;  // a set of them
  static constexpr std::size_t max_own_voters = 32;
  static constexpr std::size_t max_voters = max_own_voters + SharedMemory::most_matches;

  /// A token of the draft, or one that may become it.
  struct Node {
    Probability path;
    Token token = 0;
    NodeIndex parent = anchor_parent;
    Voters voters = 0;
    Calibration::Lesson lesson;
    std::uint16_t depth = 0;  // 1: follows the anchor
    std::uint16_t length = 0;
    DraftSource source = DraftSource::context;
    bool inner = false;  // has a child
  };

  /// A token that some voters foretell at the place that is being expanded.
  struct Child {
    Token token = 0;
    Voters voters = 0;
    TokenEvidence evidence;
  };
  struct Considered {
    Token token = 0;
    Calibration::Lesson lesson;
  };

  void forget_proposal() noexcept {
    proposed_ = 0;
    considered_count_ = 0;
    root_inner_ = false;
  }

  /// The occurrences that vote on this draft.
  void gather() noexcept {
    voter_count_ = 0;
    remembered_ = 0;
    for (const detail::LiveMatch& match : context_.matches()) {
      const std::uint32_t earlier = match.length >= 31 ? 0 : match.agreements >> (match.length + 1);
      voters_[voter_count_++] = {
          match.next,
          detail::standing(context_.tokens().size() - match.next, context_.origin_of(match.next), match.kind),
          &detail::length_weights(std::popcount(earlier)), int{match.length}};
    }
    if (options_.memory == nullptr) return;
    std::array<SharedMemory::HistoryMatch, SharedMemory::most_matches> found;
    const TokenSpan tokens = context_.tokens();
    const std::size_t count = options_.memory->find(tokens.last(std::min<std::size_t>(tokens.size(), 32)), found);
    for (const SharedMemory::HistoryMatch& match : std::span(found).first(count)) {
      const int length = std::countr_one(match.agreements);
      const std::uint32_t earlier = length >= 31 ? 0 : match.agreements >> (length + 1);
      remembered_ |= Voters{1} << voter_count_;
      voters_[voter_count_++] = {match.next, detail::remembered_standing,
                                 &detail::length_weights(std::popcount(earlier)), length, match.next};
    }
  }

  [[nodiscard]] static detail::Weight weight(const Voter& voter, std::size_t depth) noexcept {
    const std::size_t length = static_cast<std::size_t>(voter.length) + depth;
    return 1 + static_cast<detail::Weight>(
                   std::uint64_t{voter.standing} * (*voter.weights)[detail::length_class(length)] >> 12);
  }

  [[nodiscard]] std::size_t remembered_count() const noexcept {
    return static_cast<std::size_t>(std::popcount(remembered_));
  }
  [[nodiscard]] EvidenceSource source_of(Voters voters) const noexcept {
    const Voters from_memory = voters & remembered_;
    if (from_memory == 0) return EvidenceSource::context;
    return from_memory == voters ? EvidenceSource::memory : EvidenceSource::both;
  }

  /// What follows the context and the path to `parent` at this place; a copy that runs past the end of the context goes
  /// on in the draft.
  [[nodiscard]] Token token_at(std::size_t position, NodeIndex parent) const noexcept {
    const TokenSpan tokens = context_.tokens();
    if (position < tokens.size()) return tokens[position];
    const std::size_t depth = position - tokens.size() + 1;
    const Node* node = &nodes_[static_cast<std::size_t>(parent)];
    while (node->depth > depth) node = &nodes_[static_cast<std::size_t>(node->parent)];
    return node->token;
  }

  /// What a voter foretells behind `depth` tokens of the draft. It is asked once for each depth, in order.
  [[nodiscard]] std::optional<Token> foretold(std::size_t i, std::size_t depth, NodeIndex parent) noexcept {
    Voter& voter = voters_[i];
    if ((remembered_ >> i & 1) == 0) return token_at(voter.next + depth, parent);
    if (voter.next == SharedMemory::nowhere) return std::nullopt;
    const HistoryWord word = options_.memory->word(voter.next);
    voter.next = options_.memory->after(voter.next);
    if (word.empty()) return std::nullopt;
    return word.token();
  }

  /// What of the memory has been of use is not to be the next to go.
  void give_credit(const Outcome& outcome) const noexcept {
    if (options_.memory == nullptr || outcome.accepted.empty()) return;
    const auto last = static_cast<std::size_t>(outcome.accepted.back());
    if (last >= proposed_) return;
    for (Voters left = nodes_[last].voters & remembered_; left != 0; left &= left - 1)
      options_.memory->touch(voters_[static_cast<std::size_t>(std::countr_zero(left))].begin);
  }

  /// The draft may have come to words that the context knows: the latest places where its last two tokens, or its last
  /// one, occurred vote too.
  void look_again(NodeIndex parent) noexcept {
    const TokenSpan tokens = context_.tokens();
    Node& node = nodes_[static_cast<std::size_t>(parent)];
    std::array<Token, compared_again> end;  // the last tokens of the context and the path, the last one last
    const std::size_t known = std::min(end.size(), tokens.size() + node.depth);
    NodeIndex at = parent;
    for (std::size_t i = 1; i <= known; ++i) {
      const bool drafted = at != anchor_parent;
      end[end.size() - i] =
          drafted ? nodes_[static_cast<std::size_t>(at)].token : tokens[tokens.size() + node.depth - i];
      if (drafted) at = nodes_[static_cast<std::size_t>(at)].parent;
    }
    for (const std::size_t n : {std::size_t{2}, std::size_t{1}}) {
      if (voter_count_ - remembered_count() == max_own_voters || known < n) return;
      const Position place = context_.index().latest(TokenSpan(end).last(n));
      if (place >= tokens.size() || place < node.depth) continue;
      const auto next = static_cast<Position>(place - node.depth);
      const auto follows = [&](Voters voters) {
        for (voters &= ~remembered_; voters != 0; voters &= voters - 1)
          if (voters_[static_cast<std::size_t>(std::countr_zero(voters))].next == next) return true;
        return false;
      };
      if (follows(node.voters)) continue;
      const std::uint32_t agreements = detail::agreements_of(tokens.first(place), TokenSpan(end).last(known));
      const int length = std::countr_one(agreements);
      node.voters |= Voters{1} << voter_count_;
      voters_[voter_count_++] = {
          next, detail::standing(tokens.size() - next, context_.origin_of(place), detail::MatchKind::lookup),
          &detail::length_weights(std::popcount(agreements >> length)), length - static_cast<int>(node.depth)};
    }
  }

  /// Offers the tokens that may follow `parent` to the frontier.
  void expand(NodeIndex parent) noexcept {
    const bool root = parent == anchor_parent;
    if constexpr (NgramIndex<Index>) {
      if (!root && nodes_[static_cast<std::size_t>(parent)].path >= worth_looking_again) look_again(parent);
    }
    const Node* node = root ? nullptr : &nodes_[static_cast<std::size_t>(parent)];
    const std::size_t depth = root ? 0 : node->depth;
    const Probability path = root ? Probability::one() : node->path;

    std::size_t count = 0;
    detail::Weight total = detail::weight_one;
    const Voters all = root ? (Voters{1} << voter_count_) - 1 : node->voters;
    for (Voters left = all; left != 0; left &= left - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(left));
      const std::optional<Token> known = foretold(i, depth, parent);
      if (!known) continue;
      const Token token = *known;
      const detail::Weight votes = weight(voters_[i], depth);
      std::size_t c = 0;
      while (c < count && children_[c].token != token) ++c;
      if (c == count) children_[count++] = {token, 0, {}};
      Child& child = children_[c];
      child.voters |= Voters{1} << i;
      child.evidence.votes += votes;
      child.evidence.strongest = std::max(child.evidence.strongest, votes);
      child.evidence.longest = std::max(child.evidence.longest, voters_[i].length + static_cast<int>(depth));
      ++child.evidence.occurrences;
      total += votes;
    }

    int longest = -1;
    int second = -1;
    for (const Child& child : std::span(children_).first(count)) {
      second = std::max(second, std::min(longest, child.evidence.longest));
      longest = std::max(longest, child.evidence.longest);
    }
    const Token before = root ? context_.tokens().back() : node->token;
    const Calibration::Place place = calibration_.place(depth, before, context_.counts().count(before));
    Probability best = Probability::zero();
    const auto offer = [&](Token token, Voters voters, const TokenEvidence& evidence) {
      const Calibration::Lesson lesson = calibration_.weigh(token, evidence, total, place);
      const Probability reached = path * lesson.probability;
      if (root) {
        if (reached > best) {
          best = reached;
          likeliest_ = considered_count_;
        }
        considered_[considered_count_++] = {token, lesson};
      }
      if (reached < least_ || reached <= frontier_.bar()) return;
      frontier_.push({reached, token, parent, voters, lesson, static_cast<std::uint16_t>(depth + 1),
                      static_cast<std::uint16_t>(std::clamp(evidence.longest, 0, 65535)),
                      evidence.source == EvidenceSource::memory ? DraftSource::memory : DraftSource::context, false});
    };
    for (Child& child : std::span(children_).first(count)) {
      child.evidence.source = source_of(child.voters);
      child.evidence.count = context_.counts().count(child.token);
      child.evidence.rival = child.evidence.longest == longest ? second : longest;
      offer(child.token, child.voters, child.evidence);
    }

    // Where "something else" is likely, the tokens that are always likely.
    if ((std::uint64_t{path.raw()} << 16) * 20 <= std::uint64_t{total} << 30) return;
    for (const TokenCounts::Entry& entry : context_.counts().frequent()) {
      const auto same = [&](const Child& child) { return child.token == entry.token; };
      if (std::any_of(children_.begin(), children_.begin() + static_cast<std::ptrdiff_t>(count), same)) continue;
      const detail::Weight votes = detail::frequency_weight(entry.count, context_.counts().total());
      // The list goes from frequent to rare: once the plain share of the vote is too small, all further ones are. (The
      // bar of the frontier would end it sooner, but it is higher for smaller drafts, which have to be prefixes of
      // larger ones.)
      if (std::uint64_t{path.raw()} * votes < std::uint64_t{least_.raw()} * total) break;
      offer(entry.token, 0, {.votes = votes, .strongest = votes, .rival = longest, .count = entry.count});
    }
  }

  NgramOptions options_;
  detail::FollowedContext<Index> context_;
  Calibration calibration_;

  std::array<Child, max_voters> children_;  // scratch of expand()

  // The draft being made, and what feedback() has to know of it.
  std::array<Voter, max_voters> voters_;
  std::size_t voter_count_ = 0;
  Voters remembered_ = 0;  // those in the memory
  detail::Frontier<Node, max_nodes> frontier_;
  std::array<Node, max_nodes> nodes_;
  std::size_t proposed_ = 0;
  std::array<Considered, max_voters + TokenCounts::most_frequent> considered_;  // after the anchor
  std::size_t considered_count_ = 0;
  std::size_t likeliest_ = 0;  // of these
  bool root_inner_ = false;
  Probability least_;
};

static_assert(RebasableStrategy<NgramDrafter<>>);

}  // namespace reprise
