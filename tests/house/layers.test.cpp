// SPDX-License-Identifier: Apache-2.0
// What docs say about the tree, held against the files: who may include whom, how long a header may be, and that no
// header is forgotten.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <map>
#include <set>
#include <sstream>
#include <string>
#include <vector>

namespace {

namespace fs = std::filesystem;

using Names = std::set<std::string>;

constexpr std::size_t most_lines = 600;
constexpr std::size_t many_lines = 400;

/// The layers, and what each may include besides itself and the standard library.
const std::map<std::string, Names>& layers() {
  static const std::map<std::string, Names> table = {
      {"core", {}},
      {"index", {"core"}},
      {"evidence", {"core"}},
      {"memory", {"core", "index", "evidence"}},
      {"draft", {"core", "index", "evidence", "memory"}},
      {"verify", {"core"}},
      {"control", {"core", "evidence"}},
      {"stats", {"core"}},
      {"loop", {"core", "verify", "control", "stats"}},
      {"batch", {"core", "evidence", "control", "stats", "loop"}},
      {"testing", {"core", "index", "evidence", "memory", "draft", "verify", "control", "stats", "loop", "batch", ""}},
      // The headers that lie in no layer: the umbrella and the recommended composition.
      {"", {"core", "index", "evidence", "memory", "draft", "verify", "control", "stats", "loop", "batch"}},
  };
  return table;
}

/// What calls the operating system; nobody gets it who does not ask for it.
const Names& system_headers() {
  static const Names names = {"reprise/memory/file_calls.hpp", "reprise/memory/snapshot_file.hpp"};
  return names;
}

const fs::path& root() {
  static const fs::path path = REPRISE_SOURCE_DIR;
  return path;
}

std::string read(const fs::path& path) {
  std::ifstream file(path, std::ios::binary);
  EXPECT_TRUE(file) << "cannot read " << path;
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::erase(text, '\r');
  return text;
}

struct Header {
  std::string name;   // reprise/core/token.hpp
  std::string layer;  // core
  std::string text;
};

/// "core" of "reprise/core/token.hpp", "" of "reprise/reprise.hpp".
std::string layer_of(const std::string& name) {
  const std::size_t begin = name.find('/') + 1;
  const std::size_t end = name.find('/', begin);
  return end == std::string::npos ? "" : name.substr(begin, end - begin);
}

const std::vector<Header>& headers() {
  static const std::vector<Header> all = [] {
    std::vector<Header> found;
    for (const auto& entry : fs::recursive_directory_iterator(root() / "include")) {
      if (!entry.is_regular_file()) continue;
      const std::string name = fs::relative(entry.path(), root() / "include").generic_string();
      found.push_back({name, layer_of(name), read(entry.path())});
    }
    std::sort(found.begin(), found.end(), [](const Header& a, const Header& b) { return a.name < b.name; });
    return found;
  }();
  return all;
}

/// What stands between `open` and the next `close`, wherever a line begins with "#include" and then `open`. (Plain
/// searching: compilers warn about std::regex under sanitizers.)
Names included(const std::string& text, char open, char close) {
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

/// The headers of the library that this text includes.
Names own_includes(const std::string& text) {
  Names found = included(text, '"', '"');
  found.merge(included(text, '<', '>'));
  std::erase_if(found, [](const std::string& name) { return !name.starts_with("reprise/"); });
  return found;
}

/// Files in quotes that are not named from reprise/ on.
Names foreign_includes(const std::string& text) {
  Names found = included(text, '"', '"');
  std::erase_if(found, [](const std::string& name) { return name.starts_with("reprise/"); });
  return found;
}

bool may_include(const std::string& from, const std::string& to) {
  return from == to || layers().at(from).contains(to);
}

TEST(Layers, ThereAreHeadersToRead) { EXPECT_GT(headers().size(), 20U); }

TEST(Layers, EveryHeaderLiesInAKnownLayer) {
  for (const Header& header : headers())
    EXPECT_TRUE(layers().contains(header.layer)) << header.name << ": write the new layer into this table";
}

TEST(Layers, NoHeaderIncludesALayerAboveItsOwn) {
  for (const Header& header : headers())
    for (const std::string& included : own_includes(header.text))
      EXPECT_TRUE(may_include(header.layer, layer_of(included))) << header.name << " may not include " << included;
}

TEST(Layers, TheTableHasNoCycle) {
  for (const auto& [layer, below] : layers())
    for (const std::string& other : below)
      EXPECT_FALSE(layers().at(other).contains(layer)) << layer << " and " << other << " may include each other";
}

TEST(Layers, AnUpwardIncludeWouldBeFound) {
  EXPECT_EQ(
      own_includes("#include <vector>\n#  include \"reprise/loop/round.hpp\"\n#include <reprise/core/token.hpp>\n"),
      (Names{"reprise/loop/round.hpp", "reprise/core/token.hpp"}));
  EXPECT_EQ(layer_of("reprise/loop/round.hpp"), "loop");
  EXPECT_EQ(layer_of("reprise/reprise.hpp"), "");
  EXPECT_FALSE(may_include("core", "loop"));
  EXPECT_FALSE(may_include("draft", "loop"));
  EXPECT_FALSE(may_include("loop", "draft"));
  EXPECT_FALSE(may_include("core", ""));
  EXPECT_TRUE(may_include("draft", "index"));
}

TEST(Headers, IncludeOnlyTheStandardLibraryAndEachOther) {
  for (const Header& header : headers())
    EXPECT_EQ(foreign_includes(header.text), Names()) << header.name << ": write includes as \"reprise/...\"";
  EXPECT_EQ(foreign_includes("#include \"token.hpp\"\n"), Names{"token.hpp"});
}

TEST(Headers, AskTheSystemOnlyWhereItIsSaid) {
  for (const Header& header : headers()) {
    Names of_the_system = included(header.text, '<', '>');
    std::erase_if(of_the_system, [](const std::string& name) { return !name.ends_with(".h"); });
    if (!system_headers().contains(header.name)) {
      EXPECT_EQ(of_the_system, Names()) << header.name;
    }
  }
}

TEST(Headers, IncludeOnlyHeadersThatExist) {
  Names existing;
  for (const Header& header : headers()) existing.insert(header.name);
  for (const Header& header : headers())
    for (const std::string& included : own_includes(header.text))
      EXPECT_TRUE(existing.contains(included)) << header.name << " includes " << included;
}

TEST(Headers, BeginWithTheLicenceAndAGuard) {
  for (const Header& header : headers()) {
    EXPECT_TRUE(header.text.starts_with("// SPDX-License-Identifier: Apache-2.0\n")) << header.name;
    EXPECT_NE(header.text.find("\n#pragma once\n"), std::string::npos) << header.name;
  }
}

TEST(Headers, AreShort) {
  for (const Header& header : headers()) {
    const auto lines = static_cast<std::size_t>(std::count(header.text.begin(), header.text.end(), '\n'));
    EXPECT_LE(lines, most_lines) << header.name;
    if (lines > many_lines)
      std::cout << "note: " << header.name << " has " << lines << " lines; can it be two ideas?\n";
  }
}

TEST(Headers, AreAllInTheBuildFileAndNoOthers) {
  Names listed;
  std::istringstream words(read(root() / "CMakeLists.txt"));
  for (std::string word; words >> word;)
    if (word.starts_with("include/reprise/") && word.ends_with(".hpp")) listed.insert(word.substr(8));
  Names existing;
  for (const Header& header : headers()) existing.insert(header.name);
  EXPECT_EQ(listed, existing) << "the HEADERS file set of CMakeLists.txt";
}

TEST(Headers, AreAllInTheUmbrellaButTheTestingKitAndTheCallsOfTheSystem) {
  const auto umbrella = std::find_if(headers().begin(), headers().end(),
                                     [](const Header& header) { return header.name == "reprise/reprise.hpp"; });
  ASSERT_NE(umbrella, headers().end());
  // Reached directly or through another header of the library: parts of an index are not listed by themselves.
  Names reached;
  std::vector<std::string> open = {umbrella->name};
  while (!open.empty()) {
    const std::string name = open.back();
    open.pop_back();
    if (!reached.insert(name).second) continue;
    const auto header =
        std::find_if(headers().begin(), headers().end(), [&](const Header& other) { return other.name == name; });
    if (header == headers().end()) continue;
    for (const std::string& included : own_includes(header->text)) open.push_back(included);
  }
  for (const Header& header : headers())
    EXPECT_EQ(reached.contains(header.name), header.layer != "testing" && !system_headers().contains(header.name))
        << header.name;
}

}  // namespace
