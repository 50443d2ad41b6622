// SPDX-License-Identifier: Apache-2.0
// message: control\.learn\(outcome, report\)|'learn'
#include "reprise/core/strategy.hpp"
#include "reprise/loop/session.hpp"

struct Control {
  void begin() {}
  [[nodiscard]] reprise::DraftBudget budget(const reprise::DraftBudget& asked, const reprise::PassLimits&) const {
    return asked;
  }
  [[nodiscard]] reprise::DraftChoice choose(reprise::DraftView, std::span<const reprise::NodeIndex>,
                                            const reprise::PassLimits&) const {
    return {};
  }
};

reprise::Session<reprise::NoDrafter, Control>* session = nullptr;
