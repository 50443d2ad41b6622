// SPDX-License-Identifier: Apache-2.0
// A server streams tokens as soon as they are committed. The sizes of the pieces then show how much each pass accepted,
// and that depends on the text. Groups of a fixed size hide it.
#include "player.hpp"

#include <reprise/reprise.hpp>
#include <reprise_methods/grouped_release.hpp>

#include <cstddef>
#include <cstdio>
#include <string>

int main() {
  const std::string text =
      "one potato, two potatoes, three potatoes, four. five potatoes, six potatoes, seven potatoes, more. ";
  auto release = reprise::GroupedRelease::make(16);
  if (!release) return std::puts(release.error().message.data()), 1;
  std::size_t packets = 0;
  const auto send = [&](reprise::TokenSpan group) {
    std::printf("packet %zu: %s\n", ++packets, std::string(group.begin(), group.end()).c_str());
  };

  reprise::Speculator session;
  Player engine(text, 10);
  const auto stream = [&](reprise::TokenSpan) {
    const reprise::TokenSpan output = session.output().first(session.taken());
    for (auto group = release->next(output, false); !group.empty(); group = release->next(output, false)) send(group);
  };
  const auto generated = reprise::generate(session, engine, to_tokens(text.substr(0, 10)), {.eos = {0}}, stream);
  if (!generated) return std::puts(generated.error().message.data()), 1;
  send(release->next(generated->tokens, true));  // the rest, padded by a server to the size of a group
  return release->released() == text.size() - 10 ? 0 : 1;
}
