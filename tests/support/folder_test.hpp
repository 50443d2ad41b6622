// SPDX-License-Identifier: Apache-2.0
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <random>
#include <sstream>
#include <string>

namespace reprise::testing {

/// A test with a folder of its own, which is empty at first and removed at the end.
class FolderTest : public ::testing::Test {
 protected:
  FolderTest() : folder_(std::filesystem::path(::testing::TempDir()) / folder_name()) {
    std::filesystem::remove_all(folder_);
    std::filesystem::create_directories(folder_);
  }
  ~FolderTest() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).generic_string(); }
  /// Writes a file, after the folders of its name. Returns its path.
  std::string write(const std::string& name, const std::string& text) const {
    std::filesystem::create_directories((folder_ / name).parent_path());
    std::ofstream(folder_ / name, std::ios::binary) << text;
    return path(name);
  }
  /// Returns the bytes of a file; none if it cannot be read.
  [[nodiscard]] static std::string read(const std::string& path) {
    std::ostringstream text;
    text << std::ifstream(path, std::ios::binary).rdbuf();
    return text.str();
  }

  const std::filesystem::path folder_;

 private:
  /// The number keeps runs of the same test apart, as of two checkouts on one machine.
  static std::string folder_name() {
    const auto* test = ::testing::UnitTest::GetInstance()->current_test_info();
    std::string name = std::string("reprise-") + test->test_suite_name() + "-" + test->name() + "-" +
                       std::to_string(std::random_device()());
    std::replace(name.begin(), name.end(), '/', '-');
    return name;
  }
};

}  // namespace reprise::testing
