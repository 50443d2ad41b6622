// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <vector>

/// \file The headers of the library as files, for the tests of the source tree. They use plain searching instead of
/// std::regex, because compilers warn about std::regex under sanitizers.
namespace house {

namespace fs = std::filesystem;

using Names = std::set<std::string>;

inline const fs::path& root() {
  static const fs::path path = REPRISE_SOURCE_DIR;
  return path;
}

inline bool in_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }
inline std::string_view left_trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front())) != 0) text.remove_prefix(1);
  return text;
}
inline std::string_view stripped(std::string_view text) {
  text = left_trimmed(text);
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back())) != 0) text.remove_suffix(1);
  return text;
}

inline std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << "cannot read " << path;
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::erase(text, '\r');
  return text;
}

/// The Markdown files of the project, without those of build folders and of hidden ones.
inline std::vector<fs::path> markdown_files() {
  std::vector<fs::path> found;
  for (auto entry = fs::recursive_directory_iterator(root()); entry != fs::recursive_directory_iterator(); ++entry) {
    const std::string name = entry->path().filename().string();
    if (entry->is_directory() && (name.starts_with(".") || (entry.depth() == 0 && name.starts_with("build"))))
      entry.disable_recursion_pending();
    if (entry->is_regular_file() && entry->path().extension() == ".md") found.push_back(entry->path());
  }
  std::sort(found.begin(), found.end());
  return found;
}

struct Header {
  std::string name;     // reprise/core/token.hpp
  std::string layer;    // core
  bool detail = false;  // lies in <layer>/detail/
  std::string text;
};

/// The folders of include/: the core, and the parts beside it.
inline bool is_own(const std::string& include) {
  return include.starts_with("reprise/") || include.starts_with("reprise_");
}

/// Returns "core" for "reprise/core/token.hpp" and "reprise/core/detail/log.hpp", "" for "reprise/reprise.hpp", and the
/// name of the part for a header beside the core: "methods" for "reprise_methods/best_of.hpp".
inline std::string layer_of(const std::string& name) {
  const std::size_t begin = name.find('/') + 1;
  if (name.starts_with("reprise_")) return name.substr(8, begin - 9);
  const std::size_t end = name.find('/', begin);
  return end == std::string::npos ? "" : name.substr(begin, end - begin);
}
inline bool is_detail(const std::string& name) { return name.find("/detail/") != std::string::npos; }

inline const std::vector<Header>& headers() {
  static const std::vector<Header> all = [] {
    std::vector<Header> found;
    for (const auto& entry : fs::recursive_directory_iterator(root() / "include")) {
      if (!entry.is_regular_file() || entry.path().extension() != ".hpp") continue;
      const std::string name = fs::relative(entry.path(), root() / "include").generic_string();
      found.push_back({name, layer_of(name), is_detail(name), read(entry.path())});
    }
    std::sort(found.begin(), found.end(), [](const Header& a, const Header& b) { return a.name < b.name; });
    return found;
  }();
  return all;
}

/// Returns the names between `open` and the next `close` in lines that begin with "#include" and `open`.
inline Names included(const std::string& text, char open, char close) {
  Names found;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find(open);
    if (begin == std::string::npos || line.find_first_not_of(" \t") != line.find('#')) continue;
    std::string directive = line.substr(0, begin);
    std::erase_if(directive, [](char c) { return c == ' ' || c == '\t'; });
    if (directive == "#include") found.insert(line.substr(begin + 1, line.find(close, begin + 1) - begin - 1));
  }
  return found;
}

/// Returns the headers of the library that this text includes.
inline Names own_includes(const std::string& text) {
  Names found = included(text, '"', '"');
  found.merge(included(text, '<', '>'));
  std::erase_if(found, [](const std::string& name) { return !is_own(name); });
  return found;
}

/// The headers that call the operating system. No other header includes them.
inline const Names& system_headers() {
  static const Names names = {"reprise_corpus/mapped_corpus.hpp", "reprise/history/detail/file_calls.hpp",
                              "reprise/history/snapshot_file.hpp"};
  return names;
}

/// True for the headers that only include others.
inline bool is_umbrella(const std::string& name) {
  return Names{"reprise/reprise.hpp", "reprise/batch.hpp", "reprise/history.hpp"}.contains(name);
}

}  // namespace house
