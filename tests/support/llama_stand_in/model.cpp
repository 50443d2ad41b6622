// SPDX-License-Identifier: Apache-2.0
#include "model.hpp"

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <sstream>
#include <string_view>
#include <vector>

// NOLINTBEGIN(readability-identifier-naming,bugprone-easily-swappable-parameters): llama.cpp's names
namespace reprise::llama_stand_in {

namespace {

struct Log {
  ggml_log_callback callback = nullptr;
  void* user_data = nullptr;
};
Log& log() {
  static Log log;
  return log;
}

constexpr std::array<std::string_view, 4> controls = {"<s>", "</s>", "<|im_start|>", "<|im_end|>"};
constexpr const char* chatml =
    "{% for message in messages %}{{'<|im_start|>' + message['role'] + '\n' + message['content'] + '<|im_end|>' + "
    "'\n'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant\n' }}{% endif %}";

bool valid(const ModelText& text) {
  const auto known = {"attention", "recurrent", "encoder"};
  const auto templates = {"chatml", "none", "other"};
  return text.vocabulary >= llama_vocab::smallest && text.context > 0 &&
         std::count(known.begin(), known.end(), text.kind) == 1 &&
         std::count(templates.begin(), templates.end(), text.chat_template) == 1;
}
std::optional<ModelText> parse(std::istream& file) {
  std::string line;
  if (!std::getline(file, line) || line != "llama-stand-in 1") return {};
  ModelText text;
  while (std::getline(file, line)) {
    std::istringstream words(line);
    std::string key;
    if (!(words >> key)) continue;
    if (key == "vocabulary") {
      words >> text.vocabulary;
    } else if (key == "kind") {
      words >> text.kind;
    } else if (key == "context") {
      words >> text.context;
    } else if (key == "template") {
      words >> text.chat_template;
    } else if (key == "seed") {
      words >> text.seed;
    } else if (key == "eos") {
      words >> text.eos;
    } else {
      return {};
    }
    if (!words) return {};
  }
  if (!valid(text)) return {};
  return text;
}
std::int32_t copy_out(std::string_view text, char* buffer, std::int32_t length) {
  if (text.size() > static_cast<std::size_t>(std::max(length, 0))) return -static_cast<std::int32_t>(text.size());
  std::copy(text.begin(), text.end(), buffer);
  return static_cast<std::int32_t>(text.size());
}

}  // namespace

Settings& settings() {
  static Settings settings;
  return settings;
}
void log_error(const std::string& text) {
  const std::string line = text + '\n';
  if (log().callback != nullptr)
    log().callback(GGML_LOG_LEVEL_ERROR, line.c_str(), log().user_data);
  else
    std::fputs(line.c_str(), stderr);
}
void fail(const char* assertion) {
  std::fprintf(stderr, "llama stand-in: GGML_ASSERT(%s) failed\n", assertion);
  std::abort();
}

std::string ModelText::text() const {
  std::ostringstream out;
  out << "llama-stand-in 1\nvocabulary " << vocabulary << "\nkind " << kind << "\ncontext " << context << "\ntemplate "
      << chat_template << "\nseed " << seed << "\neos " << eos << '\n';
  return out.str();
}
llama_model* make_model(const ModelText& text) {
  expects(valid(text), "a model that can be");
  ++settings().models;
  return new llama_model{text, {text.vocabulary}};
}

}  // namespace reprise::llama_stand_in

using namespace reprise::llama_stand_in;

std::string llama_vocab::piece(llama_token token, bool special) const {
  if (token < first_byte) return special ? std::string(controls[static_cast<std::size_t>(token)]) : std::string();
  if (token < first_word)
    return std::string(1, static_cast<char>(static_cast<unsigned char>(token - first_byte + ' ')));
  std::string word;  // letters, so that words differ, then a space
  for (std::int32_t rest = token - first_word; word.empty() || rest > 0; rest /= 20)
    word += {"bcdfghjklmnpqrstvwxz"[rest % 20], "aeiou"[(rest + token) % 5]};
  return word + ' ';
}

void ggml_backend_load_all() {}
const char* llama_version() { return "stand-in"; }
void llama_backend_init() {}
void llama_log_set(ggml_log_callback callback, void* user_data) { log() = {callback, user_data}; }
llama_model_params llama_model_default_params() { return {-1}; }

llama_model* llama_model_load_from_file(const char* path, llama_model_params) {
  std::ifstream file(path);
  const auto text = file ? parse(file) : std::nullopt;
  if (!text) {
    log_error(std::string("llama_model_load_from_file: failed to load model '") + path + '\'');
    return nullptr;
  }
  return make_model(*text);
}
void llama_model_free(llama_model* model) {
  if (model == nullptr) return;
  --settings().models;
  delete model;
}
const llama_vocab* llama_model_get_vocab(const llama_model* model) { return &model->vocab; }
std::int32_t llama_model_desc(const llama_model* model, char* buffer, std::size_t size) {
  return std::snprintf(buffer, size, "stand-in %s %d", model->text.kind.c_str(), static_cast<int>(model->vocab.size));
}
const char* llama_model_chat_template(const llama_model* model, const char* name) {
  if (name != nullptr || model->text.chat_template == "none") return nullptr;
  return model->text.chat_template == "chatml" ? chatml : "{{ unknown(messages) }}";
}
bool llama_model_has_encoder(const llama_model* model) { return model->text.kind == "encoder"; }
bool llama_model_has_decoder(const llama_model* model) { return model->text.kind != "encoder"; }
bool llama_model_is_recurrent(const llama_model* model) { return model->text.kind == "recurrent"; }
bool llama_model_is_hybrid(const llama_model*) { return false; }

std::int32_t llama_vocab_n_tokens(const llama_vocab* vocab) { return vocab->size; }
bool llama_vocab_is_eog(const llama_vocab*, llama_token token) {
  return token == llama_vocab::end || token == llama_vocab::turn_ends;
}

std::int32_t llama_tokenize(const llama_vocab* vocab, const char* text, std::int32_t text_len, llama_token* tokens,
                            std::int32_t n_tokens_max, bool add_special, bool parse_special) {
  std::string_view rest(text, static_cast<std::size_t>(text_len));
  std::vector<llama_token> all;
  if (add_special) all.push_back(llama_vocab::begin);
  while (!rest.empty()) {
    std::size_t control = 0;
    while (control < controls.size() &&
           !(parse_special && rest.substr(0, controls[control].size()) == controls[control]))
      ++control;
    if (control < controls.size()) {
      all.push_back(static_cast<llama_token>(control));
      rest.remove_prefix(controls[control].size());
      continue;
    }
    // The model may say words, but texts are tokenized byte by byte. A small vocabulary maps several bytes to one
    // token.
    const int byte = (static_cast<unsigned char>(rest.front()) + 256 - ' ') % 256;
    all.push_back(llama_vocab::first_byte + byte % (vocab->size - llama_vocab::first_byte));
    rest.remove_prefix(1);
  }
  if (all.size() > static_cast<std::size_t>(std::max(n_tokens_max, 0))) return -static_cast<std::int32_t>(all.size());
  std::copy(all.begin(), all.end(), tokens);
  return static_cast<std::int32_t>(all.size());
}
std::int32_t llama_token_to_piece(const llama_vocab* vocab, llama_token token, char* buf, std::int32_t length,
                                  std::int32_t, bool special) {
  expects(vocab->has(token), "token < n_tokens");
  return copy_out(vocab->piece(token, special), buf, length);
}

std::int32_t llama_chat_apply_template(const char* tmpl, const llama_chat_message* chat, std::size_t n_msg,
                                       bool add_ass, char* buf, std::int32_t length) {
  const std::string_view text = tmpl == nullptr ? "chatml" : tmpl;
  if (text != "chatml" && text.find("<|im_start|>") == std::string_view::npos) return -1;
  std::string all;
  for (std::size_t i = 0; i < n_msg; ++i)
    all += std::string("<|im_start|>") + chat[i].role + '\n' + chat[i].content + "<|im_end|>\n";
  if (add_ass) all += "<|im_start|>assistant\n";
  // Cut at `length`, and then not zero-terminated.
  if (buf != nullptr && length > 0) std::strncpy(buf, all.c_str(), static_cast<std::size_t>(length));
  return static_cast<std::int32_t>(all.size());
}
// NOLINTEND(readability-identifier-naming,bugprone-easily-swappable-parameters)
