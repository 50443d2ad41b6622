// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <cstdint>
#include <set>
#include <span>

#include "common/json_writer.hpp"
#include "pass_record.hpp"
#include "reprise/core/token.hpp"
#include "vocabulary.hpp"

namespace reprise::replay {

/// A session whose text is shown, with its result.
struct ViewedSession {
  const ShownSession* shown = nullptr;
  std::uint64_t tokens = 0;
  double speedup = 1;
};

/// Writes the sessions that the script of a page shows token by token, as members of an open JSON object.
class ViewerJson {
 public:
  /// `words` and `json` outlive the writer. `prefilled`: output tokens of a turn that belong to no pass, 0 or 1.
  ViewerJson(tools::JsonWriter& json, const Vocabulary& words, std::size_t prefilled)
      : json_(json), words_(words), prefilled_(prefilled) {}

  void write(std::span<const ViewedSession> sessions);

 private:
  void token(Token token);
  void session(const ViewedSession& viewed);
  void pass(const ShownPass& pass);

  tools::JsonWriter& json_;
  const Vocabulary& words_;
  std::size_t prefilled_;
  std::set<Token> used_;
};

}  // namespace reprise::replay
