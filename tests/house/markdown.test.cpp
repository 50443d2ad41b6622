// SPDX-License-Identifier: Apache-2.0
// The Markdown files of the project. Every link inside of the project leads to a file and a heading that exist, and
// examples/README.md lists every example. The tests that tests/faults.md names exist. commands.sh holds the commands.
#include <gtest/gtest.h>

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <map>
#include <sstream>
#include <string>
#include <vector>

#include "house/headers.hpp"

namespace house::markdown_test {
namespace {

/// The lines of a page outside of its code blocks.
std::vector<std::string> lines_of_prose(const std::string& page) {
  std::vector<std::string> found;
  std::istringstream lines(page);
  bool code = false;
  for (std::string line; std::getline(lines, line);) {
    const std::size_t begin = line.find_first_not_of(' ');
    const bool fence = begin != std::string::npos && line.compare(begin, 3, "```") == 0;
    if (fence) code = !code;
    if (!fence && !code) found.push_back(line);
  }
  return found;
}

/// Without the texts between backquotes.
std::string without_code(const std::string& line) {
  std::string out;
  bool code = false;
  for (const char c : line) {
    if (c == '`') code = !code;
    if (!code) out += c;
  }
  return out;
}

/// The targets of the links and pictures of a line.
std::vector<std::string> links(const std::string& line) {
  std::vector<std::string> found;
  const std::string text = without_code(line);
  for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1)) {
    const std::size_t end = text.find(')', at);
    if (end != std::string::npos) found.push_back(text.substr(at + 2, end - at - 2));
  }
  return found;
}

/// The anchor that a heading gets on the pages of GitHub.
std::string anchor_of(const std::string& heading) {
  std::string text = heading.substr(heading.find_first_not_of("# "));
  // Of a link only its words count.
  for (std::size_t at = text.find("]("); at != std::string::npos; at = text.find("](", at + 1))
    text.erase(at + 1, text.find(')', at) - at);
  std::string anchor;
  for (const char c : text) {
    const auto letter = static_cast<unsigned char>(c);
    if (c == ' ')
      anchor += '-';
    else if (std::isalnum(letter) != 0 || c == '-' || c == '_' || letter >= 0x80)
      anchor += static_cast<char>(std::tolower(letter));
  }
  return anchor;
}

/// The anchors of a page. A heading that repeats gets a number.
Names anchors(const std::string& page) {
  Names found;
  std::map<std::string, int> times;
  for (const std::string& line : lines_of_prose(page)) {
    if (!line.starts_with("#") || line.find_first_not_of("# ") == std::string::npos) continue;
    const std::string anchor = anchor_of(line);
    const int before = times[anchor]++;
    found.insert(before == 0 ? anchor : anchor + "-" + std::to_string(before));
  }
  return found;
}

bool inside_of_project(const std::string& target) {
  return target.find("://") == std::string::npos && !target.starts_with("mailto:");
}

TEST(Markdown, LinksLeadToFilesAndHeadingsThatExist) {
  std::size_t count = 0;
  for (const fs::path& file : markdown_files())
    for (const std::string& line : lines_of_prose(read(file)))
      for (const std::string& target : links(line)) {
        if (!inside_of_project(target)) continue;
        ++count;
        const std::size_t hash = target.find('#');
        const fs::path to = hash == 0 ? file : file.parent_path() / target.substr(0, hash);
        const std::string from = fs::relative(file, root()).generic_string() + ": " + target;
        if (!fs::exists(to)) {
          ADD_FAILURE() << from << ": there is no such file";
        } else if (hash != std::string::npos && to.extension() == ".md") {
          EXPECT_TRUE(anchors(read(to)).contains(target.substr(hash + 1))) << from << ": there is no such heading";
        }
      }
  EXPECT_GT(count, 50U);
}

/// The texts between backquotes.
std::vector<std::string> code_of(const std::string& line) {
  std::vector<std::string> found;
  for (std::size_t at = line.find('`'); at != std::string::npos; at = line.find('`', at + 1)) {
    const std::size_t end = line.find('`', at + 1);
    if (end == std::string::npos) break;
    found.push_back(line.substr(at + 1, end - at - 1));
    at = end;
  }
  return found;
}

TEST(Markdown, EveryReportedFaultHasATestThatExists) {
  std::string tests;
  for (const char* folder : {"tests", "examples/python/tests"})
    for (const auto& entry : fs::recursive_directory_iterator(root() / folder))
      if (entry.path().extension() == ".cpp" || entry.path().extension() == ".py") tests += read(entry.path());
  std::size_t count = 0;
  for (const std::string& line : lines_of_prose(read(root() / "tests/faults.md"))) {
    const std::size_t last = line.rfind('|', line.size() - 2);
    if (!line.starts_with("| ") || last == std::string::npos) continue;
    const std::vector<std::string> names = code_of(line.substr(last));
    if (names.empty()) {
      EXPECT_EQ(line, "| fault | test |") << "a row without a test";
      continue;
    }
    ++count;
    for (const std::string& name : names) {
      const std::size_t dot = name.find('.');
      const bool file = name.find('/') != std::string::npos;
      const std::string shown = file || dot == std::string::npos
                                    ? "def " + name + "("
                                    : "(" + name.substr(0, dot) + ", " + name.substr(dot + 1) + ")";
      EXPECT_TRUE(file ? fs::exists(root() / name) : tests.find(shown) != std::string::npos)
          << "tests/faults.md: there is no test " << name;
    }
  }
  EXPECT_GT(count, 40U);
}

TEST(Markdown, EveryExampleIsInTheIndex) {
  Names listed;
  for (const std::string& line : lines_of_prose(read(root() / "examples/README.md")))
    for (const std::string& target : links(line)) listed.insert(target);
  for (const auto& entry : fs::recursive_directory_iterator(root() / "examples")) {
    if (entry.path().extension() != ".cpp") continue;
    const fs::path file = fs::relative(entry.path(), root() / "examples");
    // A program in a folder of its own is described there.
    const bool own_page = fs::exists(entry.path().parent_path() / "README.md") && file.has_parent_path();
    const std::string name = own_page ? (file.parent_path() / "README.md").generic_string() : file.generic_string();
    EXPECT_TRUE(listed.contains(name)) << "examples/README.md has no link to " << name;
  }
}

TEST(Markdown, LinksAreFoundInText) {
  EXPECT_EQ(links("[a](b.md), `[c](d)` and ![e](f.svg#g)"), (std::vector<std::string>{"b.md", "f.svg#g"}));
  EXPECT_EQ(lines_of_prose("a\n```sh\n# b\n```\nc\n"), (std::vector<std::string>{"a", "c"}));
}
TEST(Markdown, AnchorsAreThoseOfTheHeadings) {
  EXPECT_EQ(anchor_of("## How objects are made"), "how-objects-are-made");
  EXPECT_EQ(anchor_of("### `reprise/loop/session.hpp`"), "repriseloopsessionhpp");
  EXPECT_EQ(anchor_of("# With generate(): write a Verifier"), "with-generate-write-a-verifier");
  EXPECT_EQ(anchors("# A\n## B\n## B\n"), (Names{"a", "b", "b-1"}));
}

}  // namespace
}  // namespace house::markdown_test
