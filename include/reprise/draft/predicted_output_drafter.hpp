// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>

#include "reprise/core/detail/attributes.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise/draft/detail/merged_draft.hpp"
#include "reprise/draft/detail/origin_bits.hpp"
#include "reprise/draft/detail/predicted_output_cursors.hpp"
#include "reprise/index/rolling_hash.hpp"

namespace reprise { inline namespace v0 {

/// Settings of PredictedOutputDrafter.
struct PredictedOutputOptions {
  /// The minimum probability of a proposed path. DraftBudget::min_path_probability can only raise it.
  Probability min_path_probability = Probability::ratio(1, 500);
  std::uint64_t key = IndexOptions{}.key;  ///< see IndexOptions
  std::size_t max_bytes = unlimited;       ///< memory limit of the index over the references; see IndexOptions
  std::uint32_t vocabulary = IndexOptions{}.vocabulary;  ///< see IndexOptions
};

/// Copies from texts that the caller supplies and that are not in the context. Such a text is a document (LLMA: Yang
/// et al. 2023) or a prediction of the output (the "predicted outputs" of hosted APIs). A typical prediction is the old
/// version of a file that is being rewritten.
///
/// When output begins, up to six predictions are followed from their beginning. Where the output deviates from a
/// followed text, the output may continue at one of several places:
///
///  - after the mismatched token, if this token was replaced;
///  - at the mismatched token, if something was inserted before it;
///  - after a nearby occurrence of the output's last tokens, if something was deleted or a longer passage was
///    rewritten;
///  - after the latest occurrence of the output's last tokens in all references.
///
/// At most six such places are followed at a time. They are drafted as a tree, and dropped when they prove wrong. The
/// probability of a place depends on how it was found and how long it has agreed. detail::AgreementCalibrator learns
/// these probabilities from the tokens that the target picks.
///
/// The drafter does not copy from the context, so combine it with NgramDrafter in a UnionDrafter. References stay until
/// clear_references(), even after begin(). They may change between rounds; each change starts the search for places
/// again.
///
///  - Cost of adding a reference: an append to an index over three n-gram lengths.
///  - Cost of observe(), per output token: a few comparisons once a place has agreed for 8 tokens; otherwise about 320
///    comparisons and three lookups.
///  - Cost of propose(): less than that of NgramDrafter. Cost of truncate(): at most 64 tokens are followed again.
///  - Memory: 30 to 45 bytes per reference token, 2 bytes per context token, and 20 KB.
///
/// A copy of the drafter copies the references too. Threads: one at a time; copies are independent.
class PredictedOutputDrafter {
 public:
  /// The maximum number of nodes in a draft.
  static constexpr std::size_t max_nodes = most_draft_nodes;
  static constexpr bool calibrated = true;  ///< see CalibratedStrategy

  explicit PredictedOutputDrafter(const PredictedOutputOptions& options = {})
      : options_(options),
        index_(IndexOptions{
            .orders = orders, .key = options.key, .max_bytes = options.max_bytes, .vocabulary = options.vocabulary}) {}

  /// Adds a text from which drafts may copy at any place. Errors: out_of_memory; in that case nothing is added.
  Result<void> add_reference(TokenSpan reference) { return add(reference, false); }
  /// Adds a prediction of the output, from the first token of the output on. Errors: as for add_reference().
  Result<void> predict(TokenSpan output) { return add(output, true); }
  void clear_references() {
    index_.clear();
    documents_.clear();
    references_ = 0;
    checkpoints_.clear();
    restart();
  }

  void begin(TokenSpan context) {
    table_ = Calibrator();
    start(context);
  }
  /// Like begin(), but keeps the calibration. Changes nothing if both contexts are equal.
  void rebase(TokenSpan before, TokenSpan context) {
    if (!std::equal(before.begin(), before.end(), context.begin(), context.end())) start(context);
  }
  void observe(TokenSpan context, std::size_t fresh, Origin origin) {
    if (fresh == 0) return;
    origins_.append(fresh, origin);
    remember(context);
    if (origin == Origin::prompt) return restart();
    for (std::size_t size = context.size() - fresh + 1; size <= context.size(); ++size) {
      follow(context.first(size));
      if (size % checkpoint_distance == 0) mark(size);
    }
  }
  void truncate(TokenSpan context, std::size_t size) {
    if (size >= size_) return;
    remember(context.first(size));
    origins_.truncate(size);
    checkpoints_.truncate(checkpoints_before(size + 1));
    // Output has a checkpoint before it, at the end of the prompt or later, unless a reference was added since or
    // memory ran out.
    const bool in_prompt = size == 0 || origins_.of(size - 1) == Origin::prompt;
    if (in_prompt || !usable() || checkpoints_.empty()) return restart();
    const Checkpoint& last = checkpoints_[checkpoints_.size() - 1];
    if (size - last.position > checkpoint_distance) return restart();
    cursors_ = last.cursors;
    for (std::size_t at = last.position; at < size; ++at) follow(context.first(at + 1));
  }
  void reserve(std::size_t max_context) {
    static_cast<void>(origins_.reserve(max_context));
    static_cast<void>(checkpoints_.reserve(max_context / checkpoint_distance + 64));
  }

  void propose(TokenSpan, Draft& draft) noexcept {
    if (!usable()) return;
    merged_.clear();
    const Probability least = std::max(draft.budget().min_path_probability, options_.min_path_probability);
    for_each_ranked([&](const Cursor& cursor, bool first, bool) { add_path(cursor, first, least, draft.budget()); });
    merged_.write(draft);
    draft.truncate(max_nodes);  // every prefix is the best smaller draft
    if (!cursors_.cursors().empty()) draft.leave_out();
  }

  /// Learns how far the target agreed with each followed place, regardless of the draft. Of places that predict the
  /// same next token, only the likeliest counts.
  void feedback(TokenSpan, const Outcome& outcome) noexcept {
    if (!usable()) return;
    lessons_ = table_;  // a copy, so that learning does not change the ranking below
    for_each_ranked([&](const Cursor& cursor, bool first, bool repeats) {
      if (repeats) return;
      for (std::size_t i = 0; cursor.next + i < cursor.end; ++i) {
        const std::optional<Token> token = committed_token(outcome, i);
        if (!token) return;
        const bool agrees = *token == index_.tokens()[cursor.next + i];
        lessons_.learn(evidence(cursor, i, first), agrees);
        if (!agrees) return;
      }
    });
    table_ = lessons_;
  }

  /// Returns the total number of tokens in the references.
  [[nodiscard]] std::size_t reference_size() const noexcept { return references_; }
  [[nodiscard]] const PredictedOutputOptions& options() const noexcept REPRISE_LIFETIMEBOUND { return options_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return index_.memory_bytes() + documents_.memory_bytes() + origins_.memory_bytes() + checkpoints_.memory_bytes();
  }

 private:
  using Cursor = detail::Cursor;
  using Calibrator = detail::AgreementCalibrator;
  static constexpr NgramOrders orders = {2, 4, 8};
  static constexpr std::size_t checkpoint_distance = 64;

  struct Document {
    Position begin = 0;
    Position end = 0;
    bool predicted = false;
  };
  /// The cursors saved at one position, for truncate().
  struct Checkpoint {
    Position position = 0;
    detail::PredictedOutputCursors cursors;
  };

  void start(TokenSpan context) {
    origins_.clear();
    remember({});
    restart();
    observe(context, context.size(), Origin::prompt);
  }
  Result<void> add(TokenSpan tokens, bool predicted) {
    const Error no_memory{ErrorCode::out_of_memory, "no memory for the reference; the others are as before"};
    if (!usable())
      return Error{ErrorCode::out_of_memory,
                   "a copy got no memory for its references: call clear_references(), then add them again"};
    if (!documents_.reserve_extra(1)) return no_memory;
    index_.append(tokens);
    if (index_.exhausted()) {
      index_.truncate(references_);
      return no_memory;
    }
    documents_.push_reserved(
        {static_cast<Position>(references_), static_cast<Position>(references_ + tokens.size()), predicted});
    references_ += tokens.size();
    checkpoints_.clear();  // they were made with the old references
    restart();
    return {};
  }

  /// Returns false if this is a copy without memory for its references. References are read by position, so none may be
  /// missing.
  [[nodiscard]] bool usable() const noexcept { return index_.tokens().size() == references_; }
  /// Copies the end of the context, because adding a reference needs it but does not receive the context.
  void remember(TokenSpan context) noexcept {
    size_ = context.size();
    const TokenSpan end = context.last(std::min(size_, end_.size()));
    std::copy(end.begin(), end.end(), end_.begin());
  }

  /// Prepares for output at the end of the context: follows the predictions from their beginning, and searches all
  /// references.
  void restart() {
    cursors_.reset();
    if (!usable()) return;
    for (const Document& document : documents_)
      if (document.predicted) cursors_.start(document.begin, document.end);
    look_anywhere(TokenSpan(end_).first(std::min(size_, end_.size())));
    checkpoints_.truncate(checkpoints_before(size_));
    mark(size_);
  }
  /// Advances the cursors by the last token of `text`, and searches for new places unless cursors_.sure().
  void follow(TokenSpan text) noexcept {
    if (!usable()) return cursors_.reset();
    cursors_.advance(index_.tokens(), text.back());
    if (cursors_.sure()) return;
    cursors_.look_near(index_.tokens(), text);
    look_anywhere(text);
  }
  /// Follows the place after the latest occurrence of the last tokens of `text` in all references. The longest n-gram
  /// that is found decides.
  void look_anywhere(TokenSpan text) noexcept {
    for (std::size_t i = orders.size(); i-- > 0;) {
      if (text.size() < orders[i]) continue;
      const Position place = index_.latest(text.last(orders[i]));
      if (place == 0) continue;
      const auto document =
          std::find_if(documents_.begin(), documents_.end(), [&](const Document& other) { return place <= other.end; });
      if (document != documents_.end()) cursors_.look_at(index_.tokens(), place, document->begin, document->end, text);
      return;
    }
  }
  void mark(std::size_t position) {
    if (checkpoints_.reserve_extra(1)) checkpoints_.push_reserved({static_cast<Position>(position), cursors_});
  }
  [[nodiscard]] std::size_t checkpoints_before(std::size_t position) const noexcept {
    std::size_t count = checkpoints_.size();
    while (count > 0 && checkpoints_[count - 1].position >= position) --count;
    return count;
  }

  [[nodiscard]] static std::size_t evidence(const Cursor& cursor, std::size_t depth, bool first) noexcept {
    const std::size_t run = cursor.run + depth;
    const auto kind = run >= detail::PredictedOutputCursors::settled ? detail::CursorKind::followed : cursor.kind;
    // After its first token, a place no longer competes with other places.
    return Calibrator::evidence(static_cast<std::size_t>(kind), run, first || depth > 0);
  }
  /// Calls visit(cursor, first, repeats) for each followed place, likeliest first. `first`: true for the likeliest
  /// place. `repeats`: true if a likelier place predicts the same token.
  template <class Visit>
  void for_each_ranked(Visit visit) const noexcept {
    const std::span<const Cursor> cursors = cursors_.cursors();
    std::array<std::uint8_t, detail::PredictedOutputCursors::capacity> order{};
    for (std::size_t i = 0; i < cursors.size(); ++i) {
      const auto likelihood = [&](std::size_t at) { return table_.probability(evidence(cursors[at], 0, true)); };
      std::size_t at = i;
      for (; at > 0 && likelihood(order[at - 1]) < likelihood(i); --at) order[at] = order[at - 1];
      order[at] = static_cast<std::uint8_t>(i);
    }
    for (std::size_t i = 0; i < cursors.size(); ++i) {
      const Token token = index_.tokens()[cursors[order[i]].next];
      const bool repeats =
          std::any_of(order.begin(), order.begin() + static_cast<std::ptrdiff_t>(i),
                      [&](std::uint8_t other) { return index_.tokens()[cursors[other].next] == token; });
      visit(cursors[order[i]], i == 0, repeats);
    }
  }
  void add_path(const Cursor& cursor, bool first, Probability least, const DraftBudget& budget) noexcept {
    const std::size_t most =
        std::min({budget.max_nodes, max_nodes, budget.max_depth, std::size_t{cursor.end} - cursor.next});
    NodeIndex parent = anchor_parent;
    Probability path = Probability::one();
    for (std::size_t i = 0; i < most; ++i) {
      const Probability probability = table_.probability(evidence(cursor, i, first));
      path = path * probability;
      if (path < least) return;
      parent = merged_.add(parent, {.token = index_.tokens()[cursor.next + i],
                                    .probability = probability,
                                    .match_length = cursor.run,
                                    .source = DraftSource::predicted_output});
      if (parent == anchor_parent) return;
    }
  }

  PredictedOutputOptions options_;
  RollingHashIndex index_;  // over all references, concatenated
  detail::Buffer<Document> documents_;
  std::size_t references_ = 0;  // total number of tokens in the references
  detail::OriginBits origins_;
  std::size_t size_ = 0;                                             // number of tokens in the context
  std::array<Token, detail::PredictedOutputCursors::compared> end_;  // the last tokens of the context, for comparisons
  detail::PredictedOutputCursors cursors_;
  detail::Buffer<Checkpoint> checkpoints_;
  Calibrator table_;
  Calibrator lessons_;                         // scratch space for feedback()
  detail::MergedDraft<2 * max_nodes> merged_;  // scratch space for propose()
};
static_assert(RebasableStrategy<PredictedOutputDrafter>);

}}  // namespace reprise
