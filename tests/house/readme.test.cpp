// SPDX-License-Identifier: Apache-2.0
// The code in README.md, docs/sketches.md and docs/writing-a-drafter.md is part of programs that are compiled and run.
#include <gtest/gtest.h>

#include <filesystem>
#include <string>

#include "house/headers.hpp"

namespace readme_test {
namespace {

std::string read(const std::string& name) { return house::read(house::root() / name); }

/// Returns the first block of code in a Markdown text.
std::string first_example(const std::string& text, const std::string& language = "cpp") {
  const std::string fence = "```" + language + "\n";
  const std::size_t begin = text.find(fence);
  if (begin == std::string::npos) return {};
  const std::size_t end = text.find("\n```", begin);
  return text.substr(begin + fence.size(), end - begin - fence.size() + 1);
}

TEST(Readme, ItsFirstExampleIsTheQuickstart) {
  std::string program = read("examples/quickstart.cpp");
  ASSERT_TRUE(program.starts_with("// SPDX-License-Identifier: Apache-2.0\n"));
  program.erase(0, program.find('\n') + 1);
  EXPECT_EQ(first_example(read("README.md")), program);
}

TEST(Readme, TheExampleInCIsAProgram) {
  std::string program = read("examples/c/first.c");
  program.erase(0, program.find('\n') + 1);
  EXPECT_EQ(first_example(read("docs/c.md"), "c"), program);
}

TEST(Readme, EverySketchIsPartOfAProgram) {
  const std::string page = read("docs/sketches.md");
  std::size_t sketches = 0;
  for (const auto& file :
       std::filesystem::directory_iterator(std::filesystem::path(REPRISE_SOURCE_DIR) / "examples/sketches")) {
    if (file.path().extension() != ".cpp") continue;
    const std::string name = file.path().filename().string();
    const std::string program = read("examples/sketches/" + name);
    const std::string mark = "// [sketch]\n";
    const std::size_t begin = program.find(mark);
    const std::size_t end = program.find("// [/sketch]");
    ASSERT_TRUE(begin != std::string::npos && end != std::string::npos) << name;
    const std::size_t link = page.find("[" + name + "]");
    ASSERT_NE(link, std::string::npos) << name << " is not on the page";
    EXPECT_EQ(first_example(page.substr(link)), program.substr(begin + mark.size(), end - begin - mark.size())) << name;
    ++sketches;
  }
  EXPECT_GE(sketches, 4U);
}

/// The CMake version, such as 3.25: the presets need one, and all files must name the same.
TEST(House, EveryFileNamesTheSameCMake) {
  const std::string wanted = "3.25";
  for (const char* file : {"CMakeLists.txt", "tests/consumer/CMakeLists.txt", "tests/consumer/c/CMakeLists.txt"})
    EXPECT_NE(read(file).find("cmake_minimum_required(VERSION " + wanted + ")"), std::string::npos) << file;
  EXPECT_NE(read("CMakePresets.json").find(R"("major": 3, "minor": 25)"), std::string::npos);
  EXPECT_NE(read("README.md").find("CMake " + wanted), std::string::npos);
}

TEST(Readme, TheDrafterOfItsPageIsPartOfAProgram) {
  const std::string program = read("examples/drafter.cpp");
  const std::string mark = "// [drafter]\n";
  const std::size_t begin = program.find(mark);
  const std::size_t end = program.find("// [/drafter]");
  ASSERT_TRUE(begin != std::string::npos && end != std::string::npos);
  EXPECT_EQ(first_example(read("docs/writing-a-drafter.md")),
            program.substr(begin + mark.size(), end - begin - mark.size()));
}

TEST(Readme, AnExampleIsFoundInMarkdown) {
  EXPECT_EQ(first_example("# a\n```sh\nls\n```\n```cpp\nint a;\nint b;\n```\n```cpp\nint c;\n```\n"),
            "int a;\nint b;\n");
  EXPECT_EQ(first_example("# a\n"), "");
}

}  // namespace
}  // namespace readme_test
