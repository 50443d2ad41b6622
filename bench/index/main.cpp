// SPDX-License-Identifier: Apache-2.0
#include <iostream>
#include <string>
#include <vector>

#include "common/terminal.hpp"
#include "tool.hpp"

int main(int argc, char** argv) {
  using namespace reprise;
  const std::vector<std::string> arguments(argv + (argc > 0 ? 1 : 0), argv + argc);
  return indexing::run_tool(arguments, {std::cout, std::cerr, tools::is_terminal(tools::Stream::error)});
}
