// SPDX-License-Identifier: Apache-2.0

/// \file The implementation of reprise.h, the C interface. Each function checks its arguments, calls the C++ class, and
/// keeps the error. It compiles with or without exceptions and RTTI; without exceptions it needs no C++ library except
/// the nothrow operator new and operator delete.

#include "reprise/c/reprise.h"

#include <chrono>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <new>
#include <optional>
#include <span>
#include <utility>

#include "reprise/c/detail/arguments.hpp"
#include "reprise/c/detail/errors.hpp"
#include "reprise/c/detail/handles.hpp"
#include "reprise/control/cost_curve.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/core/version.hpp"
#include "reprise/history/history_snapshot.hpp"
#include "reprise/history/next_token_snapshot.hpp"
#include "reprise/history/snapshot.hpp"
#include "reprise/history/tenants.hpp"
#include "reprise/stats/statistics_text.hpp"

using namespace reprise;

namespace {

/// Returns a new object on the heap. Error: out_of_memory.
template <class Handle, class... Values>
Result<void> make(Handle*& made, Values&&... values) noexcept {
  made = new (std::nothrow) Handle{std::forward<Values>(values)...};
  if (made == nullptr) return c::no_memory(sizeof(Handle));
  return {};
}

Result<void> make_curve(const reprise_cost_point* points, std::size_t count, reprise_curve*& made) noexcept {
  const auto given = c::array_of(points, count);
  if (!given) return given.error();
  Buffer<CostPoint> copies;
  if (!copies.reserve(count)) return c::no_memory(count * sizeof(CostPoint));
  for (const reprise_cost_point& point : *given)
    copies.push_reserved({point.sequences, point.context, point.rows, point.nanoseconds});
  auto curve = CostCurve::from_points({copies.data(), copies.size()});
  if (!curve) return curve.error();
  return make(made, *std::move(curve));
}

Result<void> make_history(const reprise_history_options* in, reprise_history*& made) noexcept {
  const auto read = c::read_struct(in);
  if (!read) return read.error();
  HistoryOptions options;
  options.max_bytes = c::limit_of(read->max_bytes, options.max_bytes);
  if (read->key != 0) options.key = read->key;
  if (read->vocabulary != 0) options.vocabulary = read->vocabulary;
  auto store = HistoryStore::make(options);
  if (!store) return store.error();
  NextTokenCounts counts;
  if (read->next_token_bytes != 0) {
    auto table = NextTokenCounts::make({.max_bytes = read->next_token_bytes,
                                        .key = TenantHistories::next_token_key(options.key),
                                        .vocabulary = options.vocabulary});
    if (!table) return table.error();
    counts = *std::move(table);
  }
  return make(made, *std::move(store), std::move(counts));
}

Result<void> add_to(reprise_history& history, std::uint64_t name, TokenSpan tokens, std::size_t prompt_count,
                    bool removable) noexcept {
  if (prompt_count > tokens.size())
    return Error{ErrorCode::size_out_of_range, "prompt_count is larger than the number of tokens", prompt_count,
                 tokens.size()};
  const std::uint32_t vocabulary = std::min(history.store.options().vocabulary, HistoryWord::most_tokens);
  for (const Token token : tokens)
    if (static_cast<std::uint32_t>(token) >= vocabulary)
      return Error{ErrorCode::token_out_of_range, "a token is outside the vocabulary of the history",
                   static_cast<std::uint32_t>(token), vocabulary};
  history.store.begin_sequence(name);
  history.store.append(tokens.first(prompt_count), Origin::prompt);
  history.store.append(tokens.subspan(prompt_count), Origin::output);
  history.store.end_sequence();
  if (!removable) history.next_tokens.add(tokens);
  return {};
}

Result<void> save(const reprise_history& history, std::uint64_t tokenizer, void* buffer, std::size_t room,
                  std::size_t& needed) noexcept {
  const auto bytes = c::buffer_of(buffer, room);
  if (!bytes) return bytes.error();
  const bool counted = history.next_tokens.lines() != 0;
  needed = snapshot_bytes_of(history.store);
  if (counted) needed += SnapshotFormat::section_header_bytes + next_token_bytes(history.next_tokens);
  if (needed > room)
    return Error{ErrorCode::out_of_room, "the buffer is too small for the snapshot: provide the bytes needed", needed,
                 room};
  SnapshotWriter writer(*bytes, tokenizer);
  write_history(writer, history.store, history.calibration);
  if (counted) write_next_tokens(writer, history.next_tokens);
  const auto snapshot = writer.finish();
  if (!snapshot) return snapshot.error();
  return {};
}

Result<void> load(reprise_history& history, std::uint64_t tokenizer, const void* buffer, std::size_t count) noexcept {
  const auto bytes = c::array_of(static_cast<const std::byte*>(buffer), count);
  if (!bytes) return bytes.error();
  const auto reader = SnapshotReader::open(*bytes, tokenizer);
  if (!reader) return reader.error();
  // The table is checked first and loaded last, so that refused bytes change nothing.
  bool counted = false;
  if (const auto section = reader->section(SectionKind::next_tokens); section && history.next_tokens.lines() != 0) {
    const auto valid = detail::check_next_tokens(*section, history.next_tokens.options(), history.next_tokens.lines());
    if (!valid && valid.error().code != ErrorCode::other_table) return valid;
    counted = valid.has_value();
  }
  if (auto loaded = load_history(*bytes, tokenizer, history.store, history.calibration); !loaded) return loaded;
  if (counted) return load_next_tokens(*reader, history.next_tokens);
  return {};
}

Result<TokenSpan> draft(reprise_follower& handle, const reprise_token* ids, std::size_t count, std::size_t most,
                        std::int64_t now_ns, std::uint64_t conversation) noexcept {
  const auto tokens = c::array_of(ids, count);
  if (!tokens) return tokens.error();
  if (now_ns < 0) return c::refused("now_ns is negative: pass 0 if the time is unknown");
  return handle.follower.draft(*tokens, most,
                               now_ns == 0 ? std::nullopt : std::optional(std::chrono::nanoseconds(now_ns)),
                               conversation == 0 ? std::nullopt : std::optional(conversation));
}

/// Sets the limits of the next round. Changes nothing if there is an error.
Result<void> set_limits(reprise_session& handle, const reprise_limits* in, std::size_t most) noexcept {
  const auto read = c::read_struct(in);
  if (!read) return read.error();
  const auto eos = c::array_of(read->eos, read->eos_count);
  if (!eos) return eos.error();
  if (!handle.eos.assign(*eos))
    return Error{ErrorCode::out_of_memory, "there is no memory for reprise_limits.eos: free some", eos->size(), 0};
  handle.limits.max_tokens = c::limit_of(read->max_tokens);
  handle.limits.max_context = c::limit_of(read->max_context);
  handle.limits.draft.max_nodes = most;
  return {};
}

Result<Pass> plan(reprise_session& handle, const reprise_limits* limits, std::size_t most) noexcept {
  if (auto set = set_limits(handle, limits, most); !set) return set.error();
  handle.open.reset();
  static_cast<void>(handle.session.propose(handle.limits));
  auto pass = handle.session.plan();
  if (!pass) return pass;
  reprise_session::Open open{pass->ticket, pass->drafted, true};
  for (std::size_t i = 0; i < pass->parents.size(); ++i)
    open.chain = open.chain && pass->parents[i] == static_cast<NodeIndex>(i) - 1;
  handle.open = open;
  return pass;
}

Error not_planned() noexcept {
  return {ErrorCode::not_proposed, "there is no open pass: call reprise_session_plan() first"};
}

Result<Decision> commit(reprise_session& handle, const reprise_token* picks, std::size_t count,
                        std::int64_t pass_ns) noexcept {
  const auto given = c::array_of(picks, count);
  if (!given) return given.error();
  if (pass_ns < 0) return c::refused("pass_ns is negative: pass 0 if the time is unknown");
  if (!handle.open) return not_planned();
  const std::size_t rows = handle.open->drafted + 1;
  if (count > rows || (count < rows && !handle.open->chain))
    return Error{ErrorCode::bad_picks,
                 "the number of picks is wrong: pass one for the anchor and one for each drafted row, and none for "
                 "other pending rows",
                 count, rows};
  const auto ends = [&](TokenSpan, Token next) noexcept {
    const bool found = std::find(handle.eos.begin(), handle.eos.end(), next) != handle.eos.end();
    return found ? StopDecision::stop_after : StopDecision::proceed;
  };
  auto decision = handle.session.resolve(handle.open->ticket, *given, ends);
  if (!decision) return decision;
  auto done = handle.session.commit(handle.open->ticket,
                                    pass_ns == 0 ? std::nullopt : std::optional(std::chrono::nanoseconds(pass_ns)));
  if (!done) return done.error();
  handle.open.reset();
  return decision;
}

/// Returns the finish reason of a session. The predicate of commit() looks for eos and for nothing else.
std::int32_t finish_of(FinishReason reason) noexcept {
  switch (reason) {
    case FinishReason::predicate:
      return REPRISE_FINISH_EOS;
    case FinishReason::max_tokens:
      return REPRISE_FINISH_MAX_TOKENS;
    case FinishReason::context_full:
      return REPRISE_FINISH_CONTEXT_FULL;
    default:
      return REPRISE_FINISH_NONE;
  }
}

}  // namespace

const char* reprise_version(void) { return version_string.data(); }

// Cost curves

reprise_status reprise_curve_create_linear(double per_row, reprise_curve** curve, reprise_error* error) {
  auto result = c::clear(curve);
  if (result && !(per_row >= 0 && per_row <= 65536))
    result = c::refused("per_row is not between 0 and 65536: pass the cost of a drafted row in plain passes");
  if (result) result = make(*curve, CostCurve::linear(per_row));
  return c::created(error, result);
}

reprise_status reprise_curve_create(const reprise_cost_point* points, size_t count, reprise_curve** curve,
                                    reprise_error* error) {
  auto result = c::clear(curve);
  if (result) result = make_curve(points, count, *curve);
  return c::created(error, result);
}

void reprise_curve_destroy(reprise_curve* curve) { delete curve; }

// Histories

reprise_status reprise_history_create(const reprise_history_options* options, reprise_history** history,
                                      reprise_error* error) {
  auto result = c::clear(history);
  if (result) result = make_history(options, *history);
  return c::created(error, result);
}

void reprise_history_destroy(reprise_history* history) { delete history; }

reprise_status reprise_history_add(reprise_history* history, uint64_t name, const reprise_token* tokens, size_t count,
                                   size_t prompt_count, int32_t removable) {
  if (history == nullptr) return REPRISE_INVALID_ARGUMENT;
  const auto given = c::array_of(tokens, count);
  if (!given) return history->last.status(given);
  return history->last.status(add_to(*history, name, *given, prompt_count, removable != 0));
}

reprise_status reprise_history_remove(reprise_history* history, uint64_t name) {
  if (history == nullptr) return REPRISE_INVALID_ARGUMENT;
  history->store.remove(name);
  return REPRISE_OK;
}

reprise_status reprise_history_clear(reprise_history* history) {
  if (history == nullptr) return REPRISE_INVALID_ARGUMENT;
  history->store.clear();
  history->next_tokens.clear();
  history->calibration = {};
  return REPRISE_OK;
}

reprise_status reprise_history_learn_from_follower(reprise_history* history, const reprise_follower* follower) {
  if (history == nullptr) return REPRISE_INVALID_ARGUMENT;
  if (follower == nullptr) return history->last.set(c::refused("the follower is null"));
  history->calibration = follower->follower.session().strategy().calibration();
  return REPRISE_OK;
}

reprise_status reprise_history_learn_from_session(reprise_history* history, const reprise_session* session) {
  if (history == nullptr) return REPRISE_INVALID_ARGUMENT;
  if (session == nullptr) return history->last.set(c::refused("the session is null"));
  history->calibration = session->session.strategy().calibration();
  return REPRISE_OK;
}

reprise_status reprise_history_save(reprise_history* history, uint64_t tokenizer, void* buffer, size_t room,
                                    size_t* needed) {
  auto result = c::clear(needed);
  if (history == nullptr) return REPRISE_INVALID_ARGUMENT;
  if (result) result = save(*history, tokenizer, buffer, room, *needed);
  return history->last.status(result);
}

reprise_status reprise_history_load(reprise_history* history, uint64_t tokenizer, const void* bytes, size_t count) {
  if (history == nullptr) return REPRISE_INVALID_ARGUMENT;
  return history->last.status(load(*history, tokenizer, bytes, count));
}

const reprise_error* reprise_history_error(const reprise_history* history) {
  return history == nullptr ? &c::null_handle : history->last.get();
}

// Followers

reprise_status reprise_follower_create(const reprise_options* options, reprise_follower** follower,
                                       reprise_error* error) {
  auto result = c::clear(follower);
  if (!result) return c::created(error, result);
  auto session = c::speculator_of(options);
  if (!session) return c::created(error, session.error());
  return c::created(error, make(*follower, Follower<Speculator>(*std::move(session))));
}

void reprise_follower_destroy(reprise_follower* follower) { delete follower; }

reprise_status reprise_follower_draft(reprise_follower* follower, const reprise_token* ids, size_t count, size_t most,
                                      int64_t now_ns, uint64_t conversation, const reprise_token** draft_out,
                                      size_t* drafted) {
  const auto cleared = c::clear(draft_out, drafted);
  if (follower == nullptr) return REPRISE_INVALID_ARGUMENT;
  if (!cleared) return follower->last.status(cleared);
  const auto tokens = draft(*follower, ids, count, most, now_ns, conversation);
  if (!tokens) return follower->last.status(tokens);
  *draft_out = tokens->data();
  *drafted = tokens->size();
  return REPRISE_OK;
}

reprise_status reprise_follower_forget(reprise_follower* follower) {
  if (follower == nullptr) return REPRISE_INVALID_ARGUMENT;
  follower->follower.forget();
  return REPRISE_OK;
}

reprise_status reprise_follower_statistics(reprise_follower* follower, char* buffer, size_t room, size_t* needed) {
  auto result = c::clear(needed);
  if (follower == nullptr) return REPRISE_INVALID_ARGUMENT;
  if (result) result = c::write_statistics(follower->follower.statistics(), buffer, room, *needed);
  return follower->last.status(result);
}

reprise_status reprise_follower_save_costs(reprise_follower* follower, const char* engine, void* buffer, size_t room,
                                           size_t* needed) {
  auto result = c::clear(needed);
  if (follower == nullptr) return REPRISE_INVALID_ARGUMENT;
  if (result) result = c::save_costs_of(follower->follower.session(), engine, buffer, room, *needed);
  return follower->last.status(result);
}

const reprise_error* reprise_follower_error(const reprise_follower* follower) {
  return follower == nullptr ? &c::null_handle : follower->last.get();
}

// Sessions

reprise_status reprise_session_create(const reprise_options* options, reprise_session** session, reprise_error* error) {
  auto result = c::clear(session);
  if (!result) return c::created(error, result);
  auto made = c::speculator_of(options);
  if (!made) return c::created(error, made.error());
  return c::created(error, make(*session, *std::move(made)));
}

reprise_status reprise_session_fork(reprise_session* session, reprise_session** fork) {
  auto result = c::clear(fork);
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  if (!result) return session->last.status(result);
  auto forked = session->session.fork();
  if (!forked) return session->last.status(forked);
  if (forked->control().memory_bytes() == 0 && session->session.control().memory_bytes() != 0)
    return session->last.set(c::no_memory(session->session.control().memory_bytes()));
  return session->last.status(make(*fork, *std::move(forked)));
}

void reprise_session_destroy(reprise_session* session) { delete session; }

reprise_status reprise_session_begin(reprise_session* session, const reprise_token* tokens, size_t count, size_t cached,
                                     const reprise_capabilities* capabilities) {
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  const auto given = c::array_of(tokens, count);
  if (!given) return session->last.status(given);
  const auto can = c::capabilities_of(capabilities);
  if (!can) return session->last.status(can);
  return session->gives_up(session->session.begin(*given, *can, c::cached_of(cached)));
}

reprise_status reprise_session_plan(reprise_session* session, const reprise_limits* limits, size_t most,
                                    reprise_pass* pass) {
  const auto cleared = c::clear_struct(pass);
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  if (!cleared) return session->last.status(cleared);
  const auto planned = plan(*session, limits, most);
  if (!planned) return session->last.status(planned);
  c::write_struct(*pass, {.size = 0,
                          .batch = planned->batch.data(),
                          .rows = planned->batch.size(),
                          .pending = planned->pending,
                          .drafted = planned->drafted,
                          .parents = planned->parents.data(),
                          .depths = planned->depths.data()});
  return REPRISE_OK;
}

reprise_status reprise_session_report_top_k(reprise_session* session, size_t row, const reprise_token* likeliest,
                                            size_t count) {
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  const auto given = c::array_of(likeliest, count);
  if (!given) return session->last.status(given);
  if (!session->open) return session->last.set(not_planned());
  if (row > session->open->drafted)
    return session->last.set({ErrorCode::size_out_of_range, "the pass has no such row", row, session->open->drafted});
  return session->last.status(session->session.report_top_k(session->open->ticket, row, *given));
}

reprise_status reprise_session_report_prompt_row(reprise_session* session, size_t position,
                                                 const reprise_token* likeliest, size_t count) {
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  const auto given = c::array_of(likeliest, count);
  if (!given) return session->last.status(given);
  return session->last.status(session->session.report_prompt_row(position, *given));
}

reprise_status reprise_session_commit(reprise_session* session, const reprise_token* picks, size_t count,
                                      int64_t pass_ns, reprise_commit* out) {
  const auto cleared = c::clear_struct(out);
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  if (!cleared) return session->last.status(cleared);
  const auto decision = commit(*session, picks, count, pass_ns);
  if (!decision) return session->last.status(decision);
  const TokenSpan tokens = session->session.context().last(decision->tokens.size());
  c::write_struct(*out, {.size = 0,
                         .tokens = tokens.data(),
                         .count = tokens.size(),
                         .rows = decision->restore ? nullptr : decision->rows.data(),
                         .keep = decision->restore ? 0 : decision->keep,
                         .accepted = decision->accepted,
                         .restore = decision->restore ? 1 : 0,
                         .finish = finish_of(decision->finish)});
  return REPRISE_OK;
}

reprise_status reprise_session_append(reprise_session* session, const reprise_token* tokens, size_t count,
                                      size_t cached) {
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  const auto given = c::array_of(tokens, count);
  if (!given) return session->last.status(given);
  return session->gives_up(session->session.append(*given, Origin::prompt, c::cached_of(cached)));
}

reprise_status reprise_session_truncate(reprise_session* session, size_t count) {
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  return session->gives_up(session->session.truncate(count));
}

reprise_status reprise_session_rebase(reprise_session* session, const reprise_token* tokens, size_t count,
                                      size_t cached, size_t* shared) {
  const auto cleared = c::clear(shared);
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  if (!cleared) return session->last.status(cleared);
  const auto given = c::array_of(tokens, count);
  if (!given) return session->last.status(given);
  const auto rebased = session->session.rebase(*given, c::cached_of(cached));
  if (rebased) *shared = *rebased;
  return session->gives_up(rebased);
}

reprise_status reprise_session_set_cached(reprise_session* session, size_t cached) {
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  return session->gives_up(session->session.set_cached(cached));
}

reprise_status reprise_session_state(reprise_session* session, reprise_state* state) {
  const auto cleared = c::clear_struct(state);
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  if (!cleared) return session->last.status(cleared);
  const Speculator& now = session->session;
  TokenSpan output = now.output();
  if (now.finish_reason() == FinishReason::predicate) output = output.first(output.size() - 1);  // without eos
  c::write_struct(*state, {.size = 0,
                           .context = now.context().data(),
                           .context_count = now.context().size(),
                           .output = output.data(),
                           .output_count = output.size(),
                           .cached = now.cached(),
                           .top_k_wanted = now.strategy().top_k_wanted(),
                           .memory_bytes = now.memory_bytes(),
                           .finish = finish_of(now.finish_reason())});
  return REPRISE_OK;
}

reprise_status reprise_session_statistics(reprise_session* session, char* buffer, size_t room, size_t* needed) {
  auto result = c::clear(needed);
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  if (result) result = c::write_statistics(session->session.statistics(), buffer, room, *needed);
  return session->last.status(result);
}

reprise_status reprise_session_save_costs(reprise_session* session, const char* engine, void* buffer, size_t room,
                                          size_t* needed) {
  auto result = c::clear(needed);
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  if (result) result = c::save_costs_of(session->session, engine, buffer, room, *needed);
  return session->last.status(result);
}

const reprise_error* reprise_session_error(const reprise_session* session) {
  return session == nullptr ? &c::null_handle : session->last.get();
}
