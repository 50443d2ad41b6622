// SPDX-License-Identifier: Apache-2.0
// message: s\.truncate\(size\)|'truncate'
#include "reprise/reprise.hpp"

struct Strategy {
  void begin(reprise::TokenSpan) {}
  void observe(reprise::TokenSpan, reprise::Origin) {}
  void propose(const reprise::DraftBudget&, reprise::Draft&) {}
  void feedback(const reprise::Outcome&) {}
};

reprise::Session<Strategy>* session = nullptr;
