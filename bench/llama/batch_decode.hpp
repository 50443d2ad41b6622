// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "batch_sequence.hpp"
#include "engine.hpp"
#include "generate.hpp"
#include "inputs.hpp"
#include "reprise/batch/planner.hpp"

namespace reprise::llama {

/// The rule for the number of drafted tokens of each sequence in a shared pass.
struct BatchRule {
  enum class Kind : std::uint8_t {
    plain,    ///< none
    told,     ///< BatchPlanner with a given curve
    learned,  ///< BatchPlanner that learns from the times of whole passes
    fixed,    ///< as many as the strategy drafts, up to `drafted` for each sequence
  };
  Kind kind = Kind::plain;
  std::size_t drafted = 0;  ///< of `fixed`

  [[nodiscard]] std::string name() const;
  /// True if probabilities of the strategy decide.
  [[nodiscard]] bool plans() const { return kind == Kind::told || kind == Kind::learned; }
};

/// The settings of a batched run.
struct BatchSettings {
  std::size_t sequences = 1;  ///< most sequences that run at once
  /// Most prompt tokens of a pass in which sequences decode. 0: prompts run in passes of their own, one after the
  /// other.
  std::size_t chunk = 64;
  Settings settings = {};
  std::function<bool()> stop = {};  ///< called before each pass; true ends the run
};

/// Counts and times of passes.
struct PassSums {
  std::size_t passes = 0;
  std::size_t rows = 0;         ///< of prompts, picks and drafts
  std::size_t prompt_rows = 0;  ///< rows of prompts
  std::size_t tokens = 0;       ///< generated tokens, including those that ended turns
  std::size_t drafted = 0;
  std::size_t accepted = 0;
  std::chrono::nanoseconds time{};   ///< everything, also strategies and planner
  std::chrono::nanoseconds model{};  ///< the part of `time` spent in llama_decode

  PassSums& operator+=(const PassSums& other);
  [[nodiscard]] double tokens_per_second() const;
  [[nodiscard]] double rows_per_pass() const;
  /// The share of the time outside llama_decode.
  [[nodiscard]] double share_outside() const;
};

/// The result of a batched run.
struct BatchRun {
  std::vector<BatchSession> sessions;  ///< one for each request; empty if it did not begin
  PassSums all;
  PassSums decoding;             ///< the passes without prompt rows
  std::size_t most_running = 0;  ///< sequences in the largest pass
  std::size_t preemptions = 0;
  bool stopped = false;  ///< BatchSettings::stop ended the run
};

/// Decodes all requests by continuous batching, in the context of `engine`, which is emptied first. Up to
/// `settings.sequences` sessions run at once, the others wait. In each step one llama_decode runs the rows of all of
/// them: picks and drafts (chains), and chunks of prompts. A session that ends leaves its place to the next.
///
/// If the shared cache becomes full, the session that began last gives its cells back, waits until there is room, and
/// fills its cache again. A session that has the cache to itself and still finds no room gives up, with a reason.
///
/// Only rules that plan use `planner`; it keeps its learned costs. Throws InputError if the model does not support
/// `settings`, and EngineError.
BatchRun decode_batch(Engine& engine, std::span<const Request> requests, const Drafting& drafting,
                      const BatchRule& rule, BatchPlanner& planner, const BatchSettings& settings);

}  // namespace reprise::llama
