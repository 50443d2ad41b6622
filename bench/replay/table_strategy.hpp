// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <utility>

#include "common/input_error.hpp"
#include "reprise/core/strategy.hpp"
#include "reprise_methods/token_table.hpp"
#include "reprise_methods/token_table_drafter.hpp"

namespace reprise::replay {

/// Throws InputError if there is no memory for the table or the options are invalid.
inline std::shared_ptr<TokenTable> make_table(const TokenTableOptions& options) {
  auto made = TokenTable::make(options);
  if (!made) throw tools::InputError(std::string(made.error().message));
  return std::make_shared<TokenTable>(std::move(*made));
}

/// A TokenTableDrafter that writes the observed tokens into a table. The table is one of earlier sessions, or one of
/// its own that every begin() makes again. Copies share the table, like copies of the drafter.
class TableStrategy {
 public:
  /// `kept`: the table of earlier sessions, or nullptr.
  TableStrategy(const TokenTableOptions& table, const TokenTableDrafterOptions& options,
                std::shared_ptr<TokenTable> kept)
      : table_options_(table), options_(options), kept_(kept != nullptr), table_(std::move(kept)), drafter_(nullptr) {}

  /// Throws InputError if the table cannot be made.
  void begin(TokenSpan tokens) {
    if (!kept_) table_ = make_table(table_options_);
    options_.learn_into = table_.get();
    drafter_ = TokenTableDrafter(table_.get(), options_);
    drafter_.begin(tokens);
  }
  void observe(TokenSpan context, std::size_t fresh, Origin origin) { drafter_.observe(context, fresh, origin); }
  void propose(TokenSpan context, Draft& draft) const { drafter_.propose(context, draft); }
  void feedback(TokenSpan context, const Outcome& outcome) { drafter_.feedback(context, outcome); }
  void truncate(TokenSpan context, std::size_t size) { drafter_.truncate(context, size); }
  /// Includes the table if it is the strategy's own.
  [[nodiscard]] std::size_t memory_bytes() const {
    return drafter_.memory_bytes() + (kept_ || table_ == nullptr ? 0 : table_->memory_bytes());
  }

 private:
  TokenTableOptions table_options_;
  TokenTableDrafterOptions options_;
  bool kept_;
  std::shared_ptr<TokenTable> table_;
  TokenTableDrafter drafter_;
};

}  // namespace reprise::replay
