// SPDX-License-Identifier: Apache-2.0
#include "exclusions.hpp"

#include <fstream>

#include "common/files.hpp"
#include "common/input_error.hpp"

namespace reprise::indexing {

Exclusions::Exclusions(const std::string& path) {
  std::ifstream in = tools::open_input(path, "a file with one name a line");
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.find_first_not_of(" \t") != line.npos) names_.emplace(line, false);
  }
  if (in.bad()) throw tools::InputError(path + ": reading failed");
}

bool Exclusions::contains(const std::string& name) {
  const auto found = names_.find(name);
  if (found == names_.end()) return false;
  found->second = true;
  return true;
}

std::vector<std::string> Exclusions::unused() const {
  std::vector<std::string> names;
  for (const auto& [name, used] : names_)
    if (!used) names.push_back(name);
  return names;
}

}  // namespace reprise::indexing
