// SPDX-License-Identifier: Apache-2.0
// message: s\.propose\(context, draft\)|'propose'
#include "reprise/loop/session.hpp"

struct Strategy {
  void begin(reprise::TokenSpan) {}
  void observe(reprise::TokenSpan, std::size_t, reprise::Origin) {}
  void feedback(reprise::TokenSpan, const reprise::Outcome&) {}
  void truncate(reprise::TokenSpan, std::size_t) {}
};

reprise::Session<Strategy>* session = nullptr;
