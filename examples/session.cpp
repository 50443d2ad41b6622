// SPDX-License-Identifier: Apache-2.0
// The other way in: your scheduler owns the loop, and the Session only says what to run next.
#include <reprise/reprise.hpp>

#include <cstdio>
#include <string_view>
#include <vector>

namespace {

constexpr std::string_view song = "the wheels on the bus go round and round, round and round, round and round. ";

// Stands for a forward pass: the character after each row, given that the sequence began with the song.
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

  reprise::Speculator session;  // a Session with the drafter and the control that are recommended
  if (const auto begun = session.begin(prompt); !begun) {
    std::fprintf(stderr, "%s\n", begun.error().message.data());
    return 1;
  }
  while (true) {
    session.propose(limits);  // a draft; also finds that a limit has been reached
    if (session.finished()) break;
    const auto pass = session.plan(8);  // at most 8 of its tokens; plan again, smaller, if there is no room
    if (!pass) return 1;

    const auto picks = forward(session.cached(), pass->batch);
    const auto after_anchor = std::span(picks).subspan(pass->pending - 1);

    const auto decision = session.resolve(pass->ticket, after_anchor);
    if (!decision) return 1;
    // Here the engine keeps decision->keep rows of the pass, and reads logprobs at decision->tokens[i].row.
    if (!session.commit(pass->ticket)) return 1;  // a second argument: how long the pass took, to learn from
  }
  for (const reprise::Token token : session.output()) std::putchar(token);
  const auto& statistics = session.statistics();
  std::printf("\n%s after %llu passes, %.2f tokens per pass\n", to_string(session.finish_reason()).data(),
              static_cast<unsigned long long>(statistics.passes), statistics.mean_accepted_tokens());
}
