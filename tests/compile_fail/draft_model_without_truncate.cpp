// SPDX-License-Identifier: Apache-2.0
// message: model\.truncate\(size\)|'truncate'
#include "reprise/draft/model_drafter.hpp"

struct Model {
  std::span<const float> feed(reprise::TokenSpan) { return {}; }
  std::size_t vocabulary() const { return 0; }
};

reprise::ModelDrafter<Model>* drafter = nullptr;
