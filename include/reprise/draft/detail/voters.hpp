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
#include "reprise/core/detail/contract.hpp"
#include "reprise/core/detail/fixed_point.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/detail/candidates.hpp"
#include "reprise/draft/detail/followed_context.hpp"
#include "reprise/evidence/detail/match_weight.hpp"
#include "reprise/evidence/detail/token_calibrator.hpp"
#include "reprise/index/lookup_index.hpp"

namespace reprise { inline namespace v0 { namespace detail {

/// Decides for which drafts a datastore is asked. A store that has helped is asked for every draft, until 128 drafts
/// in a row have passed without help. Then 1 draft is skipped before the next one that asks, then 3, 7, 15 and at most
/// 31. One help ends this. A store that has not helped yet is asked for 16 drafts before the first one is skipped,
/// because many sequences are short.
///
/// So a store that never helps is asked for 16 + 4 drafts, and then for 1 in 32. A store that begins to help is asked
/// after at most 31 skipped drafts. The schedule changes only with learn(), so a draft that is proposed again asks the
/// same stores.
///
/// Cost: a few instructions. Memory: 2 bytes. Threads: one at a time; copies are independent.
class StoreSchedule {
 public:
  static constexpr int patience = 128;       ///< drafts without help before the first one is skipped, after a help
  static constexpr int first_patience = 16;  ///< the same, before the first help
  static constexpr int most_skipped = 31;    ///< maximum number of drafts in a row that are skipped

  /// True if the next draft asks the store.
  [[nodiscard]] constexpr bool due() const noexcept { return left_ == 0; }
  /// Learns the result of a draft. `helped`: see helpful_voters(); false if the draft did not ask the store.
  constexpr void learn(bool helped) noexcept {
    if (!due()) {
      --left_;
    } else if (helped) {
      unhelped_ = 0;
    } else {
      unhelped_ = static_cast<std::uint8_t>(std::min(unhelped_ + 1, patience + most_doublings));
      if (unhelped_ >= patience) left_ = static_cast<std::uint8_t>((2 << (unhelped_ - patience)) - 1);
    }
  }

  friend bool operator==(const StoreSchedule&, const StoreSchedule&) = default;

 private:
  static constexpr int most_doublings = 4;
  static_assert((2 << most_doublings) - 1 == most_skipped);

  std::uint8_t unhelped_ = patience - first_patience;  // drafts in a row that asked without help
  std::uint8_t left_ = 0;                              // drafts that are still skipped
};

/// The text of a datastore, starting at one place. Tokens are read on demand, a few at a time.
class StoreText {
 public:
  StoreText() noexcept = default;
  explicit StoreText(StorePlace begin) noexcept : begin_(begin), next_(begin) {}

  /// Returns the place where the text begins.
  [[nodiscard]] StorePlace begin() const noexcept { return begin_; }
  /// True if the token at `depth` has been read and is still buffered.
  [[nodiscard]] bool known(std::size_t depth) const noexcept { return depth - first_ < count_; }  // wraps below first_
  /// Returns the token at `depth`. Precondition: known(depth).
  [[nodiscard]] Token operator[](std::size_t depth) const noexcept { return tokens_[depth - first_]; }
  /// Reads until the token at `depth` is known. Returns false if the text ends before that token. Any order of depths
  /// works, but a depth before the buffered tokens restarts the reading from the beginning. A draft never does this,
  /// because each place votes along one path, parents first.
  [[nodiscard]] bool read(const DatastoreRef& store, std::size_t depth) noexcept {
    if (depth < first_) *this = StoreText(begin_);
    while (!known(depth)) {
      if (next_ == no_place) return false;
      first_ += count_;
      const StoreRun run = store.read(next_, tokens_);
      count_ = std::min(run.size, tokens_.size());
      next_ = count_ == 0 ? no_place : run.next;
    }
    return true;
  }

 private:
  StorePlace begin_ = no_place;
  StorePlace next_ = no_place;  // place of the first unread token
  std::size_t first_ = 0;       // the depth of tokens_[0]
  std::size_t count_ = 0;       // valid tokens in tokens_
  std::array<Token, 4> tokens_{};
};

/// A place in a text. At each depth of the draft, it votes for the text's token at that depth.
struct Voter {
  Position next = 0;  ///< position in the context; unused for a place in a store
  std::uint32_t base_weight = 0;
  const LengthWeights* weights = nullptr;
  int length = 0;  ///< agreement with the context in tokens; -n: the agreement starts after the n-th draft token
};

/// The places that vote on one draft: those of the context's followed matches, those found in the stores, and those
/// that the draft itself reaches. A VoterSet has one bit per place.
///
/// All stores together contribute at most 32 places. Each store gets an equal share, at most 12 places: with one or two
/// stores 12 each, with three 10, with four 8. Unused places are not given to other stores, so the votes of one store
/// do not depend on the contents of another. A store that does not help is asked for fewer drafts (StoreSchedule).
/// A place in a store does not vote if its unbroken agreement, of at most 32 tokens, is shorter than that of a place of
/// the context.
class Voters {
 public:
  static constexpr std::size_t max_own = 32;  ///< maximum number of places in the context
  static constexpr std::size_t max_from_stores = 32;
  static constexpr std::size_t max_from_store = 12;
  static constexpr std::size_t max_stores = 4;
  static constexpr std::size_t capacity = max_own + max_from_stores;

  explicit Voters(const std::array<DatastoreRef, max_stores>& stores) noexcept : stores_(stores) {
    for (const DatastoreRef& store : stores) store_count_ += store.empty() ? 0 : 1;
  }

  /// Forgets which stores have helped. Call it at the beginning of a sequence.
  void begin() noexcept { schedules_ = {}; }
  /// Collects the places of the context's followed matches and the places in the stores that are due. Call it before
  /// each draft.
  template <class Context>
  void collect(const Context& context) noexcept {
    const TokenSpan tokens = context.tokens();
    size_ = 0;
    for (const LiveMatch& match : context.matches()) {
      const std::uint32_t earlier = match.length >= 31 ? 0 : match.agreements >> (match.length + 1);
      voters_[size_++] = {match.next, base_weight(tokens.size() - match.next), &length_weights(bit_count(earlier)),
                          int{match.length}};
    }
    first_stored_ = own_ = size_;
    stored_ = 0;
    collected_ = store_count_ != 0;
    if (store_count_ != 0) collect_stored(tokens.last(std::min<std::size_t>(tokens.size(), compared)));
  }

  /// Adds a place of the context that the draft has reached. Returns the bit of this place. Precondition: !full().
  VoterSet add(const Voter& voter) noexcept {
    REPRISE_EXPECTS(!full());
    ++own_;
    voters_[size_] = voter;
    return VoterSet{1} << size_++;
  }
  /// True if no more places of the context can be added.
  [[nodiscard]] bool full() const noexcept { return own_ == max_own; }

  /// Returns the set of all voters. Precondition: no add() since collect(). The shift needs fewer than 64 voters.
  [[nodiscard]] VoterSet all() const noexcept { return (VoterSet{1} << size_) - 1; }
  [[nodiscard]] const Voter& operator[](std::size_t i) const noexcept { return voters_[i]; }
  [[nodiscard]] bool is_stored(std::size_t i) const noexcept { return (stored_ >> i & 1) != 0; }
  /// True if one of these voters is an occurrence in a store.
  [[nodiscard]] bool has_stored(VoterSet voters) const noexcept { return (voters & stored_) != 0; }
  /// True if one of `voters` is the place `next` of the context.
  [[nodiscard]] bool follow(VoterSet voters, Position next) const noexcept {
    for (voters &= ~stored_; voters != 0; voters &= voters - 1)
      if (voters_[static_cast<std::size_t>(std::countr_zero(voters))].next == next) return true;
    return false;
  }

  /// Returns the weight of the vote of place i after `depth` agreeing tokens of the draft.
  [[nodiscard]] VoteWeight weight(std::size_t i, std::size_t depth) const noexcept {
    const Voter& voter = voters_[i];
    const std::size_t length = static_cast<std::size_t>(voter.length) + depth;
    return 1 + static_cast<VoteWeight>(
                   FactorScale::multiply(std::uint64_t{voter.base_weight}, (*voter.weights)[length_class(length)]));
  }
  /// Returns the token `depth` tokens after place i, which is in a store, or nullopt if the text ends before that
  /// token.
  [[nodiscard]] std::optional<Token> stored_token(std::size_t i, std::size_t depth) noexcept {
    StoreText& text = texts_[i - first_stored_];
    if (!text.known(depth) && !text.read(stores_[store_of(i)], depth)) return std::nullopt;
    return text[depth];
  }

  /// Returns the source of the evidence that these voters give.
  [[nodiscard]] EvidenceSource source_of(VoterSet voters) const noexcept {
    const VoterSet in_stores = voters & stored_;
    if (in_stores == 0) return EvidenceSource::context;
    return in_stores == voters ? EvidenceSource::stores : EvidenceSource::both;
  }
  /// Learns which stores have helped with the collected draft: those with a place in `helpful` (helpful_voters()). Each
  /// draft counts once.
  void learn(VoterSet helpful) noexcept {
    if (!collected_) return;
    collected_ = false;
    for (std::size_t store = 0; store < max_stores; ++store)
      if (!stores_[store].empty()) schedules_[store].learn((helpful & from_store_[store]) != 0);
  }
  /// Drops the collected draft, so that nothing is learned from it.
  void drop() noexcept { collected_ = false; }
  /// Reports to the stores that these places have led to an accepted token.
  void touch(VoterSet voters) const noexcept {
    for (VoterSet left = voters & stored_; left != 0; left &= left - 1) {
      const auto i = static_cast<std::size_t>(std::countr_zero(left));
      stores_[store_of(i)].touch(texts_[i - first_stored_].begin());
    }
  }

 private:
  static constexpr std::size_t compared = 32;  // number of tokens at the end of the context that a store receives

  /// Collects the places in the stores that directly follow an occurrence of the last tokens of `suffix`, and that may
  /// vote.
  void collect_stored(TokenSpan suffix) noexcept {
    const std::size_t most = std::min(max_from_store, max_from_stores / store_count_);
    int longest = 0;  // the agreement of the best place of the context
    for (const Voter& own : std::span(voters_).first(own_)) longest = std::max(longest, own.length);
    longest = std::min(longest, static_cast<int>(compared));
    for (std::size_t store = 0; store < max_stores; ++store) {
      VoterSet& from_store = from_store_[store] = 0;
      if (stores_[store].empty() || !schedules_[store].due()) continue;
      std::array<StoreMatch, max_from_store> found;
      const std::size_t count = std::min(stores_[store].find(suffix, std::span(found).first(most)), most);
      for (const StoreMatch& match : std::span(found).first(count)) {
        const int length = std::countr_one(match.agreements);
        if (length < longest) continue;
        const std::uint32_t earlier = length >= 31 ? 0 : match.agreements >> (length + 1);
        from_store |= VoterSet{1} << size_;
        texts_[size_ - first_stored_] = StoreText(match.next);
        voters_[size_++] = {0, history_base_weight, &length_weights(bit_count(earlier)), length};
      }
      stored_ |= from_store;
    }
  }
  [[nodiscard]] std::size_t store_of(std::size_t i) const noexcept {
    std::size_t store = 0;
    while ((from_store_[store] >> i & 1) == 0) ++store;
    return store;
  }

  std::array<DatastoreRef, max_stores> stores_;
  std::array<StoreSchedule, max_stores> schedules_{};
  std::size_t store_count_ = 0;  // number of stores that are not empty
  bool collected_ = false;       // a draft with stores is collected, and learn() has not counted it yet
  std::array<Voter, capacity> voters_;
  std::size_t size_ = 0;
  std::size_t own_ = 0;           // number of voters that are places of the context
  std::size_t first_stored_ = 0;  // index of the first place in a store; all such places are adjacent
  VoterSet stored_ = 0;           // the set of all places in stores
  std::array<VoterSet, max_stores> from_store_{};
  std::array<StoreText, max_from_stores> texts_;
};

}}}  // namespace reprise::detail
