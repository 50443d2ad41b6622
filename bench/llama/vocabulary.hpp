// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "replay/trace.hpp"
#include "reprise/core/token.hpp"

namespace reprise::llama {

/// What to do about a trace of another model.
inline constexpr std::string_view recorded_with = "give the model that the trace was recorded with";

/// Throws InputError for the first token of a turn that a model of `vocabulary` tokens does not have: its place, then
/// what to do. `where`: the file and line of a session, `turn`: which one of it.
void check_vocabulary(TokenSpan prompt, TokenSpan output, const std::string& where, std::size_t turn,
                      std::size_t vocabulary, std::string_view what_to_do);
/// The same of all turns of a session.
void check_vocabulary(const replay::TraceSession& session, std::size_t vocabulary, std::string_view what_to_do);

}  // namespace reprise::llama
