// SPDX-License-Identifier: Apache-2.0
#include "options.hpp"

#include <algorithm>
#include <limits>
#include <string_view>

#include "common/input_error.hpp"
#include "common/number.hpp"
#include "common/options.hpp"

namespace reprise::indexing {
namespace {

using tools::fingerprint;
using tools::flag;
using tools::InputError;
using tools::Option;
using tools::text;
using tools::whole;
using tools::word;

constexpr std::string_view purpose =
    R"(Builds a corpus from recorded text: a file with the tokens of many documents and an index of all
places where any tokens occur. Drafters of any number of processes read it in place.
docs/formats.md describes the file.

usage: reprise-index COMMAND [OPTION]... FILE...

  build       makes a corpus from traces, files of token ids, snapshots or text
  merge       makes one corpus from several, the same as a build from all their documents
  info        prints the numbers of a corpus
  verify      reads the whole of a corpus and checks it
  query       prints the tokens that follow a context in a corpus, with their counts

reprise-index COMMAND --help lists the options of a command.

  --help, --version
)";

constexpr std::string_view build_purpose =
    R"(Makes a corpus from documents. The file depends on the documents and their order alone, and appears
under its name when it is complete.

usage: reprise-index build --output FILE [OPTION]... INPUT...

  INPUT                 a file, or a folder with files:
                          *.jsonl      a trace; each session is a document, named by its id
                          *.u16 *.u32  token ids, lowest byte first; the file is a document, named
                                       by its path
                          a snapshot   of a history; each run is a document, PATH#SEQUENCE
                          other files  text, if there is a --tokenizer; the file is a document,
                                       named by its path
)";

constexpr std::string_view merge_purpose =
    R"(Makes one corpus from several with the same vocabulary and the same tokenizer. The result is the
file that a build from all their documents gives, in the order of the arguments.

usage: reprise-index merge --output FILE [OPTION]... CORPUS...

)";

constexpr std::string_view info_purpose =
    R"(Prints the numbers of a corpus. Reads its header only, unless names are asked for.

usage: reprise-index info [OPTION]... CORPUS

)";

constexpr std::string_view verify_purpose =
    R"(Reads the whole of a corpus and checks it: checksums, ids, and the order of the index. Prints the
first fault.

usage: reprise-index verify [OPTION]... CORPUS

)";

constexpr std::string_view query_purpose =
    R"(Finds the longest end of a context that occurs in a corpus. Prints how often it occurs, and the
tokens that follow it with their counts, the most frequent first.

usage: reprise-index query --tokens "1 2 3" [OPTION]... CORPUS

)";

constexpr std::string_view notes = R"(
exit status: 0 done; 1 the corpus is damaged or could not be written; 2 an argument or input cannot
be used.
)";

constexpr std::string_view a_number = "a whole number";

/// Reads a number of bytes: digits, then nothing, K, M, G or T (powers of 1024).
tools::ReadValue bytes(std::size_t& into) {
  return [&into](const std::string& name, const std::string& value) {
    constexpr std::string_view units = "KMGT";
    const std::size_t unit = value.empty() ? units.npos : units.find(value.back());
    const int shift = unit == units.npos ? 0 : 10 * (static_cast<int>(unit) + 1);
    const auto number = tools::parse_unsigned(value.substr(0, value.size() - (shift != 0 ? 1 : 0)));
    if (!number || *number == 0 || *number > std::numeric_limits<std::size_t>::max() >> shift)
      throw InputError(name + " " + value + ": expected a number of bytes such as 500M or 2G");
    into = static_cast<std::size_t>(*number) << shift;
  };
}

std::vector<Option> output_rows(Options& o) {
  return {{"--output", "FILE", "the corpus to write; an existing file is replaced at the end", text(o.output)},
          {"--exclude", "FILE",
           "leaves out the documents that FILE names, one a line: the name, or the id\n"
           "(see info --names)",
           text(o.exclude)}};
}

std::vector<Option> build_rows(Options& o) {
  std::vector<Option> rows = {
      {"--vocabulary", "N",
       "ids of the model's tokenizer; all ids must be below (default: the largest id\n"
       "decides, so the inputs are read twice)",
       whole(o.vocabulary, 1, std::numeric_limits<std::int32_t>::max(), a_number)},
      {"--fingerprint", "N",
       "number of the tokenizer, decimal or after 0x; readers refuse a corpus with\n"
       "another one (default: that of the snapshots, or 0)",
       fingerprint(o.fingerprint)},
      {"--tokenizer", "COMMAND", "command that reads a text on standard input and prints its token ids",
       text(o.tokenizer)},
      {"--memory", "BYTES",
       "most memory for the sort, such as 500M (default 2G); more memory means\n"
       "fewer passes",
       bytes(o.memory)},
      {"--threads", "N", "threads of the sort (default: one for each core)", whole(o.threads, 1, 1024, a_number)}};
  const std::vector<Option> output = output_rows(o);
  rows.insert(rows.begin(), output.begin(), output.end());
  return rows;
}

std::vector<Option> query_rows(Options& o) {
  return {{"--tokens", "IDS", "the context: token ids with blanks or commas between them", text(o.tokens)},
          {"--depth", "N", "longest end of the context to look for, in tokens (default 32)",
           whole(o.depth, 1, 32, a_number)},
          {"--limit", "N", "next tokens to print (default 20)", whole(o.limit, 1, 1 << 20, a_number)}};
}

std::vector<Option> info_rows(Options& o) {
  return {{.name = "--names",
           .help = "print the id, the tokens and the name of each document instead",
           .read = flag(o.names),
           .repeats = true}};
}

Option progress_row(Options& o) {
  return {.name = "--progress",
          .help = "show the progress even if standard error is no terminal",
          .read = flag(o.progress),
          .repeats = true};
}

std::string_view purpose_of(Command command) {
  switch (command) {
    case Command::none:
      return purpose;
    case Command::build:
      return build_purpose;
    case Command::merge:
      return merge_purpose;
    case Command::info:
      return info_purpose;
    case Command::verify:
      return verify_purpose;
    case Command::query:
      return query_purpose;
  }
  return purpose;
}

tools::OptionTable table_of(Options& o) {
  tools::OptionTable table;
  table.help_column = 24;
  table.operand = tools::paths(o.inputs, "FILE");
  table.rows.push_back({"", "", purpose_of(o.command)});
  if (o.command == Command::build) table.add(build_rows(o));
  if (o.command == Command::merge) table.add(output_rows(o));
  if (o.command == Command::info) table.add(info_rows(o));
  if (o.command == Command::query) table.add(query_rows(o));
  if (o.command == Command::build || o.command == Command::merge || o.command == Command::verify)
    table.add({progress_row(o)});
  if (o.command != Command::none)
    table.rows.push_back(
        {"--format", "FORMAT", "text (default) or json", word<bool>(o.json, {{"text", false}, {"json", true}})});
  table.rows.push_back({"", "", notes});
  table.add(tools::help_and_version(o.help, o.version));
  return table;
}

Command command_of(const std::string& name) {
  if (name == "build") return Command::build;
  if (name == "merge") return Command::merge;
  if (name == "info") return Command::info;
  if (name == "verify") return Command::verify;
  if (name == "query") return Command::query;
  throw InputError("'" + name + "' is no command; the first argument is build, merge, info, verify or query");
}

/// Throws InputError if an option that the command needs is missing.
void check_needs(const Options& o) {
  const bool writes = o.command == Command::build || o.command == Command::merge;
  if (writes && o.output.empty()) throw InputError("--output FILE is missing: the corpus to write");
  if (o.command == Command::query && o.tokens.empty())
    throw InputError("--tokens IDS is missing: the context, for example --tokens \"1 2 3\"");
  if (o.inputs.empty())
    throw InputError(o.command == Command::build ? "there is no INPUT; give files or folders with documents"
                                                 : "there is no CORPUS; give the path of a file that build has made");
  if (!writes && o.inputs.size() > 1) throw InputError("'" + o.inputs[1] + "' is a second CORPUS; give one");
}

}  // namespace

Options parse_options(std::span<const std::string> arguments) {
  Options options;
  if (arguments.empty()) throw InputError("there is no command; see --help");
  if (!arguments[0].starts_with("-")) {
    options.command = command_of(arguments[0]);
    arguments = arguments.subspan(1);
  }
  tools::parse(table_of(options), arguments);
  if (options.help || options.version) return options;
  if (options.command == Command::none) throw InputError("there is no command; see --help");
  check_needs(options);
  return options;
}

std::string help_text(Command command) {
  Options options;
  options.command = command;
  return table_of(options).help();
}

std::vector<std::uint32_t> parse_tokens(const std::string& text) {
  std::vector<std::uint32_t> ids;
  constexpr std::string_view between = " ,\t\n";
  for (std::size_t begin = text.find_first_not_of(between); begin != text.npos;) {
    const std::size_t end = std::min(text.find_first_of(between, begin), text.size());
    const std::string piece = text.substr(begin, end - begin);
    const auto id = tools::parse_unsigned(piece);
    if (!id || *id > static_cast<std::uint64_t>(std::numeric_limits<std::int32_t>::max()))
      throw InputError("--tokens: '" + piece + "' is no token id; expected whole numbers from 0 to 2147483647");
    ids.push_back(static_cast<std::uint32_t>(*id));
    begin = text.find_first_not_of(between, end);
  }
  if (ids.empty()) throw InputError("--tokens: has no token id; give at least one");
  return ids;
}

}  // namespace reprise::indexing
