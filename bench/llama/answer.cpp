// SPDX-License-Identifier: Apache-2.0
#include "answer.hpp"

#include <algorithm>
#include <utility>

#include "common/text.hpp"
#include "compare.hpp"

namespace reprise::llama {
namespace {

/// The number of bytes at the end of `text` that may begin a character.
std::size_t unfinished(std::string_view text) {
  for (std::size_t back = 1; back <= std::min<std::size_t>(text.size(), 3); ++back) {
    const auto byte = static_cast<unsigned char>(text[text.size() - back]);
    if (byte < 0x80) return 0;
    if (byte < 0xc0) continue;  // inside a character
    const std::size_t length = byte >= 0xf0 ? 4 : byte >= 0xe0 ? 3 : 2;
    return back < length ? back : 0;
  }
  return 0;
}

}  // namespace

std::string CharacterStream::add(std::string_view bytes) {
  held_ += bytes;
  const std::size_t hold = unfinished(held_);
  std::string whole = held_.substr(0, held_.size() - hold);
  held_.erase(0, whole.size());
  return whole;
}

std::string CharacterStream::rest() { return std::exchange(held_, {}); }

void write_summary(std::ostream& out, const RequestRun& run) {
  Sums sums;
  sums.add(run);
  const Statistics& counted = sums.statistics;
  out << sums.tokens << " tokens in " << counted.passes << " passes, "
      << tools::decimal(counted.mean_accepted_tokens(), 2) << " a pass; drafted " << counted.drafted << ", accepted "
      << counted.accepted << "; " << tools::decimal(sums.tokens_per_second(), 1) << " tokens/s, "
      << tools::decimal(100 * sums.share_outside(), 2) << "% of the time outside llama_decode"
      << (run.context_full ? "; the context is full: further turns were left out" : "") << "\n";
}

}  // namespace reprise::llama
