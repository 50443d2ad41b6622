// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "generate.hpp"
#include "reprise/core/token.hpp"

namespace reprise::llama {

/// The result of comparing a drafted run with the plain one, from best to worst.
enum class Verdict : std::uint8_t {
  identical,
  near_tie,  ///< differs, but the engine's own numbers allow it; see judge()
  wrong,     ///< differs, and no rounding explains it
};
constexpr std::string_view name(Verdict verdict) {
  return verdict == Verdict::identical ? "identical" : verdict == Verdict::near_tie ? "near tie" : "wrong";
}

/// The first token in which two runs differ.
struct Difference {
  std::size_t turn = 0;
  std::size_t position = 0;      ///< in the output of the turn
  std::optional<Token> plain;    ///< nullopt: that output is shorter
  std::optional<Token> drafted;  ///< nullopt: that output is shorter
  double margin = 0;             ///< plain decoding's logit of its own token minus that of the drafted token
  double top_two = 0;            ///< the difference of the two largest logits
  bool reproduced = true;        ///< plain decoding picked the same token there when run again
  Verdict verdict = Verdict::wrong;
};

/// The first token in which two runs differ, not yet judged; nullopt if there is none.
std::optional<Difference> first_difference(const RequestRun& plain, const RequestRun& drafted);

/// Sets the margin and the verdict from the logits and the sampler of plain decoding at that position.
///
/// Without a sampler, the difference is a near tie if the margin is at least 0 and at most `epsilon`. A negative margin
/// means that plain decoding's token was not the likeliest.
///
/// With a sampler, it is a near tie if that sampler picks the drafted token for logits shifted by at most `epsilon`
/// each. The sampler is in its state at that position (penalties, random stream). The tried shifts are those that move
/// the boundaries around the two tokens furthest. They raise all tokens down to one of the two and lower the others, or
/// the reverse. The order is that of logits or of ids. Equal logits alone prove nothing: a run whose random stream is
/// out of step has the same logits.
void judge(Difference& difference, const Probe& probe, double epsilon);

/// A description of the check, for the reader of the results.
std::string what_is_checked(const Sampling& sampling, double epsilon);

}  // namespace reprise::llama
