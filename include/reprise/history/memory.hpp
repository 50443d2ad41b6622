// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <new>
#include <span>
#include <utility>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/detail/new_array.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/detail/drafter_memory.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/evidence/calibration_state.hpp"
#include "reprise/history/history_snapshot.hpp"
#include "reprise/history/history_store.hpp"
#include "reprise/history/snapshot.hpp"
#include "reprise/history/table_snapshots.hpp"
#include "reprise/index/detail/token_hash.hpp"
#include "reprise/index/next_tokens.hpp"

namespace reprise { inline namespace v0 {

struct MemoryOptions {
  /// Upper bound on the memory of the text of a salt, in bytes: 18 for each token. 0: no text is kept, only what was
  /// learned.
  std::size_t max_bytes = std::size_t{64} << 20;
  std::size_t next_token_bytes = std::size_t{4} << 20;     ///< of the table of next tokens of a salt; 0: no table
  bool rankings = false;                                   ///< see NextTokenOptions
  std::size_t salts = 4;                                   ///< maximum number of salts that are kept at the same time
  std::uint64_t key = IndexOptions{}.key;                  ///< must be secret and random if the text is not trusted
  std::uint32_t vocabulary = HistoryOptions{}.vocabulary;  ///< see HistoryOptions
  bool prompts = true;                                     ///< keep the text of prompts
  bool outputs = true;                                     ///< keep the text that the model generated
  /// Salts share what reveals no token: the weights of the evidence, by its structure. False: they share nothing.
  bool shared_calibration = true;
};

namespace detail {

/// A calibration that moves towards the end of each sequence. The mean, not the end of the last sequence: texts of
/// several kinds come mixed.
class CarriedCalibration {
 public:
  static constexpr std::uint32_t slowest = 4;  ///< a sequence moves it by 1/4; the first ones by 1/1, 1/2, ...

  [[nodiscard]] const CalibrationState& state() const noexcept { return state_; }
  void learn(const CalibrationState& ended) noexcept {
    if (ended.lessons == 0) return;
    count_ = std::min(count_ + 1, slowest);
    const auto move = [this]<class T>(T& bias, T end) noexcept {
      bias = static_cast<T>(bias + (std::int64_t{end} - bias) / count_);
    };
    for_each_bias([&](auto& bias, auto end) noexcept { move(bias, end); }, state_, ended);
  }

 private:
  CalibrationState state_;  // `recent` and `lessons` stay as in a new one: they belong to one sequence
  std::uint32_t count_ = 0;
};

/// The part of a memory that all salts share. It reveals no token.
class SharedMemory final : public DrafterMemory {
 public:
  [[nodiscard]] CalibrationState calibration() const noexcept override {
    const std::scoped_lock lock(mutex_);
    return calibration_.state();
  }
  void keep(const EndedSequence& ended) noexcept override {
    const std::scoped_lock lock(mutex_);
    calibration_.learn(without_tokens(*ended.calibration));
  }
  [[nodiscard]] CostPrior costs() const noexcept {
    const std::scoped_lock lock(mutex_);
    return costs_;
  }
  void keep_costs(const CostPrior& costs) noexcept {
    const std::scoped_lock lock(mutex_);
    costs_ = costs;
  }

  static CalibrationState without_tokens(CalibrationState state) noexcept {
    state.by_previous = state.by_token = state.by_token_and_length = {};
    return state;
  }

 private:
  mutable std::mutex mutex_;
  CarriedCalibration calibration_;
  CostPrior costs_;
};

/// The memory of one salt.
class SaltMemory final : public DrafterMemory {
 public:
  SaltMemory(MemoryRef shared, std::uint64_t salt) noexcept : shared_(std::move(shared)), salt_(salt) {}

  Result<void> allocate(const MemoryOptions& options, std::uint64_t key) noexcept {
    if (options.max_bytes == 0) return {};
    auto store = HistoryStore::make({.max_bytes = options.max_bytes,
                                     .key = key,
                                     .vocabulary = options.vocabulary,
                                     .prompts = options.prompts,
                                     .outputs = options.outputs});
    if (!store) return store.error();
    if (options.next_token_bytes != 0) {
      auto table = NextTokens::make({.max_bytes = options.next_token_bytes,
                                     .key = next_token_key(key),
                                     .vocabulary = options.vocabulary,
                                     .rankings = options.rankings});
      if (!table) return table.error();
      next_tokens_ = *std::move(table);
    }
    store_ = *std::move(store);
    return {};
  }

  [[nodiscard]] CalibrationState calibration() const noexcept override {
    CalibrationState state;
    {
      const std::scoped_lock lock(learned_);
      state = calibration_.state();
    }
    if (shared_.empty()) return state;
    CalibrationState both = shared_->calibration();
    both.by_previous = state.by_previous;
    both.by_token = state.by_token;
    both.by_token_and_length = state.by_token_and_length;
    return both;
  }
  void keep(const EndedSequence& ended) noexcept override {
    if (ended.calibration != nullptr) {
      if (!shared_.empty()) shared_->keep(ended);
      const std::scoped_lock lock(learned_);
      calibration_.learn(*ended.calibration);
    }
    if (store_.capacity() == 0) return;
    const std::scoped_lock lock(writer_);
    store_.begin_sequence(0);
    // Matches must lead from the text that is kept already into the new one.
    std::size_t at = ended.kept - std::min(ended.kept, HistoryStore::lead);
    for (std::size_t end = at; at < ended.text.size(); at = end) {
      const Origin origin = ended.origins->of(at);
      while (end < ended.text.size() && ended.origins->of(end) == origin) ++end;
      const TokenSpan run = ended.text.subspan(at, end - at);
      store_.append(run, origin);
      const bool whole = store_.options().prompts && store_.options().outputs;
      const bool wanted = origin == Origin::output ? store_.options().outputs : store_.options().prompts;
      if (whole)
        next_tokens_.add(ended.text.first(end), std::max(at, ended.kept));
      else if (wanted)  // alone, so that no context has tokens of the other origin
        next_tokens_.add(run, std::max(at, ended.kept) - at);
    }
    store_.end_sequence();
    if (store_.options().prompts && store_.options().outputs) next_tokens_.add(ended.rows);
  }

  [[nodiscard]] std::size_t snapshot_bytes() noexcept {
    const std::scoped_lock lock(writer_);
    const bool counts = next_tokens_.lines() != 0;
    return snapshot_bytes_of(store_) +
           (counts ? SnapshotFormat::section_header_bytes + next_token_bytes(next_tokens_) : 0);
  }
  [[nodiscard]] Result<std::span<const std::byte>> save(std::span<std::byte> room, std::uint64_t tokenizer) noexcept {
    const std::scoped_lock lock(writer_);
    SnapshotWriter writer(room, tokenizer);
    write_history(writer, store_, calibration());
    if (next_tokens_.lines() != 0) write_next_tokens(writer, next_tokens_);
    return writer.finish();
  }
  /// Loads what check_history() has accepted.
  [[nodiscard]] Result<void> load(const SnapshotReader& reader, CalibrationState learned) noexcept {
    const std::scoped_lock lock(writer_);
    // The table is checked first and loaded last, so that refused bytes change nothing.
    bool counted = false;
    if (reader.section(SectionKind::next_tokens) && next_tokens_.lines() != 0) {
      const auto valid = check_next_tokens(*reader.section(SectionKind::next_tokens), next_tokens_);
      if (!valid && valid.error().code != ErrorCode::other_table) return valid;
      counted = valid.has_value();
    }
    restore_history(reader, store_);
    if (counted) static_cast<void>(load_next_tokens(reader, next_tokens_));
    learned.lessons = std::max<std::uint64_t>(learned.lessons, 1);
    if (!shared_.empty()) shared_->keep({.calibration = &learned});
    const std::scoped_lock state(learned_);
    calibration_.learn(learned);
    return {};
  }

  void clear() noexcept {
    const std::scoped_lock lock(writer_, learned_);
    store_.clear();
    next_tokens_.clear();
    calibration_ = {};
  }

  [[nodiscard]] std::uint64_t salt() const noexcept { return salt_; }
  [[nodiscard]] const HistoryStore& store() const noexcept { return store_; }
  [[nodiscard]] const NextTokens& next_tokens() const noexcept { return next_tokens_; }
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    return sizeof(SaltMemory) + store_.memory_bytes() + next_tokens_.memory_bytes();
  }

 private:
  MemoryRef shared_;
  const std::uint64_t salt_;
  HistoryStore store_;
  NextTokens next_tokens_;
  mutable std::mutex learned_;  // held for a copy
  std::mutex writer_;           // held while a text is stored; drafters read without it
  CarriedCalibration calibration_;
};

}  // namespace detail

/// Keeps text and learned weights between requests: make one, and keep it as long as the engine.
///
///   Memory memory = Memory::make().value();
///   Speculator speculator(memory.options());  // for each request, or one for all
///
/// **What was learned** always goes on: how to weigh the evidence (CalibrationState), and the costs of passes
/// (keep_costs()). **What was seen** goes on too: the text of each request that has ended, prompts included, and the
/// counts of next tokens. A drafter hands over its sequence by itself, when the next one begins or in
/// Session::keep(); Follower and BatchFollower hand it over when the request has ended, and BatchFollower while several
/// requests answer the same prompt. Text that is there already is not stored again, and the oldest text is forgotten
/// first (HistoryStore).
///
/// **Salts.** A request may name a salt: a number for the parties that may see each other's text. Text never crosses
/// salts, and neither do counts, rankings and the calibration of single tokens. Salts share the other weights of the
/// evidence, which reveal no token; see MemoryOptions::shared_calibration and docs/security.md. A salt that is new when
/// all MemoryOptions::salts are taken replaces the one that was asked for least recently and that no drafter uses. If
/// all are in use, its text is not kept.
///
/// **Copies** refer to the same memory, and drafters keep alive what they refer to, also after forget().
///
/// **Threads.** All functions may be called from any thread at the same time, and drafters with its options may run on
/// any threads. A text is stored under a lock of its salt; drafters read without it.
///
/// **Cost.** Ending a sequence: about half a microsecond for each token. The first request of a salt: about 50 ms for
/// 64 MiB, while the other functions wait. Memory: MemoryOptions::max_bytes and
/// next_token_bytes for each salt that is used, allocated when it is first asked for. The text of a token takes 18
/// bytes.
class Memory {
 public:
  /// The parties that share a memory. A number that is derived from a name must be a hash with a secret key.
  using Salt = std::uint64_t;

  /// Returns an empty memory, with the memory of salt 0. Errors: out_of_memory; those of HistoryStore::make() and
  /// NextTokens::make().
  static Result<Memory> make(const MemoryOptions& options = {}) noexcept {
    Memory made;
    made.state_ = detail::Ref(new (std::nothrow) State);
    if (made.state_.empty()) return no_memory(sizeof(State));
    State& state = *made.state_;
    state.options = options;
    state.options.salts = std::max<std::size_t>(options.salts, 1);
    state.salts = detail::new_array<SaltRef>(state.options.salts);
    state.shared = detail::Ref(new (std::nothrow) detail::SharedMemory);
    if (state.salts == nullptr || state.shared.empty()) return no_memory(state.options.salts * sizeof(SaltRef));
    auto first = state.make_salt(0);
    if (!first) return first.error();
    state.salts[0] = *std::move(first);
    return made;
  }

  /// Returns `base` with this memory: options for any number of drafters whose requests have this salt. The store takes
  /// the first empty place of NgramOptions::stores. If a new salt finds no memory, its text is not kept.
  [[nodiscard]] NgramOptions options(Salt salt = 0, NgramOptions base = {}) const noexcept {
    const SaltRef found = found_for(salt);
    if (found.salt == nullptr) return base;
    base.memory = found.ref;
    const auto place = std::find_if(base.stores.begin(), base.stores.end(), [](auto& store) { return store.empty(); });
    if (found.salt->store().capacity() != 0 && place != base.stores.end()) *place = found.salt->store();
    if (found.salt->next_tokens().lines() != 0) base.next_tokens = &found.salt->next_tokens();
    return base;
  }

  /// Keeps a text that no drafter has decoded. Its first `prompt` tokens are a prompt. May allocate; without memory,
  /// or if all salts are in use, the text is not kept.
  void add(TokenSpan text, std::size_t prompt = 0, Salt salt = 0) noexcept {
    detail::OriginBits origins;
    origins.append(std::min(prompt, text.size()), Origin::prompt);
    origins.append(text.size() - std::min(prompt, text.size()), Origin::output);
    if (const SaltRef found = found_for(salt); found.salt != nullptr)
      found.salt->keep({.text = text, .origins = &origins});
  }

  /// Returns the number of bytes of a snapshot of a salt; 0 if nothing is kept for it.
  [[nodiscard]] std::size_t snapshot_bytes(Salt salt = 0) const noexcept {
    const auto kept = kept_for(salt);
    return kept.salt == nullptr ? 0 : kept.salt->snapshot_bytes();
  }
  /// Writes a snapshot of a salt to `room`: its text, counts and calibration, but no costs (save_costs()). Requests may
  /// go on meanwhile; those that end wait. Returns the part of `room` that holds it. `tokenizer`: see save_history().
  /// Errors: out_of_room (`value`: the bytes needed); invalid_argument if nothing is kept for the salt.
  [[nodiscard]] Result<std::span<const std::byte>> save(std::span<std::byte> room, std::uint64_t tokenizer,
                                                        Salt salt = 0) const noexcept {
    const auto kept = kept_for(salt);
    if (kept.salt != nullptr) return kept.salt->save(room, tokenizer);
    return Error{ErrorCode::invalid_argument, "nothing is kept for this salt", salt, 0};
  }
  /// Adds the contents of a snapshot to a salt. Any bytes are either loaded or refused. If they are refused, nothing
  /// changes; but a forged table of next tokens may take the place of another salt, empty. A table of another key or
  /// size is left out. Errors: those of load_history() and load_next_tokens(); out_of_memory, also if all salts are in
  /// use (`value`: their number).
  [[nodiscard]] Result<void> load(std::span<const std::byte> bytes, std::uint64_t tokenizer, Salt salt = 0) noexcept {
    CalibrationState learned;
    const auto checked = detail::check_history(bytes, tokenizer, state_->options.vocabulary, learned);
    if (!checked) return checked.error();
    const auto found = found_for(salt);
    if (found.salt == nullptr) return no_memory(sizeof(detail::SaltMemory));
    if (state_->options.max_bytes != 0 && found.salt->store().capacity() == 0)
      return Error{ErrorCode::out_of_memory, "all salts of the memory are in use: increase MemoryOptions::salts",
                   state_->options.salts, 0};
    return found.salt->load(*checked, learned);
  }

  /// Returns the costs of keep_costs(), for CostOptions::prior.
  [[nodiscard]] CostPrior costs() const noexcept { return state_->shared->costs(); }
  /// Keeps learned costs of passes, usually LearnedCurve::prior(), for drafters that are made later.
  void keep_costs(const CostPrior& costs) noexcept { state_->shared->keep_costs(costs); }

  /// Forgets all that was kept for a salt. Sequences that go on leave their text to it again when they end.
  void forget(Salt salt) noexcept {
    const std::scoped_lock lock(state_->mutex);
    SaltRef* const kept = state_->known(salt);
    if (kept == nullptr) return;
    if (kept->ref->references() == 1)
      *kept = {};
    else
      kept->salt->clear();
  }

  /// Returns the memory of all salts that are kept.
  [[nodiscard]] std::size_t memory_bytes() const noexcept {
    const State& state = *state_;
    const std::scoped_lock lock(state.mutex);
    std::size_t bytes = sizeof(State) + sizeof(detail::SharedMemory) + state.options.salts * sizeof(SaltRef);
    for (const SaltRef& kept : state.places())
      if (kept.salt != nullptr) bytes += kept.salt->memory_bytes();
    return bytes;
  }

 private:
  struct SaltRef {
    detail::SaltMemory* salt = nullptr;
    detail::MemoryRef ref;
    std::uint64_t used = 0;  // 0: never
  };
  struct State : detail::Counted {
    [[nodiscard]] Result<SaltRef> make_salt(Salt salt, bool with_text = true) noexcept {
      auto* made = new (std::nothrow)
          detail::SaltMemory(options.shared_calibration ? detail::MemoryRef(&*shared) : detail::MemoryRef(), salt);
      if (made == nullptr) return no_memory(sizeof(detail::SaltMemory));
      SaltRef result{made, detail::MemoryRef(made), ++clock};
      const std::uint64_t key = salt == 0 ? options.key : detail::spread(options.key ^ detail::spread(salt));
      if (with_text)
        if (auto allocated = made->allocate(options, key); !allocated) return allocated.error();
      return result;
    }
    [[nodiscard]] std::span<SaltRef> places() const noexcept { return {salts.get(), options.salts}; }
    [[nodiscard]] SaltRef* known(Salt salt) const noexcept {
      for (SaltRef& kept : places())
        if (kept.salt != nullptr && kept.salt->salt() == salt) return &kept;
      return nullptr;
    }
    /// Returns the memory of a salt, which is made if there is a place for it. Otherwise, it has no text.
    [[nodiscard]] SaltRef find(Salt salt) noexcept {
      if (SaltRef* const kept = known(salt)) {
        kept->used = ++clock;
        return *kept;
      }
      SaltRef* place = nullptr;
      for (SaltRef& kept : places()) {
        const bool free = kept.salt == nullptr || kept.ref->references() == 1;
        if (free && (place == nullptr || kept.used < place->used)) place = &kept;
      }
      if (place != nullptr) {
        *place = {};  // first, so that the two do not take memory at the same time
        if (auto made = make_salt(salt)) return *place = *std::move(made);
      }
      auto made = make_salt(salt, false);
      return made ? *std::move(made) : SaltRef();
    }

    mutable std::mutex mutex;
    MemoryOptions options;
    detail::Ref<detail::SharedMemory> shared;
    detail::OwnedArray<SaltRef> salts;
    std::uint64_t clock = 0;
  };

  Memory() noexcept = default;
  /// Returns the memory of a salt and keeps it alive; null if there is no memory for it.
  [[nodiscard]] SaltRef found_for(Salt salt) const noexcept {
    const std::scoped_lock lock(state_->mutex);
    return state_->find(salt);
  }
  /// Returns the memory of a salt; null if nothing is kept for it.
  [[nodiscard]] SaltRef kept_for(Salt salt) const noexcept {
    const std::scoped_lock lock(state_->mutex);
    const SaltRef* const kept = state_->known(salt);
    return kept == nullptr ? SaltRef() : *kept;
  }
  static Error no_memory(std::size_t bytes) noexcept {
    return {ErrorCode::out_of_memory, "there is no memory for a memory of this size: decrease it", bytes, 0};
  }

  detail::Ref<State> state_;
};

}}  // namespace reprise
