// SPDX-License-Identifier: Apache-2.0
#include "exclusions.hpp"

#include <charconv>
#include <cstddef>
#include <fstream>
#include <span>
#include <system_error>

#include "common/files.hpp"
#include "common/input_error.hpp"
#include "reprise_corpus/detail/xxh64.hpp"

namespace reprise::indexing {
namespace {

/// The id that a line spells as 0x and 16 digits, or else the id of the document that it names.
std::uint64_t id_of(const std::string& line) {
  constexpr std::size_t digits = 16;
  std::uint64_t id = 0;
  if (line.size() == 2 + digits && line.starts_with("0x")) {
    const char* const end = line.data() + line.size();
    const auto [stop, error] = std::from_chars(line.data() + 2, end, id, 16);
    if (error == std::errc() && stop == end) return id;
  }
  return document_id(line);
}

}  // namespace

std::uint64_t document_id(std::string_view name) { return reprise::detail::Xxh64::of(std::as_bytes(std::span(name))); }

Exclusions::Exclusions(const std::string& path) {
  std::ifstream in = tools::open_input(path, "a file with one name a line");
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    if (line.find_first_not_of(" \t") != line.npos) lines_.insert({id_of(line), {line, false}});
  }
  if (in.bad()) throw tools::InputError(path + ": reading failed");
}

bool Exclusions::contains(std::string_view name) {
  if (lines_.empty()) return false;
  const auto found = lines_.find(document_id(name));
  if (found == lines_.end()) return false;
  found->second.used = true;
  return true;
}

std::vector<std::string> Exclusions::unused() const {
  std::vector<std::string> lines;
  for (const auto& [id, line] : lines_)
    if (!line.used) lines.push_back(line.text);
  return lines;
}

}  // namespace reprise::indexing
