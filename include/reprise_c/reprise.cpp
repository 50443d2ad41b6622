// SPDX-License-Identifier: Apache-2.0

/// \file The implementation of reprise.h, the C interface. Each function checks its arguments, calls the C++ class, and
/// keeps the error. It compiles with or without exceptions and RTTI; without exceptions it needs no C++ library except
/// the nothrow operator new and operator delete.

#include "reprise_c/reprise.h"

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "reprise/control/cost_curve.hpp"
#include "reprise/core/detail/buffer.hpp"
#include "reprise/core/result.hpp"
#include "reprise/core/token.hpp"
#include "reprise/headed_speculator.hpp"
#include "reprise/loop/follower.hpp"
#include "reprise_c/detail/arguments.hpp"
#include "reprise_c/detail/handles.hpp"
#include "reprise_c/detail/step.hpp"

using namespace reprise;

namespace {

Result<void> make_curve(const reprise_cost_point* points, std::size_t count, reprise_curve*& made) noexcept {
  const auto given = c::array_of(points, count);
  if (!given) return given.error();
  detail::Buffer<CostPoint> copies;
  if (!copies.reserve(count)) return c::no_memory(count * sizeof(CostPoint));
  for (const reprise_cost_point& point : *given)
    copies.push_reserved({point.sequences, point.context, point.rows, point.nanoseconds});
  auto curve = CostCurve::from_points({copies.data(), copies.size()});
  if (!curve) return curve.error();
  return c::make(made, *std::move(curve));
}

/// Calls write(), which sets *needed, unless a pointer is null.
template <class Handle, class Write>
reprise_status measured(Handle* handle, size_t* needed, Write write) noexcept {
  auto result = c::clear(needed);
  if (handle == nullptr) return REPRISE_INVALID_ARGUMENT;
  if (result) result = write();
  return handle->last.status(result);
}

CostPrior learned_by(const HeadedSpeculator& session) noexcept { return session.control().learned().prior(); }

}  // namespace

const char* reprise_version(void) { return version_string.data(); }

// Cost curves

reprise_status reprise_curve_create_linear(double per_row, reprise_curve** curve, reprise_error* error) {
  auto result = c::clear(curve);
  if (result && !(per_row >= 0 && per_row <= 65536))
    result = c::refused("per_row is not between 0 and 65536: pass the cost of a drafted row in plain passes");
  if (result) result = c::make(*curve, CostCurve::linear(per_row));
  return c::created(error, result);
}

reprise_status reprise_curve_create(const reprise_cost_point* points, size_t count, reprise_curve** curve,
                                    reprise_error* error) {
  auto result = c::clear(curve);
  if (result) result = make_curve(points, count, *curve);
  return c::created(error, result);
}

void reprise_curve_destroy(reprise_curve* curve) { delete curve; }

// Memories

reprise_status reprise_memory_create(const reprise_memory_options* options, reprise_memory** memory,
                                     reprise_error* error) {
  auto result = c::clear(memory);
  if (result) result = c::make_memory(options, *memory);
  return c::created(error, result);
}

void reprise_memory_destroy(reprise_memory* memory) { delete memory; }

reprise_status reprise_memory_add(reprise_memory* memory, uint64_t salt, const reprise_token* tokens, size_t count,
                                  size_t prompt_count) {
  if (memory == nullptr) return REPRISE_INVALID_ARGUMENT;
  const auto given = c::array_of(tokens, count);
  if (!given) return memory->last.status(given);
  return memory->last.status(c::add_to(*memory, salt, *given, prompt_count));
}

reprise_status reprise_memory_forget(reprise_memory* memory, uint64_t salt) {
  if (memory == nullptr) return REPRISE_INVALID_ARGUMENT;
  memory->memory.forget(salt);
  return REPRISE_OK;
}

reprise_status reprise_memory_save(reprise_memory* memory, uint64_t salt, uint64_t tokenizer, void* buffer, size_t room,
                                   size_t* needed) {
  return measured(memory, needed, [&] { return c::save(*memory, salt, tokenizer, buffer, room, *needed); });
}

reprise_status reprise_memory_load(reprise_memory* memory, uint64_t salt, uint64_t tokenizer, const void* bytes,
                                   size_t count) {
  if (memory == nullptr) return REPRISE_INVALID_ARGUMENT;
  return memory->last.status(c::load(*memory, salt, tokenizer, bytes, count));
}

const reprise_error* reprise_memory_error(const reprise_memory* memory) {
  return memory == nullptr ? &c::null_handle : memory->last.get();
}

// Followers

reprise_status reprise_follower_create(const reprise_options* options, reprise_follower** follower,
                                       reprise_error* error) {
  auto result = c::clear(follower);
  if (!result) return c::created(error, result);
  return c::created(error, c::make_with_session<reprise_follower, Follower<HeadedSpeculator>>(options, *follower));
}

void reprise_follower_destroy(reprise_follower* follower) {
  if (follower != nullptr) c::forget(*follower);
  delete follower;
}

reprise_status reprise_follower_draft(reprise_follower* follower, const reprise_token* ids, size_t count, size_t most,
                                      int64_t now_ns, uint64_t conversation, const reprise_token** draft_out,
                                      size_t* drafted) {
  return reprise_follower_draft_after(follower, ids, count, 0, most, now_ns, conversation, draft_out, drafted);
}

reprise_status reprise_follower_draft_after(reprise_follower* follower, const reprise_token* ids, size_t count,
                                            size_t after, size_t most, int64_t now_ns, uint64_t conversation,
                                            const reprise_token** draft_out, size_t* drafted) {
  const auto cleared = c::clear(draft_out, drafted);
  if (follower == nullptr) return REPRISE_INVALID_ARGUMENT;
  if (!cleared) return follower->last.status(cleared);
  const auto tokens = c::draft(*follower, ids, count, after, most, now_ns, conversation);
  if (!tokens) return follower->last.status(tokens);
  *draft_out = tokens->data();
  *drafted = tokens->size();
  return REPRISE_OK;
}

reprise_status reprise_follower_verified(reprise_follower* follower, size_t drafted) {
  if (follower == nullptr) return REPRISE_INVALID_ARGUMENT;
  follower->follower.verified(drafted);
  return REPRISE_OK;
}

reprise_status reprise_follower_stop_at(reprise_follower* follower, const reprise_token* eos, size_t count) {
  if (follower == nullptr) return REPRISE_INVALID_ARGUMENT;
  return follower->last.status(c::stop_at(*follower, eos, count));
}

reprise_status reprise_follower_forget(reprise_follower* follower) {
  if (follower == nullptr) return REPRISE_INVALID_ARGUMENT;
  c::forget(*follower);
  return REPRISE_OK;
}

reprise_status reprise_follower_predict(reprise_follower* follower, const reprise_token* tokens, size_t count) {
  if (follower == nullptr) return REPRISE_INVALID_ARGUMENT;
  const auto given = c::array_of(tokens, count);
  return follower->last.status(given ? follower->follower.predict(*given) : given.error());
}

reprise_status reprise_follower_statistics(reprise_follower* follower, char* buffer, size_t room, size_t* needed) {
  return measured(follower, needed,
                  [&] { return c::write_statistics(follower->follower.statistics(), buffer, room, *needed); });
}

reprise_status reprise_follower_save_costs(reprise_follower* follower, const char* engine, void* buffer, size_t room,
                                           size_t* needed) {
  return measured(follower, needed, [&] {
    return c::save_costs_of(learned_by(follower->follower.session()), engine, buffer, room, *needed);
  });
}

const reprise_error* reprise_follower_error(const reprise_follower* follower) {
  return follower == nullptr ? &c::null_handle : follower->last.get();
}

// Batches

reprise_status reprise_batch_create(const reprise_options* options, size_t slots, reprise_batch** batch,
                                    reprise_error* error) {
  auto result = c::clear(batch);
  if (result) result = c::make_batch(options, slots, *batch);
  return c::created(error, result);
}

void reprise_batch_destroy(reprise_batch* batch) {
  for (size_t slot = 0; batch != nullptr && slot < batch->follower.slots(); ++slot) c::forget(*batch, slot);
  delete batch;
}

reprise_status reprise_batch_draft(reprise_batch* batch, reprise_slot* slots, size_t count, int64_t now_ns) {
  if (batch == nullptr) return REPRISE_INVALID_ARGUMENT;
  return batch->last.status(c::draft(*batch, slots, count, now_ns));
}

reprise_status reprise_batch_propose_lookup(reprise_batch* batch, reprise_slot* slots, size_t count, int64_t now_ns) {
  if (batch == nullptr) return REPRISE_INVALID_ARGUMENT;
  return batch->last.status(c::propose_lookup(*batch, slots, count, now_ns));
}

reprise_status reprise_batch_add_head(reprise_batch* batch, size_t slot, const reprise_token* tokens, size_t count) {
  if (batch == nullptr) return REPRISE_INVALID_ARGUMENT;
  const auto given = c::array_of(tokens, count);
  return batch->last.status(given ? batch->follower.add_head(slot, *given) : given.error());
}

reprise_status reprise_batch_draft_proposed(reprise_batch* batch, reprise_slot* slots, size_t count, int64_t head_ns) {
  if (batch == nullptr) return REPRISE_INVALID_ARGUMENT;
  return batch->last.status(c::draft_proposed(*batch, slots, count, head_ns));
}

reprise_status reprise_batch_known(reprise_batch* batch, reprise_slot* slots, size_t count) {
  if (batch == nullptr) return REPRISE_INVALID_ARGUMENT;
  return batch->last.status(c::find_known(*batch, slots, count));
}

reprise_status reprise_batch_ran(reprise_batch* batch, size_t rows) {
  if (batch == nullptr) return REPRISE_INVALID_ARGUMENT;
  batch->follower.ran(rows);
  return REPRISE_OK;
}

reprise_status reprise_batch_verified(reprise_batch* batch, size_t slot, size_t drafted) {
  if (batch == nullptr) return REPRISE_INVALID_ARGUMENT;
  return batch->last.status(batch->follower.verified(slot, drafted));
}

reprise_status reprise_batch_stop_at(reprise_batch* batch, size_t slot, const reprise_token* eos, size_t count) {
  if (batch == nullptr) return REPRISE_INVALID_ARGUMENT;
  return batch->last.status(c::stop_at(*batch, slot, eos, count));
}

reprise_status reprise_batch_report_top_k(reprise_batch* batch, size_t slot, size_t row, const reprise_token* likeliest,
                                          size_t count) {
  if (batch == nullptr) return REPRISE_INVALID_ARGUMENT;
  const auto given = c::array_of(likeliest, count);
  if (!given) return batch->last.status(given);
  if (const auto known = c::check_slot(*batch, slot); !known) return batch->last.status(known);
  return batch->last.status(batch->follower.report_top_k(slot, row, *given));
}

reprise_status reprise_batch_forget(reprise_batch* batch, size_t slot) {
  if (batch == nullptr) return REPRISE_INVALID_ARGUMENT;
  const auto known = c::check_slot(*batch, slot);
  c::forget(*batch, slot);
  return batch->last.status(known);
}

reprise_status reprise_batch_predict(reprise_batch* batch, size_t slot, const reprise_token* tokens, size_t count) {
  if (batch == nullptr) return REPRISE_INVALID_ARGUMENT;
  const auto given = c::array_of(tokens, count);
  return batch->last.status(given ? batch->follower.predict(slot, *given) : given.error());
}

reprise_status reprise_batch_assign(reprise_batch* batch, size_t slot, const reprise_options* options) {
  if (batch == nullptr) return REPRISE_INVALID_ARGUMENT;
  return batch->last.status(c::assign(*batch, slot, options));
}

reprise_status reprise_batch_statistics(reprise_batch* batch, size_t slot, char* buffer, size_t room, size_t* needed) {
  return measured(batch, needed, [&]() -> Result<void> {
    if (auto known = c::check_slot(*batch, slot); !known) return known;
    return c::write_statistics(batch->follower.statistics(slot), buffer, room, *needed);
  });
}

reprise_status reprise_batch_save_costs(reprise_batch* batch, size_t sequences, const char* engine, void* buffer,
                                        size_t room, size_t* needed) {
  return measured(batch, needed, [&] {
    return c::save_costs_of(batch->follower.planner().learned(sequences).prior(), engine, buffer, room, *needed);
  });
}

reprise_status reprise_batch_load_costs(reprise_batch* batch, size_t sequences, const char* engine, const void* bytes,
                                        size_t count) {
  if (batch == nullptr) return REPRISE_INVALID_ARGUMENT;
  const auto prior = c::costs_in(bytes, count, engine);
  if (prior) batch->follower.planner().assume(sequences, *prior);
  return batch->last.status(prior);
}

void reprise_batch_step(void* step) {
  auto& given = *static_cast<reprise_step*>(step);
  given.status = given.batch == nullptr ? REPRISE_INVALID_ARGUMENT : given.batch->last.status(c::run_step(given));
  std::atomic_thread_fence(std::memory_order_release);
  *const_cast<volatile std::int32_t*>(&given.done) = 1;
}

const reprise_error* reprise_batch_error(const reprise_batch* batch) {
  return batch == nullptr ? &c::null_handle : batch->last.get();
}

// Sessions

reprise_status reprise_session_create(const reprise_options* options, reprise_session** session, reprise_error* error) {
  auto result = c::clear(session);
  if (!result) return c::created(error, result);
  return c::created(error, c::make_with_session<reprise_session, HeadedSpeculator>(options, *session));
}

reprise_status reprise_session_keep(reprise_session* session) {
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  c::keep(*session);
  return REPRISE_OK;
}

reprise_status reprise_session_predict(reprise_session* session, const reprise_token* tokens, size_t count) {
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  const auto given = c::array_of(tokens, count);
  return session->last.status(given ? session->session.strategy().predict(*given) : given.error());
}

reprise_status reprise_session_fork(reprise_session* session, reprise_session** fork) {
  auto result = c::clear(fork);
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  if (!result) return session->last.status(result);
  auto forked = session->session.fork();
  if (!forked) return session->last.status(forked);
  if (forked->control().memory_bytes() == 0 && session->session.control().memory_bytes() != 0)
    return session->last.set(c::no_memory(session->session.control().memory_bytes()));
  return session->last.status(c::make(*fork, *std::move(forked), c::KeptCosts(session->costs)));
}

void reprise_session_destroy(reprise_session* session) {
  if (session != nullptr) c::keep(*session);
  delete session;
}

reprise_status reprise_session_begin(reprise_session* session, const reprise_token* tokens, size_t count, size_t cached,
                                     const reprise_capabilities* capabilities) {
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  const auto given = c::array_of(tokens, count);
  if (!given) return session->last.status(given);
  const auto can = c::capabilities_of(capabilities);
  if (!can) return session->last.status(can);
  return session->gives_up(session->session.begin(*given, *can, c::cached_of(cached)));
}

reprise_status reprise_session_propose_lookup(reprise_session* session, const reprise_limits* limits, size_t most,
                                              size_t* tokens) {
  const auto cleared = c::clear(tokens);
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  return session->last.status(cleared ? c::propose_lookup(*session, limits, most, *tokens) : cleared);
}

reprise_status reprise_session_add_head(reprise_session* session, const reprise_token* tokens, size_t count,
                                        int64_t head_ns) {
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  return session->last.status(c::add_head(*session, tokens, count, head_ns));
}

reprise_status reprise_session_plan(reprise_session* session, const reprise_limits* limits, size_t most,
                                    reprise_pass* pass) {
  const auto cleared = c::clear_struct(pass);
  if (session == nullptr) return REPRISE_INVALID_ARGUMENT;
  if (!cleared) return session->last.status(cleared);
  const auto planned = c::plan(*session, limits, most);
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
  if (!session->open) return session->last.set(c::not_planned());
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
  const auto decision = c::commit(*session, picks, count, pass_ns);
  if (!decision) return session->last.status(decision);
  const TokenSpan tokens = session->session.context().last(decision->tokens.size());
  c::write_struct(*out, {.size = 0,
                         .tokens = tokens.data(),
                         .count = tokens.size(),
                         .rows = decision->restore ? nullptr : decision->rows.data(),
                         .keep = decision->restore ? 0 : decision->keep,
                         .accepted = decision->accepted,
                         .restore = decision->restore ? 1 : 0,
                         .finish = c::finish_of(decision->finish)});
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
  const HeadedSpeculator& now = session->session;
  const TokenSpan output = now.output();
  c::write_struct(*state, {.size = 0,
                           .context = now.context().data(),
                           .context_count = now.context().size(),
                           .output = output.data(),
                           .output_count = output.size(),
                           .cached = now.cached(),
                           .top_k_wanted = now.strategy().top_k_wanted(),
                           .memory_bytes = now.memory_bytes(),
                           .finish = c::finish_of(now.finish_reason())});
  return REPRISE_OK;
}

reprise_status reprise_session_statistics(reprise_session* session, char* buffer, size_t room, size_t* needed) {
  return measured(session, needed,
                  [&] { return c::write_statistics(session->session.statistics(), buffer, room, *needed); });
}

reprise_status reprise_session_save_costs(reprise_session* session, const char* engine, void* buffer, size_t room,
                                          size_t* needed) {
  return measured(session, needed,
                  [&] { return c::save_costs_of(learned_by(session->session), engine, buffer, room, *needed); });
}

const reprise_error* reprise_session_error(const reprise_session* session) {
  return session == nullptr ? &c::null_handle : session->last.get();
}
