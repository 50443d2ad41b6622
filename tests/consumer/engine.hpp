// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <vector>

#include "reprise/reprise.hpp"

/// Says one sentence over and over.
class Engine {
 public:
  std::vector<reprise::Token> verify(reprise::TokenSpan batch, std::size_t drafted);
  void commit(std::size_t keep);

 private:
  std::size_t position_ = 0;  // tokens in the cache behind the prompt's
};

/// Both translation units decode; the linker has to put up with it.
std::vector<reprise::Token> decode_plain(std::size_t tokens);
