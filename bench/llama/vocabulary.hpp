// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <string>
#include <string_view>

#include "replay/trace.hpp"
#include "reprise/core/token.hpp"

namespace reprise::llama {

/// The advice for a trace of another model.
inline constexpr std::string_view recorded_with = "give the model that the trace was recorded with";

/// Throws InputError for the first token of a turn that is not below `vocabulary`: its place, then `what_to_do`.
/// `where` is the file and line of the session, `turn` the turn's number in it.
void check_vocabulary(TokenSpan prompt, TokenSpan output, const std::string& where, std::size_t turn,
                      std::size_t vocabulary, std::string_view what_to_do);
/// The same for all turns of a session.
void check_vocabulary(const replay::TraceSession& session, std::size_t vocabulary, std::string_view what_to_do);

}  // namespace reprise::llama
