// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <functional>
#include <initializer_list>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "input_error.hpp"

namespace reprise::tools {

/// Reads the value of the option `name`. Throws InputError that begins with the name and the value.
using ReadValue = std::function<void(const std::string& name, const std::string& value)>;

/// A row of an OptionTable: an option, an operand that --help explains, or text of --help.
struct Option {
  std::string_view name = {};        ///< "--seed"; of an operand its word, "TRACE"; empty: `help` is text
  std::string_view value = {};       ///< --help calls its value so; empty: the option takes none
  std::string_view help = {};        ///< one line or more; empty: --help shows the option elsewhere
  ReadValue read = {};               ///< called with the value; with an empty one if the option takes none
  bool repeats = false;              ///< may be given more than once
  bool list = false;                 ///< operands after it, up to the next option, are further values
  std::string_view short_name = {};  ///< "-h"
  std::string_view wanted = {};      ///< a message asks for this where the value is missing; empty: for `value`
  std::size_t indent = 2;            ///< of its line in --help
};

/// The options of a program. The rows say which there are, how each is read, and what --help shows.
struct OptionTable {
  std::size_t help_column = 24;  ///< the help of each option begins there
  std::vector<Option> rows;
  ReadValue operand;             ///< called with an empty name for each argument that belongs to no option
  bool ends_with_dashes = true;  ///< after --, every argument is an operand

  // The programs word these mistakes differently, and scripts may know the words.
  std::string_view twice = "is given twice; once is enough";
  bool names_wanted_value = false;   ///< says which value is missing; else it refers to --help
  bool shows_unknown_value = false;  ///< an unknown option is shown with its =value

  [[nodiscard]] std::string help() const;
};

/// The options that were on a command line, and checks of which may be there together.
class GivenOptions {
 public:
  explicit GivenOptions(std::set<std::string> names) : names_(std::move(names)) {}

  [[nodiscard]] bool operator()(const std::string& name) const { return names_.count(name) != 0; }
  /// Each of `names` has an effect only if `condition` holds. Throws InputError for one that was given without effect:
  /// the option, and `why`.
  void only(bool condition, std::initializer_list<const char*> names, const std::string& why) const;
  /// Throws InputError if both were given.
  void never_both(const char* one, const char* other, const std::string& why) const;

 private:
  std::set<std::string> names_;
};

/// Reads the arguments, those after the program's name, row by row as `table` says. `--key value` and `--key=value` are
/// the same. Throws InputError: an unknown option, one given twice, a missing value, a value for an option without one.
GivenOptions parse(const OptionTable& table, std::span<const std::string> arguments);

/// `text` as a whole number from `least` to `most`. Throws InputError: name, `shown`, and "expected `expected` from
/// ...".
std::size_t read_whole(const std::string& name, const std::string& text, std::size_t least, std::size_t most,
                       std::string_view expected, const std::string& shown);
/// The pieces of `text` between commas; one at least.
std::vector<std::string> split_at_commas(const std::string& text);

// Rows of usual kinds. What they store to has to outlive the table.

/// An option without a value.
ReadValue flag(bool& into);
ReadValue text(std::string& into);
/// Appends each value.
ReadValue texts(std::vector<std::string>& into);
/// A number from `least` to `most`; `range` says so in messages.
ReadValue real(double& into, double least, double most, std::string_view range);

template <class Integer>
ReadValue whole(Integer& into, std::size_t least, std::size_t most, std::string_view expected) {
  return [&into, least, most, expected](const std::string& name, const std::string& value) {
    into = static_cast<Integer>(read_whole(name, value, least, most, expected, value));
  };
}

/// Throws InputError: `value` is none of `words`.
[[noreturn]] void refuse_word(const std::string& name, const std::string& value,
                              const std::vector<std::string_view>& words);

/// One of several words.
template <class T>
ReadValue word(T& into, std::vector<std::pair<std::string_view, T>> meanings) {
  return [&into, meanings = std::move(meanings)](const std::string& name, const std::string& value) {
    const auto found =
        std::find_if(meanings.begin(), meanings.end(), [&](const auto& one) { return one.first == value; });
    if (found != meanings.end()) return void(into = found->second);
    std::vector<std::string_view> words;
    for (const auto& meaning : meanings) words.push_back(meaning.first);
    refuse_word(name, value, words);
  };
}

}  // namespace reprise::tools
