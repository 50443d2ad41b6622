// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>
#include <vector>

#include "common/bundled_files.hpp"
#include "tool.hpp"

int main(int argc, char** argv) {
  using namespace reprise;
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  const auto program = tools::program_path(argc > 0 ? argv[0] : "");
  return groups::run_tool(arguments, {std::cout, std::cerr, tools::bundled_folders(program, "profiles")});
}
