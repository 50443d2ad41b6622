// SPDX-License-Identifier: Apache-2.0
#include "verdict.hpp"

#include <algorithm>
#include <functional>
#include <limits>
#include <vector>

#include "common/text.hpp"

namespace reprise::llama {
namespace {

std::optional<Token> token_at(const std::vector<Token>& tokens, std::size_t position) {
  return position < tokens.size() ? std::optional<Token>(tokens[position]) : std::nullopt;
}

/// The pick of a copy of the sampler when token t has the logit logits[t] + shift(t).
Token pick(const Probe& probe, const std::function<double(Token)>& shift) {
  std::vector<llama_token_data> data;
  data.reserve(probe.logits.size());
  for (std::size_t i = 0; i < probe.logits.size(); ++i) {
    const auto token = static_cast<Token>(i);
    data.push_back({token, static_cast<float>(static_cast<double>(probe.logits[i]) + shift(token)), 0});
  }
  llama_token_data_array tokens{data.data(), data.size(), -1, false};
  const SamplerOwner sampler(llama_sampler_clone(probe.sampler.get()));
  llama_sampler_apply(sampler.get(), &tokens);
  return tokens.data[tokens.selected].id;
}

bool shift_explains(const Difference& difference, const Probe& probe, double epsilon) {
  const Token plain = *difference.plain;
  const Token drafted = *difference.drafted;
  const auto logit = [&](Token token) { return probe.logits[static_cast<std::size_t>(token)]; };
  const auto gives = [&](const std::function<bool(Token)>& up) {
    const auto shifted = [&](double by) { return pick(probe, [&](Token t) { return up(t) ? by : -by; }) == drafted; };
    return shifted(epsilon) || shifted(-epsilon);
  };
  if (gives([&](Token t) { return t == drafted; })) return true;
  for (const Token edge : {plain, drafted}) {
    if (gives([&](Token t) { return logit(t) > logit(edge); })) return true;
    if (gives([&](Token t) { return logit(t) >= logit(edge); })) return true;
    if (gives([&](Token t) { return t < edge; })) return true;
    if (gives([&](Token t) { return t <= edge; })) return true;
  }
  return false;
}

}  // namespace

std::optional<Difference> first_difference(const RequestRun& plain, const RequestRun& drafted) {
  const std::size_t turns = std::max(plain.turns.size(), drafted.turns.size());
  for (std::size_t turn = 0; turn < turns; ++turn) {
    static const std::vector<Token> none;
    const auto& one = turn < plain.turns.size() ? plain.turns[turn].output : none;
    const auto& other = turn < drafted.turns.size() ? drafted.turns[turn].output : none;
    const auto at = std::mismatch(one.begin(), one.end(), other.begin(), other.end()).first - one.begin();
    const auto position = static_cast<std::size_t>(at);
    if (position == one.size() && position == other.size()) continue;
    Difference difference;
    difference.turn = turn;
    difference.position = position;
    difference.plain = token_at(one, position);
    difference.drafted = token_at(other, position);
    return difference;
  }
  return {};
}

void judge(Difference& difference, const Probe& probe, double epsilon) {
  difference.verdict = Verdict::wrong;
  if (!difference.plain || !difference.drafted || probe.logits.empty()) return;
  const auto logit = [&](Token token) { return static_cast<double>(probe.logits[static_cast<std::size_t>(token)]); };
  difference.margin = logit(*difference.plain) - logit(*difference.drafted);
  std::vector<float> sorted = probe.logits;
  std::partial_sort(sorted.begin(), sorted.begin() + 2, sorted.end(), std::greater<>());
  difference.top_two = static_cast<double>(sorted[0]) - static_cast<double>(sorted[1]);
  const bool open = probe.sampler == nullptr ? difference.margin >= 0 && difference.margin <= epsilon
                                             : shift_explains(difference, probe, epsilon);
  if (open && difference.reproduced) difference.verdict = Verdict::near_tie;
}

std::string what_is_checked(const Sampling& sampling, double epsilon) {
  const std::string limit = tools::decimal(epsilon, 4);
  if (sampling.plain())
    return "token by token; near tie: at the first token that differs, plain decoding's logit of its own token is at "
           "most " +
           limit + " above that of the other run's token";
  return "token by token, with the same seed; near tie: at the first token that differs, plain decoding's own sampler, "
         "in its state there, picks the other run's token for logits shifted by at most " +
         limit;
}

}  // namespace reprise::llama
