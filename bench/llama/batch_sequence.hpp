// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>

#include "common/any_strategy.hpp"
#include "conversation.hpp"
#include "engine.hpp"
#include "generate.hpp"
#include "inputs.hpp"
#include "reprise/batch/packing.hpp"
#include "reprise/core/limits.hpp"
#include "reprise/core/token.hpp"
#include "reprise/loop/session.hpp"
#include "sampling.hpp"

namespace reprise::llama {

/// The result of one session of a batched run.
struct BatchSession {
  RequestRun run;               ///< times are 0: they belong to passes of several sequences
  std::size_t preemptions = 0;  ///< times that its cache was given to other sequences and filled again later
  std::string gave_up = {};     ///< the reason why it ended early; empty: it did not
  bool done = false;            ///< false: the run was stopped before the session ended
};

/// One session of a batched run: its text, its turns, and the number of its tokens in the cache.
class BatchSequence {
 public:
  /// `number`: its place among the requests. All arguments must outlive the object, except `capabilities`.
  BatchSequence(const Engine& engine, const Request& request, std::size_t number, const Drafting& drafting,
                const Settings& settings, const Capabilities& capabilities);

  /// Ends the current turn, if there is one, and begins the next. Returns false if there is none, or if the next prompt
  /// does not fit into the context. Cut the cache to cached() tokens afterwards.
  bool next_turn();
  /// Ends the session before its last turn is complete. `why` is empty if the run was stopped.
  void abandon(const std::string& why);

  [[nodiscard]] std::size_t number() const { return number_; }
  [[nodiscard]] Session<AnyStrategy>& session() { return session_; }
  [[nodiscard]] TokenSpan context() const { return session_.context(); }
  [[nodiscard]] Limits& limits() { return limits_; }
  /// Null: the likeliest token is taken.
  [[nodiscard]] llama_sampler* sampler() const { return sampler_.get(); }
  /// The most tokens that this session may draft in a pass.
  [[nodiscard]] std::size_t max_nodes() const { return request_.draft ? max_nodes_ : 0; }

  /// The number of tokens in the cache.
  [[nodiscard]] std::size_t cached() const { return cached_; }
  void set_cached(std::size_t cached) { cached_ = cached; }
  /// The tokens that the cache needs before the next token can be decoded.
  [[nodiscard]] TokenSpan missing() const { return context().subspan(cached_, context().size() - 1 - cached_); }
  [[nodiscard]] bool decodes() const { return cached_ + 1 == context().size(); }
  /// Records that the cache was given to other sequences.
  void lose_cache() { cached_ = 0, ++result_.preemptions; }

  [[nodiscard]] const BatchSession& result() const { return result_; }

  BatchSlot slot = 0;  ///< while the sequence runs
  Ticket ticket;       ///< of the planned pass

 private:
  void end_turn();
  void check(const Result<void>& done) const;

  const Engine& engine_;
  const Request& request_;
  std::size_t number_;
  Conversation conversation_;
  Session<AnyStrategy> session_;
  Capabilities capabilities_;
  SamplerOwner sampler_;
  Limits limits_;
  std::size_t max_nodes_;
  std::size_t cached_ = 0;
  std::size_t output_from_ = 0;  // the position of the current answer in the context
  bool in_turn_ = false;
  BatchSession result_;
};

}  // namespace reprise::llama
