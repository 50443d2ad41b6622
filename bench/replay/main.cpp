// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>
#include <vector>

#include "bundled_files.hpp"
#include "terminal.hpp"
#include "tool.hpp"

int main(int argc, char** argv) {
  using namespace reprise::replay;
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const auto program = program_path(argc > 0 ? argv[0] : "");
  return run_tool(arguments, {std::cout,
                              std::cerr,
                              bundled_folders(program, "traces"),
                              bundled_folders(program, "profiles"),
                              {terminal_columns(Stream::output, 120), locale_is_utf8()},
                              is_terminal(Stream::error),
                              terminal_columns(Stream::error, 80)});
}
