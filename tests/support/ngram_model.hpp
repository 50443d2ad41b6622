// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>
#include <vector>

#include "reprise/core/datastore.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"
#include "reprise/draft/detail/shown_rows.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/evidence/detail/match_weight.hpp"
#include "reprise/evidence/detail/next_token_evidence.hpp"
#include "reprise/evidence/detail/token_calibrator.hpp"
#include "reprise/index/next_token_counts.hpp"
#include "reprise/index/ranked_rows.hpp"

namespace reprise::testing {

using reprise::detail::EvidenceSource;
using reprise::detail::NextTokenEvidence;
using reprise::detail::NextTokenSource;
using reprise::detail::store_source;
using reprise::detail::TokenCalibrator;
using reprise::detail::TokenEvidence;
using reprise::detail::VoteWeight;

/// The policy of NgramDrafter, slow and obvious. It searches all tokens for every occurrence, counts with a map, and
/// searches all candidates for the best one. It truncates by repeating the calls. Evidence is a text before the
/// context. It remembers all rows of the target, and searches them backwards for the latest one. It shares only the
/// pure functions of evidence/, the tables of earlier sequences, and the hash that says which rows replace each other.
/// Memory never runs out.
class NgramModel {
 public:
  /// `looks_again`: as over an index that models NgramIndex.
  explicit NgramModel(const NgramOptions& options = {}, bool looks_again = true)
      : options_(options), looks_again_(looks_again), calibration_(options.prior) {}

  void begin(TokenSpan tokens) {
    pieces_.clear();
    evidence_ = 0;
    start();
    calibration_ = TokenCalibrator(options_.prior);
    rows_.clear();
    picks_.clear();
    asks_ = {};
    any_row_ = false;
    idle_rounds_ = 0;
    observe(tokens, Origin::prompt);
  }
  void rebase(TokenSpan tokens) {
    forget();
    const std::vector<Token> old(text_.begin() + static_cast<std::ptrdiff_t>(evidence_), text_.end());
    std::size_t head = 0;
    while (head < std::min(old.size(), tokens.size()) && old[head] == tokens[head]) ++head;
    if (head < old.size() || head < tokens.size()) picks_.clear();
    if (head == old.size()) return add(tokens.subspan(head), Origin::prompt);
    std::size_t tail = 0;
    while (head + tail < std::min(old.size(), tokens.size()) &&
           old[old.size() - 1 - tail] == tokens[tokens.size() - 1 - tail])
      ++tail;
    Piece text;
    const auto keep = [&](std::size_t begin, std::size_t end) {
      for (std::size_t i = begin; i < end; ++i) {
        text.tokens.push_back(text_[i]);
        text.origins.push_back(origins_[i]);
      }
    };
    keep(0, evidence_);
    if (head + tail < old.size())
      keep(evidence_ + head - std::min<std::size_t>(head, 32), text_.size() - tail + std::min<std::size_t>(tail, 32));
    const auto excess =
        static_cast<std::ptrdiff_t>(text.tokens.size() - std::min(text.tokens.size(), options_.max_evidence));
    text.tokens.erase(text.tokens.begin(), text.tokens.begin() + excess);
    text.origins.erase(text.origins.begin(), text.origins.begin() + excess);
    const std::size_t evidence = text.tokens.size();
    keep(evidence_, evidence_ + head);
    text.tokens.insert(text.tokens.end(), tokens.begin() + static_cast<std::ptrdiff_t>(head),
                       tokens.end() - static_cast<std::ptrdiff_t>(tail));
    text.origins.resize(text.tokens.size(), Origin::prompt);
    keep(text_.size() - tail, text_.size());
    evidence_ = evidence;
    pieces_.assign(1, text);
    start();
    if (!text.tokens.empty()) take(text);
  }
  void observe(TokenSpan tokens, Origin origin) {
    forget();
    if (any_row_) keeps_rows_ = true;  // the memory is there from now on
    add(tokens, origin);
  }
  void add(TokenSpan tokens, Origin origin) {
    if (tokens.empty()) return;
    pieces_.push_back({{tokens.begin(), tokens.end()}, std::vector<Origin>(tokens.size(), origin)});
    take(pieces_.back());
  }
  void truncate(std::size_t size) {
    forget();
    size += evidence_;
    if (size < picks_end_) picks_.clear();
    if (size >= text_.size()) return;
    std::vector<Piece> pieces;
    for (std::size_t left = size; left > 0; left -= pieces.back().tokens.size()) {
      pieces.push_back(pieces_[pieces.size()]);
      if (pieces.back().tokens.size() > left) pieces.back().tokens.resize(left);
    }
    pieces_ = std::move(pieces);
    start();
    for (const Piece& piece : pieces_) take(piece);
  }

  std::vector<DraftNode> propose(const DraftBudget& budget, std::size_t capacity) {
    forget();
    std::size_t wanted = std::min({budget.max_nodes, capacity, std::size_t{64}});
    if (size() == 0 || wanted == 0 || budget.max_depth == 0) return {};
    const bool chain = budget.shape == DraftShape::chain || budget.max_leaves <= 1;
    // Surplus candidates are dropped for good; without a limit on the leaves that changes nothing.
    const bool give_up = chain || budget.max_leaves < wanted;
    least_ = std::max(options_.min_path_probability, budget.min_path_probability);
    gather();
    std::vector<DraftNode> draft;
    std::vector<Candidate> candidates;
    offer_children(anchor_parent, chain ? 1 : wanted, give_up, candidates);
    std::size_t leaves = 0;
    while (!candidates.empty() && wanted > 0) {
      const auto best = std::max_element(candidates.begin(), candidates.end(),
                                         [](const Candidate& a, const Candidate& b) { return a.path < b.path; });
      const Candidate node = *best;
      candidates.erase(best);
      const bool first_child = std::none_of(nodes_.begin(), nodes_.end(),
                                            [&](const Candidate& other) { return other.parent == node.parent; });
      const bool new_leaf = node.parent == anchor_parent || !first_child;
      if (new_leaf && leaves == budget.max_leaves) continue;
      if (new_leaf) ++leaves;
      nodes_.push_back(node);
      draft.push_back(
          {node.token, node.parent, node.path, static_cast<std::uint16_t>(node.length), node.source, false});
      --wanted;
      if (chain) candidates.clear();
      if (node.depth < budget.max_depth && wanted > 0)
        offer_children(static_cast<NodeIndex>(nodes_.size() - 1), chain ? 1 : wanted, give_up, candidates);
    }
    return draft;
  }

  /// Learns a row of the prompt.
  void learn_row(TokenSpan context, TokenSpan likeliest) {
    if (options_.top_k == 0 || context.empty()) return;
    Ranks ranks;
    for (const Token token : likeliest.first(std::min<std::size_t>(likeliest.size(), 8)))
      if (token >= 0) ranks.emplace(ranks.size(), token);
    if (ranks.empty()) return;
    keeps_rows_ = true;
    keep({context.begin(), context.end()}, ranks);
  }
  [[nodiscard]] std::size_t top_k_wanted() const {
    return idle_rounds_ < 256 ? std::min<std::size_t>(options_.top_k, 8) : 0;
  }

  void feedback(const Outcome& outcome) {
    if (options_.top_k > 0) learn_rows(outcome);
    learn_stores(outcome);
    // Learns from the path, then from the pick at the anchor and at each node of the path.
    for (std::size_t i = 0; i < outcome.draft.size() && i < nodes_.size(); ++i) {
      const DraftNode& node = outcome.draft[i];
      if (node.auxiliary || nodes_[i].parent == anchor_parent) continue;
      std::optional<Token> picked;
      bool tested = false;
      for (std::size_t k = 0; k <= outcome.accepted.size() && !tested; ++k) {
        tested = node.parent == (k == 0 ? anchor_parent : outcome.accepted[k - 1]);
        if (tested) picked = after(outcome, k);
      }
      if (picked) calibration_.learn(nodes_[i].lesson, *picked == node.token);
    }
    if (const std::optional<Token> first = after(outcome, 0)) {
      for (const auto& [token, lesson] : considered_) calibration_.learn(lesson, token == *first);
      if (!considered_.empty()) calibration_.learn_recent(likeliest_ == *first);
    }
    forget();
  }

  [[nodiscard]] const CalibrationState& calibration() const { return calibration_.state(); }
  /// Number of tokens of the context.
  [[nodiscard]] std::size_t size() const { return text_.size() - evidence_; }
  [[nodiscard]] std::size_t evidence() const { return evidence_; }
  [[nodiscard]] TokenSpan context() const { return TokenSpan(text_).subspan(evidence_); }
  /// Number of nodes of the last draft that are named by next-token counts or latest rankings and that no voter
  /// predicts.
  [[nodiscard]] std::size_t named_nodes() const {
    return static_cast<std::size_t>(std::count_if(
        nodes_.begin(), nodes_.end(), [](const Candidate& node) { return !node.voted && node.lesson.next.listed; }));
  }
  /// Number of nodes of the last draft that are named by rankings and that no voter predicts.
  [[nodiscard]] std::size_t ranked_nodes() const {
    return static_cast<std::size_t>(std::count_if(
        nodes_.begin(), nodes_.end(), [](const Candidate& node) { return !node.voted && node.lesson.next.ranked(); }));
  }
  /// Number of nodes of the last draft whose position each source knows.
  [[nodiscard]] std::array<std::size_t, NextTokenEvidence::sources> nodes_by_source() const {
    std::array<std::size_t, NextTokenEvidence::sources> known{};
    for (const Candidate& node : nodes_)
      for (std::size_t i = 0; i < known.size(); ++i)
        known[i] += node.lesson.next.classes[i] != NextTokenEvidence::unknown ? 1 : 0;
    return known;
  }

 private:
  struct Piece {
    std::vector<Token> tokens;
    std::vector<Origin> origins;
  };
  struct Followed {
    std::size_t next = 0;
    std::deque<bool> agreements;  // the latest first, at most 32
    std::size_t length = 0;
    reprise::detail::MatchKind kind = reprise::detail::MatchKind::lookup;

    [[nodiscard]] long agreements_from(std::size_t first, std::size_t last) const {
      long count = 0;
      for (std::size_t i = first; i < std::min(last, agreements.size()); ++i) count += agreements[i] ? 1 : 0;
      return count;
    }
    [[nodiscard]] auto value() const {
      return std::tuple(4 * static_cast<long>(std::min<std::size_t>(length, 16)) +
                            agreements_from(std::min<std::size_t>(length, 31), 32),
                        next);
    }
    void shift_in(bool agrees) {
      agreements.push_front(agrees);
      if (agreements.size() > 32) agreements.pop_back();
    }
  };
  /// What a store has been asked: drafts that asked it in a row without help, and drafts skipped since the last ask.
  struct Asks {
    std::size_t unhelped = 0;
    std::size_t skipped = 0;
    bool ever_helped = false;
  };
  /// A place that votes in a draft. Its token for depth d of the draft is at next + d, or is remembered[d].
  struct Voter {
    std::size_t next = 0;
    long length = 0;  // agreement at depth 0; negative if only the draft agrees
    std::uint64_t standing = 0;
    const reprise::detail::LengthWeights* weights = nullptr;
    std::optional<std::vector<Token>> remembered = std::nullopt;  // for a place in a store: its continuation
    std::size_t store = 0;                                        // the store of that place
  };
  struct Candidate {
    Probability path;
    Token token = 0;
    NodeIndex parent = anchor_parent;
    std::vector<std::size_t> voters;
    TokenCalibrator::TrainingSample lesson;
    std::size_t depth = 0;
    int length = 0;
    DraftSource source = DraftSource::context;
    bool voted = false;  // a voter predicted it, not only a list
  };
  struct Child {
    Token token = 0;
    std::vector<std::size_t> voters;
    TokenEvidence evidence;
  };
  /// A token that a list names. It is likely enough to be a child if `part` of `whole` of the path is.
  using Ranks = std::map<std::size_t, Token>;  // the tokens of a ranking by rank, some of which may be missing
  struct Row {
    std::vector<Token> after;  // one or two tokens
    Ranks ranks;
  };
  struct NamedToken {
    Token token = 0;
    std::uint8_t evidence = NextTokenEvidence::unknown;
    std::uint64_t part = 0;
    std::uint64_t whole = 0;
  };
  /// Tokens that may follow a text, such as those that were counted after its last token.
  struct NamedTokens {
    std::size_t place = 0;  // index in NextTokenEvidence::classes
    bool known = false;     // the list has an entry for this text
    std::uint8_t absent = NextTokenEvidence::unknown;
    std::vector<NamedToken> tokens;
  };

  void start() {
    text_.clear();
    origins_.clear();
    counts_.clear();
    followed_.clear();
  }
  void forget() {
    nodes_.clear();
    gathered_ = false;
    considered_.clear();
  }
  static std::optional<Token> after(const Outcome& outcome, std::size_t depth) {
    if (depth == outcome.accepted.size()) return outcome.pick;
    return outcome.draft[static_cast<std::size_t>(outcome.accepted[depth])].token;
  }

  // ---- following the context

  void take(const Piece& piece) {
    const std::size_t unfollowed = piece.tokens.size() > 64 ? piece.tokens.size() - 64 : 0;
    for (std::size_t i = 0; i < piece.tokens.size(); ++i) {
      text_.push_back(piece.tokens[i]);
      origins_.push_back(piece.origins[i]);
      ++counts_[piece.tokens[i]];
      if (unfollowed > 0 && i < unfollowed) {
        followed_.clear();
        continue;
      }
      move_on();
      for (const std::size_t n : {4U, 2U, 1U}) look_up(n, n == 4 ? 2 : 4);
    }
  }
  void move_on() {
    const std::size_t last = text_.size() - 1;
    std::vector<Followed> before = std::exchange(followed_, {});
    const Followed* broken = nullptr;
    for (const Followed& place : before) {
      const bool agrees = text_[place.next] == text_[last];
      if (!agrees && place.length >= 8 && (broken == nullptr || place.length > broken->length)) broken = &place;
      Followed moved = place;
      ++moved.next;
      moved.shift_in(agrees);
      moved.length = agrees ? std::min<std::size_t>(place.length + 1, 1000) : 0;
      if (agrees || moved.agreements_from(0, 16) >= 12) followed_.push_back(moved);
    }
    if (broken == nullptr) return;
    Followed inserted = *broken;
    inserted.shift_in(false);
    inserted.length = 0;
    inserted.kind = reprise::detail::MatchKind::insertion;
    follow(inserted);
    for (std::size_t at = broken->next + 1; at <= broken->next + 8 && at < last; ++at) {
      if (text_[at] != text_[last]) continue;
      Followed omitted = *broken;
      omitted.next = at + 1;
      omitted.shift_in(true);
      omitted.length = 1;
      omitted.kind = reprise::detail::MatchKind::omission;
      follow(omitted);
      break;
    }
  }
  /// Looks up the most recent places that end with the last `n` tokens.
  void look_up(std::size_t n, std::size_t most) {
    std::size_t found = 0;
    for (std::size_t place = text_.size() - 1; place >= n && place > 0 && found < most; --place) {
      if (!std::equal(text_.end() - static_cast<std::ptrdiff_t>(n), text_.end(),
                      text_.begin() + static_cast<std::ptrdiff_t>(place - n)))
        continue;
      ++found;
      Followed match;
      match.next = place;
      for (std::size_t i = 1; i <= place && i <= 32; ++i)
        match.agreements.push_back(text_[place - i] == text_[text_.size() - i]);
      while (match.length < match.agreements.size() && match.agreements[match.length]) ++match.length;
      follow(match);
    }
  }
  void follow(const Followed& place) {
    for (const Followed& other : followed_)
      if (other.next == place.next) return;
    if (followed_.size() < 8) return followed_.push_back(place);
    Followed* worst = &followed_[0];
    for (Followed& other : followed_)
      if (other.value() < worst->value()) worst = &other;
    if (worst->value() < place.value()) *worst = place;
  }

  // ---- growing the draft

  [[nodiscard]] std::vector<Token> text_to(NodeIndex node) const {
    std::vector<Token> path;
    for (; node != anchor_parent; node = nodes_[static_cast<std::size_t>(node)].parent)
      path.insert(path.begin(), nodes_[static_cast<std::size_t>(node)].token);
    std::vector<Token> text = text_;
    text.insert(text.end(), path.begin(), path.end());
    return text;
  }
  void gather() {
    voters_.clear();
    gathered_ = true;
    for (const Followed& place : followed_)
      voters_.push_back(
          {place.next, static_cast<long>(place.length),
           reprise::detail::base_weight(text_.size() - place.next, origins_[place.next], place.kind),
           &reprise::detail::length_weights(static_cast<int>(place.agreements_from(place.length + 1, 32)))});
    std::size_t stores = 0;
    for (const DatastoreRef& store : options_.stores) stores += store.empty() ? 0 : 1;
    for (std::size_t i = 0; i < options_.stores.size(); ++i)
      if (!options_.stores[i].empty() && asks(i)) gather_remembered(i, std::min<std::size_t>(12, 32 / stores));
  }
  /// True if the next draft asks this store: the history of its asks says how many drafts are skipped after the last.
  [[nodiscard]] bool asks(std::size_t store) const {
    const Asks& asks = asks_[store];
    const std::size_t allowed = asks.ever_helped ? 128 : 16;
    if (asks.unhelped < allowed) return true;
    const std::size_t doublings = std::min<std::size_t>(asks.unhelped - allowed, 4);
    return asks.skipped == (std::size_t{2} << doublings) - 1;
  }
  /// Counts the draft, if there was one, in the history of each store. Any place on the accepted path helps.
  /// If nothing was sent, the node with the target's token is the path.
  void learn_stores(const Outcome& outcome) {
    for (std::size_t i = 0; gathered_ && i < asks_.size(); ++i) {
      if (!asks(i)) {
        ++asks_[i].skipped;
        continue;
      }
      asks_[i].skipped = 0;
      ++asks_[i].unhelped;
      std::vector<NodeIndex> path(outcome.accepted.begin(), outcome.accepted.end());
      for (std::size_t node = 0; outcome.sent.empty() && path.empty() && node < nodes_.size(); ++node)
        if (nodes_[node].parent == anchor_parent && outcome.pick == nodes_[node].token)
          path.push_back(static_cast<NodeIndex>(node));
      for (const NodeIndex node : path)
        if (static_cast<std::size_t>(node) < nodes_.size())
          for (const std::size_t voter : nodes_[static_cast<std::size_t>(node)].voters)
            if (voters_[voter].remembered && voters_[voter].store == i) asks_[i] = {0, 0, true};
    }
  }
  void gather_remembered(std::size_t store, std::size_t most) {
    const DatastoreRef& text = options_.stores[store];
    std::vector<StoreMatch> found(most);
    found.resize(text.find(text_, found));
    for (const StoreMatch& match : found) {
      long length = 0;
      while (length < 32 && (match.agreements >> length & 1) != 0) ++length;
      int before = 0;
      for (long i = length + 1; i < 32; ++i) before += (match.agreements >> i & 1) != 0 ? 1 : 0;
      std::vector<Token> tokens(65);
      tokens.resize(text.read(match.next, tokens).size);
      voters_.push_back(
          {0, length, reprise::detail::history_base_weight, &reprise::detail::length_weights(before), tokens, store});
    }
  }
  /// Looks up the latest place of the context that ends like the context and the path to `node`, in two tokens and in
  /// one.
  void look_again(Candidate& node, const std::vector<Token>& text) {
    auto own = std::count_if(voters_.begin(), voters_.end(), [](const Voter& voter) { return !voter.remembered; });
    for (const std::size_t n : {2U, 1U}) {
      if (own == 32 || text.size() < n) return;
      std::size_t place = text_.size();
      const auto agrees = [&](std::size_t i) { return text_[place - i] == text[text.size() - i]; };
      while (place >= n && !(agrees(1) && agrees(n))) --place;
      if (place < n || place == text_.size() || place < node.depth) continue;
      const std::size_t next = place - node.depth;
      if (std::any_of(node.voters.begin(), node.voters.end(),
                      [&](std::size_t v) { return !voters_[v].remembered && voters_[v].next == next; }))
        continue;
      // At most eight tokens are compared.
      const std::size_t compared = std::min<std::size_t>({8, place, text.size()});
      std::size_t length = 0;
      while (length < compared && agrees(length + 1)) ++length;
      int before = 0;
      for (std::size_t i = length + 1; i <= compared; ++i) before += agrees(i) ? 1 : 0;
      ++own;
      node.voters.push_back(voters_.size());
      voters_.push_back(
          {next, static_cast<long>(length) - static_cast<long>(node.depth),
           reprise::detail::base_weight(text_.size() - next, origins_[place], reprise::detail::MatchKind::lookup),
           &reprise::detail::length_weights(before)});
    }
  }
  [[nodiscard]] bool any_own(const std::vector<std::size_t>& voters) const {
    return std::any_of(voters.begin(), voters.end(), [&](std::size_t v) { return !voters_[v].remembered; });
  }
  [[nodiscard]] bool any_remembered(const std::vector<std::size_t>& voters) const {
    return std::any_of(voters.begin(), voters.end(), [&](std::size_t v) { return voters_[v].remembered.has_value(); });
  }
  [[nodiscard]] EvidenceSource source_of(const std::vector<std::size_t>& voters) const {
    std::set<std::size_t> stores;
    for (const std::size_t voter : voters)
      if (voters_[voter].remembered) stores.insert(voters_[voter].store);
    if (stores.empty()) return EvidenceSource::context;
    if (any_own(voters)) return EvidenceSource::both;
    return stores.size() == 1 ? store_source(*stores.begin()) : EvidenceSource::stores;
  }
  [[nodiscard]] std::uint64_t count(Token token) const {
    const auto found = counts_.find(token);
    return found == counts_.end() ? 0 : found->second;
  }
  [[nodiscard]] std::vector<std::pair<Token, std::uint64_t>> frequent() const {
    std::vector<std::pair<Token, std::uint64_t>> sorted(counts_.begin(), counts_.end());
    std::stable_sort(sorted.begin(), sorted.end(), [](const auto& a, const auto& b) { return a.second > b.second; });
    sorted.resize(std::min<std::size_t>(sorted.size(), 24));
    return sorted;
  }
  /// Returns the probability that a candidate must exceed to be among the best `wanted`.
  [[nodiscard]] static Probability bar(const std::vector<Candidate>& candidates, std::size_t wanted) {
    if (candidates.size() < wanted) return Probability::zero();
    std::vector<Probability> paths;
    for (const Candidate& candidate : candidates) paths.push_back(candidate.path);
    std::sort(paths.rbegin(), paths.rend());
    return paths[wanted - 1];
  }
  static void give_up_all_but(std::size_t wanted, std::vector<Candidate>& candidates) {
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const Candidate& a, const Candidate& b) { return a.path > b.path; });
    candidates.resize(std::min(candidates.size(), wanted));
  }

  void offer_children(NodeIndex parent, std::size_t wanted, bool give_up, std::vector<Candidate>& candidates) {
    const bool root = parent == anchor_parent;
    const std::size_t depth = root ? 0 : nodes_[static_cast<std::size_t>(parent)].depth;
    const Probability path = root ? Probability::one() : nodes_[static_cast<std::size_t>(parent)].path;
    const std::vector<Token> text = text_to(parent);
    if (give_up) give_up_all_but(wanted, candidates);

    std::vector<std::size_t> voters;
    if (root) {
      for (std::size_t i = 0; i < voters_.size(); ++i) voters.push_back(i);
    } else {
      Candidate& node = nodes_[static_cast<std::size_t>(parent)];
      if (looks_again_ && path >= Probability::ratio(1, 10)) look_again(node, text);
      voters = node.voters;
    }
    std::vector<Child> children;
    const VoteWeight total = add_voted(voters, depth, text, children);
    // Lists are asked only where a share of one half is likely enough.
    const bool asked = std::uint64_t{path.raw()} >= 2 * std::uint64_t{least_.raw()};
    const std::vector<NamedTokens> lists = asked ? named_after(text) : std::vector<NamedTokens>();
    add_named(lists, path, children);
    add_frequent(path, total, children);
    complete(lists, any_remembered(voters), children);

    const TokenCalibrator::TreeContext place = calibration_.tree_context(depth, text.back(), count(text.back()));
    Probability best = Probability::zero();
    for (const Child& child : children) {
      const TokenCalibrator::TrainingSample lesson = calibration_.weigh(child.token, child.evidence, total, place);
      const Probability reached = path * lesson.probability;
      if (root) {
        if (reached > best) likeliest_ = child.token;
        best = std::max(best, reached);
        considered_.emplace_back(child.token, lesson);
      }
      if (reached < least_ || (give_up && reached <= bar(candidates, wanted))) continue;
      candidates.push_back(
          {reached, child.token, parent, child.voters, lesson, depth + 1, std::max(child.evidence.longest, 0),
           !child.voters.empty() && !any_own(child.voters) ? DraftSource::history : DraftSource::context,
           !child.voters.empty()});
      if (give_up) give_up_all_but(wanted, candidates);
    }
  }

  // ---- the children of one node, by source; of equally likely children, the one added first wins

  static std::vector<Child>::iterator find(Token token, std::vector<Child>& children) {
    return std::find_if(children.begin(), children.end(), [&](const Child& child) { return child.token == token; });
  }
  /// Adds the tokens that voters predict. Returns the sum of all votes, with that of "something else".
  VoteWeight add_voted(const std::vector<std::size_t>& voters, std::size_t depth, const std::vector<Token>& text,
                       std::vector<Child>& children) const {
    VoteWeight total = reprise::detail::weight_one;
    for (const std::size_t voter : voters) {
      const Voter& place = voters_[voter];
      if (place.remembered && depth >= place.remembered->size()) continue;
      const Token token = place.remembered ? (*place.remembered)[depth] : text[place.next + depth];
      const long length = place.length + static_cast<long>(depth);
      auto child = find(token, children);
      if (child == children.end()) child = children.insert(child, Child{token, {}, {}});
      const std::size_t length_class = reprise::detail::length_class(static_cast<std::size_t>(length));
      const auto votes = 1 + static_cast<VoteWeight>(place.standing * (*place.weights)[length_class] >> 12);
      child->voters.push_back(voter);
      child->evidence.votes += votes;
      child->evidence.strongest = std::max(child->evidence.strongest, votes);
      child->evidence.longest = std::max(child->evidence.longest, static_cast<int>(length));
      child->evidence.occurrences += 1;
      total += votes;
    }
    for (Child& child : children) {
      child.evidence.count = count(child.token);
      child.evidence.source = source_of(child.voters);
      for (const Child& other : children)
        if (&other != &child) child.evidence.rival = std::max(child.evidence.rival, other.evidence.longest);
    }
    return total;
  }
  /// Adds a token that no voter predicts. It votes as a token that has occurred `times` times.
  void add_unvoted(Token token, std::uint64_t times, std::vector<Child>& children) const {
    const VoteWeight votes = reprise::detail::frequency_weight(times, text_.size());
    int longest = -1;
    for (const Child& child : children) longest = std::max(longest, child.evidence.longest);
    children.push_back({token, {}, {.votes = votes, .strongest = votes, .rival = longest, .count = count(token)}});
  }
  /// Returns the lists of tokens that may follow this text, in the order in which they add children. Each has its own
  /// place in NextTokenEvidence::classes.
  [[nodiscard]] std::vector<NamedTokens> named_after(const std::vector<Token>& text) const {
    std::vector<NamedTokens> lists;
    const std::size_t size = text.size();
    if (const NextTokenCounts* table = options_.next_tokens) {
      if (size >= 2)
        lists.push_back(counted(NextTokenSource::counts_after_two, table->next(text[size - 2], text.back())));
      lists.push_back(counted(NextTokenSource::counts_after_one, table->next(text.back())));
    }
    if (size >= 2) lists.push_back(latest_row(NextTokenSource::ranked_after_two, last_of(text, 2)));
    lists.push_back(latest_row(NextTokenSource::ranked_after_one, last_of(text, 1)));
    const bool has_picks = text_.size() == picks_end_ && !picks_.empty() && picks_.back().second == text_.back();
    if (has_picks && size == text_.size()) {
      lists.push_back(earlier_row(NextTokenSource::ranked_before, 0));
      lists.push_back(earlier_row(NextTokenSource::ranked_two_before, 1));
    }
    if (has_picks && size == text_.size() + 1) lists.push_back(earlier_row(NextTokenSource::ranked_anchor, 0));
    return lists;
  }
  static NamedTokens counted(NextTokenSource source, const NextTokenCounts::NextTokens& next) {
    NamedTokens list{static_cast<std::size_t>(source), next.total() > 0, NextTokenEvidence::absent(source), {}};
    for (const NextTokenCounts::NextToken& token : next.listed())
      list.tokens.push_back({token.token, NextTokenEvidence::CountClasses(source, next.total()).of(token.count),
                             token.count, 4 * std::uint64_t{next.total()}});
    return list;
  }
  static NamedTokens ranked(NextTokenSource source, const Ranks& ranks, bool carried) {
    NamedTokens list{static_cast<std::size_t>(source), !ranks.empty(), NextTokenEvidence::absent(source, carried), {}};
    const bool after = source == NextTokenSource::ranked_after_two || source == NextTokenSource::ranked_after_one;
    std::set<Token> named;  // of equal tokens, the first one counts
    for (const auto& [rank, token] : ranks)
      if (named.insert(token).second)
        list.tokens.push_back({token, NextTokenEvidence::ranked(source, rank, carried), 1,
                               after ? 4 + 6 * std::uint64_t{rank} : 10 + 10 * std::uint64_t{rank}});
    return list;
  }
  /// Returns the latest ranking after these tokens: that of this sequence, otherwise that of earlier ones.
  [[nodiscard]] NamedTokens latest_row(NextTokenSource source, const std::vector<Token>& after) const {
    const auto negative = [](Token token) { return token < 0; };
    if (std::any_of(after.begin(), after.end(), negative)) return ranked(source, {}, false);
    const auto replaces = [&](const Row& row) { return place_of(row.after) == place_of(after); };
    const auto own = options_.row_bytes < sizeof(RankedRows::Row)
                         ? rows_.rend()
                         : std::find_if(rows_.rbegin(), rows_.rend(), replaces);
    if (own != rows_.rend() && own->after == after) return ranked(source, own->ranks, false);
    Ranks ranks;
    if (options_.ranked_rows != nullptr) {
      const Ranking found =
          after.size() == 2 ? options_.ranked_rows->after(after[0], after[1]) : options_.ranked_rows->after(after[0]);
      for (std::size_t rank = 0; rank < found.tokens.size(); ++rank)
        if (found.tokens[rank] >= 0) ranks[rank] = found.tokens[rank];
    }
    return ranked(source, ranks, true);
  }
  /// Returns the ranking that picked the last token (0) or the one before it (1), without the tokens picked since.
  [[nodiscard]] NamedTokens earlier_row(NextTokenSource source, std::size_t back) const {
    if (back >= picks_.size()) return ranked(source, {}, false);
    Ranks ranks = picks_[picks_.size() - 1 - back].first;
    for (std::size_t i = picks_.size() - 1 - back; i < picks_.size(); ++i)
      std::erase_if(ranks, [&](const auto& ranked) { return ranked.second == picks_[i].second; });
    return ranked(source, ranks, false);
  }

  // ---- rows of the target

  /// Returns the last tokens of a text.
  static std::vector<Token> last_of(const std::vector<Token>& text, std::size_t count) {
    return {text.end() - static_cast<std::ptrdiff_t>(count), text.end()};
  }
  [[nodiscard]] std::size_t place_of(const std::vector<Token>& after) const {
    return reprise::detail::ShownRows::place_of(after.size() == 2 ? after[0] : Ranking::none, after.back(),
                                                options_.row_bytes / sizeof(RankedRows::Row));
  }
  void keep(const std::vector<Token>& text, const Ranks& ranks) {
    if (ranks.empty()) return;
    any_row_ = true;
    if (!keeps_rows_ || text.back() < 0) return;  // rows after negative tokens are not kept
    rows_.push_back({last_of(text, 1), ranks});
    if (text.size() >= 2 && text[text.size() - 2] >= 0) rows_.push_back({last_of(text, 2), ranks});
  }
  /// Remembers the rows of a pass: those of the committed path last. Counts the rounds without a sent token that only a
  /// ranking predicts.
  void learn_rows(const Outcome& outcome) {
    const bool used = std::any_of(outcome.sent.begin(), outcome.sent.end(), [&](NodeIndex i) {
      if (i < 0 || static_cast<std::size_t>(i) >= nodes_.size()) return false;
      const Candidate& node = nodes_[static_cast<std::size_t>(i)];
      return !node.voted && node.lesson.next.ranked();
    });
    if (outcome.top_k.empty() || text_.empty()) {
      picks_.clear();
    } else {
      std::map<NodeIndex, Ranks> shown;
      for (const Outcome::RankedToken& token : outcome.top_k)
        if (token.rank < 8 && token.token >= 0 && token.after < 64) shown[token.after][token.rank] = token.token;
      const auto keep_row = [&](NodeIndex node) {
        std::vector<Token> path;
        for (NodeIndex i = node; i != anchor_parent; i = outcome.draft[static_cast<std::size_t>(i)].parent)
          path.insert(path.begin(), outcome.draft[static_cast<std::size_t>(i)].token);
        path.insert(path.begin(), text_.begin(), text_.end());
        keep(path, shown[node]);
      };
      for (std::size_t i = 0; i < outcome.draft.size(); ++i) keep_row(static_cast<NodeIndex>(i));
      keep_row(anchor_parent);
      for (const NodeIndex node : outcome.accepted) keep_row(node);
      if (picks_end_ != text_.size()) picks_.clear();
      picks_end_ = text_.size();
      for (std::size_t i = 0; after(outcome, i); ++i) {
        ++picks_end_;
        picks_.emplace_back(shown[i == 0 ? anchor_parent : outcome.accepted[i - 1]], *after(outcome, i));
        if (i == outcome.accepted.size()) break;
      }
    }
    idle_rounds_ = used || !any_row_ ? 0 : idle_rounds_ + 1;
  }
  /// Adds the named tokens whose share of the path is likely enough. Every list that names a child after this is
  /// evidence for it, but a list read earlier is not.
  void add_named(const std::vector<NamedTokens>& lists, Probability path, std::vector<Child>& children) const {
    for (const NamedTokens& list : lists)
      for (const NamedToken& named : list.tokens) {
        const bool likely = std::uint64_t{path.raw()} * named.part >= std::uint64_t{least_.raw()} * named.whole;
        if (find(named.token, children) == children.end() && likely)
          add_unvoted(named.token, std::max<std::uint64_t>(count(named.token), 1), children);
        const auto child = find(named.token, children);
        if (child == children.end()) continue;
        child->evidence.next.classes[list.place] = named.evidence;
        if (list.place < first_earlier_row) child->evidence.next.listed = true;
      }
  }
  /// Adds the most frequent tokens, if the path followed by "something else" is likely enough.
  void add_frequent(Probability path, VoteWeight total, std::vector<Child>& children) const {
    // The share of "something else" is at most a twentieth.
    const auto reachable = static_cast<std::uint64_t>(path.raw()) * 20;
    if (reachable * reprise::detail::weight_one <= std::uint64_t{total} * Probability::scale) return;
    for (const auto& [token, times] : frequent()) {
      if (find(token, children) != children.end()) continue;
      const VoteWeight votes = reprise::detail::frequency_weight(times, text_.size());
      if (std::uint64_t{path.raw()} * votes < std::uint64_t{least_.raw()} * total) break;
      add_unvoted(token, times, children);
    }
  }
  /// A list that knows this text is evidence against the children that it has not named.
  static void complete(const std::vector<NamedTokens>& lists, bool stores_vote, std::vector<Child>& children) {
    for (const NamedTokens& list : lists) {
      if (!list.known) continue;
      for (Child& child : children) {
        child.evidence.stores_vote = stores_vote;
        std::uint8_t& evidence = child.evidence.next.classes[list.place];
        if (evidence == NextTokenEvidence::unknown) evidence = list.absent;
      }
    }
  }

  static constexpr std::size_t first_earlier_row = static_cast<std::size_t>(NextTokenSource::ranked_before);

  NgramOptions options_;
  bool looks_again_;
  TokenCalibrator calibration_;
  std::vector<Row> rows_;                       // all rows that were kept, the latest last
  std::vector<std::pair<Ranks, Token>> picks_;  // rankings, and the tokens that they picked
  std::size_t picks_end_ = 0;                   // size of the text with these tokens at its end
  bool any_row_ = false;
  bool keeps_rows_ = false;
  std::size_t idle_rounds_ = 0;
  std::vector<Piece> pieces_;  // the calls
  std::vector<Token> text_;    // evidence, then the context
  std::size_t evidence_ = 0;
  std::vector<Origin> origins_;
  std::map<Token, std::uint64_t> counts_;
  std::vector<Followed> followed_;
  std::array<Asks, NgramOptions::max_stores> asks_{};
  bool gathered_ = false;  // the last draft has looked for places
  // The last draft.
  std::vector<Voter> voters_;
  std::vector<Candidate> nodes_;
  std::vector<std::pair<Token, TokenCalibrator::TrainingSample>> considered_;
  Token likeliest_ = 0;
  Probability least_;
};

}  // namespace reprise::testing
