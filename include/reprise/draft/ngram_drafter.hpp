// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/core/datastore.hpp"
#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/detail/best_first.hpp"
#include "reprise/draft/detail/candidates.hpp"
#include "reprise/draft/detail/drafter_memory.hpp"
#include "reprise/draft/detail/followed_context.hpp"
#include "reprise/draft/detail/next_token_lists.hpp"
#include "reprise/draft/detail/origin_bits.hpp"
#include "reprise/draft/detail/voters.hpp"
#include "reprise/evidence/detail/match_weight.hpp"
#include "reprise/evidence/detail/shared_calibration.hpp"
#include "reprise/evidence/detail/token_calibrator.hpp"
#include "reprise/index/detail/token_counts.hpp"
#include "reprise/index/lookup_index.hpp"
#include "reprise/index/next_tokens.hpp"
#include "reprise/index/rolling_hash.hpp"

namespace reprise { inline namespace v0 {

/// Settings of NgramDrafter. All have working defaults.
struct NgramOptions {
  static constexpr std::size_t max_stores = detail::Voters::max_stores;
  /// A CalibrationState of 10 KB, which state() returns. Copies share its memory, which memory_bytes() leaves out.
  using Prior = detail::SharedCalibration;

  /// The minimum probability of a proposed path. DraftBudget::min_path_probability can only raise it.
  Probability min_path_probability = Probability::ratio(1, 500);
  Prior prior = {};                                      ///< the initial calibration; assign a CalibrationState
  std::uint64_t key = IndexOptions{}.key;                ///< see IndexOptions
  std::size_t max_bytes = unlimited;                     ///< memory limit of the index; see IndexOptions
  std::uint32_t vocabulary = IndexOptions{}.vocabulary;  ///< number of token ids; see IndexOptions
  std::size_t max_replaced = 1 << 16;  ///< maximum number of replaced tokens that rebase() keeps; 0: none
  /// Other texts, such as past sequences. Occurrences of the context's last tokens in these texts also vote for the
  /// next token (see NgramDrafter). The stores must outlive the drafter and its copies. Other threads may write to
  /// stores that allow it. An occurrence in a store does not vote if one in the context has a longer unbroken
  /// agreement, up to 32 tokens.
  ///
  /// A store that does not help is asked for fewer drafts. It helps if one of its places votes for an accepted token,
  /// or for the target's token if nothing was sent. A store whose places may not vote does not help. After 128 drafts
  /// in a row without help, 1 draft is skipped before the next one that asks, then 3, 7, 15 and 31. One help ends this.
  /// Before the first help since begin(), 16 drafts count as 128. The count is part of the drafter: copies keep it, and
  /// so do truncate() and rebase().
  std::array<DatastoreRef, max_stores> stores{};
  /// The tokens that have followed one and two tokens, for example in past sequences of the same tenant: their counts,
  /// and the target's rankings if the table keeps them. Listed tokens are candidates, and lists are evidence for all
  /// candidates. The table must outlive the drafter and its copies; another thread may write to it. Null: none.
  const NextTokens* next_tokens = nullptr;
  /// Where sequences are kept, for later ones (Memory::options() sets it, with the members that read it). begin() and
  /// keep() hand over the sequence before. begin() then starts with the calibration of the memory, not with `prior`.
  detail::MemoryRef memory = {};
  /// Number of likeliest tokens that the drafter wants for each row (top_k_wanted()), at most Ranking::most. 0: none,
  /// and rankings are ignored, those of `next_tokens` too.
  std::size_t top_k = Ranking::most;
  /// Memory limit of the rows of the current sequence, allocated when the target has shown the first row.
  std::size_t row_bytes = std::size_t{320} << 10;
};

/// Drafts tokens that followed similar text earlier in the context, and states how likely they are.
///
/// Earlier occurrences of the context's last 4, 2 and 1 tokens vote for the next token. The places that the output is
/// currently copying vote too (match_weight.hpp), and the most frequent tokens are candidates. Shares of the votes
/// become probabilities, which are calibrated by the tokens that the target picks (token_calibrator.hpp).
///
/// The draft is a tree that grows best first: the most probable path that is not yet drafted is always added next.
/// Every prefix of the draft is therefore the best smaller draft. If the budget asks for a chain, only the best child
/// of each node is drafted. Control decides how many nodes to send.
///
/// Occurrences of the context's last tokens in datastores vote too: at most 12 per store and 32 in all
/// (detail::Voters). Stores are asked again for each draft, and less often while they do not help
/// (NgramOptions::stores). After a round, the occurrences that voted for the last accepted token are touched in their
/// stores.
///
/// Two further sources know tokens that may follow the last token and the last two tokens: counts and rankings of past
/// sequences (NgramOptions::next_tokens), and the rankings that the target has shown in this sequence (TopKLearner,
/// RowLearner). Rows of rejected nodes count too. Listed tokens are candidates, and each list is evidence for every
/// candidate (next_token_evidence.hpp).
///
///  - Cost of propose(): a few dozen nanoseconds per node, regardless of the context length. A HistoryStore adds one to
///    three microseconds per draft.
///  - Cost of observe(), per token: an append to the index, three lookups, and one step of the followed matches.
///  - Cost of truncate(): see detail::FollowedContext.
///  - Cost of the other sources: at most eight cache lines per node whose path has twice the minimum probability.
///  - Memory: the index over three n-gram lengths with its text, and 24 KB for the object. Counts take 11 to 21 bytes
///    per distinct token; saved matches take less than 2 bytes per token. The total is at most 75 bytes per token plus
///    24 KB, reached when all tokens differ. Shown rows take NgramOptions::row_bytes more. Stack: 14 KB.
///
/// Threads: one at a time; copies are independent.
template <LookupIndex Index = RollingHashIndex>
class NgramDrafter {
 public:
  static constexpr std::size_t max_nodes = most_draft_nodes;  ///< maximum number of nodes in a draft
  static constexpr bool calibrated = true;                    ///< see CalibratedStrategy

  explicit NgramDrafter(const NgramOptions& options = {})
      : options_(options),
        context_(options.key, options.max_bytes, options.vocabulary),
        calibration_(options.prior.state()),
        shown_(options.top_k == 0 ? 0 : options.row_bytes),
        voters_(options.stores) {}

  /// Adds a text that the output of the next sequence may repeat: a *predicted output*, such as the old version of a
  /// file that is being rewritten, or a document. The next begin() takes it as evidence, like text that was in the
  /// context before, of which the latest NgramOptions::max_replaced tokens are kept. The first draft continues with its
  /// first tokens. The text is not handed over to NgramOptions::memory. Several texts may be added; those before one
  /// that does not fit beside them are dropped. Errors: out_of_memory; nothing is added then.
  Result<void> predict(TokenSpan text) noexcept {
    text = text.last(std::min(text.size(), options_.max_replaced));
    if (predicted_.size() > options_.max_replaced - text.size()) predicted_.clear();
    if (predicted_.append(text)) return {};
    return Error{ErrorCode::out_of_memory, "there is no memory for the predicted output: pass a shorter one",
                 text.size() * sizeof(Token), 0};
  }

  void begin(TokenSpan context) {
    keep();
    context_.clear();
    if (predicted_.size() != 0) take_prediction(context);
    shown_.clear();
    origins_.clear();
    kept_ = unused_rounds_ = 0;
    const bool remembers = !options_.memory.empty();
    calibration_ = detail::TokenCalibrator(remembers ? options_.memory->calibration() : options_.prior.state());
    voters_.begin();
    observe(context, context.size(), Origin::prompt);
  }

  /// Replaces NgramOptions::prior. The next begin() uses it, unless there is a memory.
  void assume(const NgramOptions::Prior& prior) noexcept { options_.prior = prior; }

  /// Hands the sequence to NgramOptions::memory, without what was handed over before. Call it when a request has ended;
  /// begin() calls it too. Without a memory, it does nothing.
  void keep() noexcept {
    if (unkept() == 0) return;
    const TokenSpan text = context_.context();
    options_.memory->keep({text, kept_, &origins_, shown_.rows(), &calibration_.state()});
    kept_ = text.size();
  }
  /// Hands over the text of a sequence that goes on, without its last token: keep() then hands over the rest, and what
  /// was learned. The drafter finds this text in the store too, so it counts twice.
  void keep_running() noexcept {
    if (unkept() < 2) return;
    const TokenSpan text = context_.context();
    options_.memory->keep({.text = text.first(text.size() - 1), .kept = kept_, .origins = &origins_});
    kept_ = text.size() - 1;
  }
  /// Returns the number of tokens that keep() would hand over.
  [[nodiscard]] std::size_t unkept() const noexcept {
    return options_.memory.empty() ? 0 : context_.context().size() - std::min(kept_, context_.context().size());
  }

  /// Drops the predicted output of the next sequence.
  void forget_prediction() noexcept { predicted_.clear(); }
  /// Leaves the text so far to another drafter: this one is a copy, and hands over only what comes now.
  void skip_kept() noexcept { kept_ = context_.context().size(); }
  [[nodiscard]] bool shares_memory(const NgramDrafter& other) const noexcept {
    return options_.memory == other.options_.memory;
  }

  void observe(TokenSpan context, std::size_t fresh, Origin origin) {
    forget_proposal();
    if (!options_.memory.empty()) origins_.append(fresh, origin);
    if (shown_.any()) shown_.reserve();
    context_.observe(context, fresh);
  }
  void truncate(TokenSpan, std::size_t size) {
    forget_proposal();
    if (size < shown_.lags_end() - std::min(shown_.lags_end(), replaced_tokens())) shown_.forget_lags();
    context_.truncate(size);
    origins_.truncate(size);
    kept_ = std::min(kept_, size);
  }
  /// Replaces the context; see RebasableStrategy. The old tokens between the common beginning and the common end of the
  /// two contexts stay as evidence. Up to 32 tokens before and after them are included. At most the latest
  /// NgramOptions::max_replaced such tokens are kept. The calibration is kept too. If NgramOptions::max_bytes or the
  /// memory does not suffice for them and the context, they are dropped.
  ///
  /// Cost in time and memory: that of begin() with the kept tokens and the context. It also takes 4 temporary bytes for
  /// each token of the old text and of both contexts. If the context has only grown, the cost is that of observe().
  void rebase(TokenSpan before, TokenSpan context) {
    forget_proposal();
    if (!std::equal(before.begin(), before.end(), context.begin(), context.end())) shown_.forget_lags();
    keep();
    const detail::CommonEnds common = context_.rebase(before, context, options_.max_replaced);
    origins_.truncate(common.head);
    if (!options_.memory.empty()) origins_.append(context.size() - common.head, Origin::prompt);
    // A text that has only lost a part is in the memory already.
    kept_ = common.head + common.tail < context.size() ? common.head : context.size();
  }
  /// Reserves memory, so that observe() does not allocate while the context has at most `max_context` tokens. This
  /// holds for at most 32,768 distinct tokens. After the first row that the target shows, one observe() allocates
  /// NgramOptions::row_bytes nevertheless, unless learn_row() has allocated them.
  void reserve(std::size_t max_context) {
    context_.reserve(max_context);
    if (!options_.memory.empty()) static_cast<void>(origins_.reserve(max_context));
  }

  /// Drafts from the index's own text, [replaced | context], not from the span passed in.
  void propose(TokenSpan, Draft& draft) {
    forget_proposal();
    if (exhausted() || context_.context().empty() || draft.full() || draft.budget().max_depth == 0) return;
    vocabulary_ = std::min(options_.vocabulary, draft.budget().vocabulary);
    least_ = std::max(options_.min_path_probability, draft.budget().min_path_probability);
    least_share_ = (draft.chain() ? 3 : 1) * std::uint64_t{least_.raw()};
    calibration_.set_text(context_.tokens().size());
    voters_.collect(context_);
    proposed_ = detail::grow_best_first(nodes_, draft,
                                        [this](NodeIndex at, Frontier& frontier) noexcept { expand(at, frontier); });
    if (root_count_ > 0) draft.leave_out();
  }

  /// Learns from the tested nodes of the draft. Directly after the anchor, learns from all candidates, proposed or not:
  /// learning only from proposed ones would never correct pessimism.
  void feedback(TokenSpan, const Outcome& outcome) noexcept {
    touch_stores(outcome);
    learn_rows(outcome);
    for_each_tested(outcome, [&](std::size_t i, bool picked) {
      if (i < proposed_ && nodes_[i].parent != anchor_parent) calibration_.learn(nodes_[i].sample, picked);
    });
    if (const std::optional<Token> first = committed_token(outcome, 0)) {
      for (const RootCandidate& candidate : std::span(root_candidates_).first(root_count_))
        calibration_.learn(candidate.sample, candidate.token == *first);
      if (root_count_ != 0) calibration_.learn_recent(root_candidates_[likeliest_].token == *first);
    }
    forget_proposal();
  }

  /// Learns a row of the prompt; see RowLearner. The first call allocates NgramOptions::row_bytes. Without memory, the
  /// row is dropped.
  void learn_row(TokenSpan context, TokenSpan likeliest) noexcept {
    const Ranking ranking(likeliest);
    if (options_.top_k == 0 || context.empty() || ranking.empty()) return;
    shown_.reserve();
    shown_.keep(context.size() < 2 ? std::nullopt : std::optional(context[context.size() - 2]), context.back(),
                ranking);
  }
  /// Returns the number of likeliest tokens wanted for each row: NgramOptions::top_k, or 0 after 256 rounds in which no
  /// token was sent that a ranking lists and no occurrence predicts.
  [[nodiscard]] std::size_t top_k_wanted() const noexcept {
    return unused_rounds_ < patience ? std::min(options_.top_k, Ranking::most) : 0;
  }
  /// Returns the rows that the target has shown since begin(), for NextTokens::add(). Some elements hold no row.
  [[nodiscard]] std::span<const NextTokens::RankedRow> rows() const noexcept REPRISE_LIFETIMEBOUND {
    return shown_.rows();
  }

  [[nodiscard]] const NgramOptions& options() const noexcept REPRISE_LIFETIMEBOUND { return options_; }
  /// Returns the index over the text [replaced | context]; see rebase().
  [[nodiscard]] const Index& index() const noexcept REPRISE_LIFETIMEBOUND { return context_.index(); }
  /// Returns the number of replaced tokens that rebase() has kept.
  [[nodiscard]] std::size_t replaced_tokens() const noexcept { return context_.replaced_tokens(); }
  /// Returns the calibration: NgramOptions::prior with the corrections learned since begin(). It can be the prior of
  /// the next sequence.
  [[nodiscard]] const CalibrationState& calibration() const noexcept REPRISE_LIFETIMEBOUND {
    return calibration_.state();
  }
  /// True if indexing has stopped because memory ran out (see NgramOptions::max_bytes). In that case nothing is drafted
  /// until begin() or rebase(), or until truncate() leaves only indexed tokens.
  [[nodiscard]] bool exhausted() const noexcept { return context_.index().exhausted(); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return context_.memory_bytes() + shown_.memory_bytes() + origins_.memory_bytes() + predicted_.memory_bytes();
  }

 private:
  static constexpr std::size_t most_candidates =
      detail::Voters::capacity + detail::NextTokenLists::most_added + detail::TokenCounts::most_frequent;
  static constexpr std::size_t compared_again = 8;
  static constexpr std::size_t patience = 256;  // in rounds
  static constexpr Probability worth_requerying = Probability::ratio(1, 10);

  struct RootCandidate {  // for the token after the anchor
    Token token = 0;
    detail::TokenCalibrator::TrainingSample sample;
  };
  using Node = detail::NgramNode;
  using Place = detail::NgramPlace;
  using Frontier = detail::Frontier<Node, max_nodes>;
  using Candidates = detail::Candidates<most_candidates>;

  void forget_proposal() noexcept {
    proposed_ = root_count_ = 0;
    voters_.drop();
  }
  /// Keeps the rows of the pass, and counts the rounds in which no token was sent that only rankings list.
  void learn_rows(const Outcome& outcome) noexcept {
    if (options_.top_k == 0 || exhausted()) return;  // an exhausted index lacks the last tokens
    shown_.learn(context_.tokens(), outcome);
    const bool used = std::any_of(outcome.sent.begin(), outcome.sent.end(), [&](NodeIndex node) {
      const auto i = static_cast<std::size_t>(node);
      return i < proposed_ && nodes_[i].only_ranked;
    });
    unused_rounds_ = used || !shown_.any() ? 0 : std::min(unused_rounds_ + 1, patience);
  }
  /// Makes the prediction evidence, after the last tokens of the context, which lead into it.
  REPRISE_COLD void take_prediction(TokenSpan context) noexcept {
    constexpr std::size_t lead = 32;
    const std::size_t room = options_.max_replaced - std::min(options_.max_replaced, lead);
    const TokenSpan text = TokenSpan(predicted_.data(), predicted_.size()).last(std::min(predicted_.size(), room));
    detail::Buffer<Token> evidence;
    if (!text.empty() && evidence.append(context.last(std::min(context.size(), lead))) && evidence.append(text))
      context_.clear({evidence.data(), evidence.size()});
    predicted_.clear();
  }

  /// Touches the stored places that led to the last accepted token, and counts which stores have helped.
  void touch_stores(const Outcome& outcome) noexcept {
    voters_.learn(detail::helpful_voters(std::span(nodes_).first(proposed_), outcome));
    if (outcome.accepted.empty()) return;
    const auto last = static_cast<std::size_t>(outcome.accepted.back());
    if (last < proposed_) voters_.touch(nodes_[last].voters);
  }

  /// Pushes onto the frontier the tokens that may follow `parent`.
  void expand(NodeIndex parent, Frontier& frontier) noexcept {
    Place place;
    if (parent == anchor_parent) {
      const Token last = context_.tokens().back();
      place = {parent, 0, Probability::one(), voters_.all(), last, context_.counts().count(last)};
    } else {
      Node& node = nodes_[static_cast<std::size_t>(parent)];
      if constexpr (NgramIndex<Index>) {
        if (node.path >= worth_requerying) requery(node);
      }
      place = {parent, node.depth, node.path, node.voters, node.token, node.count};
    }
    Candidates candidates;
    collect_candidates(place, candidates);
    score(place, candidates, frontier);
  }

  /// Collects all candidates for this position, each with its evidence. All sources of evidence are combined here and
  /// nowhere else. The order of the sources matters: of equally probable tokens, the one added first is drafted first.
  void collect_candidates(const Place& place, Candidates& candidates) noexcept {
    const detail::NextTokenSources from = sources();
    std::optional<detail::NextTokenLists> lists;
    if (!from.none() && detail::NextTokenLists::worth_reading(place.path, least_))
      lists.emplace(from, token_before(place), place.before, place.depth);  // prefetches
    count_votes(place, candidates);
    if (!lists) return add_frequent(place, candidates);
    lists->add(candidates, place.path, least_,
               [&](Token token) noexcept -> detail::Candidate& { return add_unvoted(token, candidates); });
    add_frequent(place, candidates);
    lists->complete(candidates.all(), voters_.has_stored(place.voters));
  }

  [[nodiscard]] detail::NextTokenSources sources() const noexcept {
    return {options_.next_tokens, shown_.any() ? &shown_ : nullptr, shown_.lags_belong_to(context_.tokens()),
            options_.top_k != 0};
  }

  /// Adds the tokens that the voters predict, in the context and in the stores, with their votes.
  void count_votes(const Place& place, Candidates& candidates) noexcept {
    for (detail::VoterSet left = place.voters; left != 0; left &= left - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(left));
      const std::optional<Token> token = predicted_token(i, place);
      if (!token) continue;
      const detail::VoteWeight votes = voters_.weight(i, place.depth);
      detail::Candidate& candidate = candidates.of(*token);
      candidate.voters |= detail::VoterSet{1} << i;
      detail::TokenEvidence& evidence = candidate.evidence;
      evidence.votes += votes;
      evidence.strongest = std::max(evidence.strongest, votes);
      evidence.longest = std::max(evidence.longest, voters_[i].length + static_cast<int>(place.depth));
      ++evidence.occurrences;
      candidates.total += votes;
    }
    int longest = -1;
    int second = -1;
    for (const detail::Candidate& candidate : candidates.all()) {
      second = std::max(second, std::min(longest, candidate.evidence.longest));
      longest = std::max(longest, candidate.evidence.longest);
    }
    for (detail::Candidate& candidate : candidates.all()) {
      candidate.evidence.source = voters_.source_of(candidate.voters);
      candidate.evidence.count = context_.counts().count(candidate.token);
      candidate.evidence.rival = candidate.evidence.longest == longest ? second : longest;
    }
    candidates.longest = longest;
  }

  /// Adds a candidate that no voter predicts.
  detail::Candidate& add_unvoted(Token token, Candidates& candidates) const noexcept {
    detail::Candidate& candidate = candidates.add(token);
    detail::TokenEvidence& evidence = candidate.evidence;
    evidence.count = context_.counts().count(token);
    evidence.votes = detail::frequency_weight(std::max<std::uint64_t>(evidence.count, 1), context_.counts().total());
    evidence.strongest = evidence.votes;
    evidence.rival = candidates.longest;
    return candidate;
  }
  /// Returns the token before `place.before`, if there is one.
  [[nodiscard]] std::optional<Token> token_before(const Place& place) const noexcept {
    const TokenSpan tokens = context_.tokens();
    if (place.parent == anchor_parent)
      return tokens.size() < 2 ? std::nullopt : std::optional(tokens[tokens.size() - 2]);
    const NodeIndex above = nodes_[static_cast<std::size_t>(place.parent)].parent;
    return above == anchor_parent ? tokens.back() : nodes_[static_cast<std::size_t>(above)].token;
  }

  /// Adds the most frequent tokens of the context, if there is room for a token without votes.
  void add_frequent(const Place& place, Candidates& candidates) const noexcept {
    if (!candidates.leave_room(place.path)) return;
    const std::uint64_t path = place.path.raw();
    const std::uint64_t total = candidates.total;
    const std::size_t voted = candidates.all().size();
    for (const detail::TokenCounts::Entry& entry : context_.counts().frequent()) {
      if (candidates.contains(entry.token, voted)) continue;
      const detail::VoteWeight votes = detail::frequency_weight(entry.count, context_.counts().total());
      // No later token has more votes. The frontier's bar() would end the loop sooner. But it depends on the size
      // of the draft, and smaller drafts must be prefixes of larger ones.
      if (path * votes < least_share_ * total) break;
      detail::TokenEvidence& evidence = candidates.add(entry.token).evidence;
      evidence.votes = votes;
      evidence.strongest = votes;
      evidence.rival = candidates.longest;
      evidence.count = entry.count;
    }
  }

  /// Computes the probability of each candidate. Pushes a candidate onto the frontier if it is likely enough.
  void score(Place place, Candidates& candidates, Frontier& frontier) noexcept {
    const detail::TokenCalibrator::TreeContext shared =
        calibration_.tree_context(place.depth, place.before, place.count);
    const bool root = place.parent == anchor_parent;
    const detail::VoteWeight total = candidates.total;
    Probability best = Probability::zero();
    for (const detail::Candidate& candidate : candidates.all()) {
      if (!in_vocabulary(candidate.token, vocabulary_)) continue;  // from a table of another vocabulary
      const detail::TokenCalibrator::TrainingSample sample =
          calibration_.weigh(candidate.token, candidate.evidence, total, shared);
      const Probability path = place.path * sample.probability;
      if (root) {
        if (path > best) {
          best = path;
          likeliest_ = root_count_;
        }
        root_candidates_[root_count_++] = {candidate.token, sample};
      }
      if (path < least_ || path <= frontier.bar()) continue;
      frontier.push(path, [&] { return detail::node_of(candidate, place, path, sample); });
    }
  }

  /// Returns the token that this voter predicts, or nullopt if there is none.
  [[nodiscard]] std::optional<Token> predicted_token(std::size_t voter, const Place& place) noexcept {
    const std::optional<Token> token = voters_.is_stored(voter)
                                           ? voters_.stored_token(voter, place.depth)
                                           : token_at(voters_[voter].next + place.depth, place.parent);
    return token && !in_vocabulary(*token, vocabulary_) ? std::nullopt : token;
  }
  /// Returns the token at a position of the text, which the path to `parent` continues. A copy that runs past the end
  /// of the context thus continues in the draft.
  [[nodiscard]] Token token_at(std::size_t position, NodeIndex parent) const noexcept {
    const TokenSpan tokens = context_.tokens();
    if (position < tokens.size()) return tokens[position];
    const std::size_t depth = position - tokens.size() + 1;
    const Node* node = &nodes_[static_cast<std::size_t>(parent)];
    while (node->depth > depth) node = &nodes_[static_cast<std::size_t>(node->parent)];
    return node->token;
  }

  /// Looks up the last two tokens of [context | path], and then the last one. Adds the places after their latest
  /// occurrences to the node's voters, because the draft may have reached text that occurs in the context.
  void requery(Node& node) noexcept {
    const TokenSpan tokens = context_.tokens();
    std::array<Token, compared_again> end;  // the last tokens of [context | path], in order
    const std::size_t known = std::min(end.size(), tokens.size() + node.depth);
    const Node* at = &node;
    for (std::size_t i = 1; i <= known; ++i) {
      end[end.size() - i] = at != nullptr ? at->token : tokens[tokens.size() + node.depth - i];
      if (at != nullptr) at = at->parent == anchor_parent ? nullptr : &nodes_[static_cast<std::size_t>(at->parent)];
    }
    for (const std::size_t n : {std::size_t{2}, std::size_t{1}}) {
      if (voters_.full() || known < n) return;
      const Position place = context_.index().latest(TokenSpan(end).last(n));
      if (place >= tokens.size() || place < node.depth) continue;
      const auto next = static_cast<Position>(place - node.depth);
      if (voters_.follow(node.voters, next)) continue;
      const std::uint32_t agreements = detail::agreements_of(tokens.first(place), TokenSpan(end).last(known));
      const int length = std::countr_one(agreements);
      node.voters |= voters_.add({next, detail::base_weight(tokens.size() - next),
                                  &detail::length_weights(detail::bit_count(agreements >> length)),
                                  length - static_cast<int>(node.depth)});
    }
  }

  NgramOptions options_;
  detail::FollowedContext<Index> context_;
  detail::TokenCalibrator calibration_;
  detail::ShownRows shown_;
  std::size_t unused_rounds_ = 0;
  detail::OriginBits origins_;       // of the context, if there is a memory
  std::size_t kept_ = 0;             // leading tokens of the context that the memory has
  detail::Buffer<Token> predicted_;  // for the next begin()

  // The current draft, with the data that feedback() needs. The voters also remember which stores have helped.
  detail::Voters voters_;
  std::array<Node, max_nodes> nodes_;
  std::size_t proposed_ = 0;
  std::array<RootCandidate, most_candidates> root_candidates_;
  std::size_t root_count_ = 0;
  std::size_t likeliest_ = 0;     // index of the likeliest candidate in root_candidates_
  std::uint32_t vocabulary_ = 0;  // of the current draft
  Probability least_;
  std::uint64_t least_share_ = 0;  // of a frequent token: its usual probability is a ninth of it; higher in a chain
};

static_assert(RebasableStrategy<NgramDrafter<>> && TopKLearner<NgramDrafter<>> && RowLearner<NgramDrafter<>>);

}}  // namespace reprise
