// SPDX-License-Identifier: Apache-2.0
// The code on pages is part of programs that are compiled and run.
#include <gtest/gtest.h>

#include <filesystem>
#include <span>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "house/headers.hpp"
#include "reprise/batch/packing.hpp"
#include "reprise/engine/tree.hpp"

namespace pages_test {
namespace {

std::string text_of(const std::string& name) { return house::read(house::root() / name); }

/// The blocks of code of a Markdown text, in order.
std::vector<std::string> examples(const std::string& page, const std::string& language = "cpp") {
  const std::string fence = "```" + language + "\n";
  std::vector<std::string> found;
  for (std::size_t begin = page.find(fence); begin != std::string::npos; begin = page.find(fence, begin)) {
    begin += fence.size();
    found.push_back(page.substr(begin, page.find("```", begin) - begin));
  }
  return found;
}
std::string first_example(const std::string& page, const std::string& language = "cpp") {
  const auto all = examples(page, language);
  return all.empty() ? std::string() : all.front();
}

/// The same lines without the blanks that all of them begin with.
std::string without_indent(const std::string& text) {
  const std::size_t indent = text.find_first_not_of(' ');
  std::string moved;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = text.find('\n', begin) + 1;
    const std::string line = text.substr(begin, end - begin);
    moved += line == "\n" ? line : line.substr(indent);
    begin = end;
  }
  return moved;
}

/// The text between the lines "// [name]" and "// [/name]", for each name in the order of the program.
std::vector<std::string> sections(const std::string& program) {
  std::vector<std::string> found;
  for (std::size_t mark = program.find("// ["); mark != std::string::npos; mark = program.find("// [", mark + 1)) {
    if (program[mark + 4] == '/') continue;
    const std::string name = program.substr(mark + 4, program.find("]\n", mark) - mark - 4);
    const std::size_t begin = program.find('\n', mark) + 1;
    const std::size_t end = program.rfind('\n', program.find("// [/" + name + "]")) + 1;
    EXPECT_LT(begin, end) << name;
    found.push_back(without_indent(program.substr(begin, end - begin)));
  }
  return found;
}

TEST(Pages, StateTheBoundOnLossesInOneSentence) {
  const std::string sentence =
      "With a given cost curve, the passes of one loss budget together lose at most 10 plain passes in any 1,000, "
      "measured in that curve.";
  for (const char* page : {"README.md", "docs/choosing.md", "docs/serving.md", "docs/lossless.md", "docs/faq.md",
                           "docs/performance.md", "docs/decisions/0006-how-much-to-draft.md"}) {
    const std::string text = text_of(page);
    EXPECT_NE(text.find(sentence), std::string::npos) << page;
    std::size_t stated = 0;
    for (std::size_t at = text.find("lose at most 10"); at != std::string::npos;
         at = text.find("lose at most 10", at + 1))
      ++stated;
    EXPECT_EQ(stated, 1U) << page << " states the bound in other words";
  }
}

TEST(Pages, ShowWholePrograms) {
  for (const auto& [page, language, name] :
       {std::tuple("README.md", "cpp", "examples/quickstart.cpp"), {"docs/c.md", "c", "examples/c/first.c"}}) {
    const std::string program = text_of(name);
    const std::string license = program.substr(0, program.find('\n') + 1);
    EXPECT_NE(license.find("SPDX-License-Identifier: Apache-2.0"), std::string::npos);
    EXPECT_EQ(first_example(text_of(page), language), program.substr(license.size())) << page;
  }
}

TEST(Pages, EverySketchIsAProgramWithMarks) {
  const std::string page = text_of("docs/sketches.md");
  EXPECT_EQ(first_example(page), sections(text_of("examples/sketches/rewind_only.cpp")).at(0));
  std::size_t sketches = 0;
  for (const auto& file : std::filesystem::directory_iterator(house::root() / "examples/sketches")) {
    if (file.path().extension() != ".cpp") continue;
    const std::string name = file.path().filename().string();
    const auto shown = sections(text_of("examples/sketches/" + name));
    ASSERT_EQ(shown.size(), 1U) << name;
    EXPECT_NE(page.find("[" + name + "]"), std::string::npos) << name << " is not on the page";
    ++sketches;
  }
  EXPECT_GE(sketches, 4U);
}

TEST(Pages, TheDrafterOfItsPageIsPartOfAProgram) {
  EXPECT_EQ(first_example(text_of("docs/writing-a-drafter.md")), sections(text_of("examples/drafter.cpp")).at(0));
}

TEST(Pages, GettingStartedMeasuresACurveWithAnOptimizedBuild) {
  EXPECT_NE(text_of("docs/getting-started.md").find("-B engine-build -DCMAKE_BUILD_TYPE=Release"), std::string::npos);
}

TEST(Pages, GettingStartedShowsItsProgram) {
  const std::vector<std::string> shown = examples(text_of("docs/getting-started.md"));
  std::vector<std::string> written = sections(text_of("examples/getting_started.cpp"));
  ASSERT_EQ(shown.size(), 8U);
  ASSERT_EQ(written.size(), 8U);
  std::swap(written[4], written[5]);  // the page makes the mistake after the check; a class cannot stand inside main()
  std::swap(written[5], written[6]);
  EXPECT_EQ(shown, written);
}

TEST(Pages, ExamplesAreFoundInMarkdown) {
  EXPECT_EQ(examples("# a\n```sh\nls\n```\n```cpp\nint a;\nint b;\n```\n```cpp\nint c;\n```\n"),
            (std::vector<std::string>{"int a;\nint b;\n", "int c;\n"}));
  EXPECT_EQ(first_example("# a\n"), "");
}

/// The CMake version, such as 3.25: the presets need one, and all files must name the same.
TEST(House, EveryFileNamesTheSameCMake) {
  const std::string wanted = "3.25";
  for (const char* file : {"CMakeLists.txt", "tests/consumer/CMakeLists.txt", "tests/consumer/c/CMakeLists.txt"})
    EXPECT_NE(text_of(file).find("cmake_minimum_required(VERSION " + wanted + ")"), std::string::npos) << file;
  EXPECT_NE(text_of("CMakePresets.json").find(R"("major": 3, "minor": 25)"), std::string::npos);
  EXPECT_NE(text_of("README.md").find("CMake " + wanted), std::string::npos);
}

// docs/serving.md: the parents of a packed batch make a mask with no pending rows.
TEST(Pages, AMaskOfAPackedSequenceComesFromItsParents) {
  const std::vector<reprise::Token> rows = {5, 6, 7, 8, 9};  // two pending tokens, then a tree of three
  const std::vector<reprise::NodeIndex> parents = {-1, -1, 0};
  reprise::BatchPacker packer;
  ASSERT_TRUE(packer.add({.sequence = 0, .batch = rows, .drafted = 0, .parents = {}, .context = 5}));  // a neighbour
  ASSERT_TRUE(packer.add({.sequence = 1, .batch = rows, .drafted = 3, .parents = parents, .context = 9}));

  const reprise::PackedBatch batch = packer.batch();
  const std::size_t first = batch.offsets[1];
  const std::size_t count = batch.offsets[2] - first;
  const auto cached = static_cast<std::size_t>(batch.positions[first]);
  std::vector<float> mask(count * (cached + count));
  reprise::attention_mask(batch.parents.subspan(first, count), 0, cached, cached + count, std::span(mask));

  EXPECT_EQ(cached, 7U);
  std::vector<float> expected(mask.size());
  reprise::attention_mask(parents, 2, cached, cached + count, std::span(expected));
  EXPECT_EQ(mask, expected);
}

}  // namespace
}  // namespace pages_test
