// SPDX-License-Identifier: Apache-2.0
#include "loops.hpp"

#include <algorithm>

#include "reprise_testing/random.hpp"

namespace reprise::llama {
namespace {

constexpr std::uint64_t base = 0x9e3779b97f4a7c15;

/// Spreads the bits of a token: neighbouring ids are frequent, and a polynomial alone lets them cancel out.
std::uint64_t spread(Token token) { return testing::mix(static_cast<std::uint32_t>(token)); }

}  // namespace

LoopDetector::Hash::Hash(std::size_t length) : length_(length) {
  for (std::size_t i = 0; i < length; ++i) leading_ *= base;
}

bool LoopDetector::Hash::roll(TokenSpan text) {
  value_ = value_ * base + spread(text.back());
  if (text.size() > length_) value_ -= leading_ * spread(text[text.size() - 1 - length_]);
  return text.size() >= length_;
}

LoopDetector::LoopDetector(TokenSpan context, const LoopRule& rule)
    : rule_(rule), block_(rule.window), seed_(rule.seed) {
  Hash block(rule.window);
  for (std::size_t i = 1; i <= context.size(); ++i)
    if (block.roll(context.first(i))) ++blocks_[block.value()].context;
}

std::optional<Loop> LoopDetector::add(Token token) {
  output_.push_back(token);
  std::optional<Loop> loop;
  ++own_;
  if (block_.roll(output_)) {
    Sayings& sayings = blocks_[block_.value()];
    ++sayings.output;
    if (sayings.output <= sayings.context) own_ = 0;
    if (sayings.output >= sayings.context + rule_.sayings) loop = exact(sayings.context);
  }
  if (seed_.roll(output_)) {
    std::size_t& said = seeds_[seed_.value()];
    if (said != 0 && !loop) loop = counting(output_.size() - said);
    said = output_.size();
  }
  return loop;
}

std::optional<Loop> LoopDetector::exact(std::size_t in_context) const {
  // Two blocks may share a hash, so the occurrences are counted again token by token.
  const TokenSpan block = TokenSpan(output_).last(rule_.window);
  std::vector<std::size_t> ends;
  for (std::size_t end = rule_.window; end <= output_.size(); ++end)
    if (std::ranges::equal(block, TokenSpan(output_).subspan(end - rule_.window, rule_.window))) ends.push_back(end);
  if (ends.size() < in_context + rule_.sayings) return {};
  // The first `in_context` occurrences may be copies of the context.
  const std::size_t first_cut = std::max<std::size_t>(in_context, 1);
  const std::size_t period = ends[first_cut] - ends[first_cut - 1];
  std::size_t keep = ends[first_cut];
  while (keep > period && output_[keep - 1] == output_[keep - 1 - period]) --keep;
  return Loop{output_.size(), period, keep};
}

std::optional<Loop> LoopDetector::counting(std::size_t period) const {
  const std::size_t size = output_.size();
  const std::size_t window = std::max(rule_.counted_window, 3 * period);
  if (own_ < window || size < window + period) return {};
  const auto repeats = [&](std::size_t i) { return output_[i] == output_[i - period]; };
  std::size_t changes = 0;
  for (std::size_t i = size - window; i < size; ++i)
    if (!repeats(i) && ++changes * rule_.counted_change > window) return {};

  // The repetition starts at the place with the best score on the way back. The search ends when the score has dropped
  // by the price of three changes (the X-drop of BLAST, Altschul et al. 1997).
  const auto price = static_cast<std::ptrdiff_t>(rule_.counted_change);
  std::ptrdiff_t score = 0;
  std::ptrdiff_t best = 0;
  std::size_t keep = size - window;
  for (std::size_t i = keep; i > period && best - score <= 3 * price; --i) {
    score += repeats(i - 1) ? 1 : -price;
    if (score > best) {
      best = score;
      keep = i - 1;
    }
  }
  while (!repeats(keep)) ++keep;
  return Loop{size, period, keep};
}

std::optional<Loop> find_loop(TokenSpan output, TokenSpan context, const LoopRule& rule) {
  LoopDetector detector(context, rule);
  for (const Token token : output)
    if (const auto loop = detector.add(token)) return loop;
  return {};
}

}  // namespace reprise::llama
