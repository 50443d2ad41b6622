// SPDX-License-Identifier: Apache-2.0
// Folders of models: a model that is written and read again, and a sentence for each fault of a folder.
#include "model_folder.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <array>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "common/input_error.hpp"
#include "mlx_verifier.hpp"
#include "tiny_folder.hpp"
#include "tiny_model.hpp"

namespace reprise::mlx::model_folder_test {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using tools::InputError;

class ModelFolder : public ::testing::Test {
 protected:
  std::string folder_ = (std::filesystem::path(::testing::TempDir()) / "reprise-mlx-folder").string();

  void SetUp() override {
    std::filesystem::remove_all(folder_);
    write_folder(folder_, tiny_config(), tiny_weights(tiny_config()));
  }
  void TearDown() override { std::filesystem::remove_all(folder_); }

  /// Replaces a text in config.json.
  void edit(const std::string& from, const std::string& to) const {
    std::string text = config_text(tiny_config());
    ASSERT_NE(text.find(from), std::string::npos) << from;
    text.replace(text.find(from), from.size(), to);
    std::ofstream(folder_ + "/config.json") << text;
  }
  [[nodiscard]] std::string error() const {
    try {
      static_cast<void>(read_model(folder_));
    } catch (const InputError& refused) {
      return refused.what();
    }
    return "no error";
  }
};

std::vector<float> scores_of(const LlamaModel& model) {
  MlxPass<const LlamaModel> pass(model, 1);
  const std::array<Token, 2> tokens = {3, 1};
  const std::array<std::int32_t, 2> positions = {0, 1};
  const std::array<float, 4> mask = {0, -1e30F, 0, 0};
  const std::array<std::uint32_t, 1> outputs = {1};
  static_cast<void>(pass.run({tokens, positions, mask, outputs}));
  const auto scores = pass.scores(0);
  return {scores.begin(), scores.end()};
}

TEST_F(ModelFolder, IsReadAsItWasWritten) {
  for (const bool tied : {true, false}) {
    const LlamaConfig config = tiny_config(tied);
    const Weights weights = tiny_weights(config);
    write_folder(folder_, config, weights);
    EXPECT_EQ(scores_of(read_model(folder_)), scores_of({config, weights})) << tied;
  }
}

TEST_F(ModelFolder, WithoutAFileIsRefused) {
  std::filesystem::remove(folder_ + "/model.safetensors");
  EXPECT_THAT(error(), AllOf(HasSubstr("model.safetensors: cannot be opened")));
  std::ofstream(folder_ + "/model.safetensors.index.json") << "{}";
  EXPECT_THAT(error(), HasSubstr("the weights are in several files"));
  std::filesystem::remove(folder_ + "/config.json");
  EXPECT_THAT(error(), HasSubstr("config.json: cannot be opened"));
  std::filesystem::remove_all(folder_);
  EXPECT_THAT(error(), HasSubstr("is not a folder; give one with config.json and model.safetensors"));
}

TEST_F(ModelFolder, WithABadConfigIsRefused) {
  const struct {
    const char *from, *to, *says;
  } faults[] = {
      {"\"vocab_size\"", "\"vocab\"", "config.json: vocab_size: is missing"},
      {"\"vocab_size\": 23", "\"vocab_size\": 0", "vocab_size: expected a whole number from 1"},
      {"\"vocab_size\": 23", "\"vocab_size\": -1", "vocab_size: expected a whole number from 1"},
      {"\"vocab_size\": 23", "\"vocab_size\": \"23\"", "vocab_size: expected a whole number from 1"},
      {"\"vocab_size\": 23", "\"vocab_size\": 1e30", "vocab_size: expected a whole number from 1"},
      {"\"num_key_value_heads\": 2", "\"num_key_value_heads\": 3", "does not divide num_attention_heads"},
      {"\"head_dim\": 8", "\"head_dim\": 7", "head_dim: is odd"},
      {"\"rms_norm_eps\": ", "\"rms_norm_eps\": -", "rms_norm_eps: expected a number above 0"},
      {"\"tie_word_embeddings\": true", "\"tie_word_embeddings\": 1", "expected true or false, not a number"},
      {"\"llama\"", "\"qwen3\"", "model_type: only \"llama\" is supported"},
      {"\"rope_scaling\": null", "\"rope_scaling\": {}", "rope_scaling: is not supported"},
      {"{", "{\"attention_bias\": true, ", "attention_bias: is not supported"},
      {"{", "{\"hidden_act\": \"gelu\", ", "hidden_act: only \"silu\" is supported"},
      {"{", "[", "config.json:1:"},
  };
  for (const auto& fault : faults) {
    edit(fault.from, fault.to);
    EXPECT_THAT(error(), HasSubstr(fault.says));
  }
  std::ofstream(folder_ + "/config.json") << "[]";
  EXPECT_THAT(error(), HasSubstr("expected an object, not an array"));
}

TEST_F(ModelFolder, WithOtherWeightsIsRefused) {
  edit("\"intermediate_size\": 48", "\"intermediate_size\": 40");
  EXPECT_THAT(error(), HasSubstr("model.layers.0.mlp.gate_proj.weight: has the shape [48, 32], but config.json says "
                                 "[40, 32]"));
  edit("\"num_hidden_layers\": 2", "\"num_hidden_layers\": 3");
  EXPECT_THAT(error(), HasSubstr("model.layers.2.input_layernorm.weight: is missing"));
}

TEST_F(ModelFolder, CutAtAnyPlaceIsRefused) {
  const std::string path = folder_ + "/model.safetensors";
  std::ostringstream whole;
  whole << std::ifstream(path, std::ios::binary).rdbuf();
  const std::string bytes = whole.str();
  const std::size_t step = bytes.size() / 97;
  std::size_t tried = 0;
  for (std::size_t size = 0; size < bytes.size(); size += size < 40 ? 1 : step, ++tried) {
    std::ofstream(path, std::ios::binary) << bytes.substr(0, size);
    EXPECT_THAT(error(), AllOf(HasSubstr("model.safetensors: MLX cannot read"), HasSubstr("is the file whole?")))
        << size;
  }
  EXPECT_GT(tried, 100U);
}

}  // namespace
}  // namespace reprise::mlx::model_folder_test
