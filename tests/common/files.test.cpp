// SPDX-License-Identifier: Apache-2.0
#include "common/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <system_error>

#include "common/input_error.hpp"

namespace reprise::tools::files_test {
namespace {

namespace fs = std::filesystem;

struct CheckNotAnInput : ::testing::Test {
  // Tests of this fixture may run at the same time, in several processes.
  CheckNotAnInput()
      : folder(fs::path(::testing::TempDir()) / (std::string("reprise-not-an-input-") +
                                                 ::testing::UnitTest::GetInstance()->current_test_info()->name())) {
    fs::remove_all(folder);
    fs::create_directories(folder / "sub");
    std::ofstream(folder / "trace") << "t";
  }
  ~CheckNotAnInput() override { fs::remove_all(folder); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder / name).string(); }
  std::string refused(const std::string& output) const {
    try {
      check_not_an_input(output, "--output o", {{"the curve", path("none")}, {"the trace", path("trace")}});
    } catch (const InputError& error) {
      return error.what();
    }
    return "accepted";
  }
  fs::path folder;
};

TEST_F(CheckNotAnInput, RefusesTheSameFileByAnyName) {
  const std::string sentence =
      "--output o: would replace the trace " + path("trace") + ", which is read; give another file";
  EXPECT_EQ(refused(path("trace")), sentence);
  EXPECT_EQ(refused(path("sub/../trace")), sentence);
  std::error_code no_links;
  fs::create_symlink(folder / "trace", folder / "link", no_links);
  if (!no_links) {
    EXPECT_EQ(refused(path("link")), sentence);
  }
  fs::create_hard_link(folder / "trace", folder / "hard", no_links);
  if (!no_links) {
    EXPECT_EQ(refused(path("hard")), sentence);
  }
}
TEST_F(CheckNotAnInput, LetsOtherFilesAndDevicesBe) {
  EXPECT_EQ(refused(path("new")), "accepted");
  EXPECT_EQ(refused(path("none")), "accepted") << "there is nothing to lose";
  EXPECT_NO_THROW(check_not_an_input("/dev/null", "--output /dev/null", {{"the trace", "/dev/null"}}));
}

}  // namespace
}  // namespace reprise::tools::files_test
