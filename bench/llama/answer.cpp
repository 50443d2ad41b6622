// SPDX-License-Identifier: Apache-2.0
#include "answer.hpp"

#include <algorithm>
#include <utility>

#include "common/json.hpp"
#include "common/json_writer.hpp"
#include "common/text.hpp"
#include "common/utf8.hpp"
#include "compare.hpp"
#include "statistics_json.hpp"
#include "trace_writer.hpp"

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

/// `text` with U+FFFD for each byte that is not UTF-8, as JSON requires.
std::string valid_utf8(std::string_view text) {
  std::string valid;
  while (!text.empty()) {
    const std::size_t length = tools::utf8_length(text);
    if (length == 0)
      tools::append_utf8(valid, 0xfffd);
    else
      valid.append(text.substr(0, length));
    text.remove_prefix(std::max<std::size_t>(length, 1));
  }
  return valid;
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

std::string answer_text(const Engine& engine, const TurnRun& turn) {
  const bool ended = !turn.output.empty() && engine.ends(turn.output.back());
  return engine.text(TokenSpan(turn.output).first(turn.output.size() - (ended ? 1 : 0)));
}

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

void write_json(std::ostream& out, const Engine& engine, const Request& request, const std::string& strategy,
                const RequestRun& run) {
  tools::JsonWriter json(out);
  json.begin_object().member("id", request.id).member("category", request.category).member("strategy", strategy);
  json.member("context_full", run.context_full).key("turns").begin_array();
  for (const TurnRun& turn : run.turns) {
    json.begin_object().member("text", valid_utf8(answer_text(engine, turn)));
    json.member("finish", reprise::to_string(turn.finish)).member("kept", turn.kept);
    write_tokens(json, "prompt", turn.prompt);
    write_tokens(json, "output", turn.output);
    json.member("prefill_ns", turn.prefill.count()).member("decoding_ns", turn.decoding.count());
    json.member("llama_decode_ns", turn.model.count()).raw_member("statistics", statistics_json(turn.statistics)).end();
  }
  json.end().end();
  out << "\n";
}

}  // namespace reprise::llama
