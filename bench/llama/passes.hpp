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

/// The engine as measurements see it: passes of any rows, and rollback. It is an interface so that tests can use an
/// engine with known times and answers. Threads: one at a time.
class Passes {
 public:
  Passes() = default;
  Passes(const Passes&) = delete;
  Passes& operator=(const Passes&) = delete;
  virtual ~Passes() = default;

  /// Limits: rows of one pass; tokens of one sequence, and of all together; sequences.
  [[nodiscard]] virtual std::size_t most_rows() const = 0;
  [[nodiscard]] virtual std::size_t sequence_size() const = 0;
  [[nodiscard]] virtual std::size_t total_size() const = 0;
  [[nodiscard]] virtual std::size_t most_sequences() const = 0;
  [[nodiscard]] virtual std::size_t vocabulary() const = 0;

  /// Runs one pass with logits for every row and waits for its end. Returns its duration in nanoseconds. Throws
  /// EngineError.
  virtual std::uint64_t run(std::span<const PassRow> rows) = 0;
  /// The logits of a row of the last run. Valid until the next run.
  [[nodiscard]] virtual std::span<const float> logits(std::size_t row) = 0;
  /// Appends tokens without logits, in several passes if necessary. Throws EngineError.
  virtual void fill(TokenSpan tokens, std::size_t position, std::size_t sequence) = 0;
  /// Drops all tokens of the sequence after the first `size`. Throws InputError if the model cannot do that.
  virtual void truncate(std::size_t sequence, std::size_t size) = 0;
  virtual void clear() = 0;
};

/// Passes of llama.cpp. The context must outlive the object.
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
