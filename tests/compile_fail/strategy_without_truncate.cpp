// SPDX-License-Identifier: Apache-2.0
// message: s\.truncate\(context, size\)|'truncate'
#include "reprise/loop/session.hpp"

struct Strategy {
  void begin(reprise::TokenSpan) {}
  void observe(reprise::TokenSpan, std::size_t, reprise::Origin) {}
  void propose(reprise::TokenSpan, reprise::Draft&) {}
  void feedback(reprise::TokenSpan, const reprise::Outcome&) {}
};

reprise::Session<Strategy>* session = nullptr;
