// SPDX-License-Identifier: Apache-2.0
#include "engine.hpp"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <utility>

#include "common/input_error.hpp"

namespace reprise::llama {
namespace {

using tools::InputError;

/// The first error that llama.cpp logged since the last clear(). Its log has one receiver per process.
std::string& last_complaint() {
  static std::string text;
  return text;
}

void keep_complaint(ggml_log_level level, const char* text, void*) {
  if (level != GGML_LOG_LEVEL_ERROR) return;
  std::string line = text;
  while (!line.empty() && (line.back() == '\n' || line.back() == ' ')) line.pop_back();
  // The first error names the cause; later ones only repeat that there was one.
  if (!line.empty() && last_complaint().empty()) last_complaint() = std::move(line);
}

std::string because() { return last_complaint().empty() ? "" : " (" + last_complaint() + ")"; }

void check_file(const std::string& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored))
    throw InputError("--model " + path + ": is a directory; give the path of a GGUF file");
  if (!std::ifstream(path, std::ios::binary))
    throw InputError("--model " + path + ": cannot be opened; is the path right?");
}

}  // namespace

Engine Engine::load(const EngineOptions& options) {
  check_file(options.model);
  if (!options.verbose) llama_log_set(&keep_complaint, nullptr);
  ggml_backend_load_all();
  llama_backend_init();

  Engine engine;
  engine.options_ = options;
  last_complaint().clear();
  engine.model_.reset(llama_model_load_from_file(options.model.c_str(), llama_model_default_params()));
  if (!engine.model_)
    throw InputError("--model " + options.model + ": llama.cpp cannot load it" + because() +
                     "; give a complete GGUF file of an architecture that this build knows");
  if (!llama_model_has_decoder(engine.model()) || llama_model_has_encoder(engine.model()))
    throw InputError("--model " + options.model + ": is not a decoder-only model; give one that generates text");

  llama_context_params params = llama_context_default_params();
  params.n_ctx = options.context;
  params.n_batch = options.batch;
  params.n_ubatch = options.batch;
  params.n_seq_max = options.sequences;
  params.n_threads = options.threads;
  params.n_threads_batch = options.threads;
  params.kv_unified = options.unified;
  params.no_perf = true;
  if (options.adjust) options.adjust(params);
  last_complaint().clear();
  engine.context_.reset(llama_init_from_model(engine.model(), params));
  if (!engine.context_)
    throw InputError("--context " + std::to_string(options.context) +
                     ": llama.cpp cannot create this context for the model" + because() +
                     "; a smaller context needs less memory");
  for (Token token = 0; static_cast<std::size_t>(token) < engine.vocabulary(); ++token)
    if (engine.ends(token)) engine.end_tokens_.push_back(token);
  return engine;
}

std::size_t Engine::vocabulary() const { return static_cast<std::size_t>(llama_vocab_n_tokens(vocab())); }

std::size_t Engine::context_size() const {
  // llama.cpp rounds the requested context size up.
  const std::size_t made = llama_n_ctx_seq(context());
  if (options_.context == 0) return made;
  const std::size_t asked = options_.unified ? options_.context : options_.context / options_.sequences;
  return std::min(asked, made);
}

std::vector<Token> Engine::tokenize(std::string_view text, bool add_special) const {
  std::vector<Token> tokens(text.size() + 8);
  for (;;) {
    const std::int32_t count =
        llama_tokenize(vocab(), text.data(), static_cast<std::int32_t>(text.size()), tokens.data(),
                       static_cast<std::int32_t>(tokens.size()), add_special, true);
    if (count == INT32_MIN) throw InputError("a text has more tokens than llama.cpp can count; give a shorter one");
    const bool fits = count >= 0;
    tokens.resize(static_cast<std::size_t>(fits ? count : -count));
    if (fits) return tokens;
  }
}

std::string Engine::text(TokenSpan tokens) const {
  std::string text;
  std::string piece(64, '\0');
  for (const Token token : tokens) {
    const auto room = [&] { return static_cast<std::int32_t>(piece.size()); };
    std::int32_t size = llama_token_to_piece(vocab(), token, piece.data(), room(), 0, true);
    if (size < 0) {
      piece.resize(static_cast<std::size_t>(-size));
      size = llama_token_to_piece(vocab(), token, piece.data(), room(), 0, true);
    }
    if (size > 0) text.append(piece, 0, static_cast<std::size_t>(size));
  }
  return text;
}

std::string Engine::chat(std::span<const Message> messages, bool answer_follows) const {
  const char* const form = llama_model_chat_template(model(), nullptr);
  if (form == nullptr)
    throw InputError("--model " + options_.model +
                     ": has no chat template; give --raw to hand the text to the model as it is");
  std::vector<llama_chat_message> chat;
  std::size_t characters = 256;
  for (const Message& message : messages) {
    chat.push_back({message.role.c_str(), message.content.c_str()});
    characters += message.role.size() + 2 * message.content.size();
  }
  std::string text(characters, '\0');
  for (;;) {
    const std::int32_t size = llama_chat_apply_template(form, chat.data(), chat.size(), answer_follows, text.data(),
                                                        static_cast<std::int32_t>(text.size()));
    if (size < 0)
      throw InputError("--model " + options_.model +
                       ": its chat template is none of those that llama.cpp's C interface knows; give --raw and write "
                       "the markers of the turns yourself");
    const bool fits = static_cast<std::size_t>(size) <= text.size();
    text.resize(static_cast<std::size_t>(size));
    if (fits) return text;
  }
}

bool Engine::ends(Token token) const { return llama_vocab_is_eog(vocab(), token); }

std::string Engine::description() const {
  char text[256] = {};
  llama_model_desc(model(), text, sizeof text);
  return text;
}

void Engine::clear() { llama_memory_clear(llama_get_memory(context()), false); }

}  // namespace reprise::llama
