// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "reprise/core/token.hpp"

namespace reprise::head {

inline constexpr std::size_t most_head_tokens = 20;

/// One request with the verdicts on a draft head, as SpecDecode-Bench/simulator records them.
struct Request {
  std::vector<Token> prompt;
  std::vector<Token> output;  ///< ends where the head's recording ends
  /// [i]: the tokens of the head's longest draft that agree with the target, if output[i] is the first drafted one.
  std::vector<std::size_t> head;
  /// True if both recordings have the same length. Otherwise the head was run on another output of the target, and its
  /// numbers belong to this text only up to an unknown position.
  bool same_length = true;
};

/// Reads one request for each line: {"prompt_token_ids": [...], "generated_token_ids": [...], "acc_eagle": {"acc_len":
/// [...]}}. `acc_len` counts the target's own token too. Throws InputError.
std::vector<Request> read_requests(const std::string& path, std::size_t limit);

}  // namespace reprise::head
