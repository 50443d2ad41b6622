// SPDX-License-Identifier: Apache-2.0
// message: pass_time\(\) has to be noexcept
#include <chrono>

#include "reprise/loop/generate.hpp"
#include "reprise/speculator.hpp"

struct Engine {
  reprise::TokenSpan verify(reprise::TokenSpan, std::size_t) { return {}; }
  void commit(std::size_t) {}
  [[nodiscard]] std::chrono::nanoseconds pass_time() const { return {}; }
};

void decode(reprise::Speculator& speculator, Engine& engine, const reprise::Limits& limits) {
  static_cast<void>(reprise::generate(speculator, engine, limits));
}
