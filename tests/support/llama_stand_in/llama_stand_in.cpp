// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <array>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <optional>
#include <set>
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
  std::optional<KvCache> full;
  std::optional<KvCache> window;
  std::optional<RecurrentStates> recurrent;
  std::size_t sequences = 0;

  bool remove(llama_seq_id sequence, Range range) {
    if (settings().fault == Fault::rollback_refused && !range.all()) return false;
    if (settings().fault == Fault::rollback_keeps_one && range.first > 0) ++range.first;
    if (recurrent && !recurrent->remove(sequence, range)) return false;
    if (full) full->remove(sequence, range);
    if (window) window->remove(sequence, range);
    return true;
  }
  void copy(llama_seq_id from, llama_seq_id to, Range range) {
    if (settings().fault == Fault::copy_does_nothing) return;
    if (settings().fault == Fault::copy_forgets_last) range.end = std::min(range.end, highest(from));
    if (full) full->copy(from, to, range);
    if (window) window->copy(from, to, range);
    if (recurrent) recurrent->copy(from, to);
  }
  [[nodiscard]] llama_pos lowest(llama_seq_id sequence) const {
    if (window) return window->lowest(sequence);
    if (!full) return recurrent->position(sequence);
    return recurrent ? std::max(full->lowest(sequence), recurrent->position(sequence)) : full->lowest(sequence);
  }
  [[nodiscard]] llama_pos highest(llama_seq_id sequence) const {
    if (window) return window->highest(sequence);
    if (!full) return recurrent->position(sequence);
    return recurrent ? std::min(full->highest(sequence), recurrent->position(sequence)) : full->highest(sequence);
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

std::vector<Row> rows_of(const llama_context& context, const llama_batch& batch) {
  std::vector<Row> rows;
  std::vector<llama_pos> next;
  for (std::size_t s = 0; s < context.memory->sequences; ++s)
    next.push_back(context.memory->highest(static_cast<llama_seq_id>(s)) + 1);
  for (std::int32_t i = 0; i < batch.n_tokens; ++i) {
    Row row;
    row.token = batch.token[i];
    std::set<llama_seq_id> sequences = {0};
    if (batch.seq_id != nullptr)
      sequences = {batch.seq_id[i], batch.seq_id[i] + (batch.n_seq_id ? batch.n_seq_id[i] : 1)};
    expects(!sequences.empty(), "n_seq_id > 0");
    row.sequences.assign(sequences.begin(), sequences.end());
    row.pos =
        batch.pos != nullptr ? batch.pos[i] : next[static_cast<std::size_t>(batch.seq_id ? batch.seq_id[i][0] : 0)]++;
    row.output = batch.logits != nullptr ? batch.logits[i] != 0 : i + 1 == batch.n_tokens;
    rows.push_back(std::move(row));
  }
  return rows;
}

/// Returns the reason why the rows are not a valid batch, or an empty string.
std::string refusal(const llama_context& context, std::span<const Row> rows) {
  const llama_memory_i& memory = *context.memory;
  std::array<std::set<llama_pos>, most_sequences> positions;
  std::array<Sequences, most_sequences> together;
  std::array<llama_pos, most_sequences> last{};
  last.fill(-1);
  for (Sequences& all : together) all.set();
  for (const Row& row : rows) {
    if (!context.model->vocab.has(row.token)) return "invalid token = " + std::to_string(row.token);
    for (const llama_seq_id sequence : row.sequences) {
      if (sequence < 0 || static_cast<std::size_t>(sequence) >= memory.sequences)
        return "invalid seq_id = " + std::to_string(sequence);
      positions[static_cast<std::size_t>(sequence)].insert(row.pos);
    }
  }
  for (std::size_t s = 0; s < memory.sequences; ++s) {
    if (positions[s].empty()) continue;
    const llama_pos highest = memory.highest(static_cast<llama_seq_id>(s));
    const llama_pos first = *positions[s].begin();
    const llama_pos end = *positions[s].rbegin();
    if (highest >= 0 && first != highest + 1)
      return "it is required that the sequence positions remain consecutive: Y = X + 1, X = " +
             std::to_string(highest) + ", Y = " + std::to_string(first);
    if (end - first + 1 > static_cast<llama_pos>(positions[s].size()))
      return "sequence " + std::to_string(s) + " positions are not continuous";
  }
  for (const Row& row : rows)
    for (const llama_seq_id sequence : row.sequences)
      if (memory.lowest(sequence) != memory.lowest(row.sequences.front()) ||
          memory.highest(sequence) != memory.highest(row.sequences.front()))
        return "sequence " + std::to_string(sequence) + " is coupled in the batch, but has diverged";
  for (const Row& row : rows) {
    Sequences own;
    for (const llama_seq_id sequence : row.sequences) own.set(static_cast<std::size_t>(sequence));
    for (const llama_seq_id sequence : row.sequences) {
      const auto s = static_cast<std::size_t>(sequence);
      if ((together[s] &= own).none())
        return "sequence " + std::to_string(s) + " belongs to incompatible sequence sets";
      if (row.pos < last[s]) return "sequence " + std::to_string(s) + " positions are decreasing";
      last[s] = row.pos;
    }
  }
  return {};
}

/// Places each part of a batch in cells. Changes the cache only if all parts fit.
bool place(std::optional<KvCache>& cache, std::span<const Row> rows, std::size_t part) {
  if (!cache) return true;
  KvCache trial = *cache;
  std::vector<std::size_t> cells;
  for (std::size_t i = 0; i < rows.size(); i += part)
    if (!trial.place(rows.subspan(i, std::min(part, rows.size() - i)), cells)) return false;
  return true;
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
  std::vector<std::uint64_t> seen(rows.size(), 0);
  std::vector<std::pair<llama_token, llama_token>> last(rows.size());
  std::vector<std::uint64_t> part;
  std::vector<std::size_t> cells;
  for (auto* cache : {&memory.full, &memory.window}) {
    if (!*cache) continue;
    expects((*cache)->place(rows, cells), "a slot that was found is there");
    (*cache)->run(rows, cells, part);
    for (std::size_t i = 0; i < rows.size(); ++i) {
      seen[i] = mix(seen[i], part[i]);
      last[i] = {rows[i].token, (*cache)->before(rows[i])};
    }
  }
  for (std::size_t i = 0; memory.recurrent && i < rows.size(); ++i) {
    const RecurrentStates::State& state = memory.recurrent->advance(rows[i]);
    seen[i] = mix(seen[i], state.hash);
    last[i] = {state.token, state.before};
  }
  for (std::size_t i = 0; i < rows.size(); ++i) {
    if (!rows[i].output) continue;
    score(context, seen[i], last[i].first, last[i].second, batch_rows, scores);
    scores += context.model->vocab.size;
  }
}

std::int32_t decode(llama_context& context, const llama_batch& batch) {
  Settings& set = settings();
  ++set.decodes;
  if (batch.n_tokens <= 0 || batch.token == nullptr) return -1;
  const std::vector<Row> rows = rows_of(context, batch);
  if (const std::string why = refusal(context, rows); !why.empty()) return log_error("llama_decode: " + why), -1;
  expects(rows.size() <= context.params.n_batch, "n_tokens_all <= cparams.n_batch");
  const bool fails = set.failing_decode == set.decodes;
  if (fails && set.failure == -1) return -1;
  llama_memory_i& memory = *context.memory;
  bool fits = !fails || set.failure != 1;
  // Sequences that share rows need a unified cache and no state of their own.
  for (const Row& row : rows)
    fits = fits && (row.sequences.size() == 1 || (context.params.kv_unified && !memory.recurrent));
  const std::size_t part = context.params.n_ubatch;
  if (!fits || !place(memory.full, rows, part) || !place(memory.window, rows, part)) return 1;

  set.rows += rows.size();
  context.output_rows.assign(rows.size(), -1);
  context.outputs = 0;
  for (std::size_t i = 0; i < rows.size(); ++i)
    if (rows[i].output) context.output_rows[i] = context.outputs++;
  const auto vocabulary = static_cast<std::size_t>(context.model->vocab.size);
  context.logits = std::make_unique<float[]>(static_cast<std::size_t>(context.outputs) * vocabulary);
  float* scores = context.logits.get();
  if (memory.recurrent) memory.recurrent->begin_batch();
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

std::vector<std::uint8_t> state_of(const llama_context& context, llama_seq_id sequence, llama_state_seq_flags flags) {
  constexpr std::uint32_t magic = 0x57A4D114;
  std::vector<std::uint8_t> bytes;
  Writer writer(bytes);
  writer.write(magic);
  const llama_memory_i& memory = *context.memory;
  const bool partial = (flags & LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY) != 0;
  if (memory.full && !(partial && (memory.window || memory.recurrent))) memory.full->write(writer, sequence);
  if (memory.window) memory.window->write(writer, sequence);
  if (memory.recurrent) memory.recurrent->write(writer, sequence);
  return bytes;
}

}  // namespace

namespace reprise::llama_stand_in {
std::size_t used_cells(const llama_context* context) {
  const llama_memory_i& memory = *context->memory;
  return memory.full ? memory.full->used() : 0;
}
}  // namespace reprise::llama_stand_in

llama_context_params llama_context_default_params() {
  llama_context_params params = {};
  params.n_ctx = 512;
  params.n_batch = 2048;
  params.n_ubatch = 512;
  params.n_seq_max = 1;
  params.n_outputs_max_per_seq = 1;
  params.n_threads = params.n_threads_batch = 4;
  params.flash_attn_type = LLAMA_FLASH_ATTN_TYPE_AUTO;
  params.offload_kqv = params.no_perf = params.op_offload = params.swa_full = true;
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
  if (!model->text.rollback || !model->recurs()) params.n_rs_seq = 0;
  context->params = params;

  auto memory = std::make_unique<llama_memory_i>();
  const std::size_t sequences = memory->sequences = params.n_seq_max;
  const std::uint32_t cells = context->size_of_sequence;
  if (model->attends()) memory->full.emplace(cells, sequences, params.kv_unified, 0);
  if (model->slides()) {
    const auto window = static_cast<std::uint32_t>(model->text.window);
    const std::uint32_t least = window * (params.kv_unified ? params.n_seq_max : 1) + params.n_ubatch;
    memory->window.emplace(params.swa_full ? cells : padded(std::min(cells, least)), sequences, params.kv_unified,
                           model->text.window);
  }
  if (model->recurs()) memory->recurrent.emplace(sequences, params.n_rs_seq);
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
std::uint32_t llama_n_rs_seq(const llama_context* ctx) { return ctx->params.n_rs_seq; }
void llama_synchronize(llama_context*) {}

void llama_memory_clear(llama_memory_t mem, bool) {
  if (mem == nullptr) return;
  if (mem->full) mem->full->clear();
  if (mem->window) mem->window->clear();
  if (mem->recurrent) mem->recurrent->clear();
}
bool llama_memory_seq_rm(llama_memory_t mem, llama_seq_id seq_id, llama_pos p0, llama_pos p1) {
  return mem == nullptr || mem->remove(seq_id, Range(p0, p1));
}
void llama_memory_seq_cp(llama_memory_t mem, llama_seq_id seq_id_src, llama_seq_id seq_id_dst, llama_pos p0,
                         llama_pos p1) {
  if (mem != nullptr) mem->copy(seq_id_src, seq_id_dst, Range(p0, p1));
}
void llama_memory_seq_keep(llama_memory_t mem, llama_seq_id seq_id) {
  if (mem == nullptr) return;
  if (mem->full) mem->full->keep(seq_id);
  if (mem->window) mem->window->keep(seq_id);
  if (mem->recurrent) mem->recurrent->keep(seq_id);
}
llama_pos llama_memory_seq_pos_min(llama_memory_t mem, llama_seq_id seq_id) {
  return mem == nullptr ? -1 : mem->lowest(seq_id);
}
llama_pos llama_memory_seq_pos_max(llama_memory_t mem, llama_seq_id seq_id) {
  return mem == nullptr ? -1 : mem->highest(seq_id);
}

std::size_t llama_state_seq_get_size_ext(llama_context* ctx, llama_seq_id seq_id, llama_state_seq_flags flags) {
  return state_of(*ctx, seq_id, flags).size();
}
std::size_t llama_state_seq_get_data_ext(llama_context* ctx, std::uint8_t* dst, std::size_t size, llama_seq_id seq_id,
                                         llama_state_seq_flags flags) {
  const std::vector<std::uint8_t> bytes = state_of(*ctx, seq_id, flags);
  if (size < bytes.size() || settings().fault == Fault::state_not_saved) return 0;
  std::copy(bytes.begin(), bytes.end(), dst);
  return bytes.size();
}
std::size_t llama_state_seq_set_data_ext(llama_context* ctx, const std::uint8_t* src, std::size_t size,
                                         llama_seq_id dest_seq_id, llama_state_seq_flags flags) {
  if (settings().fault == Fault::state_is_stale) return size;
  Reader reader(std::span(src, size));
  std::uint32_t magic = 0;
  const std::vector<std::uint8_t> like = state_of(*ctx, dest_seq_id, flags);
  if (!reader.read(magic) || !std::equal(src, src + sizeof(magic), like.begin())) return 0;
  llama_memory_i& memory = *ctx->memory;
  const bool partial = (flags & LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY) != 0;
  bool done = settings().fault != Fault::state_not_restored;
  if (memory.full && !(partial && (memory.window || memory.recurrent)))
    done = memory.full->read(reader, dest_seq_id) && done;
  if (memory.window) done = memory.window->read(reader, dest_seq_id) && done;
  if (memory.recurrent) done = memory.recurrent->read(reader, dest_seq_id) && done;
  if (done) return size - reader.left();
  if (memory.full && !partial) memory.full->remove(dest_seq_id, Range(-1, -1));
  if (memory.window) memory.window->remove(dest_seq_id, Range(-1, -1));
  if (memory.recurrent) memory.recurrent->remove(dest_seq_id, Range(-1, -1));
  return 0;
}

llama_batch llama_batch_init(std::int32_t n_tokens, std::int32_t embd, std::int32_t n_seq_max) {
  // Not initialised, so that sanitizers see reads of it.
  const auto count = static_cast<std::size_t>(n_tokens);
  const auto array = [&](std::size_t size) { return std::malloc(std::max<std::size_t>(1, count * size)); };
  llama_batch batch = {};
  if (embd > 0)
    batch.embd = static_cast<float*>(array(sizeof(float) * static_cast<std::size_t>(embd)));
  else
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
  std::free(batch.embd);
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
  std::int32_t output = -1;
  if (i < 0)
    output = ctx->outputs + i;
  else if (static_cast<std::size_t>(i) < ctx->output_rows.size())
    output = ctx->output_rows[static_cast<std::size_t>(i)];
  if (settings().fault == Fault::no_logits) return nullptr;
  if (ctx->logits == nullptr || output < 0 || output >= ctx->outputs) {
    log_error("llama_get_logits_ith: invalid logits id " + std::to_string(i));
    return nullptr;
  }
  return ctx->logits.get() + static_cast<std::ptrdiff_t>(output) * ctx->model->vocab.size;
}
// NOLINTEND(readability-identifier-naming,bugprone-easily-swappable-parameters)
