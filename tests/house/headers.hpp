// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>
#include <sstream>
#include <string>
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

inline std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << "cannot read " << path;
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::erase(text, '\r');
  return text;
}

struct Header {
  std::string name;     // reprise/core/token.hpp
  std::string layer;    // core
  bool detail = false;  // lies in <layer>/detail/
  std::string text;
};

/// Returns "core" for "reprise/core/token.hpp" and "reprise/core/detail/log.hpp", and "" for "reprise/reprise.hpp".
inline std::string layer_of(const std::string& name) {
  const std::size_t begin = name.find('/') + 1;
  const std::size_t end = name.find('/', begin);
  return end == std::string::npos ? "" : name.substr(begin, end - begin);
}
inline bool is_detail(const std::string& name) { return name.find("/detail/") != std::string::npos; }

inline const std::vector<Header>& headers() {
  static const std::vector<Header> all = [] {
    std::vector<Header> found;
    for (const auto& entry : fs::recursive_directory_iterator(root() / "include")) {
      if (!entry.is_regular_file()) continue;
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
  std::erase_if(found, [](const std::string& name) { return !name.starts_with("reprise/"); });
  return found;
}

/// The headers that call the operating system. No other header includes them.
inline const Names& system_headers() {
  static const Names names = {"reprise/history/detail/file_calls.hpp", "reprise/history/snapshot_file.hpp"};
  return names;
}

/// True for public headers outside reprise.hpp: the testing kit, the extras, and the calls of the operating system.
inline bool is_public_by_list(const Header& header) {
  return !header.detail &&
         (header.layer == "testing" || header.layer == "extras" || system_headers().contains(header.name));
}

}  // namespace house
