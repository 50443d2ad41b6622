// SPDX-License-Identifier: Apache-2.0
/// Writes the bundled traces into the folder that is given: `reprise-generate-traces bench/traces`.
#include <fstream>
#include <iostream>
#include <string>

#include "synthetic.hpp"

int main(int argc, char** argv) {
  if (argc != 2) {
    std::cerr << "usage: reprise-generate-traces FOLDER\n";
    return 2;
  }
  for (const auto& file : reprise::traces::synthetic_traces()) {
    const std::string path = std::string(argv[1]) + "/" + file.name;
    std::ofstream out(path, std::ios::binary | std::ios::trunc);
    out << file.text;
    out.close();
    if (!out) {
      std::cerr << "reprise-generate-traces: " << path << ": could not be written\n";
      return 1;
    }
  }
  return 0;
}
