// SPDX-License-Identifier: Apache-2.0
// An engine that owns its loop and hands over token ids, nothing else: a follower compares the ids
// and finds the tokens that each pass committed. The C and Python interfaces stand on it.
#include "player.hpp"

#include <reprise/extras/grouped_release.hpp>
#include <reprise/reprise.hpp>

#include <chrono>
#include <cstddef>
#include <cstdio>
#include <string>
#include <vector>

int main() {
  const std::string text = "the rain in spain stays mainly in the plain. in spain the rain stays mainly in the plain. ";
  std::vector<reprise::Token> ids = to_tokens(text.substr(0, 10));
  reprise::Follower<reprise::Speculator> follower;
  // The sizes of sent pieces show how much each pass accepted. Groups of a fixed size hide that.
  auto release = reprise::GroupedRelease::make(16);
  if (!release) return std::puts(release.error().message.data()), 1;
  std::size_t passes = 0;
  for (std::chrono::nanoseconds now{0}; ids.size() < text.size(); now += std::chrono::milliseconds(10), ++passes) {
    const auto draft = follower.draft(ids, 16, now);  // the time of the call: pass costs are learned
    if (!draft) return std::puts(draft.error().message.data()), 1;
    // The engine verifies the draft in its own way, and appends what the model picks.
    std::size_t agreed = 0;
    while (agreed < draft->size() && ids.size() < text.size() && (*draft)[agreed] == text[ids.size()]) {
      ids.push_back(text[ids.size()]);
      ++agreed;
    }
    if (ids.size() < text.size()) ids.push_back(text[ids.size()]);
    const reprise::TokenSpan output = reprise::TokenSpan(ids).subspan(10);
    for (auto group = release->next(output, ids.size() == text.size()); !group.empty();
         group = release->next(output, ids.size() == text.size()))
      std::printf("packet: %s\n", std::string(group.begin(), group.end()).c_str());
  }
  const reprise::Statistics statistics = follower.statistics();
  std::printf("%zu passes for %zu tokens; of %llu drafted tokens %.0f%% were accepted\n", passes, text.size() - 10,
              static_cast<unsigned long long>(statistics.drafted), 100 * statistics.acceptance_rate());
  return passes < text.size() - 10 ? 0 : 1;
}
