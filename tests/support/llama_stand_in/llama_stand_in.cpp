// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "memory.hpp"
#include "model.hpp"

// NOLINTBEGIN(readability-identifier-naming,bugprone-easily-swappable-parameters): llama.cpp's names
using namespace reprise::llama_stand_in;

/// The memory of a context: the tokens of all its sequences.
struct llama_memory_i {
  std::optional<KvCache> cache;  // none: states
  std::vector<RecurrentState> states;

  bool remove(llama_seq_id sequence, Range range) {
    if (settings().fault == Fault::rollback_refused && !range.all()) return false;
    if (!cache) return states[at(sequence)].remove(range);
    cache->remove(sequence, range);
    return true;
  }
  void copy(llama_seq_id from, llama_seq_id to, Range range) {
    if (settings().fault != Fault::copy_does_nothing && cache) cache->copy(from, to, range);
  }
  [[nodiscard]] llama_pos highest(llama_seq_id sequence) const {
    return cache ? cache->highest(sequence) : states[at(sequence)].pos;
  }
};

struct llama_context {
  const llama_model* model = nullptr;
  llama_context_params params = {};
  std::uint32_t size_of_sequence = 0;
  std::unique_ptr<llama_memory_i> memory;
  std::unique_ptr<float[]> logits;        // of the last batch only
  std::vector<std::int32_t> output_rows;  // of the last batch, by row; -1: it has none
  std::int32_t outputs = 0;
};

namespace {

constexpr std::uint32_t padded(std::uint32_t size) { return (size + 255) / 256 * 256; }

std::vector<Row> rows_of(const llama_batch& batch) {
  std::vector<Row> rows;
  for (std::int32_t i = 0; i < batch.n_tokens; ++i) {
    expects(batch.n_seq_id[i] > 0, "n_seq_id > 0");
    const std::vector<llama_seq_id> sequences(batch.seq_id[i], batch.seq_id[i] + batch.n_seq_id[i]);
    rows.push_back({batch.token[i], batch.pos[i], sequences, batch.logits[i] != 0});
  }
  return rows;
}

/// Returns the reason why the rows are not a valid batch, or an empty string.
std::string refusal(const llama_context& context, std::span<const Row> rows) {
  std::map<llama_seq_id, llama_pos> last;
  for (const Row& row : rows) {
    if (!context.model->vocab.has(row.token)) return "invalid token = " + std::to_string(row.token);
    for (const llama_seq_id sequence : row.sequences) {
      if (sequence < 0 || at(sequence) >= context.params.n_seq_max)
        return "invalid seq_id = " + std::to_string(sequence);
      llama_pos& position = last.try_emplace(sequence, context.memory->highest(sequence)).first->second;
      if (row.pos != ++position) return "sequence " + std::to_string(sequence) + " positions are not continuous";
    }
  }
  return {};
}

/// Computes the scores of the next token. The last two tokens have the most weight, so text repeats itself. All tokens
/// that the row has seen have the rest, so any mistake soon changes the text.
void score(const llama_context& context, std::uint64_t seen, llama_token token, llama_token before, std::size_t rows,
           float* scores) {
  const ModelText& text = context.model->text;
  const std::uint64_t one = mix(static_cast<std::uint64_t>(token), text.seed);
  const std::uint64_t two = mix(one, static_cast<std::uint64_t>(before));
  const std::uint64_t all = mix(seen, text.seed);
  const auto peaked = [](std::uint64_t hash) { return -std::log(1 - fraction(hash)); };
  for (llama_token next = 0; next < text.vocabulary; ++next) {
    const auto id = static_cast<std::uint64_t>(next);
    float value = 2 * peaked(mix(one, id)) + peaked(mix(two, id)) + peaked(mix(all, id));
    if (next < llama_vocab::first_byte) value = next == llama_vocab::end ? value + text.eos : value - 100;
    const bool printable = next < llama_vocab::first_byte + 95 || next >= llama_vocab::first_word;
    if (!printable) value -= 50;
    if (next == token) value -= 4;  // no loops of one token
    value += settings().row_count_noise * (2 * fraction(mix(mix(all, id), rows)) - 1);
    scores[next] = value;
  }
}

void run(llama_context& context, std::span<const Row> rows, std::size_t batch_rows, float*& scores) {
  llama_memory_i& memory = *context.memory;
  std::vector<std::uint64_t> seen;
  if (memory.cache) memory.cache->run(rows, seen);
  for (std::size_t i = 0; i < rows.size(); ++i) {
    RecurrentState state;
    if (memory.cache) {
      state = {rows[i].pos, rows[i].token, memory.cache->before(rows[i]), seen[i]};
    } else {
      memory.states[at(rows[i].sequences.front())].advance(rows[i]);
      state = memory.states[at(rows[i].sequences.front())];
    }
    if (!rows[i].output) continue;
    score(context, state.hash, state.token, state.before, batch_rows, scores);
    scores += context.model->vocab.size;
  }
}

std::int32_t decode(llama_context& context, const llama_batch& batch) {
  Settings& set = settings();
  ++set.decodes;
  const std::vector<Row> rows = rows_of(batch);
  if (const std::string why = refusal(context, rows); !why.empty()) return log_error("llama_decode: " + why), -1;
  expects(rows.size() <= context.params.n_batch, "n_tokens_all <= cparams.n_batch");
  const bool fails = set.failing_decode == set.decodes;
  if (fails && (set.failure == -1 || set.failure == 1)) return set.failure;
  llama_memory_i& memory = *context.memory;
  if (memory.cache && !memory.cache->has_room(rows.size())) return 1;

  set.rows += rows.size();
  context.output_rows.assign(rows.size(), -1);
  context.outputs = 0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].output) context.output_rows[i] = context.outputs++;
  const auto vocabulary = static_cast<std::size_t>(context.model->vocab.size);
  context.logits = std::make_unique<float[]>(static_cast<std::size_t>(context.outputs) * vocabulary);
  float* scores = context.logits.get();
  const std::size_t part = context.params.n_ubatch;
  for (std::size_t i = 0; i < rows.size(); i += part) {
    const auto here = std::span(rows).subspan(i, std::min(part, rows.size() - i));
    run(context, here, rows.size(), scores);
    if (!fails || i + part < rows.size()) continue;
    // The last part fails. Its rows are removed from the first of their sequences, if possible.
    for (const Row& row : here)
      if (memory.highest(row.sequences.front()) >= row.pos) memory.remove(row.sequences.front(), Range(row.pos, -1));
    context.outputs = 0;
    context.logits.reset();
    return set.failure;
  }
  return 0;
}

}  // namespace

llama_context_params llama_context_default_params() {
  llama_context_params params = {};
  params.n_ctx = 512;
  params.n_batch = 2048;
  params.n_ubatch = 512;
  params.n_seq_max = 1;
  params.n_threads = params.n_threads_batch = 4;
  params.no_perf = params.swa_full = true;
  return params;
}
llama_context* llama_init_from_model(llama_model* model, llama_context_params params) {
  if (model == nullptr || (params.n_batch == 0 && params.n_ubatch == 0) || params.n_seq_max > most_sequences) {
    log_error("llama_init_from_model: failed to initialize the context");
    return nullptr;
  }
  auto context = std::make_unique<llama_context>();
  context->model = model;
  if (params.n_ctx == 0) params.n_ctx = static_cast<std::uint32_t>(model->text.context);
  params.n_seq_max = std::max(1U, params.n_seq_max);
  params.n_batch = std::min(params.n_ctx, params.n_batch);
  params.n_ubatch = std::min(params.n_batch, params.n_ubatch == 0 ? params.n_batch : params.n_ubatch);
  params.n_ctx = padded(params.n_ctx);
  context->size_of_sequence = params.kv_unified ? params.n_ctx : padded(params.n_ctx / params.n_seq_max);
  if (!params.kv_unified) params.n_ctx = context->size_of_sequence * params.n_seq_max;
  context->params = params;

  auto memory = std::make_unique<llama_memory_i>();
  if (model->text.kind == "recurrent")
    memory->states.resize(params.n_seq_max);
  else
    memory->cache.emplace(params.n_ctx);
  context->memory = std::move(memory);
  ++settings().contexts;
  return context.release();
}
void llama_free(llama_context* ctx) {
  if (ctx != nullptr) --settings().contexts;
  delete ctx;
}
const llama_model* llama_get_model(const llama_context* ctx) { return ctx->model; }
llama_memory_t llama_get_memory(const llama_context* ctx) {
  return ctx->model->text.kind == "encoder" ? nullptr : ctx->memory.get();
}
std::uint32_t llama_n_ctx(const llama_context* ctx) { return ctx->params.n_ctx; }
std::uint32_t llama_n_ctx_seq(const llama_context* ctx) { return ctx->size_of_sequence; }
std::uint32_t llama_n_batch(const llama_context* ctx) { return ctx->params.n_batch; }
std::uint32_t llama_n_ubatch(const llama_context* ctx) { return ctx->params.n_ubatch; }
std::uint32_t llama_n_seq_max(const llama_context* ctx) { return ctx->params.n_seq_max; }
void llama_synchronize(llama_context*) {}

void llama_memory_clear(llama_memory_t mem, bool) {
  if (mem->cache) mem->cache->clear();
  mem->states.assign(mem->states.size(), {});
}
bool llama_memory_seq_rm(llama_memory_t mem, llama_seq_id seq_id, llama_pos p0, llama_pos p1) {
  return mem->remove(seq_id, Range(p0, p1));
}
void llama_memory_seq_cp(llama_memory_t mem, llama_seq_id seq_id_src, llama_seq_id seq_id_dst, llama_pos p0,
                         llama_pos p1) {
  mem->copy(seq_id_src, seq_id_dst, Range(p0, p1));
}
// No window moves on, so a sequence begins at 0.
llama_pos llama_memory_seq_pos_min(llama_memory_t mem, llama_seq_id seq_id) {
  return std::min(0, mem->highest(seq_id));
}
llama_pos llama_memory_seq_pos_max(llama_memory_t mem, llama_seq_id seq_id) { return mem->highest(seq_id); }

// Only recurrent models save states.
std::size_t llama_state_seq_get_size_ext(llama_context* ctx, llama_seq_id, llama_state_seq_flags) {
  return ctx->memory->cache ? 0 : sizeof(RecurrentState);
}
std::size_t llama_state_seq_get_data_ext(llama_context* ctx, std::uint8_t* dst, std::size_t size, llama_seq_id seq_id,
                                         llama_state_seq_flags) {
  if (size < sizeof(RecurrentState) || settings().fault == Fault::state_not_saved) return 0;
  std::memcpy(dst, &ctx->memory->states[at(seq_id)], sizeof(RecurrentState));
  return sizeof(RecurrentState);
}
std::size_t llama_state_seq_set_data_ext(llama_context* ctx, const std::uint8_t* src, std::size_t size,
                                         llama_seq_id dest_seq_id, llama_state_seq_flags) {
  RecurrentState& state = ctx->memory->states[at(dest_seq_id)];
  state = {};
  if (size < sizeof(state) || settings().fault == Fault::state_not_restored) return 0;
  std::memcpy(&state, src, sizeof(state));
  return sizeof(state);
}

llama_batch llama_batch_init(std::int32_t n_tokens, std::int32_t, std::int32_t n_seq_max) {
  // Not initialised, so that sanitizers see reads of it.
  const auto count = static_cast<std::size_t>(n_tokens);
  const auto array = [&](std::size_t size) { return std::malloc(std::max<std::size_t>(1, count * size)); };
  llama_batch batch = {};
  batch.token = settings().fault == Fault::no_batch ? nullptr : static_cast<llama_token*>(array(sizeof(llama_token)));
  batch.pos = static_cast<llama_pos*>(array(sizeof(llama_pos)));
  batch.n_seq_id = static_cast<std::int32_t*>(array(sizeof(std::int32_t)));
  batch.seq_id = static_cast<llama_seq_id**>(std::malloc(sizeof(llama_seq_id*) * (count + 1)));
  for (std::size_t i = 0; i < count; ++i)
    batch.seq_id[i] =
        static_cast<llama_seq_id*>(std::malloc(sizeof(llama_seq_id) * static_cast<std::size_t>(n_seq_max)));
  batch.seq_id[count] = nullptr;
  batch.logits = static_cast<std::int8_t*>(array(sizeof(std::int8_t)));
  return batch;
}
void llama_batch_free(llama_batch batch) {
  std::free(batch.token);
  std::free(batch.pos);
  std::free(batch.n_seq_id);
  if (batch.seq_id != nullptr)
    for (std::size_t i = 0; batch.seq_id[i] != nullptr; ++i) std::free(batch.seq_id[i]);
  std::free(batch.seq_id);
  std::free(batch.logits);
}
std::int32_t llama_decode(llama_context* ctx, llama_batch batch) {
  const std::int32_t answer = decode(*ctx, batch);
  settings().refused_batches += answer == -1 ? 1 : 0;
  return answer;
}
float* llama_get_logits_ith(llama_context* ctx, std::int32_t i) {
  if (settings().fault == Fault::no_logits) return nullptr;
  const auto row = static_cast<std::size_t>(i);
  const std::int32_t output = row < ctx->output_rows.size() ? ctx->output_rows[row] : -1;
  if (ctx->logits == nullptr || output < 0) {
    log_error("llama_get_logits_ith: invalid logits id " + std::to_string(i));
    return nullptr;
  }
  return ctx->logits.get() + static_cast<std::ptrdiff_t>(output) * ctx->model->vocab.size;
}
// NOLINTEND(readability-identifier-naming,bugprone-easily-swappable-parameters)
