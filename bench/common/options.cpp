// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <charconv>
#include <cstdint>
#include <optional>
#include <utility>

#include "number.hpp"
#include "text.hpp"

namespace reprise::tools {
namespace {

/// Returns the smallest number of letters to insert, remove or replace that makes `other` of `text`.
std::size_t edits(std::string_view text, std::string_view other) {
  std::vector<std::size_t> row(other.size() + 1);
  for (std::size_t j = 0; j < row.size(); ++j) row[j] = j;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t diagonal = std::exchange(row[0], i + 1);
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t replaced = diagonal + (text[i] == other[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({replaced, row[j] + 1, diagonal + 1});
    }
  }
  return row.back();
}

bool is_option(const std::string& argument) { return argument.size() > 1 && argument[0] == '-'; }

/// Reads the arguments from left to right.
class Parser {
 public:
  Parser(const OptionTable& table, std::span<const std::string> arguments) : table_(table), arguments_(arguments) {}

  std::set<std::string> read() {
    bool only_operands = false;
    while (at_ < arguments_.size()) {
      const std::string& argument = arguments_[at_++];
      if (only_operands || !is_option(argument))
        operand(argument);
      else if (argument == "--" && table_.ends_with_dashes)
        only_operands = true;
      else
        option(argument);
    }
    return std::move(given_);
  }

 private:
  void operand(const std::string& argument) const {
    if (list_ != nullptr && !argument.empty()) return list_->read(std::string(list_->name), argument);
    table_.operand("", argument);
  }

  void option(const std::string& argument) {
    const std::size_t equals = argument.find('=');
    std::optional<std::string> value;
    if (equals != std::string::npos) value = argument.substr(equals + 1);
    const Option* row = find(argument.substr(0, equals));
    if (row == nullptr) unknown(argument.substr(0, equals));
    const std::string name(row->name);
    list_ = row->list ? row : nullptr;
    if (!given_.insert(name).second && !row->repeats) throw InputError(name + " is given twice; once is enough");
    if (!row->may_take.empty()) {
      if (!value && at_ < arguments_.size() && arguments_[at_] == row->may_take) value = arguments_[at_++];
      if (value && *value != row->may_take)
        throw InputError(name + " " + *value + ": the only value is " + std::string(row->may_take) + "; " + name +
                         " alone is possible too");
      return row->read(name, value.value_or(""));
    }
    if (row->value.empty()) {
      if (value) throw InputError(name + " takes no value, but got '" + *value + "'");
      return row->read(name, {});
    }
    if (!value && at_ < arguments_.size()) value = arguments_[at_++];
    if (!value || value->empty()) missing(*row);
    row->read(name, *value);
  }

  [[nodiscard]] const Option* find(const std::string& name) const {
    const auto row = std::find_if(table_.rows.begin(), table_.rows.end(), [&](const Option& one) {
      return !one.name.empty() && (one.name == name || one.short_name == name);
    });
    return row == table_.rows.end() ? nullptr : &*row;
  }

  /// Names the most similar option if one of four letters differs, and at most two.
  [[noreturn]] void unknown(const std::string& name) const {
    std::size_t fewest = std::min<std::size_t>(2, name.size() / 4) + 1;
    std::string_view similar;
    for (const Option& one : table_.rows) {
      if (one.name.substr(0, 2) != "--") continue;
      const std::size_t count = edits(name, one.name);
      if (count > 0 && count < fewest) fewest = count, similar = one.name;
    }
    throw InputError("there is no option " + name +
                     (similar.empty() ? ";" : "; did you mean " + std::string(similar) + "?") + " see --help");
  }

  [[noreturn]] void missing(const Option& row) const {
    const std::string name(row.name);
    throw InputError(name + " needs a value: " + name + " " + std::string(row.wanted.empty() ? row.value : row.wanted));
  }

  const OptionTable& table_;
  std::span<const std::string> arguments_;
  std::size_t at_ = 0;
  const Option* list_ = nullptr;  // operands are further values of this option
  std::set<std::string> given_;
};

}  // namespace

void OptionTable::add(const std::vector<Option>& more) { rows.insert(rows.end(), more.begin(), more.end()); }

std::string OptionTable::help(bool all) const {
  std::string text;
  for (const Option& row : std::span(rows).first(all || common_rows == 0 ? rows.size() : common_rows)) {
    if (row.help.empty()) continue;
    if (row.name.empty()) {
      text += wrapped(row.help);
      continue;
    }
    std::string line = "  " + std::string(row.name);
    if (!row.value.empty()) line.append(" ").append(row.value);
    if (line.size() < help_column)
      line.resize(help_column, ' ');
    else
      line += "\n" + std::string(help_column, ' ');
    text += line + wrapped(row.help, help_column) + "\n";
  }
  return text;
}

void GivenOptions::only(bool condition, std::initializer_list<const char*> names, const std::string& why) const {
  for (const char* name : names)
    if (!condition && (*this)(name)) throw InputError(std::string(name) + " " + why);
}

void GivenOptions::never_both(const char* one, const char* other, const std::string& why) const {
  if ((*this)(one) && (*this)(other))
    throw InputError(std::string(one) + " and " + other + " do not go together: " + why);
}

GivenOptions parse(const OptionTable& table, std::span<const std::string> arguments) {
  return GivenOptions(Parser(table, arguments).read());
}

std::size_t read_whole(const std::string& name, const std::string& text, std::size_t least, std::size_t most,
                       std::string_view expected, const std::string& shown) {
  const auto value = parse_integer(text);
  if (!value || *value < static_cast<std::int64_t>(least) || *value > static_cast<std::int64_t>(most))
    throw InputError(name + " " + shown + ": expected " + std::string(expected) + " from " + std::to_string(least) +
                     " to " + std::to_string(most));
  return static_cast<std::size_t>(*value);
}

std::vector<std::string> split_at_commas(const std::string& text) {
  std::vector<std::string> pieces;
  for (std::size_t from = 0; from <= text.size();) {
    const std::size_t to = std::min(text.find(',', from), text.size());
    pieces.push_back(text.substr(from, to - from));
    from = to + 1;
  }
  return pieces;
}

ReadValue flag(bool& into) {
  return [&into](const auto&, const auto&) { into = true; };
}
std::vector<Option> help_and_version(bool& help, bool& version) {
  return {{.name = "--help", .read = flag(help), .repeats = true, .short_name = "-h"},
          {.name = "--version", .read = flag(version), .repeats = true}};
}
std::vector<Option> help_and_version(Help& help, bool& version) {
  return {{.name = "--help",
           .value = "[all]",
           .help = "this list; --help all: every option",
           .read = [&help](const auto&, const auto& value) { help = value.empty() ? Help::common : Help::all; },
           .repeats = true,
           .short_name = "-h",
           .may_take = "all"},
          {.name = "--version", .help = "print the version", .read = flag(version), .repeats = true}};
}
ReadValue text(std::string& into) {
  return [&into](const auto&, const auto& value) { into = value; };
}
ReadValue paths(std::vector<std::string>& into, std::string name) {
  return [&into, name = std::move(name)](const auto&, const auto& path) {
    if (path.empty()) throw InputError("a " + name + " is empty; give the path of a file");
    into.push_back(path);
  };
}
ReadValue texts(std::vector<std::string>& into) {
  return [&into](const auto&, const auto& value) { into.push_back(value); };
}
ReadValue real(double& into, double least, double most, std::string_view range) {
  return [&into, least, most, range](const std::string& name, const std::string& value) {
    const auto number = parse_real(value);
    if (!number || *number < least || *number > most)
      throw InputError(name + " " + value + ": expected a number " + std::string(range));
    into = *number;
  };
}

ReadValue whole_numbers(std::vector<std::size_t>& into, std::size_t most) {
  return [&into, most](const std::string& name, const std::string& value) {
    into.clear();
    for (const std::string& piece : split_at_commas(value))
      into.push_back(read_whole(name, piece, 1, most, "whole numbers with commas between them, each", value));
  };
}
ReadValue fingerprint(std::optional<std::uint64_t>& into) {
  return [&into](const std::string& name, const std::string& value) {
    std::uint64_t number = 0;
    const bool hexadecimal = value.starts_with("0x");
    const char* const begin = value.data() + (hexadecimal ? 2 : 0);
    const char* const end = value.data() + value.size();
    const auto [stop, error] = std::from_chars(begin, end, number, hexadecimal ? 16 : 10);
    if (error != std::errc() || stop != end)
      throw InputError(name + " " + value + ": expected a whole number of 64 bits, such as 7 or 0x9a3f");
    into = number;
  };
}

void refuse_word(const std::string& name, const std::string& value, const std::vector<std::string_view>& words) {
  std::string list;
  for (std::size_t i = 0; i < words.size(); ++i)
    list.append(i == 0 ? "" : i + 1 == words.size() ? " and " : ", ").append(words[i]);
  throw InputError(name + " " + value + ": the choices are " + list);
}

}  // namespace reprise::tools
