// SPDX-License-Identifier: Apache-2.0
// message: FitsToken
#include <cstdint>
#include <vector>

#include "reprise/core/strategy.hpp"
#include "reprise/loop/generate.hpp"

struct Engine {
  std::vector<std::uint32_t> verify(reprise::TokenSpan, std::size_t) { return {}; }
  void commit(std::size_t) {}
};

void use(reprise::Session<reprise::NoDrafter>& session, Engine& engine, const reprise::Limits& limits) {
  static_cast<void>(reprise::generate(session, engine, limits));
}
