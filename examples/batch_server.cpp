// SPDX-License-Identifier: Apache-2.0
// Many sequences in one pass, as a server with continuous batching runs them: requests come and go, and the planner
// shares out the rows of each pass.
#include <reprise/reprise.hpp>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <deque>
#include <iterator>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

namespace {

using Drafter = reprise::NgramDrafter<>;

constexpr std::string_view songs[] = {
    "the wheels on the bus go round and round, round and round, round and round. ",
    "row, row, row your boat, gently down the stream, merrily, merrily, merrily, merrily. ",
    "old macdonald had a farm, e-i-e-i-o, and on that farm he had a cow, e-i-e-i-o. ",
    "0123456789 abcdefghijklmnopqrstuvwxyz: nothing here is said twice before its end. ",
};

// Stands for the engine: one forward pass over the rows of all sequences. The pick after a row is the next character
// of its sequence's song; a real model would look into that sequence's cache.
std::vector<reprise::Token> forward(const reprise::PackedBatch& batch) {
  std::vector<reprise::Token> picks(batch.rows());
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    const auto sequence = static_cast<std::size_t>(batch.sequences[row]);
    const std::string_view song = songs[sequence % std::size(songs)];
    picks[row] = song[(static_cast<std::size_t>(batch.positions[row]) + 1) % song.size()];
  }
  return picks;
}

// How long that takes: hardly longer for more rows, up to 16 of them; in proportion beyond.
std::chrono::nanoseconds pass_time(std::size_t rows) {
  return std::chrono::microseconds(rows <= 16 ? 10000 + 50 * rows : 10800 * rows / 16);
}

struct Request {
  reprise::BatchSlot id = 0;  // names its cache
  reprise::Limits limits;
  reprise::Session<Drafter> session;  // its control sends all: the planner decides
  reprise::Ticket ticket;
};

std::unique_ptr<Request> arrive(std::size_t number) {
  auto request = std::make_unique<Request>();
  request->id = static_cast<reprise::BatchSlot>(number);
  request->limits.max_tokens = 100 + 20 * (number % 5);
  const std::string_view song = songs[number % std::size(songs)];
  const std::vector<reprise::Token> prompt(song.begin(), song.begin() + 30);
  if (const auto begun = request->session.begin(prompt); !begun) return nullptr;
  return request;
}

// What plain decoding would have given.
bool follows_its_song(const Request& request) {
  const std::string_view song = songs[static_cast<std::size_t>(request.id) % std::size(songs)];
  std::size_t at = 0;
  for (const reprise::Token token : request.session.context())
    if (token != song[at++ % song.size()]) return false;
  return true;
}

}  // namespace

int main() {
  constexpr std::size_t requests = 12;
  constexpr std::size_t places = 4;
  reprise::BatchPlanner planner({.max_rows = 24});  // what passes cost is learned from their times
  reprise::BatchPacker packer;
  if (!planner.reserve(places) || !packer.reserve(places, 24)) return 1;

  std::vector<std::unique_ptr<Request>> running;
  std::vector<reprise::BatchEntry> entries;
  std::vector<std::size_t> committed;
  std::size_t arrived = 0;
  std::size_t tokens = 0;
  std::size_t passes = 0;
  bool lossless = true;
  std::uint64_t digest = 0;  // ranks of a tensor-parallel engine would compare it
  std::chrono::nanoseconds time{};
  while (arrived < requests || !running.empty()) {
    while (arrived < requests && running.size() < places) {
      running.push_back(arrive(arrived++));
      if (running.back() == nullptr) return 1;
    }

    // Drafts: as many tokens as could pay at this load, at most.
    reprise::PassShape plain{running.size(), 0, 0};
    for (const auto& request : running) plain.rows += request->session.pending().size();
    const reprise::DraftBudget budget = planner.budget({}, plain);
    std::erase_if(running, [&](const auto& request) {
      request->limits.draft = budget;
      request->session.propose(request->limits);
      if (!request->session.finished()) return false;
      lossless = lossless && follows_its_song(*request);
      const auto& statistics = request->session.statistics();
      std::printf("request %2d: %s after %3llu tokens, %.2f per pass\n", request->id,
                  to_string(request->session.finish_reason()).data(),
                  static_cast<unsigned long long>(statistics.tokens), statistics.mean_accepted_tokens());
      return true;
    });
    if (running.empty()) continue;

    // Who drafts how much.
    entries.clear();
    for (const auto& request : running) {
      const auto offer = request->session.offer();
      if (!offer) return 1;
      entries.push_back({*offer, request->session.context().size()});
    }
    const reprise::BatchPlan plan = planner.plan(entries);  // planner.shrink(rows) where the cache has no room

    // One pass for all.
    packer.clear();
    for (std::size_t i = 0; i < running.size(); ++i) {
      const auto pass = running[i]->session.plan(plan.nodes_of(i), plan.cut);
      if (!pass || !packer.add(running[i]->id, *pass, running[i]->session.context().size())) return 1;
      running[i]->ticket = pass->ticket;
    }
    digest = batch_digest(packer.batch(), digest);
    const std::vector<reprise::Token> picks = forward(packer.batch());

    // Each takes its part of the picks. The engine keeps the rows packer.flat_row(i, decision->rows[...]) of its cache.
    committed.clear();
    for (std::size_t i = 0; i < running.size(); ++i) {
      auto& session = running[i]->session;
      const auto decision = session.resolve(running[i]->ticket, packer.picks_of(i, std::span(picks)));
      if (!decision) return 1;
      committed.push_back(decision->tokens.size());
      tokens += decision->tokens.size();
      if (!session.commit(running[i]->ticket)) return 1;
    }
    const auto took = pass_time(packer.batch().rows());
    planner.learn(committed, took);
    time += took;
    ++passes;
  }
  const double seconds = std::chrono::duration<double>(time).count();
  std::printf("%zu tokens in %zu passes of up to %zu sequences, %.0f tokens a second; digest %016llx\n", tokens, passes,
              places, static_cast<double>(tokens) / seconds, static_cast<unsigned long long>(digest));
  return lossless ? 0 : 1;
}
