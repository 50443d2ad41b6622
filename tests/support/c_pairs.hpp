// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "reprise/batch/batch_follower.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/history/history_snapshot.hpp"
#include "reprise/history/memory.hpp"
#include "reprise/history/table_snapshots.hpp"
#include "reprise/loop/follower.hpp"
#include "reprise/speculator.hpp"
#include "reprise_c/reprise.h"
#include "support/choices.hpp"

/// \file Handles of the C interface, each with the C++ object that gets the same calls.
namespace reprise::testing {

/// A struct of the C interface with bytes after its end, as a later version would have them.
template <class Struct>
class Sized {
 public:
  Sized() {
    bytes_.fill(filling);
    std::memcpy(&bytes_, &empty_, sizeof empty_);
    get()->size = sizeof(Struct);
  }
  explicit Sized(const Struct& value) : Sized() {
    std::memcpy(&bytes_, &value, sizeof value);
    get()->size = sizeof(Struct);
  }
  /// Chooses a good size, or one that must be refused.
  void choose_size(Choices& choices) {
    const std::size_t kind = choices.below(20);
    if (kind >= 12) get()->size = sizeof(Struct) + extra;
    if (kind >= 18) get()->size = choices.below(sizeof(Struct));
  }
  [[nodiscard]] bool good() const { return get()->size >= sizeof(Struct); }
  [[nodiscard]] Struct* get() { return reinterpret_cast<Struct*>(bytes_.data()); }
  [[nodiscard]] const Struct* get() const { return reinterpret_cast<const Struct*>(bytes_.data()); }
  Struct* operator->() { return get(); }
  /// True if the library has not written after the end of the struct that it knows.
  [[nodiscard]] bool untouched() const {
    return std::all_of(bytes_.begin() + sizeof(Struct), bytes_.end(),
                       [](unsigned char byte) { return byte == filling; });
  }
  /// True if all members except `size` are 0.
  [[nodiscard]] bool zero() const {
    return std::all_of(bytes_.begin() + sizeof(std::size_t), bytes_.begin() + sizeof(Struct),
                       [](unsigned char byte) { return byte == 0; });
  }

 private:
  static constexpr std::size_t extra = 16;
  static constexpr unsigned char filling = 0xa5;
  Struct empty_{};
  alignas(Struct) std::array<unsigned char, sizeof(Struct) + extra> bytes_;
};

inline constexpr std::uint64_t c_tokenizer = 77;
inline constexpr const char* c_engine = "toy, 1 thread";

struct CMemoryPair {
  explicit CMemoryPair(Choices& choices) {
    reprise_memory_options in{};
    in.size = sizeof in;
    in.max_bytes = 6000 + choices.below(20'000);
    in.next_token_bytes = (1 + choices.below(2)) * 500;
    in.salts = 1 + choices.below(3);
    in.key = choices.below(3);
    in.vocabulary = choices.chance(50) ? 0 : 6;
    in.flags = static_cast<std::uint32_t>(choices.chance(50) ? 0 : choices.below(32));
    const auto has = [&](std::uint32_t flag) { return (in.flags & flag) != 0; };
    MemoryOptions options{.max_bytes = has(REPRISE_MEMORY_NO_TEXT) ? 0 : in.max_bytes,
                          .next_token_bytes = has(REPRISE_MEMORY_NO_NEXT_TOKENS) ? 0 : in.next_token_bytes,
                          .salts = in.salts,
                          .prompts = !has(REPRISE_MEMORY_NO_PROMPTS),
                          .outputs = !has(REPRISE_MEMORY_NO_OUTPUTS),
                          .shared_calibration = !has(REPRISE_MEMORY_SEPARATE_CALIBRATION)};
    if (in.key != 0) options.key = in.key;
    if (in.vocabulary != 0) options.vocabulary = in.vocabulary;
    cpp = Memory::make(options).value();
    static_cast<void>(reprise_memory_create(&in, &handle, nullptr));
  }
  CMemoryPair(const CMemoryPair&) = delete;
  CMemoryPair& operator=(const CMemoryPair&) = delete;
  ~CMemoryPair() { reprise_memory_destroy(handle); }

  [[nodiscard]] std::vector<std::byte> saved(std::uint64_t salt) const {
    std::vector<std::byte> bytes(cpp->snapshot_bytes(salt));
    return cpp->save(bytes, c_tokenizer, salt) ? bytes : std::vector<std::byte>();
  }

  reprise_memory* handle = nullptr;
  std::optional<Memory> cpp;
};

/// Options of a follower, a batch or a session, for C and for C++.
struct CPairOptions {
  CMemoryPair* memory = nullptr;
  std::uint64_t salt = 0;
  std::size_t max_draft_nodes = 0;
  std::size_t max_bytes = 0;
  std::uint64_t key = 0;
  std::size_t curve = 0;  ///< 0: none; 1: linear; 2: measured points
  std::vector<std::byte> saved_costs;

  [[nodiscard]] std::optional<CostCurve> curve_of() const {
    if (curve == 1) return CostCurve::linear(0.1);
    if (curve == 2) return *CostCurve::from_points(std::array{CostPoint{1, 0, 1, 100}, CostPoint{1, 0, 9, 180}});
    return std::nullopt;
  }
  /// The saved costs, unless the memory has newer ones.
  [[nodiscard]] CostPrior prior() const {
    const auto learned = learns();
    if (learned && learned->costs().size() != 0) return learned->costs();
    const CostPrior saved =
        saved_costs.empty() ? CostPrior() : *load_costs(*SnapshotReader::open(saved_costs, 0), c_engine);
    if (learned && saved.size() != 0) memory->cpp->keep_costs(saved);
    return saved;
  }
  [[nodiscard]] Speculator in_cpp() const {
    CostOptions costs;
    costs.curve = curve_of();
    if (max_draft_nodes != 0) costs.max_nodes = max_draft_nodes;
    costs.prior = prior();
    return Speculator(drafter(), std::move(costs));
  }
  [[nodiscard]] BatchFollower<NgramDrafter<>> batch_in_cpp(std::size_t slots) const {
    BatchOptions batch;
    batch.curve = curve_of();
    if (max_draft_nodes != 0) batch.max_nodes = max_draft_nodes;
    auto made = BatchFollower<NgramDrafter<>>::make(slots, NgramDrafter<>(drafter()), std::move(batch)).value();
    made.planner().assume(1, prior());
    return made;
  }
  /// Returns the memory that gets the learned costs.
  [[nodiscard]] std::optional<Memory> learns() const {
    return memory == nullptr || curve != 0 ? std::nullopt : std::optional(memory->cpp);
  }
  [[nodiscard]] NgramOptions drafter() const {
    NgramOptions drafter;
    if (key != 0) drafter.key = key;
    if (max_bytes != 0) drafter.max_bytes = max_bytes;
    if (memory != nullptr) drafter = memory->cpp->options(salt, drafter);
    return drafter;
  }
  /// Calls create(options), which copies the curve.
  template <class Create>
  void in_c(Create create) const {
    reprise_options made{};
    made.size = sizeof made;
    reprise_curve* told = nullptr;
    const std::array<reprise_cost_point, 2> points = {{{1, 0, 9, 180}, {1, 0, 1, 100}}};
    if (curve == 1) static_cast<void>(reprise_curve_create_linear(0.1, &told, nullptr));
    if (curve == 2) static_cast<void>(reprise_curve_create(points.data(), points.size(), &told, nullptr));
    made.curve = told;
    made.memory = memory == nullptr ? nullptr : memory->handle;
    made.salt = salt;
    made.max_draft_nodes = max_draft_nodes;
    made.max_bytes = max_bytes;
    made.key = key;
    made.saved_costs = saved_costs.empty() ? nullptr : saved_costs.data();
    made.saved_costs_size = saved_costs.size();
    made.engine = c_engine;
    Sized<reprise_options> sized(made);
    create(sized.get());
    reprise_curve_destroy(told);
  }
};

/// Leaves costs to a memory, if they are new.
/// `passes`: those that had been learned from at the last call.
inline void keep_costs(std::optional<Memory>& memory, std::uint64_t& passes, const LearnedCurve& learned) {
  if (memory && learned.passes() != passes) memory->keep_costs(learned.prior());
  passes = learned.passes();
}

struct CFollowerPair {
  explicit CFollowerPair(const CPairOptions& options) : cpp(options.in_cpp()), memory(options.learns()) {
    options.in_c([&](const reprise_options* in) { static_cast<void>(reprise_follower_create(in, &handle, nullptr)); });
  }
  CFollowerPair(const CFollowerPair&) = delete;
  CFollowerPair& operator=(const CFollowerPair&) = delete;
  ~CFollowerPair() {
    reprise_follower_destroy(handle);
    forget();
  }

  void forget() {
    cpp.forget();
    keep_costs(memory, passes, cpp.session().control().learned());
  }

  reprise_follower* handle = nullptr;
  Follower<Speculator> cpp;
  std::optional<Memory> memory;
  std::uint64_t passes = 0;
};

struct CBatchPair {
  CBatchPair(const CPairOptions& options, std::size_t slots)
      : cpp(options.batch_in_cpp(slots)), memory(options.learns()) {
    options.in_c(
        [&](const reprise_options* in) { static_cast<void>(reprise_batch_create(in, slots, &handle, nullptr)); });
  }
  CBatchPair(const CBatchPair&) = delete;
  CBatchPair& operator=(const CBatchPair&) = delete;
  ~CBatchPair() {
    reprise_batch_destroy(handle);
    for (std::size_t slot = 0; slot < cpp.slots(); ++slot) forget(slot);
  }

  void forget(std::size_t slot) {
    cpp.forget(slot);
    keep_costs(memory, passes, cpp.planner().learned(1));
  }

  reprise_batch* handle = nullptr;
  BatchFollower<NgramDrafter<>> cpp;
  std::optional<Memory> memory;
  std::uint64_t passes = 0;
};

struct CSessionPair {
  explicit CSessionPair(const CPairOptions& options) : cpp(options.in_cpp()), memory(options.learns()) {
    options.in_c([&](const reprise_options* in) { static_cast<void>(reprise_session_create(in, &handle, nullptr)); });
  }
  CSessionPair(reprise_session* forked, Speculator other, const CSessionPair& of)
      : handle(forked), cpp(std::move(other)), memory(of.memory), passes(of.passes) {}
  CSessionPair(const CSessionPair&) = delete;
  CSessionPair& operator=(const CSessionPair&) = delete;
  ~CSessionPair() {
    reprise_session_destroy(handle);
    keep();
  }

  void keep() {
    cpp.keep();
    keep_costs(memory, passes, cpp.control().learned());
  }

  static std::int32_t finish_in_c(FinishReason reason) {
    return reason == FinishReason::none           ? REPRISE_FINISH_NONE
           : reason == FinishReason::eos          ? REPRISE_FINISH_EOS
           : reason == FinishReason::max_tokens   ? REPRISE_FINISH_MAX_TOKENS
           : reason == FinishReason::context_full ? REPRISE_FINISH_CONTEXT_FULL
                                                  : -1;
  }
  /// True if reprise_session_state() says the same as the C++ session.
  [[nodiscard]] bool same_state() const {
    Sized<reprise_state> state;
    if (reprise_session_state(handle, state.get()) != REPRISE_OK || !state.untouched()) return false;
    const auto same = [](TokenSpan tokens, const reprise_token* data, std::size_t size) {
      return std::equal(tokens.begin(), tokens.end(), data, data + size);
    };
    return same(cpp.context(), state->context, state->context_count) &&
           same(cpp.output(), state->output, state->output_count) && state->cached == cpp.cached() &&
           state->top_k_wanted == cpp.strategy().top_k_wanted() && state->memory_bytes == cpp.memory_bytes() &&
           state->finish == finish_in_c(cpp.finish_reason());
  }

  reprise_session* handle = nullptr;
  Speculator cpp;
  std::optional<Memory> memory;
  std::uint64_t passes = 0;
  Limits limits;             ///< of the C++ round
  std::optional<Pass> open;  ///< the open pass in C++
};

/// Capabilities for both, and whether C must accept them.
struct CCapabilities {
  explicit CCapabilities(Choices& choices) {
    const auto limit = [&](std::size_t& c, std::size_t& cpp, std::size_t most) {
      c = choices.chance(60) ? 0 : 1 + choices.below(most);
      cpp = c == 0 ? unlimited : c;
    };
    limit(in_c->max_rows, in_cpp.max_rows, 40);
    limit(in_c->max_context, in_cpp.max_context, 300);
    limit(in_c->max_depth, in_cpp.max_depth, 12);
    limit(in_c->max_rollback, in_cpp.max_rollback, 12);
    in_c->max_leaves = choices.below(3) == 0 ? REPRISE_UNLIMITED : choices.below(4);
    in_cpp.max_leaves = std::max<std::size_t>(in_c->max_leaves, 1);
    const std::array kinds = {Rollback::trim, Rollback::snapshot, Rollback::per_row};
    in_c->rollback = static_cast<std::int32_t>(choices.below(kinds.size()));
    in_cpp.rollback = kinds[static_cast<std::size_t>(in_c->rollback)];
    if (choices.chance(25)) {
      for (std::size_t& width : widths) {
        width = 1 + choices.below(30);
        static_cast<void>(in_cpp.allowed_widths.add(width));
      }
      in_c->widths = widths.data();
      in_c->width_count = widths.size();
      in_c->has_pad_token = choices.chance(50) ? 1 : 0;
      if (in_c->has_pad_token == 1) in_cpp.pad_token = in_c->pad_token = 2;
    }
    spoil(choices);
  }
  void spoil(Choices& choices) {
    in_c.choose_size(choices);
    const std::size_t kind = choices.below(60);
    if (kind < 55) return;
    good = false;
    if (kind == 55) in_c->rollback = -1;
    if (kind == 56) in_c->rollback = 3;
    if (kind == 57) in_c->has_pad_token = 2;
    if (kind == 58) widths[1] = 0;
    if (kind >= 58) in_c->width_count = widths.size();
    if (kind == 58) in_c->widths = widths.data();
    if (kind == 59) in_c->widths = nullptr;
  }

  std::array<std::size_t, 4> widths{};
  Sized<reprise_capabilities> in_c;
  Capabilities in_cpp;
  bool good = true;
};

}  // namespace reprise::testing
