// SPDX-License-Identifier: Apache-2.0
// Two draft sources: lookup where the text repeats, and the engine's own draft head (MTP, EAGLE) for new text. In each
// pass, HeadedSpeculator says whether the head pays, and makes one draft of both. The engine owns the loop.
#include <reprise/batch.hpp>
#include <reprise/draft/external_drafter.hpp>
#include <reprise/headed_speculator.hpp>
#include <reprise/reprise.hpp>

#include <cstdio>
#include <span>
#include <string_view>
#include <utility>
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

// Stands for a draft head. It gets every a, o and u wrong.
std::vector<reprise::Token> guess(std::size_t context, std::size_t count) {
  std::vector<reprise::Token> tokens;
  for (std::size_t at = context; at < context + count && at < text.size(); ++at) {
    const bool hard = text[at] == 'a' || text[at] == 'o' || text[at] == 'u';
    tokens.push_back(hard ? reprise::Token{'e'} : reprise::Token{text[at]});
  }
  return tokens;
}

// Runs the passes of a session. `propose`: what the engine does before each pass.
template <class Session, class Propose>
double tokens_per_pass(const char* name, Session session, Propose propose) {
  const std::vector<reprise::Token> context(text.begin(), text.begin() + prompt);
  const reprise::Limits limits{.eos = {0}};
  if (!session.begin(context)) return 0;
  while (true) {
    propose(session, limits);
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

// Decodes the text in two slots of a batch; the second one begins later. Returns the tokens per slot and pass.
double tokens_per_pass_of_two() {
  reprise::BatchOptions options;
  options.curve = reprise::CostCurve::linear(0.02);
  options.head = reprise::HeadCost{.draft = reprise::to_cost(0.1)};  // of a run for both slots
  auto follower =
      reprise::BatchFollower<reprise::HeadedNgramDrafter>::make(2, reprise::HeadedNgramDrafter(), std::move(options));
  if (!follower) return 0;
  std::vector<reprise::Token> ids[2];
  for (std::size_t slot = 0; slot < 2; ++slot) ids[slot].assign(text.begin(), text.begin() + prompt + 100 * slot);
  std::size_t passes = 0;
  std::size_t tokens = 0;
  while (ids[1].size() < text.size()) {
    const reprise::FollowedSlot slots[] = {{.slot = 0, .ids = ids[0]}, {.slot = 1, .ids = ids[1]}};
    const auto wanted = follower->propose_lookup(slots);
    if (!wanted) return 0;
    for (std::size_t slot = 0; slot < 2; ++slot)
      if (const std::size_t count = (*wanted)[slot]; count > 0)
        if (!follower->add_head(slot, guess(ids[slot].size(), count))) return 0;
    const auto drafts = follower->draft_proposed();
    ++passes;
    for (std::size_t slot = 0; slot < 2; ++slot) {  // stands for the pass: accepted tokens, and one of the model's own
      const std::size_t before = ids[slot].size();
      for (std::size_t i = 0; i <= drafts[slot].size() && ids[slot].size() < text.size(); ++i) {
        ids[slot].push_back(text[ids[slot].size()]);
        if (i < drafts[slot].size() && drafts[slot][i] != ids[slot].back()) break;
      }
      tokens += ids[slot].size() - before;
    }
  }
  const double mean = static_cast<double>(tokens) / static_cast<double>(2 * passes);
  std::printf("%-12s %.2f tokens per slot and pass\n", "two slots", mean);
  return mean;
}

}  // namespace

int main() {
  using namespace reprise;
  const CostCurve curve = CostCurve::linear(0.02);  // a drafted row costs 2% of a pass
  const double lookup = tokens_per_pass("lookup", Speculator(curve),
                                        [](auto& session, const Limits& limits) { session.propose(limits); });
  const double head = tokens_per_pass("head", speculator_with(ExternalDrafter(), {.curve = curve, .calibrated = true}),
                                      [](auto& session, const Limits& limits) {
                                        const auto drafted = guess(session.context().size(), 3);
                                        if (session.strategy().set({.tokens = drafted})) session.propose(limits);
                                      });
  // The head's draft costs 10% of a pass.
  HeadedSpeculator with_head(NgramOptions(), {.curve = curve}, HeadCost{.draft = to_cost(0.1)});
  std::size_t runs = 0;
  const double both = tokens_per_pass("both", std::move(with_head), [&](auto& session, const Limits& limits) {
    const std::size_t count = session.propose_lookup(limits);  // 0: the head does not pay in this pass
    if (count == 0) return;
    ++runs;
    if (const auto added = session.add_head(guess(session.context().size(), count), limits); !added)
      std::fprintf(stderr, "%s\n", added.error().message.data());
  });
  std::printf("the head ran in %zu passes\n", runs);
  const double two = tokens_per_pass_of_two();
  return lookup > 1 && head > 1 && both > lookup && both > head && two > head ? 0 : 1;
}
