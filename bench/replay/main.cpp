// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>
#include <vector>

#include "common/bundled_files.hpp"
#include "common/terminal.hpp"
#include "tool.hpp"

int main(int argc, char** argv) {
  using namespace reprise;
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  if (tools::is_terminal(tools::Stream::error)) tools::end_line_at_interrupt();
  const auto program = tools::program_path(argc > 0 ? argv[0] : "");
  return replay::run_tool(arguments, {std::cout,
                                      std::cerr,
                                      tools::bundled_folders(program, "traces"),
                                      tools::bundled_folders(program, "profiles"),
                                      {tools::terminal_columns(tools::Stream::output, 120), tools::locale_is_utf8()},
                                      tools::is_terminal(tools::Stream::error),
                                      tools::terminal_columns(tools::Stream::error, 80)});
}
