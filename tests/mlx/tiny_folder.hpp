// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <mlx/mlx.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include "llama_model.hpp"

namespace reprise::mlx {

inline std::string config_text(const LlamaConfig& c) {
  std::ostringstream out;
  out << "{\"model_type\": \"llama\", \"vocab_size\": " << c.vocabulary << ", \"hidden_size\": " << c.hidden
      << ", \"intermediate_size\": " << c.intermediate << ", \"num_hidden_layers\": " << c.layers
      << ", \"num_attention_heads\": " << c.heads << ", \"num_key_value_heads\": " << c.kv_heads
      << ", \"head_dim\": " << c.head_size << ", \"max_position_embeddings\": " << c.max_context
      << ", \"rms_norm_eps\": " << c.norm_epsilon << ", \"rope_theta\": " << c.rope_theta
      << ", \"rope_scaling\": null, \"tie_word_embeddings\": " << (c.tied ? "true" : "false") << "}\n";
  return out.str();
}

/// Writes a model as Hugging Face's tools do.
inline void write_folder(const std::string& folder, const LlamaConfig& config, const Weights& weights) {
  std::filesystem::create_directories(folder);
  std::ofstream(folder + "/config.json") << config_text(config);
  mx::save_safetensors(folder + "/model.safetensors", weights);
}

}  // namespace reprise::mlx
