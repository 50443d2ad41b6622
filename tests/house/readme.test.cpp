// SPDX-License-Identifier: Apache-2.0
// The code that README.md shows is a program that is compiled and run.
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>

namespace {

std::string read(const std::string& name) {
  std::ifstream file(std::filesystem::path(REPRISE_SOURCE_DIR) / name, std::ios::binary);
  EXPECT_TRUE(file) << "cannot read " << name;
  std::string text{std::istreambuf_iterator<char>(file), std::istreambuf_iterator<char>()};
  std::erase(text, '\r');
  return text;
}

/// The first block of C++ of a Markdown text.
std::string first_example(const std::string& text) {
  const std::string fence = "```cpp\n";
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

TEST(Readme, AnExampleIsFoundInMarkdown) {
  EXPECT_EQ(first_example("# a\n```sh\nls\n```\n```cpp\nint a;\nint b;\n```\n```cpp\nint c;\n```\n"),
            "int a;\nint b;\n");
  EXPECT_EQ(first_example("# a\n"), "");
}

}  // namespace
