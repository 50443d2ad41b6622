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

/// How the text of a drafted run relates to that of the plain one. The worst comes last.
enum class Verdict : std::uint8_t {
  identical,
  near_tie,  ///< it differs, first where the engine's own numbers leave it open; see judge()
  wrong,     ///< it differs, and no rounding explains it
};
constexpr std::string_view name(Verdict verdict) {
  return verdict == Verdict::identical ? "identical" : verdict == Verdict::near_tie ? "near tie" : "wrong";
}

/// The first token in which two runs differ.
struct Difference {
  std::size_t turn = 0;
  std::size_t position = 0;      ///< in its output
  std::optional<Token> plain;    ///< none: that output is shorter
  std::optional<Token> drafted;  ///< likewise
  double margin = 0;             ///< plain decoding's logit of its own token there, less that of the drafted run's
  double top_two = 0;            ///< of its two likeliest tokens
  bool reproduced = true;        ///< plain decoding, run again, has picked the same token there
  Verdict verdict = Verdict::wrong;
};

/// Where the tokens of two runs differ first, not judged yet; none: nowhere.
std::optional<Difference> first_difference(const RequestRun& plain, const RequestRun& drafted);

/// Judges it by the logits and the sampler that plain decoding had at that place.
///
/// Without a sampler it is a near tie when the margin is at most `epsilon`, and not below 0: then the token was not the
/// likeliest. With one, when that very sampler, in its state there (penalties, random stream), picks the drafted run's
/// token for logits that are shifted by at most `epsilon` each. Tried are those shifts that move the boundaries
/// around the two tokens furthest: all tokens down to one of them up and the others down, or the reverse, in the order
/// of their logits and in that of their ids. Logits that agree would not do: a run whose random stream has lost step
/// has the same ones.
void judge(Difference& difference, const Probe& probe, double epsilon);

/// What judge() has checked, for those who read results.
std::string what_is_checked(const Sampling& sampling, double epsilon);

}  // namespace reprise::llama
