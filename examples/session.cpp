// SPDX-License-Identifier: Apache-2.0
// For a scheduler that owns its loop: the Session only supplies the next batch and takes the picks back.
#include <reprise/reprise.hpp>

#include <cstdio>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view song = "the wheels on the bus go round and round, round and round, round and round. ";

// Stands for a forward pass: returns the character after each row. The sequence begins with the song.
std::vector<reprise::Token> forward(std::size_t cached, reprise::TokenSpan batch) {
  std::vector<reprise::Token> picks;
  for (std::size_t row = 0; row < batch.size(); ++row) picks.push_back(song[(cached + row + 1) % song.size()]);
  return picks;
}

}  // namespace

int main() {
  std::vector<reprise::Token> prompt(song.begin(), song.begin() + 20);
  reprise::Limits limits;
  limits.max_tokens = 120;
  limits.stop_sequences = {{'.', ' ', 't'}};

  reprise::Speculator session;  // a Session with the recommended drafter and control
  if (const auto begun = session.begin(prompt); !begun) {
    std::fprintf(stderr, "%s\n", begun.error().message.data());
    return 1;
  }
  while (true) {
    session.propose(limits);  // drafts; also detects that a limit has been reached
    if (session.finished()) break;
    const auto pass = session.plan(8);  // sends at most 8 drafted tokens; if they do not fit, plan again with fewer
    if (!pass) return 1;

    const auto picks = forward(session.cached(), pass->batch);
    const auto after_anchor = std::span(picks).subspan(pass->pending - 1);

    const auto decision = session.resolve(pass->ticket, after_anchor);
    if (!decision) return 1;
    // Here the engine keeps decision->keep rows of the pass, and reads logprobs at decision->tokens[i].row.
    if (!session.commit(pass->ticket)) return 1;  // pass the time of the pass as second argument to learn from it
  }
  for (const reprise::Token token : session.output()) std::putchar(token);
  const auto& statistics = session.statistics();
  std::printf("\n%s after %llu passes, %.2f tokens per pass\n", to_string(session.finish_reason()).data(),
              static_cast<unsigned long long>(statistics.passes), statistics.mean_accepted_tokens());
}
