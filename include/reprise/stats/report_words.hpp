// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string_view>

#include "reprise/core/draft.hpp"
#include "reprise/core/outcome.hpp"

/// \file The words that reports use. They are part of documented formats (docs/formats.md), so they do not change when
/// an enumerator is renamed.
namespace reprise::inline v0 {

/// Returns the word that tables and JSON use for a cut.
constexpr std::string_view report_word(Cut cut) noexcept {
  constexpr std::string_view words[cut_count] = {"none",    "no_match",   "unlikely", "gated",      "budget",
                                                 "shape",   "depth",      "rows",     "width",      "rollback",
                                                 "context", "max_tokens", "memory",   "constraint", "failed"};
  return words[static_cast<std::size_t>(cut)];
}

/// Returns the word that tables and JSON use for a source of drafted tokens.
constexpr std::string_view report_word(DraftSource source) noexcept {
  constexpr std::string_view words[draft_source_count] = {"unknown",   "context",  "memory",   "reference", "model",
                                                          "lookahead", "recycled", "external", "forced",    "padding"};
  return words[static_cast<std::size_t>(source)];
}

}  // namespace reprise
