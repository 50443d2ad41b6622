// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include <llama.h>
#include "reprise/core/token.hpp"

namespace reprise::llama {

/// One row of a pass.
struct PassRow {
  Token token = 0;
  std::size_t position = 0;
  std::size_t sequence = 0;
};

/// What measuring asks of an engine: passes of any rows, and rolling back. An interface, so that the measuring can be
/// tested against an engine of known times and known answers. Threads: one at a time.
class Passes {
 public:
  Passes() = default;
  Passes(const Passes&) = delete;
  Passes& operator=(const Passes&) = delete;
  virtual ~Passes() = default;

  /// Most rows of one pass; most tokens of one sequence, and of all together; most sequences.
  [[nodiscard]] virtual std::size_t most_rows() const = 0;
  [[nodiscard]] virtual std::size_t sequence_size() const = 0;
  [[nodiscard]] virtual std::size_t total_size() const = 0;
  [[nodiscard]] virtual std::size_t most_sequences() const = 0;
  [[nodiscard]] virtual std::size_t vocabulary() const = 0;

  /// One pass with logits for every row, finished when it returns. Answers its nanoseconds. Throws EngineError.
  virtual std::uint64_t run(std::span<const PassRow> rows) = 0;
  /// The logits of a row of the latest run; valid until the next one.
  [[nodiscard]] virtual std::span<const float> logits(std::size_t row) = 0;
  /// Appends tokens without logits, in as many passes as it takes. Throws EngineError.
  virtual void fill(TokenSpan tokens, std::size_t position, std::size_t sequence) = 0;
  /// Forgets what lies behind `size` tokens. Throws InputError where this model cannot.
  virtual void truncate(std::size_t sequence, std::size_t size) = 0;
  virtual void clear() = 0;
};

/// Passes of llama.cpp. The context has to outlive it.
class LlamaPasses final : public Passes {
 public:
  explicit LlamaPasses(llama_context* context);
  ~LlamaPasses() override;

  [[nodiscard]] std::size_t most_rows() const override;
  [[nodiscard]] std::size_t sequence_size() const override;
  [[nodiscard]] std::size_t total_size() const override;
  [[nodiscard]] std::size_t most_sequences() const override;
  [[nodiscard]] std::size_t vocabulary() const override;
  std::uint64_t run(std::span<const PassRow> rows) override;
  [[nodiscard]] std::span<const float> logits(std::size_t row) override;
  void fill(TokenSpan tokens, std::size_t position, std::size_t sequence) override;
  void truncate(std::size_t sequence, std::size_t size) override;
  void clear() override;

 private:
  void set(std::size_t row, const PassRow& value, bool logits);
  void decode();

  llama_context* context_;
  llama_batch batch_;
};

}  // namespace reprise::llama
