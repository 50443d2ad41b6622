// SPDX-License-Identifier: Apache-2.0
// message: s\.propose\(budget, draft\)|'propose'
#include "reprise/reprise.hpp"

struct Strategy {
  void begin(reprise::TokenSpan) {}
  void observe(reprise::TokenSpan, reprise::Origin) {}
  void feedback(const reprise::Outcome&) {}
  void truncate(std::size_t) {}
};

reprise::Session<Strategy>* session = nullptr;
