// SPDX-License-Identifier: Apache-2.0
// Two draft sources: lookup where the text repeats, and the engine's own draft head (MTP, EAGLE) for new text. BestOf
// uses the source with the higher expected number of accepted tokens, as calibrated so far. The engine owns the loop.
#include <reprise/draft/external_drafter.hpp>
#include <reprise/reprise.hpp>
#include <reprise_methods/best_of.hpp>

#include <cstdio>
#include <string_view>
#include <vector>

namespace {

// The text that the "model" writes: new words, then a refrain, over and over.
constexpr std::string_view text =
    "There was an old man with a beard, who said it is just as I feared: two owls and a hen. "
    "Over the hills and far away, over the hills and far away. "
    "There was a young lady whose chin resembled the point of a pin, so she had it made sharp. "
    "Over the hills and far away, over the hills and far away. "
    "There was an old person of Dutton, whose head was as small as a button. "
    "Over the hills and far away, over the hills and far away. ";
constexpr std::size_t prompt = 12;

// Stands for a forward pass: returns the character after each row.
std::vector<reprise::Token> forward(std::size_t cached, std::size_t rows) {
  std::vector<reprise::Token> picks;
  for (std::size_t row = 0; row < rows; ++row) {
    const std::size_t at = cached + row + 1;
    picks.push_back(at < text.size() ? reprise::Token{text[at]} : 0);
  }
  return picks;
}

// Stands for a draft head that guesses three tokens. It gets every a, o and u wrong.
struct Head {
  std::vector<reprise::Token> tokens;
  std::vector<float> probabilities;
  void guess(std::size_t context) {
    tokens.clear();
    probabilities.clear();
    for (std::size_t at = context; at < context + 3 && at < text.size(); ++at) {
      const bool hard = text[at] == 'a' || text[at] == 'o' || text[at] == 'u';
      tokens.push_back(hard ? reprise::Token{'e'} : reprise::Token{text[at]});
      probabilities.push_back(hard ? 0.4F : 0.9F);
    }
  }
};

template <class Strategy, class Prepare>
double tokens_per_pass(const char* name, Strategy strategy, Prepare prepare) {
  reprise::Session<Strategy, reprise::CostControl> session(std::move(strategy));
  const std::vector<reprise::Token> context(text.begin(), text.begin() + prompt);
  const reprise::Limits limits{.eos = {0}};
  if (!session.begin(context)) return 0;
  while (true) {
    prepare(session.strategy(), session.context().size());  // sets the head's guess for this context
    session.propose(limits);
    if (session.finished()) break;
    const auto pass = session.plan();
    if (!pass) return 0;
    const auto picks = forward(session.cached(), pass->batch.size());
    if (!session.resolve(pass->ticket, std::span(picks).subspan(pass->pending - 1))) return 0;
    if (!session.commit(pass->ticket)) return 0;
  }
  if (session.output().size() != text.size() - prompt) return 0;
  const double mean = session.statistics().mean_accepted_tokens();
  std::printf("%-12s %.2f tokens per pass\n", name, mean);
  return mean;
}

}  // namespace

int main() {
  Head head;
  const auto hand_in = [&](reprise::ExternalDrafter& draft, std::size_t context) {
    head.guess(context);
    if (const auto taken = draft.set({.tokens = head.tokens, .probabilities = head.probabilities}); !taken)
      std::fprintf(stderr, "%s\n", taken.error().message.data());
  };
  using Lookup = reprise::NgramDrafter<>;
  using Hybrid = reprise::BestOf<Lookup, reprise::ExternalDrafter>;
  const double lookup = tokens_per_pass("lookup", Lookup(), [](Lookup&, std::size_t) {});
  const double neural = tokens_per_pass("head", reprise::ExternalDrafter(), hand_in);
  const double hybrid =
      tokens_per_pass("both", Hybrid(Lookup(), reprise::ExternalDrafter()),
                      [&](Hybrid& strategy, std::size_t context) { hand_in(strategy.member<1>(), context); });
  return lookup > 1 && neural > 1 && hybrid > lookup && hybrid > neural ? 0 : 1;
}
