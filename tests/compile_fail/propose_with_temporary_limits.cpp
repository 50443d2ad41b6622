// SPDX-License-Identifier: Apache-2.0
// message: (use of deleted function|call to deleted|attempting to reference a deleted function).*propose
#include "reprise/core/strategy.hpp"
#include "reprise/loop/session.hpp"

void use(reprise::Session<reprise::NoDrafter>& session) {
  static_cast<void>(session.propose(reprise::Limits{}));  // would dangle until the round ends
}
