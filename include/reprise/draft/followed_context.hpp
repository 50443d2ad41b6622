// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <span>

#include "reprise/core/buffer.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/live_matches.hpp"
#include "reprise/draft/origin_runs.hpp"
#include "reprise/index/lookup_index.hpp"
#include "reprise/index/token_counts.hpp"

namespace reprise::detail {

/// A growing context and all that NgramDrafter knows of it: an index of n-grams, the matches that are followed, how
/// often each token occurred, and where tokens came from.
///
/// Which matches are followed depends on how the context came to be (one that survived an edit is not found again by
/// lookup), so they are kept every 256 tokens, and truncate() follows the tokens behind again: at most 320 more than it
/// takes back. Of more than 64 tokens at once only the last 64 are followed.
///
/// A copy that runs short of memory may find less to draft; so may this one, should there be none for checkpoints.
/// Without memory for the index nothing is followed until clear(), or until truncate() leaves only what is indexed.
template <LookupIndex Index>
class FollowedContext {
 public:
  FollowedContext(std::uint64_t key, std::size_t max_bytes)
      : index_(IndexOptions{.orders = orders, .key = key, .max_bytes = max_bytes}), counts_(key) {}

  void clear() {
    index_.clear();
    counts_.clear();
    origins_.clear();
    checkpoints_.clear();
    matches_.reset();
    size_ = 0;
  }

  void observe(TokenSpan tokens, Origin origin) {
    if (tokens.empty()) return;
    origins_.append(size_, origin);
    size_ += tokens.size();
    if (tokens.size() > followed) {
      // Of many tokens at once only the end matters for what is followed.
      mark(Checkpoint::Next::many);
      add(tokens.first(tokens.size() - followed));
      matches_.reset();
      for (const Token token : tokens.last(followed)) follow(token);
      mark(Checkpoint::Next::few);
      return;
    }
    for (const Token token : tokens) {
      if (index_.tokens().size() % checkpoint_distance == 0) mark(Checkpoint::Next::few);
      follow(token);
    }
  }

  void truncate(std::size_t size) {
    if (size >= size_) return;
    size_ = size;
    origins_.truncate(size);
    if (size > index_.tokens().size()) return index_.truncate(size);  // more than there was memory for
    if (size == 0) counts_.clear();
    counts_.remove(index_.tokens().subspan(size));
    rebuild(size);
  }

  /// Afterwards observe() does not allocate up to there, as long as there are no more than 32,768 distinct tokens, and
  /// no more than 1,024 changes between prompt and output.
  void reserve(std::size_t max_context) {
    static_cast<void>(index_.reserve(max_context));
    static_cast<void>(counts_.reserve(std::min<std::size_t>(max_context, 32'768)));
    static_cast<void>(origins_.reserve(std::min<std::size_t>(max_context, 1'024)));
    static_cast<void>(checkpoints_.reserve(max_context / (followed + 1) + 2));  // if all come in runs of many
  }

  [[nodiscard]] const Index& index() const noexcept { return index_; }
  [[nodiscard]] TokenSpan tokens() const noexcept { return index_.tokens(); }
  [[nodiscard]] std::span<const LiveMatch> matches() const noexcept { return matches_.matches(); }
  [[nodiscard]] const TokenCounts& counts() const noexcept { return counts_; }
  [[nodiscard]] Origin origin_of(Position position) const noexcept { return origins_.of(position); }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return index_.memory_bytes() + counts_.memory_bytes() + origins_.memory_bytes() + checkpoints_.memory_bytes();
  }

 private:
  static constexpr NgramOrders orders = {1, 2, 4};
  static constexpr std::array<std::uint32_t, 3> occurrences = {4, 4, 2};  // looked at, for each of them
  static constexpr std::size_t followed = 64;  // tokens before the end of a long run that matches are followed from
  static constexpr std::size_t checkpoint_distance = 256;

  /// What truncate() needs to have the matches again as they were.
  struct Checkpoint {
    enum class Next : std::uint8_t { few, many };  // tokens that were observed at once from here on
    Position position = 0;
    Next next = Next::few;
    LiveMatches matches;
  };

  /// Indexes the tokens and counts those that the index took.
  void add(TokenSpan tokens) {
    const std::size_t before = index_.tokens().size();
    index_.append(tokens);
    const TokenSpan indexed = index_.tokens();  // none at all, if the index has had to give up
    for (const Token token : indexed.subspan(std::min(before, indexed.size()))) counts_.add(token);
  }
  void follow(Token token) {
    add(TokenSpan(&token, 1));
    move_matches();
  }
  /// The index has grown by one token.
  void move_matches() {
    if (index_.exhausted()) return matches_.reset();
    matches_.advance(index_.tokens());
    std::array<Match, 4> found;
    for (std::size_t i = orders.size(); i-- > 0;) {
      const MatchLimits limits{orders[i], orders[i], occurrences[i], MatchOrder::most_recent};
      const std::size_t count = index_.find(limits, found);
      for (const Match& match : std::span(found).first(count)) matches_.look_at(index_.tokens(), match.end);
    }
  }

  void mark(typename Checkpoint::Next next) {
    if (index_.exhausted()) return;
    const Checkpoint here{static_cast<Position>(index_.tokens().size()), next, matches_};
    if (!checkpoints_.empty() && checkpoints_[checkpoints_.size() - 1].position == here.position)
      checkpoints_.truncate(checkpoints_.size() - 1);
    if (checkpoints_.reserve_extra(1)) checkpoints_.push_reserved(here);  // without one, truncate() is less exact
  }

  /// Cuts the index to `size` tokens and follows the matches again from the last checkpoint before.
  void rebuild(std::size_t size) {
    while (!checkpoints_.empty() && checkpoints_[checkpoints_.size() - 1].position > size)
      checkpoints_.truncate(checkpoints_.size() - 1);
    std::size_t from = size - std::min(size, followed);
    matches_.reset();
    if (!checkpoints_.empty()) {
      const Checkpoint& last = checkpoints_[checkpoints_.size() - 1];
      const std::size_t again = size - last.position;
      if (again <= (last.next == Checkpoint::Next::many ? followed : checkpoint_distance)) {
        from = last.position;
        matches_ = last.matches;
      }
    }
    std::array<Token, checkpoint_distance> tokens;
    const std::size_t count = size - from;
    std::copy_n(index_.tokens().begin() + static_cast<std::ptrdiff_t>(from), count, tokens.begin());
    index_.truncate(from);
    for (const Token token : std::span(tokens).first(count)) {
      index_.append(TokenSpan(&token, 1));
      move_matches();
    }
    // The tokens behind a checkpoint before many would be read as the beginning of those.
    if (checkpoints_.empty() || checkpoints_[checkpoints_.size() - 1].next == Checkpoint::Next::many)
      mark(Checkpoint::Next::few);
  }

  Index index_;
  TokenCounts counts_;
  OriginRuns origins_;
  LiveMatches matches_;
  Buffer<Checkpoint> checkpoints_;
  std::size_t size_ = 0;  // tokens observed, those that found no room too
};

}  // namespace reprise::detail
