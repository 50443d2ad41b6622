// SPDX-License-Identifier: Apache-2.0
#include "tool.hpp"

#include <exception>
#include <new>
#include <sstream>

#include "build.hpp"
#include "common/input_error.hpp"
#include "common/interrupt.hpp"
#include "common/text.hpp"
#include "options.hpp"
#include "output_file.hpp"
#include "report.hpp"
#include "reprise/core/token.hpp"
#include "stage_progress.hpp"

namespace reprise::indexing {
namespace {

int deliver(const Surroundings& surroundings, const std::string& text, int status) {
  surroundings.out << text;
  surroundings.out.flush();
  if (surroundings.out) return status;
  surroundings.error << "reprise-index: standard output could not be written\n";
  return exit_failed;
}

StageProgress::Style style_of(const Options& options, const Surroundings& surroundings) {
  if (surroundings.error_is_terminal) return StageProgress::Style::redrawn;
  return options.progress ? StageProgress::Style::repeated : StageProgress::Style::hidden;
}

/// Writes a corpus, and notes lines of --exclude without a document.
void write_corpus(const Options& options, StageProgress& progress, std::ostream& out, std::ostream& error) {
  const tools::InterruptFlag flag;
  const Built built = options.command == Command::build ? build(options, progress) : merge(options, progress);
  progress.clear();
  write_built(out, built, options.json);
  for (const std::string& line : built.unused)
    error << "reprise-index: note: " << tools::printable(options.exclude) << ": no document is named '"
          << tools::printable(line) << "'\n";
}

int run(const Options& options, const Surroundings& surroundings) {
  StageProgress progress(surroundings.error, style_of(options, surroundings));
  std::ostringstream text;
  int status = exit_done;
  switch (options.command) {
    case Command::none:
      break;
    case Command::build:
    case Command::merge:
      write_corpus(options, progress, text, surroundings.error);
      break;
    case Command::info:
      write_info(text, options);
      break;
    case Command::verify:
      if (!write_verified(text, options, progress)) status = exit_failed;
      break;
    case Command::query:
      write_query(text, options);
      break;
  }
  return deliver(surroundings, text.str(), status);
}

}  // namespace

int run_tool(std::span<const std::string> arguments, const Surroundings& surroundings) {
  const auto say = [&](const std::string& message) {
    surroundings.error << "reprise-index: " << tools::printable(message) << "\n";
  };
  const FileSizeSignalIgnored ignored;
  try {
    const Options options = parse_options(arguments);
    if (options.help) return deliver(surroundings, help_text(options.command), exit_done);
    if (options.version) return deliver(surroundings, "reprise-index " + std::string(version_string) + "\n", exit_done);
    return run(options, surroundings);
  } catch (const tools::InputError& error) {
    say(error.what());
    return exit_bad_input;
  } catch (const std::bad_alloc&) {
    say("out of memory; give --memory a smaller value");
    return exit_failed;
  } catch (const std::exception& error) {
    say(error.what());
    return exit_failed;
  }
}

}  // namespace reprise::indexing
