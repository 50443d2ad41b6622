// SPDX-License-Identifier: Apache-2.0
// A file is rewritten with a few edits, and the caller supplies the old version as the predicted output. The drafter
// copies from it across the edits, whether or not it is in the prompt.
#include <reprise/reprise.hpp>

#include <cstdio>
#include <string>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view old_text =
    "def area(width, height):\n    return width * height\n\n"
    "def perimeter(width, height):\n    return 2 * (width + height)\n\n"
    "def describe(shape):\n    print('a rectangle of', shape.width, 'by', shape.height)\n    print('its area is', "
    "area(shape.width, shape.height))\n";
constexpr std::string_view new_text =
    "def area(width, height):\n    return width * height\n\n"
    "def outline(width, height):\n    return 2 * (width + height)\n\n"
    "def describe(shape, unit='cm'):\n    print('a rectangle of', shape.width, 'by', shape.height)\n    print('its "
    "area "
    "is', area(shape.width, shape.height), unit)\n";
constexpr std::string_view prompt = "Give describe() a unit, and call perimeter() outline(). The file:\n";

struct Engine {  // stands for a model that writes the new text; a token is a character
  std::size_t cached = prompt.size() - 1;
  std::size_t pending = 1;
  std::vector<reprise::Token> picks;
  const std::vector<reprise::Token>& verify(reprise::TokenSpan batch, std::size_t drafted) {
    pending = batch.size() - drafted;
    picks.clear();
    for (std::size_t row = pending - 1; row < batch.size(); ++row) {
      const std::size_t at = cached + row + 1 - prompt.size();
      picks.push_back(at < new_text.size() ? reprise::Token{new_text[at]} : 0);
    }
    return picks;
  }
  void commit(std::size_t keep) { cached += keep; }
};

template <class Strategy>
double tokens_per_pass(const char* name, const Strategy& strategy) {
  Engine engine;
  const std::vector<reprise::Token> context(prompt.begin(), prompt.end());
  reprise::Session<Strategy, reprise::CostControl> session(strategy);
  const auto generated = reprise::generate(session, engine, context, reprise::Limits{.eos = {0}});
  if (!generated || generated->tokens.size() != new_text.size()) return 0;
  for (std::size_t i = 0; i < new_text.size(); ++i)
    if (generated->tokens[i] != reprise::Token{new_text[i]}) return 0;
  const double mean = generated->statistics.mean_accepted_tokens();
  std::printf("%-28s %.2f tokens per pass\n", name, mean);
  return mean;
}

}  // namespace

int main() {
  const std::vector<reprise::Token> prediction(old_text.begin(), old_text.end());
  reprise::NgramDrafter<> predicting;
  if (const auto taken = predicting.predict(prediction); !taken) return std::puts(taken.error().message.data()), 1;

  const double plain = tokens_per_pass("no drafting", reprise::NoDrafter());
  const double lookup = tokens_per_pass("lookup in the context", reprise::NgramDrafter<>());
  const double predicted = tokens_per_pass("with the prediction", predicting);
  return plain == 1 && lookup > 1 && predicted > 2 * lookup ? 0 : 1;
}
