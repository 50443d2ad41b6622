// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <reprise/reprise.hpp>
#include <reprise_testing/check_strategy.hpp>
#include <utility>
#include <vector>

// [drafter]
// Drafts phrases that the application knows. When the context ends with the first tokens of a phrase, it drafts the
// rest.
class PhraseDrafter {
 public:
  explicit PhraseDrafter(std::vector<std::vector<reprise::Token>> phrases) : phrases_(std::move(phrases)) {}

  // The session owns the text and lends it to every call, so there is no copy to update.
  void begin(reprise::TokenSpan /*context*/) { hits_ = 6, tests_ = 8; }
  void observe(reprise::TokenSpan /*context*/, std::size_t /*fresh*/, reprise::Origin /*origin*/) {}
  void truncate(reprise::TokenSpan /*context*/, std::size_t /*size*/) {}

  void propose(reprise::TokenSpan context, reprise::Draft& draft) const {
    std::size_t longest = 1;  // one token is not enough to recognise a phrase
    const std::vector<reprise::Token>* best = nullptr;
    for (const auto& phrase : phrases_)
      for (std::size_t n = std::min(context.size(), phrase.size()); n > longest; --n)
        if (std::equal(phrase.begin(), phrase.begin() + static_cast<std::ptrdiff_t>(n),
                       context.end() - static_cast<std::ptrdiff_t>(n))) {
          best = &phrase;
          longest = n;
        }
    if (best == nullptr) return;
    reprise::Probability path = reprise::Probability::one();
    for (std::size_t i = longest; i < best->size(); ++i) {
      path = path * reprise::Probability::ratio(hits_, tests_);
      // False: the draft is full, deep enough, or the rest is too unlikely. The draft counts; the drafter need not.
      if (!draft.extend({.token = (*best)[i], .path_probability = path})) return;
    }
  }

  // Learns how often a drafted token is the target's pick, so that the probabilities above are right.
  void feedback(reprise::TokenSpan /*context*/, const reprise::Outcome& outcome) {
    reprise::for_each_tested(outcome, [&](std::size_t, bool hit) { hits_ += hit ? 1 : 0, ++tests_; });
  }

 private:
  std::vector<std::vector<reprise::Token>> phrases_;
  std::uint32_t hits_ = 6, tests_ = 8;  // the first guess is 3/4
};
static_assert(reprise::DraftStrategy<PhraseDrafter>);
// [/drafter]

struct Engine {  // yours runs a transformer; the "model" of this one repeats one sentence forever
  std::vector<reprise::Token> said = {'k', 'i', 'n', 'd', ' ', 'r', 'e', 'g', 'a', 'r', 'd', 's', '.', ' '};
  std::vector<reprise::Token> picks;
  std::size_t cached = 0;
  const std::vector<reprise::Token>& verify(reprise::TokenSpan batch, std::size_t drafted) {
    picks.clear();
    for (std::size_t i = batch.size() - drafted; i <= batch.size(); ++i)
      picks.push_back(said[(cached + i) % said.size()]);
    return picks;
  }
  void commit(std::size_t keep) { cached += keep; }
};

int main() {
  const std::vector<reprise::Token> prompt = {'k', 'i', 'n'};
  const PhraseDrafter phrases({{'k', 'i', 'n', 'd', ' ', 'r', 'e', 'g', 'a', 'r', 'd', 's'}});
  const reprise::Limits limits{.max_tokens = 70};
  Engine engine;
  engine.cached = prompt.size() - 1;  // begin() assumes that all but the last token are in the cache
  auto session = reprise::speculator_with(phrases, {.curve = reprise::CostCurve::linear(0.02)});
  const auto generated = reprise::generate(session, engine, prompt, limits);
  if (!generated) return std::puts(generated.error().message.data()), 1;
  for (const reprise::Token token : generated->tokens) std::putchar(token);
  std::printf("\n%.2f tokens per pass\n", generated->statistics.mean_accepted_tokens());

  const auto report = reprise::testing::check_strategy([] { return PhraseDrafter({{1, 2, 0, 1}, {2, 1, 1}}); });
  std::puts(report.to_string().c_str());
  return report.passed() && generated->statistics.mean_accepted_tokens() > 2 ? 0 : 1;
}
