// SPDX-License-Identifier: Apache-2.0
// message: a forced source follows the text with the functions of a strategy
#include "reprise_methods/jump_forward_drafter.hpp"

// If this compiled, observe() would never be called, and the grammar would fall out of step with the context.
struct Grammar {
  std::size_t forced(std::span<reprise::Token>) { return 0; }
  void observe(reprise::TokenSpan, reprise::Origin) {}
};

reprise::JumpForwardDrafter<Grammar>* drafter() { return new reprise::JumpForwardDrafter<Grammar>(Grammar()); }
