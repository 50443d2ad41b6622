// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>
#include <vector>

#include "replay/bundled_files.hpp"
#include "replay/terminal.hpp"
#include "tool.hpp"

int main(int argc, char** argv) {
  using namespace reprise;
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const auto program = replay::program_path(argc > 0 ? argv[0] : "");
  return llama::run_tool(
      arguments, {std::cout, std::cerr, replay::bundled_folders(program, "profiles"),
                  replay::is_terminal(replay::Stream::error), replay::terminal_columns(replay::Stream::error, 80)});
}
