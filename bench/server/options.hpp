// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "server.hpp"

namespace reprise::server {

/// The values of the command line.
struct Options {
  std::vector<std::string> traces;     ///< empty: the bundled ones
  std::string curve = "knee-64.json";  ///< see replay::CostCurve::parse()
  std::vector<std::size_t> sequences = {1, 2, 4, 8, 16, 32, 64, 128, 256};
  std::vector<std::size_t> fixed = {4, 10};
  bool learned = false;
  double noise = 0;
  std::size_t seed = 1;
  std::size_t max_nodes = 32;
  bool trees = true;
  std::size_t threads = 1;
  std::string output;  ///< a file; empty: standard output
  bool help = false;
  bool version = false;
};

/// Reads the arguments after the program's name. Throws tools::InputError.
Options parse_options(std::span<const std::string> arguments);

/// The text of --help.
std::string help_text();

}  // namespace reprise::server
