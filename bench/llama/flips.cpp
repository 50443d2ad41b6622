// SPDX-License-Identifier: Apache-2.0
#include "flips.hpp"

#include <algorithm>
#include <bit>
#include <cmath>
#include <cstdint>

#include "common/input_error.hpp"
#include "vocabulary.hpp"

namespace reprise::llama {
namespace {

using tools::InputError;

constexpr std::size_t most_kept_logits = (std::size_t{256} << 20) / sizeof(float);

/// A summary of one row: the likeliest token, its lead over the runner-up, and a hash of the bits of all logits. Of
/// equal logits the lowest token counts as the likeliest.
struct RowAnswer {
  std::size_t token = 0;
  float margin = 0;
  std::uint64_t hash = 0;
};

RowAnswer answer(std::span<const float> logits) {
  RowAnswer answer;
  float second = -INFINITY;
  for (std::size_t i = 0; i < logits.size(); ++i) {
    answer.hash = (answer.hash ^ std::bit_cast<std::uint32_t>(logits[i])) * 0x9e3779b97f4a7c15;
    answer.hash ^= answer.hash >> 29;
    if (i == 0) continue;
    if (logits[i] > logits[answer.token]) {
      second = logits[answer.token];
      answer.token = i;
    } else {
      second = std::max(second, logits[i]);
    }
  }
  answer.margin = logits[answer.token] - second;
  return answer;
}

/// The positions of one turn: rows `begin` ... `end` - 1 of the session's tokens. Each row predicts the token after it.
struct Stretch {
  std::size_t begin = 0;
  std::size_t end = 0;
};

class Comparison {
 public:
  Comparison(Passes& passes, const FlipSettings& settings, std::vector<WidthFlips>& widths)
      : passes_(passes), settings_(settings), widths_(widths) {}

  /// Before and after the call, the cache holds the tokens before the stretch.
  void turn(TokenSpan tokens, Stretch stretch) {
    kept_.clear();
    const std::vector<RowAnswer> reference = run(tokens, stretch, 1, [&](std::size_t, std::span<const float> logits) {
      if (kept_.size() + logits.size() <= most_kept_logits) kept_.insert(kept_.end(), logits.begin(), logits.end());
    });
    for (WidthFlips& width : widths_) compare(tokens, stretch, reference, width);
  }

 private:
  void compare(TokenSpan tokens, Stretch stretch, std::span<const RowAnswer> reference, WidthFlips& width) {
    const std::vector<RowAnswer> answers =
        run(tokens, stretch, width.rows, [&](std::size_t i, std::span<const float> logits) {
          if ((i + 1) * logits.size() > kept_.size()) return;
          ++width.compared;
          for (std::size_t j = 0; j < logits.size(); ++j)
            width.largest_difference =
                std::max(width.largest_difference, std::abs(logits[j] - kept_[i * logits.size() + j]));
        });
    for (std::size_t i = 0; i < answers.size(); ++i) {
      ++width.positions;
      if (answers[i].token == reference[i].token) continue;
      ++width.flips;
      width.margins.push_back(reference[i].margin);
    }
    if (width.rows == 1) {  // the reference is the other run of this width
      for (std::size_t i = 0; i < answers.size(); ++i)
        width.unlike_before += answers[i].hash != reference[i].hash ? 1U : 0U;
    } else if (settings_.repeat) {
      const std::vector<RowAnswer> again = run(tokens, stretch, width.rows, [](std::size_t, std::span<const float>) {});
      for (std::size_t i = 0; i < answers.size(); ++i)
        width.unlike_before += answers[i].hash != again[i].hash ? 1U : 0U;
    }
  }

  template <class Look>
  std::vector<RowAnswer> run(TokenSpan tokens, Stretch stretch, std::size_t width, Look&& look) {
    std::vector<RowAnswer> answers;
    std::vector<PassRow> rows;
    for (std::size_t begin = stretch.begin; begin < stretch.end; begin += width) {
      rows.clear();
      // Rows after the end do not influence those before them, so any token will do.
      for (std::size_t i = begin; i < begin + width; ++i)
        rows.push_back({tokens[std::min(i, tokens.size() - 1)], i, 0});
      passes_.run(rows);
      for (std::size_t i = begin; i < std::min(begin + width, stretch.end); ++i) {
        const std::span<const float> logits = passes_.logits(i - begin);
        look(i - stretch.begin, logits);
        answers.push_back(answer(logits));
      }
    }
    passes_.truncate(0, stretch.begin);
    return answers;
  }

  Passes& passes_;
  const FlipSettings& settings_;
  std::vector<WidthFlips>& widths_;
  std::vector<float> kept_;  // the logits of one-row passes, position by position
};

/// Throws InputError for inputs that would fail later, before minutes are spent.
void check(const Passes& passes, std::span<const replay::TraceSession> sessions, const FlipSettings& settings) {
  std::size_t widest = 1;
  for (const std::size_t width : settings.widths) {
    if (width == 0 || width > passes.most_rows())
      throw InputError("--flips: passes of " + std::to_string(width) + " rows cannot be run; give 1 to " +
                       std::to_string(passes.most_rows()));
    widest = std::max(widest, width);
  }
  const std::size_t room = std::min(passes.sequence_size(), passes.total_size());
  for (const replay::TraceSession& session : sessions) {
    std::size_t size = widest;  // the padding of a last pass
    for (const replay::Turn& turn : session.turns) size += turn.prompt.size() + turn.output.size();
    check_vocabulary(session, passes.vocabulary(), recorded_with);
    if (size > room)
      throw InputError(session.where + ": session " + session.id + " needs a context of " + std::to_string(size) +
                       " tokens, and there are " + std::to_string(room) + "; give a larger --context");
  }
}

}  // namespace

Rate per_10000(std::size_t hits, std::size_t trials) {
  if (trials == 0) return {0, 0, 10000};
  constexpr double z = 1.959963984540054;
  const auto n = static_cast<double>(trials);
  const double share = static_cast<double>(hits) / n;
  const double middle = (share + z * z / (2 * n)) / (1 + z * z / n);
  const double half = z / (1 + z * z / n) * std::sqrt(share * (1 - share) / n + z * z / (4 * n * n));
  return {10000 * share, hits == 0 ? 0 : 10000 * (middle - half), hits == trials ? 10000 : 10000 * (middle + half)};
}

std::vector<WidthFlips> measure_flips(Passes& passes, std::span<const replay::TraceSession> sessions,
                                      const FlipSettings& settings, tools::Progress& progress) {
  check(passes, sessions, settings);
  std::vector<WidthFlips> widths(1);
  for (const std::size_t width : settings.widths)
    if (std::ranges::count(widths, width, &WidthFlips::rows) == 0) widths.emplace_back().rows = width;
  Comparison comparison(passes, settings, widths);
  progress.start("flips", sessions.size());
  for (const replay::TraceSession& session : sessions) {
    std::vector<Token> tokens;
    std::size_t cached = 0;
    passes.clear();
    for (const replay::Turn& turn : session.turns) {
      tokens.insert(tokens.end(), turn.prompt.begin(), turn.prompt.end());
      const std::size_t prompted = tokens.size();
      tokens.insert(tokens.end(), turn.output.begin(), turn.output.end());
      if (turn.output.empty() || prompted == 0) continue;
      // The last prompt token predicts the first output token. The last output token predicts nothing that was
      // recorded.
      const Stretch stretch = {prompted - 1, tokens.size() - 1};
      passes.fill(TokenSpan(tokens).subspan(cached, stretch.begin - cached), cached, 0);
      cached = stretch.begin;
      comparison.turn(tokens, stretch);
      if (widths.front().positions >= settings.positions) break;
    }
    progress.step();
    if (widths.front().positions >= settings.positions) break;
  }
  for (WidthFlips& width : widths) std::ranges::sort(width.margins);
  passes.clear();
  progress.clear();
  if (widths.front().positions == 0)
    throw InputError("--flips: nothing to count: no turn of the trace has output after a prompt");
  return widths;
}

}  // namespace reprise::llama
