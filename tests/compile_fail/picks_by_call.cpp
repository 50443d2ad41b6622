// SPDX-License-Identifier: Apache-2.0
// message: picks\[i\]|Picks<.*evaluated to false
#include "reprise/core/strategy.hpp"
#include "reprise/loop/session.hpp"

struct ByCall {
  reprise::Token operator()(std::size_t) const { return 0; }
};

void use(reprise::Session<reprise::NoDrafter>& session, ByCall& picks) {
  static_cast<void>(session.resolve(reprise::Ticket{}, picks));
}
