// SPDX-License-Identifier: Apache-2.0
// Many sequences in one pass, as in a server with continuous batching. Requests come and go, and the planner divides
// the rows of each pass among them.
#include <reprise/batch.hpp>
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

// Stands for the engine: one forward pass over the rows of all sequences. The pick after a row is the next character of
// its sequence's song. A real model would look into that sequence's cache.
std::vector<reprise::Token> forward(const reprise::PackedBatch& batch) {
  std::vector<reprise::Token> picks(batch.rows());
  for (std::size_t row = 0; row < batch.rows(); ++row) {
    const auto sequence = static_cast<std::size_t>(batch.sequences[row]);
    const std::string_view song = songs[sequence % std::size(songs)];
    picks[row] = song[(static_cast<std::size_t>(batch.positions[row]) + 1) % song.size()];
  }
  return picks;
}

// The time of such a pass: nearly constant up to 16 rows, then proportional to the rows.
std::chrono::nanoseconds pass_time(std::size_t rows) {
  return std::chrono::microseconds(rows <= 16 ? 10000 + 50 * rows : 10800 * rows / 16);
}

struct Request {
  reprise::BatchSlot id = 0;  // the key of its cache
  reprise::Limits limits;
  reprise::Session<Drafter> session;  // sends every drafted token: the planner has already chosen how many
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

// True if the context is the text that plain decoding would have produced.
bool follows_its_song(const Request& request) {
  const std::string_view song = songs[static_cast<std::size_t>(request.id) % std::size(songs)];
  std::size_t at = 0;
  for (const reprise::Token token : request.session.context())
    if (token != song[at++ % song.size()]) return false;
  return true;
}

// Up to `places` sequences at a time, which share each pass.
class Server {
 public:
  static constexpr std::size_t requests = 12;
  static constexpr std::size_t places = 4;

  // Returns false if a call was refused.
  bool run() {
    if (!planner_.reserve(places) || !packer_.reserve(places, max_rows)) return false;
    while (arrived_ < requests || !running_.empty()) {
      if (!admit()) return false;
      draft();
      if (running_.empty()) continue;
      if (!pack()) return false;
      const std::vector<reprise::Token> picks = forward(packer_.batch());
      if (!commit(picks)) return false;
      const auto took = pass_time(packer_.batch().rows());
      planner_.learn(committed_, intervals_.take(took, packer_.batch().rows()));
      time_ += took;
      ++passes_;
    }
    return true;
  }
  [[nodiscard]] bool lossless() const { return lossless_; }
  void report() const {
    const double seconds = std::chrono::duration<double>(time_).count();
    std::printf("%zu tokens in %zu passes of up to %zu sequences, %.0f tokens a second; digest %016llx\n", tokens_,
                passes_, places, static_cast<double>(tokens_) / seconds, static_cast<unsigned long long>(digest_));
  }

 private:
  static constexpr std::size_t max_rows = 24;

  bool admit() {
    while (arrived_ < requests && running_.size() < places) {
      running_.push_back(arrive(arrived_++));
      if (running_.back() == nullptr) return false;
    }
    return true;
  }

  // Drafts at most as many tokens as can pay at this load. Removes the sequences that have ended.
  void draft() {
    reprise::PassShape plain{running_.size(), 0, 0};
    for (const auto& request : running_) plain.rows += request->session.pending().size();
    const reprise::DraftBudget budget = planner_.budget({}, plain);
    std::erase_if(running_, [&](const auto& request) {
      request->limits.draft = budget;
      request->session.propose(request->limits);
      if (request->session.finished()) leave(*request);
      return request->session.finished();
    });
  }
  void leave(const Request& request) {
    lossless_ = lossless_ && follows_its_song(request);
    const auto& statistics = request.session.statistics();
    std::printf("request %2d: %s after %3llu tokens, %.2f per pass\n", request.id,
                to_string(request.session.finish_reason()).data(), static_cast<unsigned long long>(statistics.tokens),
                statistics.mean_accepted_tokens());
  }

  // Plans the drafts of all sequences and packs them into one pass.
  bool pack() {
    entries_.clear();
    for (const auto& request : running_) {
      const reprise::Result<reprise::Offer> offer = request->session.offer();
      if (!offer) return false;
      entries_.push_back({*offer, request->session.context().size()});
    }
    // If the cache has too few free rows, planner_.shrink(rows) returns a smaller plan.
    const reprise::BatchPlan plan = planner_.plan(entries_);

    packer_.clear();
    for (std::size_t i = 0; i < running_.size(); ++i) {
      const auto pass = running_[i]->session.plan(plan.nodes_of(i), plan.cut);
      if (!pass || !packer_.add(running_[i]->id, *pass, running_[i]->session.context().size())) return false;
      running_[i]->ticket = pass->ticket;
    }
    digest_ = batch_digest(packer_.batch(), digest_);
    return true;
  }

  // Gives each sequence its part of the picks. The engine keeps the rows packer.flat_row(i, decision->rows[...]) in its
  // cache.
  bool commit(std::span<const reprise::Token> picks) {
    committed_.clear();
    for (std::size_t i = 0; i < running_.size(); ++i) {
      auto& session = running_[i]->session;
      const auto decision = session.resolve(running_[i]->ticket, packer_.picks_of(i, picks));
      if (!decision) return false;
      committed_.push_back(decision->tokens.size());
      tokens_ += decision->tokens.size();
      if (!session.commit(running_[i]->ticket)) return false;
    }
    return true;
  }

  reprise::BatchPlanner planner_{
      reprise::BatchOptions{.max_rows = max_rows}};  // learns the cost of a pass from the pass times
  reprise::PassIntervals intervals_;                 // a server that measures between passes: pauses are no pass times
  reprise::BatchPacker packer_;
  std::vector<std::unique_ptr<Request>> running_;
  std::vector<reprise::BatchEntry> entries_;
  std::vector<std::size_t> committed_;
  std::size_t arrived_ = 0;
  std::size_t tokens_ = 0;
  std::size_t passes_ = 0;
  bool lossless_ = true;
  std::uint64_t digest_ = 0;  // for comparison between the ranks of a tensor-parallel engine
  std::chrono::nanoseconds time_{};
};

}  // namespace

int main() {
  Server server;
  if (!server.run()) return 1;
  server.report();
  return server.lossless() ? 0 : 1;
}
