// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <string_view>
#include <utility>

#include "reprise/batch/batch_follower.hpp"
#include "reprise/batch/planner.hpp"
#include "reprise/control/cost_control.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/detail/new_array.hpp"
#include "reprise/core/draft.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/draft/detail/headed_drafter.hpp"
#include "reprise/draft/ngram_drafter.hpp"
#include "reprise/headed_speculator.hpp"
#include "reprise/history/memory.hpp"
#include "reprise/history/snapshot.hpp"
#include "reprise/history/table_snapshots.hpp"
#include "reprise/loop/follower.hpp"
#include "reprise/loop/round.hpp"
#include "reprise/stats/statistics.hpp"
#include "reprise/stats/statistics_text.hpp"
#include "reprise_c/detail/arguments.hpp"
#include "reprise_c/reprise.h"

/// \file The objects that the handles of the C interface point to, and what their functions do.

namespace reprise { inline namespace v0 { namespace c {

/// Leaves the learned costs of a handle to its memory.
struct KeptCosts {
  std::optional<Memory> memory = {};  ///< none if costs are told
  std::uint64_t passes = 0;           ///< that had been learned from when costs were kept last

  /// Costs of a handle that has learned nothing since may be older than those that are kept.
  void keep(const LearnedCurve& learned) noexcept {
    if (memory && learned.passes() != passes) memory->keep_costs(learned.prior());
    passes = learned.passes();
  }
};

}}}  // namespace reprise::c

struct reprise_curve {
  reprise::CostCurve curve;
};

struct reprise_memory {
  reprise::Memory memory;
  reprise::c::LastError last = {};
};

struct reprise_follower {
  reprise::Follower<reprise::HeadedSpeculator> follower;
  reprise::c::KeptCosts costs = {};
  reprise::detail::Buffer<reprise::Token> eos = {};
  reprise::c::LastError last = {};
};

struct reprise_batch {
  reprise::BatchFollower<reprise::detail::HeadedDrafter<>> follower;
  reprise::c::KeptCosts costs = {};
  reprise::detail::Buffer<reprise::FollowedSlot> slots = {};  // scratch memory
  std::optional<std::size_t> proposed = {};       // slots whose drafts reprise_batch_draft_proposed() can have
  reprise::detail::OwnedArray<bool> failed = {};  // in a step: the slot has no request, because one could not begin
  reprise::detail::OwnedArray<reprise::detail::Buffer<reprise::Token>> eos =
      {};  // of each slot, after the first one is set
  reprise::c::LastError last = {};
};

struct reprise_session {
  /// The open pass.
  struct Open {
    reprise::Ticket ticket;
    std::size_t drafted = 0;
    bool chain = true;
  };

  reprise::HeadedSpeculator session;
  reprise::c::KeptCosts costs = {};
  reprise::Limits limits = {};  // a round refers to it
  // Not in Limits::eos, because a std::vector can only report that memory ran out by an exception.
  reprise::detail::Buffer<reprise::Token> eos = {};
  std::optional<Open> open = {};
  bool proposed = false;  // by reprise_session_propose_lookup(), for the next plan
  reprise::c::LastError last = {};

  /// Returns the status of a call that gives up the open pass, unless it fails.
  template <class T>
  reprise_status gives_up(const reprise::Result<T>& result) noexcept {
    if (result || result.error().code == reprise::ErrorCode::out_of_memory) open.reset(), proposed = false;
    return last.status(result);
  }
};

namespace reprise { inline namespace v0 { namespace c {

/// Returns a new object on the heap. Error: out_of_memory.
template <class Handle, class... Values>
[[nodiscard]] Result<void> make(Handle*& made, Values&&... values) noexcept {
  made = new (std::nothrow) Handle{std::forward<Values>(values)...};
  if (made == nullptr) return no_memory(sizeof(Handle));
  return {};
}

/// The number that identifies the tokenizer in snapshots of pass costs, which contain no tokens.
inline constexpr std::uint64_t no_tokenizer = 0;

/// Copies a curve. CostCurve itself becomes the default curve if memory runs out.
[[nodiscard]] inline Result<CostCurve> copy_of(const CostCurve& curve) noexcept {
  CostCurve copy = curve;
  if (copy.memory_bytes() == 0 && curve.memory_bytes() != 0)
    return Error{ErrorCode::out_of_memory, "there is no memory for a copy of the cost curve: free some",
                 curve.memory_bytes(), 0};
  return copy;
}

/// Returns the costs in a snapshot.
[[nodiscard]] inline Result<CostPrior> costs_in(const void* snapshot, std::size_t size, const char* engine) noexcept {
  const auto bytes = array_of(static_cast<const std::byte*>(snapshot), size);
  if (!bytes) return bytes.error();
  const auto name = name_of(engine, most_engine_name_bytes);
  if (!name) return name.error();
  const auto reader = SnapshotReader::open(*bytes, no_tokenizer);
  if (!reader) return reader.error();
  return load_costs(*reader, *name);
}

/// Returns the part of the options that describes a drafter.
[[nodiscard]] inline NgramOptions drafter_options(const reprise_options& in) noexcept {
  NgramOptions drafter;
  if (in.key != 0) drafter.key = in.key;
  drafter.max_bytes = limit_of(in.max_bytes);
  if (in.vocabulary != 0)
    drafter.vocabulary = static_cast<std::uint32_t>(std::min<std::size_t>(in.vocabulary, drafter.vocabulary));
  if (in.memory != nullptr) return in.memory->memory.options(in.salt, std::move(drafter));
  return drafter;
}

/// What reprise_options describes, for the C++ classes.
struct GivenOptions {
  NgramOptions drafter;
  CostOptions costs;
  std::optional<HeadCost> head;
  std::optional<Memory> memory;  ///< that has the learned costs; none if costs are told
};

/// Returns the told cost of a head, if there is one.
[[nodiscard]] inline Result<std::optional<HeadCost>> head_cost(const reprise_options& in) noexcept {
  const double costs[] = {in.head_draft, in.head_token, in.head_row, in.head_late};
  bool told = false;
  for (const double cost : costs) {
    if (!(cost >= 0 && cost <= 1024))
      return refused("a cost of the head is not between 0 and 1024: pass it in plain passes");
    told = told || cost > 0;
  }
  if (!told) return std::optional<HeadCost>();
  if (in.curve == nullptr)
    return refused("there is a cost of the head, but no curve: tell both, or none to learn both from times");
  return std::optional(HeadCost{to_cost(costs[0]), to_cost(costs[1]), to_cost(costs[2]), to_cost(costs[3])});
}

/// Converts options.
[[nodiscard]] inline Result<GivenOptions> given_options(const reprise_options* in) noexcept {
  const auto read = read_struct(in);
  if (!read) return read.error();
  if (read->max_draft_nodes > most_draft_nodes)
    return Error{ErrorCode::size_out_of_range, "max_draft_nodes is above the limit: pass at most 64",
                 read->max_draft_nodes, most_draft_nodes};
  GivenOptions given;
  given.drafter = drafter_options(*read);
  if (read->saved_costs != nullptr || read->saved_costs_size != 0) {
    const auto prior = costs_in(read->saved_costs, read->saved_costs_size, read->engine);
    if (!prior) return prior.error();
    given.costs.prior = *prior;
  }
  if (read->memory != nullptr && read->curve == nullptr) {
    given.memory = read->memory->memory;
    const CostPrior kept = given.memory->costs();
    if (kept.size() != 0)
      given.costs.prior = kept;
    else if (given.costs.prior.size() != 0)
      given.memory->keep_costs(given.costs.prior);
  }
  given.costs.max_nodes = limit_of(read->max_draft_nodes);
  if (read->curve != nullptr) {
    auto curve = copy_of(read->curve->curve);
    if (!curve) return curve.error();
    given.costs.curve = *std::move(curve);
  }
  if (auto head = head_cost(*read); !head)
    return head.error();
  else
    given.head = *head;
  return given;
}

/// Creates a handle with a session or a follower.
template <class Handle, class Object>
[[nodiscard]] Result<void> make_with_session(const reprise_options* in, Handle*& made) noexcept {
  auto given = given_options(in);
  if (!given) return given.error();
  return make(made, Object(HeadedSpeculator(given->drafter, std::move(given->costs), given->head)),
              KeptCosts{std::move(given->memory)});
}

/// Ends the sequence of a handle, which the memory has then.
inline void forget(reprise_follower& handle) noexcept {
  handle.follower.forget();
  handle.costs.keep(handle.follower.session().control().learned());
}
inline void forget(reprise_batch& handle, std::size_t slot) noexcept {
  handle.follower.forget(slot);
  handle.costs.keep(handle.follower.planner().learned(1));
}
inline void keep(reprise_session& handle) noexcept {
  handle.session.keep();
  handle.costs.keep(handle.session.control().learned());
}

/// Writes the bytes that a snapshot needs to `needed`; 0 after an error that names none.
[[nodiscard]] inline Result<void> report_size(const Result<std::span<const std::byte>>& snapshot,
                                              std::size_t& needed) noexcept {
  if (snapshot)
    needed = snapshot->size();
  else
    needed = snapshot.error().code == ErrorCode::out_of_room ? static_cast<std::size_t>(snapshot.error().value) : 0;
  if (!snapshot) return snapshot.error();
  return {};
}

/// Writes learned costs as a snapshot to `room`, and the bytes needed to `needed`.
[[nodiscard]] inline Result<void> save_costs_of(const CostPrior& learned, const char* engine, void* buffer,
                                                std::size_t room, std::size_t& needed) noexcept {
  const auto bytes = array_of(static_cast<std::byte*>(buffer), room);
  if (!bytes) return bytes.error();
  const auto name = name_of(engine, most_engine_name_bytes);
  if (!name) return name.error();
  SnapshotWriter writer(*bytes, no_tokenizer);
  if (auto written = save_costs(learned, *name, writer); !written) return written;
  return report_size(writer.finish(), needed);
}

/// Writes statistics as JSON with a final 0 to `buffer`, and the bytes needed to `needed`. If they do not fit, the
/// buffer holds an empty string.
[[nodiscard]] inline Result<void> write_statistics(const Statistics& statistics, char* buffer, std::size_t room,
                                                   std::size_t& needed) noexcept {
  const auto letters = array_of(buffer, room);
  if (!letters) return letters.error();
  std::size_t written = 0;
  write_json(statistics, [&](std::string_view piece) noexcept {
    for (const char letter : piece) {
      if (written < room) buffer[written] = letter;
      ++written;
    }
  });
  needed = written + 1;
  if (room != 0) buffer[needed > room ? 0 : written] = 0;
  if (needed > room)
    return Error{ErrorCode::out_of_room, "the buffer is too small for the statistics: provide the bytes needed", needed,
                 room};
  return {};
}

// Memories

[[nodiscard]] inline Result<void> make_memory(const reprise_memory_options* in, reprise_memory*& made) noexcept {
  const auto read = read_struct(in);
  if (!read) return read.error();
  constexpr std::uint32_t all = 2 * REPRISE_MEMORY_SEPARATE_CALIBRATION - 1;
  if (read->flags > all) return refused("flags has a bit that is not known", read->flags, all);
  const auto has = [&](std::uint32_t flag) { return (read->flags & flag) != 0; };
  MemoryOptions options;
  options.max_bytes = has(REPRISE_MEMORY_NO_TEXT) ? 0 : limit_of(read->max_bytes, options.max_bytes);
  options.next_token_bytes =
      has(REPRISE_MEMORY_NO_NEXT_TOKENS) ? 0 : limit_of(read->next_token_bytes, options.next_token_bytes);
  options.salts = limit_of(read->salts, options.salts);
  if (read->key != 0) options.key = read->key;
  if (read->vocabulary != 0) options.vocabulary = read->vocabulary;
  options.prompts = !has(REPRISE_MEMORY_NO_PROMPTS);
  options.outputs = !has(REPRISE_MEMORY_NO_OUTPUTS);
  options.shared_calibration = !has(REPRISE_MEMORY_SEPARATE_CALIBRATION);
  auto memory = Memory::make(options);
  if (!memory) return memory.error();
  return make(made, *std::move(memory));
}

[[nodiscard]] inline Result<void> add_to(reprise_memory& handle, std::uint64_t salt, TokenSpan tokens,
                                         std::size_t prompt_count) noexcept {
  if (prompt_count > tokens.size())
    return Error{ErrorCode::size_out_of_range, "prompt_count is larger than the number of tokens", prompt_count,
                 tokens.size()};
  handle.memory.add(tokens, prompt_count, salt);
  return {};
}

[[nodiscard]] inline Result<void> save(reprise_memory& handle, std::uint64_t salt, std::uint64_t tokenizer,
                                       void* buffer, std::size_t room, std::size_t& needed) noexcept {
  const auto bytes = array_of(static_cast<std::byte*>(buffer), room);
  if (!bytes) return bytes.error();
  return report_size(handle.memory.save(*bytes, tokenizer, salt), needed);
}

[[nodiscard]] inline Result<void> load(reprise_memory& handle, std::uint64_t salt, std::uint64_t tokenizer,
                                       const void* buffer, std::size_t count) noexcept {
  const auto bytes = array_of(static_cast<const std::byte*>(buffer), count);
  if (!bytes) return bytes.error();
  return handle.memory.load(*bytes, tokenizer, salt);
}

// Followers

[[nodiscard]] inline Result<TokenSpan> draft(reprise_follower& handle, const reprise_token* ids, std::size_t count,
                                             std::size_t after, std::size_t most, std::int64_t now_ns,
                                             std::uint64_t conversation) noexcept {
  const auto tokens = array_of(ids, count);
  if (!tokens) return tokens.error();
  if (now_ns < 0) return refused("now_ns is negative: pass 0 if the time is unknown");
  return handle.follower.draft(*tokens, most, time_of(now_ns), number_of(conversation), after);
}

/// Copies the tokens that end a generation to `kept`, and returns limits with them.
[[nodiscard]] inline Result<Limits> stops_of(const reprise_token* eos, std::size_t count,
                                             detail::Buffer<Token>& kept) noexcept {
  const auto given = array_of(eos, count);
  if (!given) return given.error();
  detail::Buffer<Token> copy;
  if (!copy.assign(*given)) return no_memory(count * sizeof(Token));
  kept.swap(copy);
  Limits limits;
  limits.more_eos = {kept.data(), kept.size()};
  return limits;
}
[[nodiscard]] inline Result<void> stop_at(reprise_follower& handle, const reprise_token* eos,
                                          std::size_t count) noexcept {
  auto limits = stops_of(eos, count, handle.eos);
  if (!limits) return limits.error();
  return handle.follower.stop_at(*std::move(limits));
}

// Batches

[[nodiscard]] inline Result<void> make_batch(const reprise_options* in, std::size_t slots,
                                             reprise_batch*& made) noexcept {
  constexpr std::size_t most = 65'536;
  if (slots == 0 || slots > most)
    return Error{ErrorCode::size_out_of_range, "the number of slots is not between 1 and the limit", slots, most};
  BatchOptions options;
  auto given = given_options(in);
  if (!given) return given.error();
  options.curve = std::move(given->costs.curve);
  options.max_nodes = given->costs.max_nodes;
  options.head = given->head;
  auto follower = decltype(reprise_batch::follower)::make(
      slots, detail::HeadedDrafter<>(NgramDrafter<>(given->drafter)), std::move(options));
  if (!follower) return follower.error();
  follower->planner().assume(1, given->costs.prior);
  detail::Buffer<FollowedSlot> scratch;
  if (!scratch.reserve(slots)) return no_memory(slots * sizeof(FollowedSlot));
  return make(made, *std::move(follower), KeptCosts{std::move(given->memory)}, std::move(scratch));
}

[[nodiscard]] inline Result<void> assign(reprise_batch& handle, std::size_t slot, const reprise_options* in) noexcept {
  const auto read = read_struct(in);
  if (!read) return read.error();
  return handle.follower.assign(slot, NgramDrafter<>(drafter_options(*read)));
}

/// Writes to `slots` how many tokens each of them knows.
[[nodiscard]] inline Result<void> find_known(const reprise_batch& handle, reprise_slot* slots,
                                             std::size_t count) noexcept {
  const auto given = array_of(slots, count);
  if (!given) return given.error();
  for (reprise_slot& slot : *given) slot.after = 0;
  for (reprise_slot& slot : *given) {
    const auto ids = array_of(slot.ids, slot.count);
    if (!ids) return ids.error();
    if (slot.slot >= handle.follower.slots())
      return refused("the batch has no such slot", slot.slot, handle.follower.slots());
    slot.after = handle.follower.known(slot.slot, *ids);
  }
  return {};
}

/// Returns the slots without results.
[[nodiscard]] inline Result<std::span<reprise_slot>> cleared(reprise_slot* slots, std::size_t count) noexcept {
  const auto given = array_of(slots, count);
  if (!given) return given.error();
  for (reprise_slot& slot : *given) slot.draft = nullptr, slot.drafted = 0;
  return *given;
}

/// Reads `slots` into handle.slots.
[[nodiscard]] inline Result<void> read_slots(reprise_batch& handle, reprise_slot* slots, std::size_t count,
                                             std::int64_t now_ns) noexcept {
  const auto given = cleared(slots, count);
  if (!given) return given.error();
  if (count > handle.follower.slots())
    return refused("there are more slots in the pass than in the batch", count, handle.follower.slots());
  if (now_ns < 0) return refused("now_ns is negative: pass 0 if the time is unknown");
  handle.slots.clear();
  for (const reprise_slot& slot : *given) {
    const auto ids = array_of(slot.ids, slot.count);
    if (!ids) return ids.error();
    handle.slots.push_reserved({slot.slot, *ids, slot.most, number_of(slot.conversation), slot.after});
  }
  return {};
}
inline void write_drafts(std::span<const TokenSpan> drafts, reprise_slot* slots) noexcept {
  for (std::size_t i = 0; i < drafts.size(); ++i)
    slots[i].draft = drafts[i].data(), slots[i].drafted = drafts[i].size();
}

/// Writes the drafts to `slots`.
[[nodiscard]] inline Result<void> draft(reprise_batch& handle, reprise_slot* slots, std::size_t count,
                                        std::int64_t now_ns) noexcept {
  if (auto read = read_slots(handle, slots, count, now_ns); !read) return read;
  const auto drafts = handle.follower.draft({handle.slots.data(), count}, time_of(now_ns));
  if (!drafts) return drafts.error();
  handle.proposed.reset();
  write_drafts(*drafts, slots);
  return {};
}
/// Writes how many tokens the head should draft for each of `slots`.
[[nodiscard]] inline Result<void> propose_lookup(reprise_batch& handle, reprise_slot* slots, std::size_t count,
                                                 std::int64_t now_ns) noexcept {
  if (auto read = read_slots(handle, slots, count, now_ns); !read) return read;
  const auto asked = handle.follower.propose_lookup({handle.slots.data(), count}, time_of(now_ns));
  if (!asked) return asked.error();
  for (std::size_t i = 0; i < count; ++i) slots[i].drafted = (*asked)[i];
  handle.proposed = count;
  return {};
}
[[nodiscard]] inline Result<void> draft_proposed(reprise_batch& handle, reprise_slot* slots, std::size_t count,
                                                 std::int64_t head_ns) noexcept {
  const auto given = cleared(slots, count);
  if (!given) return given.error();
  if (head_ns < 0) return refused("head_ns is negative: pass 0 if the time is unknown");
  if (count != handle.proposed)
    return refused("these are not the slots of the last call: call reprise_batch_propose_lookup() with them first",
                   count, handle.proposed.value_or(0));
  handle.proposed.reset();
  write_drafts(handle.follower.draft_proposed(time_of(head_ns)), slots);
  return {};
}

[[nodiscard]] inline Result<void> check_slot(const reprise_batch& handle, std::size_t slot) noexcept {
  if (slot < handle.follower.slots()) return {};
  return refused("the batch has no such slot", slot, handle.follower.slots());
}

[[nodiscard]] inline Result<void> stop_at(reprise_batch& handle, std::size_t slot, const reprise_token* eos,
                                          std::size_t count) noexcept {
  if (auto known = check_slot(handle, slot); !known) return known;
  if (handle.eos == nullptr) handle.eos = detail::new_array<detail::Buffer<Token>>(handle.follower.slots());
  if (handle.eos == nullptr) return no_memory(handle.follower.slots() * sizeof(detail::Buffer<Token>));
  auto limits = stops_of(eos, count, handle.eos[slot]);
  if (!limits) return limits.error();
  return handle.follower.stop_at(slot, *std::move(limits));
}

// Rounds of sessions

/// Sets the limits of the next round. Changes nothing if there is an error.
[[nodiscard]] inline Result<void> set_limits(reprise_session& handle, const reprise_limits* in,
                                             std::size_t most) noexcept {
  const auto read = read_struct(in);
  if (!read) return read.error();
  const auto eos = array_of(read->eos, read->eos_count);
  if (!eos) return eos.error();
  if (!handle.eos.assign(*eos))
    return Error{ErrorCode::out_of_memory, "there is no memory for reprise_limits.eos: free some", eos->size(), 0};
  handle.limits.max_tokens = limit_of(read->max_tokens);
  handle.limits.max_context = limit_of(read->max_context);
  handle.limits.more_eos = {handle.eos.data(), handle.eos.size()};
  handle.limits.draft.max_nodes = most;
  return {};
}

/// Starts a round. Writes how many tokens the head should draft.
[[nodiscard]] inline Result<void> propose_lookup(reprise_session& handle, const reprise_limits* limits,
                                                 std::size_t most, std::size_t& tokens) noexcept {
  if (auto set = set_limits(handle, limits, most); !set) return set;
  handle.open.reset();
  tokens = handle.session.propose_lookup(handle.limits);
  handle.proposed = true;
  return {};
}
[[nodiscard]] inline Result<void> add_head(reprise_session& handle, const reprise_token* tokens, std::size_t count,
                                           std::int64_t head_ns) noexcept {
  const auto given = array_of(tokens, count);
  if (!given) return given.error();
  if (head_ns < 0) return refused("head_ns is negative: pass 0 if the time is unknown");
  if (!handle.proposed)
    return Error{ErrorCode::not_proposed,
                 "there is no draft of the lookup: call reprise_session_propose_lookup() first"};
  return handle.session.add_head(*given, handle.limits, time_of(head_ns));
}
[[nodiscard]] inline Result<Pass> plan(reprise_session& handle, const reprise_limits* limits,
                                       std::size_t most) noexcept {
  if (!std::exchange(handle.proposed, false)) {
    if (auto set = set_limits(handle, limits, most); !set) return set.error();
    handle.open.reset();
    handle.session.strategy().clear();
    static_cast<void>(handle.session.propose(handle.limits));
  }
  auto pass = handle.session.plan();
  if (!pass) return pass;
  reprise_session::Open open{pass->ticket, pass->drafted, true};
  for (std::size_t i = 0; i < pass->parents.size(); ++i)
    open.chain = open.chain && pass->parents[i] == static_cast<NodeIndex>(i) - 1;
  handle.open = open;
  return pass;
}

[[nodiscard]] inline Error not_planned() noexcept {
  return {ErrorCode::not_proposed, "there is no open pass: call reprise_session_plan() first"};
}

[[nodiscard]] inline Result<Decision> commit(reprise_session& handle, const reprise_token* picks, std::size_t count,
                                             std::int64_t pass_ns) noexcept {
  const auto given = array_of(picks, count);
  if (!given) return given.error();
  if (pass_ns < 0) return refused("pass_ns is negative: pass 0 if the time is unknown");
  if (!handle.open) return not_planned();
  const std::size_t rows = handle.open->drafted + 1;
  if (count > rows || (count < rows && !handle.open->chain))
    return Error{ErrorCode::bad_picks,
                 "the number of picks is wrong: pass one for the anchor and one for each drafted row, and none for "
                 "other pending rows",
                 count, rows};
  auto decision = handle.session.resolve(handle.open->ticket, *given);
  if (!decision) return decision;
  auto done = handle.session.commit(handle.open->ticket, time_of(pass_ns));
  if (!done) return done.error();
  handle.open.reset();
  return decision;
}

/// Returns the finish reason of a session.
[[nodiscard]] inline std::int32_t finish_of(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::eos:
      return REPRISE_FINISH_EOS;
    case FinishReason::max_tokens:
      return REPRISE_FINISH_MAX_TOKENS;
    case FinishReason::context_full:
      return REPRISE_FINISH_CONTEXT_FULL;
    default:
      return REPRISE_FINISH_NONE;
  }
}

}}}  // namespace reprise
