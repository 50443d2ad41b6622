// SPDX-License-Identifier: Apache-2.0
#pragma once

/// \file Reads a model of the Llama architecture from a folder as Hugging Face's tools write it.

#include <mlx/mlx.h>

#include <cstddef>
#include <exception>
#include <filesystem>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "common/files.hpp"
#include "common/input_error.hpp"
#include "common/json.hpp"
#include "llama_model.hpp"

namespace reprise::mlx {

/// Reads the fields of a config.json. Each function throws InputError with the file and the field.
class ConfigFile {
 public:
  explicit ConfigFile(std::string path) : path_(std::move(path)) {
    std::ifstream in = tools::open_input(path_, "a config.json");
    const std::string text{std::istreambuf_iterator<char>(in), {}};
    if (const auto error = tools::parse_json(text, json_))
      throw tools::InputError(path_ + ':' + std::to_string(error->line) + ':' + std::to_string(error->column) + ": " +
                              error->message);
    if (json_.object() == nullptr) throw tools::InputError(path_ + ": expected an object, not " + kind(json_));
  }

  /// A whole number from 1 to `most`; `otherwise` if it is above 0 and there is no such field.
  [[nodiscard]] std::size_t size(const char* name, std::size_t most, std::size_t otherwise = 0) const {
    const tools::Json* const found = find(name);
    if (found == nullptr && otherwise > 0) return otherwise;
    if (found == nullptr) refuse(name, "is missing; give the folder of a model for Hugging Face's transformers");
    const auto* const number = found->number();
    if (number == nullptr || !number->integer || *number->integer < 1 ||
        static_cast<std::size_t>(*number->integer) > most)
      refuse(name, "expected a whole number from 1 to " + std::to_string(most));
    return static_cast<std::size_t>(*number->integer);
  }
  /// A number above 0.
  [[nodiscard]] float real(const char* name, float otherwise) const {
    const tools::Json* const found = find(name);
    if (found == nullptr) return otherwise;
    if (found->number() == nullptr || !(found->number()->value > 0)) refuse(name, "expected a number above 0");
    return static_cast<float>(found->number()->value);
  }
  [[nodiscard]] bool flag(const char* name, bool otherwise) const {
    const tools::Json* const found = find(name);
    if (found == nullptr) return otherwise;
    if (found->boolean() == nullptr) refuse(name, "expected true or false, not " + kind(*found));
    return *found->boolean();
  }
  /// Throws unless the field is this text, or is missing and may be.
  void expect(const char* name, std::string_view text, bool may_miss) const {
    const tools::Json* const found = find(name);
    if (found == nullptr && may_miss) return;
    if (found == nullptr || found->string() == nullptr || *found->string() != text)
      refuse(name, "only \"" + std::string(text) + "\" is supported");
  }
  /// Throws if the field is there and not null.
  void expect_none(const char* name) const {
    if (find(name) != nullptr) refuse(name, "is not supported; use a model without it");
  }
  [[noreturn]] void refuse(const char* name, const std::string& why) const {
    throw tools::InputError(path_ + ": " + name + ": " + why);
  }

 private:
  static std::string kind(const tools::Json& json) { return std::string(json.kind()); }
  /// Null is the same as a missing field.
  [[nodiscard]] const tools::Json* find(const char* name) const {
    const tools::Json* const found = json_.find(name);
    return found != nullptr && found->kind() == "null" ? nullptr : found;
  }

  std::string path_;
  tools::Json json_;
};

/// Reads a config.json. Throws InputError for a missing or bad field, and for an architecture other than plain Llama.
inline LlamaConfig read_config(const std::string& path) {
  constexpr std::size_t many = 1'000'000;
  const ConfigFile file(path);
  file.expect("model_type", "llama", false);
  file.expect("hidden_act", "silu", true);
  file.expect_none("rope_scaling");
  file.expect_none("quantization");
  for (const char* const name : {"attention_bias", "mlp_bias"})
    if (file.flag(name, false)) file.refuse(name, "is not supported; use a model without it");
  LlamaConfig config;
  config.vocabulary = file.size("vocab_size", many);
  config.hidden = file.size("hidden_size", many);
  config.intermediate = file.size("intermediate_size", many);
  config.layers = file.size("num_hidden_layers", 1000);
  config.heads = file.size("num_attention_heads", 10'000);
  config.kv_heads = file.size("num_key_value_heads", 10'000, config.heads);
  config.head_size = file.size("head_dim", 10'000, std::max<std::size_t>(1, config.hidden / config.heads));
  config.max_context = file.size("max_position_embeddings", 100'000'000);
  config.norm_epsilon = file.real("rms_norm_eps", config.norm_epsilon);
  config.rope_theta = file.real("rope_theta", config.rope_theta);
  config.tied = file.flag("tie_word_embeddings", false);
  if (config.heads % config.kv_heads != 0) file.refuse("num_key_value_heads", "does not divide num_attention_heads");
  if (config.head_size % 2 != 0) file.refuse("head_dim", "is odd, but rotary positions need pairs");
  return config;
}

/// Returns [2, 3] for a shape of 2 rows and 3 columns.
inline std::string shown(const mx::Shape& shape) {
  std::string text;
  for (const auto size : shape) text += (text.empty() ? "" : ", ") + std::to_string(size);
  return '[' + text + ']';
}

/// Reads model.safetensors, and converts the weights to float32. Throws InputError for a file that cannot be read, and
/// for a weight that is missing or has another shape.
inline Weights read_weights(const std::string& path, const LlamaConfig& config) {
  static_cast<void>(tools::open_input(path, "a file of weights"));
  Weights found;
  try {
    found = mx::load_safetensors(path).first;
  } catch (const std::exception& error) {
    throw tools::InputError(path + ": MLX cannot read it: " + error.what() + "; is the file whole?");
  }
  Weights weights;
  std::vector<mx::array> all;
  for (const auto& [name, shape] : LlamaModel::weights_of(config)) {
    const auto at = found.find(name);
    if (at == found.end())
      throw tools::InputError(path + ": " + name + ": is missing; does config.json belong to this file?");
    if (at->second.shape() != shape)
      throw tools::InputError(path + ": " + name + ": has the shape " + shown(at->second.shape()) +
                              ", but config.json says " + shown(shape));
    all.push_back(weights.emplace(name, mx::astype(at->second, mx::float32)).first->second);
  }
  try {
    mx::eval(all);  // until now, MLX has read only the header
  } catch (const std::exception& error) {
    throw tools::InputError(path + ": MLX cannot read the weights: " + error.what() + "; is the file whole?");
  }
  return weights;
}

/// Reads config.json and model.safetensors in `folder`. A model in several files is refused. Throws InputError.
inline LlamaModel read_model(const std::string& folder) {
  namespace fs = std::filesystem;
  std::error_code ignored;
  if (!fs::is_directory(folder, ignored))
    throw tools::InputError(folder + ": is not a folder; give one with config.json and model.safetensors");
  const std::string weights = (fs::path(folder) / "model.safetensors").string();
  const LlamaConfig config = read_config((fs::path(folder) / "config.json").string());
  if (!fs::exists(weights, ignored) && fs::exists(weights + ".index.json", ignored))
    throw tools::InputError(folder + ": the weights are in several files; only one model.safetensors is supported");
  return {config, read_weights(weights, config)};
}

}  // namespace reprise::mlx
