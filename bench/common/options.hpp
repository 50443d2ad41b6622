// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <initializer_list>
#include <limits>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "input_error.hpp"

namespace reprise::tools {

/// Reads the value of the option `name`. Throws InputError with a message that begins with the name and the value.
using ReadValue = std::function<void(const std::string& name, const std::string& value)>;

/// A row of an OptionTable: an option, an operand that --help explains, or plain text of --help.
struct Option {
  std::string_view name = {};        ///< "--seed"; for an operand its placeholder, "TRACE"; empty: `help` is text
  std::string_view value = {};       ///< placeholder of the value in --help; empty: the option takes none
  std::string_view help = {};        ///< help() wraps it (wrapped()); empty: --help lists the option elsewhere
  ReadValue read = {};               ///< called with the value, or with an empty one if the option takes none
  bool repeats = false;              ///< the option may be given more than once
  bool list = false;                 ///< operands up to the next option are further values
  std::string_view short_name = {};  ///< "-h"
  std::string_view wanted = {};      ///< the value as named in "needs a value" messages; empty: `value`
  std::string_view may_take = {};    ///< the only value of an option that may also be given without one
};

/// The options of a program: their names, how each is read, and the text of --help.
struct OptionTable {
  std::size_t help_column = 24;  ///< column of --help where the help of each option begins
  std::vector<Option> rows;
  std::size_t common_rows = 0;   ///< the first rows, which --help shows if it is not asked for all; 0: it shows all
  ReadValue operand;             ///< called with an empty name for each argument that belongs to no option
  bool ends_with_dashes = true;  ///< after --, every argument is an operand

  void add(const std::vector<Option>& more);
  /// The text of --help in lines of at most 80 columns. `all`: of all rows, not only of the common ones.
  [[nodiscard]] std::string help(bool all = true) const;
};

/// The help that a user has asked for.
enum class Help : std::uint8_t { none, common, all };

/// The options given on a command line, and checks of their combinations.
class GivenOptions {
 public:
  explicit GivenOptions(std::set<std::string> names) : names_(std::move(names)) {}

  [[nodiscard]] bool operator()(const std::string& name) const { return names_.count(name) != 0; }
  /// Throws InputError for each of `names` that was given although `condition` does not hold. The message is the option
  /// and `why`.
  void only(bool condition, std::initializer_list<const char*> names, const std::string& why) const;
  /// Throws InputError if both options were given.
  void never_both(const char* one, const char* other, const std::string& why) const;

 private:
  std::set<std::string> names_;
};

/// Reads the arguments after the program's name. `--key value` and `--key=value` are equivalent. Throws InputError for
/// an unknown option, an option given twice, a missing value, or a value for an option that takes none.
GivenOptions parse(const OptionTable& table, std::span<const std::string> arguments);

/// Reads `text` as a whole number from `least` to `most`. Throws InputError with a message of the form "name shown:
/// expected `expected` from ... to ...".
std::size_t read_whole(const std::string& name, const std::string& text, std::size_t least, std::size_t most,
                       std::string_view expected, const std::string& shown);
/// The parts of `text` between commas; at least one.
std::vector<std::string> split_at_commas(const std::string& text);

// Functions for the `read` of a row. The variables they refer to must outlive the table.

/// An option without a value.
ReadValue flag(bool& into);
ReadValue text(std::string& into);
/// --help and --version, which --help lists together.
std::vector<Option> help_and_version(bool& help, bool& version);
/// The same for a table with common rows, in which --help all shows every row.
std::vector<Option> help_and_version(Help& help, bool& version);
/// Appends each operand, which is the path of a file; --help calls it `name`.
ReadValue paths(std::vector<std::string>& into, std::string name);
/// Appends each value.
ReadValue texts(std::vector<std::string>& into);
/// A number from `least` to `most`; messages describe the range as `range`.
ReadValue real(double& into, double least, double most, std::string_view range);

/// Whole numbers from 1 to `most` with commas between them.
ReadValue whole_numbers(std::vector<std::size_t>& into, std::size_t most);
/// A number of 64 bits, decimal or after 0x.
ReadValue fingerprint(std::optional<std::uint64_t>& into);

/// A whole number from `least` to `most`, or to the largest size where that is less.
template <class Integer>
ReadValue whole(Integer& into, std::size_t least, std::uint64_t most, std::string_view expected) {
  const auto bound = static_cast<std::size_t>(std::min<std::uint64_t>(most, std::numeric_limits<std::size_t>::max()));
  return [&into, least, bound, expected](const std::string& name, const std::string& value) {
    into = static_cast<Integer>(read_whole(name, value, least, bound, expected, value));
  };
}

/// Throws InputError: `value` is none of `words`.
[[noreturn]] void refuse_word(const std::string& name, const std::string& value,
                              const std::vector<std::string_view>& words);

/// One of several words, each with its meaning.
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
