// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file A stand-in for the part of llama.cpp's C API that examples/llama_cpp and bench/llama use, for tests without
/// llama.cpp. It has the same names, signatures and constants, and structs with the used members. Its contracts are
/// those of llama.cpp of October 2026; stand_in.hpp has the settings for tests. Code that compiles with this header
/// compiles with llama.h.
#include <cstddef>
#include <cstdint>

// NOLINTBEGIN: the names are llama.cpp's
#define LLAMA_DEFAULT_SEED 0xFFFFFFFF
#define LLAMA_STATE_SEQ_FLAGS_PARTIAL_ONLY 1

extern "C" {

enum ggml_log_level {
  GGML_LOG_LEVEL_NONE = 0,
  GGML_LOG_LEVEL_DEBUG = 1,
  GGML_LOG_LEVEL_INFO = 2,
  GGML_LOG_LEVEL_WARN = 3,
  GGML_LOG_LEVEL_ERROR = 4,
  GGML_LOG_LEVEL_CONT = 5,
};
typedef void (*ggml_log_callback)(enum ggml_log_level level, const char* text, void* user_data);
void ggml_backend_load_all(void);

struct llama_vocab;
struct llama_model;
struct llama_context;
struct llama_sampler;
struct llama_memory_i;
typedef struct llama_memory_i* llama_memory_t;
typedef int32_t llama_pos;
typedef int32_t llama_token;
typedef int32_t llama_seq_id;
typedef uint32_t llama_state_seq_flags;

typedef struct llama_token_data {
  llama_token id;
  float logit;
  float p;
} llama_token_data;
typedef struct llama_token_data_array {
  llama_token_data* data;
  size_t size;
  int64_t selected;
  bool sorted;
} llama_token_data_array;

typedef struct llama_batch {
  int32_t n_tokens;
  llama_token* token;
  llama_pos* pos;
  int32_t* n_seq_id;
  llama_seq_id** seq_id;
  int8_t* logits;
} llama_batch;

struct llama_model_params {
  int32_t n_gpu_layers;
};
struct llama_context_params {
  uint32_t n_ctx;
  uint32_t n_batch;
  uint32_t n_ubatch;
  uint32_t n_seq_max;
  int32_t n_threads;
  int32_t n_threads_batch;
  bool no_perf;
  bool swa_full;
  bool kv_unified;
};
typedef struct llama_sampler_chain_params {
  bool no_perf;
} llama_sampler_chain_params;
typedef struct llama_chat_message {
  const char* role;
  const char* content;
} llama_chat_message;

const char* llama_version(void);
struct llama_model_params llama_model_default_params(void);
struct llama_context_params llama_context_default_params(void);
struct llama_sampler_chain_params llama_sampler_chain_default_params(void);
void llama_backend_init(void);
void llama_log_set(ggml_log_callback log_callback, void* user_data);

struct llama_model* llama_model_load_from_file(const char* path_model, struct llama_model_params params);
void llama_model_free(struct llama_model* model);
const struct llama_vocab* llama_model_get_vocab(const struct llama_model* model);
int32_t llama_model_desc(const struct llama_model* model, char* buf, size_t buf_size);
const char* llama_model_chat_template(const struct llama_model* model, const char* name);
bool llama_model_has_encoder(const struct llama_model* model);
bool llama_model_has_decoder(const struct llama_model* model);
bool llama_model_is_recurrent(const struct llama_model* model);
bool llama_model_is_hybrid(const struct llama_model* model);

struct llama_context* llama_init_from_model(struct llama_model* model, struct llama_context_params params);
void llama_free(struct llama_context* ctx);
const struct llama_model* llama_get_model(const struct llama_context* ctx);
llama_memory_t llama_get_memory(const struct llama_context* ctx);
uint32_t llama_n_ctx(const struct llama_context* ctx);
uint32_t llama_n_ctx_seq(const struct llama_context* ctx);
uint32_t llama_n_batch(const struct llama_context* ctx);
uint32_t llama_n_ubatch(const struct llama_context* ctx);
uint32_t llama_n_seq_max(const struct llama_context* ctx);
void llama_synchronize(struct llama_context* ctx);

void llama_memory_clear(llama_memory_t mem, bool data);
bool llama_memory_seq_rm(llama_memory_t mem, llama_seq_id seq_id, llama_pos p0, llama_pos p1);
void llama_memory_seq_cp(llama_memory_t mem, llama_seq_id seq_id_src, llama_seq_id seq_id_dst, llama_pos p0,
                         llama_pos p1);
llama_pos llama_memory_seq_pos_min(llama_memory_t mem, llama_seq_id seq_id);
llama_pos llama_memory_seq_pos_max(llama_memory_t mem, llama_seq_id seq_id);

size_t llama_state_seq_get_size_ext(struct llama_context* ctx, llama_seq_id seq_id, llama_state_seq_flags flags);
size_t llama_state_seq_get_data_ext(struct llama_context* ctx, uint8_t* dst, size_t size, llama_seq_id seq_id,
                                    llama_state_seq_flags flags);
size_t llama_state_seq_set_data_ext(struct llama_context* ctx, const uint8_t* src, size_t size,
                                    llama_seq_id dest_seq_id, llama_state_seq_flags flags);

struct llama_batch llama_batch_init(int32_t n_tokens, int32_t embd, int32_t n_seq_max);
void llama_batch_free(struct llama_batch batch);
int32_t llama_decode(struct llama_context* ctx, struct llama_batch batch);
float* llama_get_logits_ith(struct llama_context* ctx, int32_t i);

int32_t llama_vocab_n_tokens(const struct llama_vocab* vocab);
bool llama_vocab_is_eog(const struct llama_vocab* vocab, llama_token token);
int32_t llama_tokenize(const struct llama_vocab* vocab, const char* text, int32_t text_len, llama_token* tokens,
                       int32_t n_tokens_max, bool add_special, bool parse_special);
int32_t llama_token_to_piece(const struct llama_vocab* vocab, llama_token token, char* buf, int32_t length,
                             int32_t lstrip, bool special);
int32_t llama_chat_apply_template(const char* tmpl, const struct llama_chat_message* chat, size_t n_msg, bool add_ass,
                                  char* buf, int32_t length);

void llama_sampler_apply(struct llama_sampler* smpl, llama_token_data_array* cur_p);
struct llama_sampler* llama_sampler_clone(const struct llama_sampler* smpl);
void llama_sampler_free(struct llama_sampler* smpl);
struct llama_sampler* llama_sampler_chain_init(struct llama_sampler_chain_params params);
void llama_sampler_chain_add(struct llama_sampler* chain, struct llama_sampler* smpl);
struct llama_sampler* llama_sampler_init_greedy(void);
struct llama_sampler* llama_sampler_init_dist(uint32_t seed);
struct llama_sampler* llama_sampler_init_top_k(int32_t k);
struct llama_sampler* llama_sampler_init_top_p(float p, size_t min_keep);
struct llama_sampler* llama_sampler_init_min_p(float p, size_t min_keep);
struct llama_sampler* llama_sampler_init_temp(float t);
struct llama_sampler* llama_sampler_init_grammar(const struct llama_vocab* vocab, const char* grammar_str,
                                                 const char* grammar_root);
llama_token llama_sampler_sample(struct llama_sampler* smpl, struct llama_context* ctx, int32_t idx);

}  // extern "C"
// NOLINTEND
