// SPDX-License-Identifier: Apache-2.0
// docs/getting-started.md as a program: from a plain decoding loop to a checked verifier and a measured cost curve.
// [include]
#include <algorithm>
#include <chrono>
#include <cstddef>
#include <cstdio>
#include <reprise/history/memory.hpp>
#include <reprise/reprise.hpp>
#include <reprise_testing/check_verifier.hpp>
#include <reprise_testing/measure_curve.hpp>
#include <span>
#include <vector>
// [/include]

// [model]
// Stands for your model and its KV cache.
class Model {
 public:
  // One forward pass: appends `tokens` to the cache and returns the most likely token after each of them.
  std::vector<int> forward(std::span<const int> tokens) {
    std::vector<int> next;
    for (const int token : tokens) {
      cache_.push_back(token);
      unsigned hash = 7;
      for (std::size_t i = cache_.size() < 3 ? 0 : cache_.size() - 3; i < cache_.size(); ++i)
        hash = hash * 31 + static_cast<unsigned>(cache_[i]);
      next.push_back(static_cast<int>(hash / 7 % 11));
    }
    return next;
  }
  // Forgets all rows of the cache after the first `rows`.
  void truncate(std::size_t rows) { cache_.resize(std::min(rows, cache_.size())); }

 private:
  std::vector<int> cache_;
};
// [/model]

// [plain]
std::vector<int> decode(Model& model, std::span<const int> prompt, std::size_t max_tokens) {
  model.forward(prompt.first(prompt.size() - 1));  // prefill all tokens of the prompt except the last
  std::vector<int> output;
  int token = prompt.back();
  while (output.size() < max_tokens) {
    token = model.forward(std::span(&token, 1)).back();
    output.push_back(token);
  }
  return output;
}
// [/plain]

// [verifier]
class Engine {
 public:
  explicit Engine(reprise::TokenSpan prompt) {
    model_.forward(prompt.first(prompt.size() - 1));  // prefill all tokens of the prompt except the last
    committed_ = prompt.size() - 1;
  }
  // One pass over `batch`: committed tokens that are not in the cache yet, then `drafted` drafted tokens.
  std::vector<reprise::Token> verify(reprise::TokenSpan batch, std::size_t drafted) {
    model_.truncate(committed_);  // drop the rows of a pass that was never committed
    const std::vector<int> next = model_.forward(batch);
    // The picks: the model's token after the last committed token, then its token after each drafted one.
    return {next.end() - static_cast<std::ptrdiff_t>(drafted + 1), next.end()};
  }
  // Keeps the first `keep` rows of that pass and removes the others from the cache.
  void commit(std::size_t keep) {
    committed_ += keep;
    model_.truncate(committed_);
  }

 private:
  Model model_;
  std::size_t committed_ = 0;  // rows of the cache that hold committed tokens
};
static_assert(reprise::Verifier<Engine>);
// [/verifier]

// [broken]
class BrokenEngine : public Engine {
 public:
  using Engine::Engine;
  void commit(std::size_t keep) { Engine::commit(keep + 1); }  // the mistake: one row too many
};
// [/broken]

int main() {
  // [generate]
  auto memory = reprise::Memory::make();
  if (!memory) return std::puts(memory.error().message.data()), 1;
  reprise::Speculator speculator(memory->options());

  const std::vector<int> prompt = {3, 1, 4, 1, 5};
  Engine engine(prompt);
  const reprise::Limits limits{.max_tokens = 200};
  const auto generated = reprise::generate(speculator, engine, prompt, limits);
  if (!generated) return std::puts(generated.error().message.data()), 1;
  const double per_pass = generated->statistics.mean_accepted_tokens();
  std::printf("%zu tokens, %.2f tokens per pass\n", generated->tokens.size(), per_pass);

  Model model;
  const std::vector<int> plain = decode(model, prompt, 200);
  const bool same = std::equal(plain.begin(), plain.end(), generated->tokens.begin(), generated->tokens.end());
  std::puts(same ? "the same tokens as plain decoding" : "WRONG: other tokens");

  Engine next(prompt);
  const auto again = reprise::generate(speculator, next, prompt, limits);
  if (!again) return std::puts(again.error().message.data()), 1;
  std::printf("again, %.2f tokens per pass\n", again->statistics.mean_accepted_tokens());
  // [/generate]
  if (!same || per_pass < 2 || again->statistics.mean_accepted_tokens() < 2 * per_pass) return 1;

  // [check]
  const auto make = [](reprise::TokenSpan prefix) { return Engine(prefix); };
  const auto report = reprise::testing::check_verifier(make, prompt);
  std::puts(report.to_string().c_str());
  if (!report.passed()) return 1;
  // [/check]

  const auto make_broken = [](reprise::TokenSpan prefix) { return BrokenEngine(prefix); };
  const auto broken = reprise::testing::check_verifier(make_broken, prompt);
  std::puts(broken.to_string().c_str());
  if (broken.passed()) return 1;

  // [measure]
  const std::vector<int> text(256, 3);
  const auto run_pass = [&](const reprise::PassShape& shape) {
    Engine fresh(reprise::TokenSpan(text).first(shape.context + 1));  // prefills `context` tokens; not timed
    const auto begin = std::chrono::steady_clock::now();
    fresh.verify(reprise::TokenSpan(text).subspan(shape.context, shape.rows), shape.rows - 1);
    return std::chrono::nanoseconds(std::chrono::steady_clock::now() - begin);
  };
  const auto measured = reprise::testing::measure_cost_curve(run_pass, {.contexts = {128}, .rows = {1, 2, 4, 8, 16}});
  std::puts(measured.to_string().c_str());
  const auto curve = measured.curve();
  if (!curve) return std::puts(curve.error().message.data()), 1;
  const reprise::Speculator sized(*curve);
  // [/measure]
  return sized.control().cost({1, 1, 128}) == reprise::cost_one ? 0 : 1;
}
