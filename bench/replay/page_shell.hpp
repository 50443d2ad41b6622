// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <ostream>
#include <string>

namespace reprise::replay {

/// The contents of a page, as HTML except `data`. reprise-replay and reprise-llama fill the same frame.
struct PageShell {
  std::string about;     ///< "Replay of": the first words of the title of the window
  std::string kind;      ///< the line above the heading
  std::string title;     ///< the heading
  std::string settings;  ///< the line below it
  std::string fault;     ///< a warning before everything else; empty: none
  std::string gain;      ///< the sections, each an answer to a question
  std::string where;
  std::string why;
  std::string trust;
  std::string footer;  ///< how the figures are defined
  std::string tool;    ///< the program that made the page
  std::string data;    ///< JSON for the script; see inside_script()
};

/// Writes the page. It holds its style and script, and loads nothing.
void write_shell(std::ostream& out, const PageShell& shell);

/// Escapes the characters of JSON that could end a script element, or a line in old scripts.
std::string inside_script(const std::string& json);

}  // namespace reprise::replay
