// SPDX-License-Identifier: Apache-2.0
// Compares the layers of docs/overview.md with the files: who may include whom, the length of headers, and that no
// header is forgotten.
#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <iostream>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "house/headers.hpp"

namespace house::layers_test {
namespace {

constexpr std::size_t most_lines = 600;
constexpr std::size_t many_lines = 400;

/// The layers, and the layers that each may include besides itself and the standard library.
const std::map<std::string, Names>& layers() {
  static const Names whole_core = {"core",   "index",   "evidence", "history", "draft",
                                   "engine", "control", "stats",    "loop",    "batch"};
  static const std::map<std::string, Names> table = [] {
    std::map<std::string, Names> made = {
        {"core", {}},
        {"index", {"core"}},
        {"evidence", {"core"}},
        {"history", {"core", "index", "evidence", "control", "draft"}},
        {"draft", {"core", "index", "evidence"}},
        {"engine", {"core"}},
        {"control", {"core", "evidence"}},
        {"stats", {"core"}},
        {"loop", {"core", "engine", "stats"}},
        {"batch", {"core", "evidence", "control", "stats", "loop"}},
        // The headers outside of all layers: the umbrella and the recommended composition.
        {"", whole_core},
        // The parts beside the core.
        {"corpus", {"core", "history"}},
        {"methods", whole_core},
    };
    made["c"] = made["testing"] = whole_core;
    made["c"].insert("");
    made["testing"].insert("");
    return made;
  }();
  return table;
}

/// Returns the includes in quotes that are not of the library.
Names foreign_includes(const std::string& text) {
  Names found = included(text, '"', '"');
  std::erase_if(found, [](const std::string& name) { return is_own(name); });
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

/// Code that users copy: the examples, and the projects that use the installed library.
std::vector<fs::path> code_of_users() {
  std::vector<fs::path> found;
  for (const char* folder : {"examples", "tests/consumer"})
    for (const auto& entry : fs::recursive_directory_iterator(root() / folder))
      if (entry.is_regular_file() && Names{".hpp", ".cpp", ".cu"}.contains(entry.path().extension().string()))
        found.push_back(entry.path());
  return found;
}

TEST(Layers, NoCodeOfUsersTakesFromTheBackRooms) {
  EXPECT_GT(code_of_users().size(), 20U);
  for (const fs::path& path : code_of_users()) {
    const std::string text = read(path);
    for (const std::string& included : own_includes(text))
      EXPECT_FALSE(is_detail(included)) << path << " may not include " << included << ": make its names public";
    EXPECT_EQ(text.find("detail::"), std::string::npos) << path;
  }
}

TEST(Layers, TheTableHasNoCycle) {
  for (const auto& [layer, below] : layers())
    for (const std::string& other : below)
      EXPECT_FALSE(layers().at(other).contains(layer)) << layer << " and " << other << " may include each other";
}

TEST(Layers, AnUpwardIncludeWouldBeFound) {
  EXPECT_EQ(own_includes("#include <vector>\n#  include \"reprise/loop/round.hpp\"\n#include "
                         "<reprise/core/token.hpp>\n"),
            (Names{"reprise/loop/round.hpp", "reprise/core/token.hpp"}));
  EXPECT_EQ(layer_of("reprise/loop/round.hpp"), "loop");
  EXPECT_EQ(layer_of("reprise/loop/detail/sequence.hpp"), "loop");
  EXPECT_EQ(layer_of("reprise/reprise.hpp"), "");
  EXPECT_EQ(layer_of("reprise_methods/best_of.hpp"), "methods");
  EXPECT_EQ(layer_of("reprise_corpus/detail/xxh64.hpp"), "corpus");
  EXPECT_TRUE(is_detail("reprise/loop/detail/sequence.hpp"));
  EXPECT_FALSE(is_detail("reprise/loop/round.hpp"));
  EXPECT_FALSE(may_include("core", "loop"));
  EXPECT_FALSE(may_include("draft", "loop"));
  EXPECT_FALSE(may_include("loop", "draft"));
  EXPECT_FALSE(may_include("loop", "control"));
  EXPECT_FALSE(may_include("draft", "history"));
  EXPECT_FALSE(may_include("c", "testing"));
  EXPECT_FALSE(may_include("loop", "c"));
  EXPECT_FALSE(may_include("core", ""));
  EXPECT_FALSE(may_include("", "methods"));
  EXPECT_FALSE(may_include("draft", "methods"));
  EXPECT_FALSE(may_include("c", "methods"));
  EXPECT_TRUE(may_include("draft", "index"));
}

/// The core is built and tested without the parts, except for the testing kit.
TEST(Layers, NoTestOfTheCoreUsesAPartButTheTestingKit) {
  std::size_t count = 0;
  for (const auto& [layer, below] : layers()) {
    if (layer.empty() || fs::exists(root() / "include" / ("reprise_" + layer))) continue;
    for (const auto& entry : fs::directory_iterator(root() / "tests" / layer)) {
      if (entry.path().extension() != ".cpp") continue;
      ++count;
      for (const std::string& included : own_includes(read(entry.path())))
        EXPECT_TRUE(included.starts_with("reprise/") || included.starts_with("reprise_testing/"))
            << entry.path() << " may not include " << included << ": move the test to the folder of the part";
    }
  }
  EXPECT_GT(count, 90U);
}

TEST(Headers, IncludeOnlyTheStandardLibraryAndEachOther) {
  for (const Header& header : headers())
    EXPECT_EQ(foreign_includes(header.text), Names())
        << header.name << ": write includes as \"reprise/...\" or \"reprise_PART/...\"";
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
  for (const Header& header : headers())
    for (const std::string& included : own_includes(header.text))
      EXPECT_TRUE(fs::is_regular_file(root() / "include" / included)) << header.name << " includes " << included;
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
  // The folder is the second argument of reprise_add_headers(); the names follow it.
  Names listed;
  std::string folder;
  std::istringstream words(read(root() / "CMakeLists.txt"));
  for (std::string word; words >> word;) {
    if (word == "reprise_add_headers(") words >> word >> folder;
    if (!folder.empty() && word.ends_with(".hpp")) listed.insert(folder + "/" + word);
  }
  Names existing;
  for (const Header& header : headers())
    if (header.layer != "c") existing.insert(header.name);  // they are installed as a folder
  EXPECT_EQ(listed, existing) << "the headers in CMakeLists.txt";
}

TEST(Headers, ThatMovedHaveSuccessorsThatExist) {
  EXPECT_NE(read(root() / "docs/migrating.md").find("](../cmake/moved_headers.txt)"), std::string::npos);
  std::istringstream moves(read(root() / "cmake/moved_headers.txt"));
  std::size_t count = 0;
  for (std::string from, to; moves >> from >> to; ++count) {
    EXPECT_TRUE(to == "private" || fs::exists(root() / "include" / to)) << to;
    EXPECT_FALSE(fs::exists(root() / "include" / from)) << from;
  }
  EXPECT_GT(count, 20U);
}

}  // namespace
}  // namespace house::layers_test
