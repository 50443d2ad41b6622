// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "reprise/reprise.hpp"

/// Repeats one sentence forever.
class Engine {
 public:
  std::vector<reprise::Token> verify(reprise::TokenSpan batch, std::size_t drafted);
  void commit(std::size_t keep);

 private:
  std::size_t position_ = 0;  // cached tokens after the prompt's
};

/// Decodes in engine.cpp. main.cpp decodes too, so the linker must accept templates from both translation units.
std::vector<reprise::Token> decode_plain(std::size_t tokens);
