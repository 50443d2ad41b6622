// SPDX-License-Identifier: Apache-2.0
#include "common/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <string>
#include <system_error>

#include "support/folder_test.hpp"
#include "support/refusal.hpp"

namespace reprise::tools::files_test {
namespace {

namespace fs = std::filesystem;

struct CheckNotAnInput : testing::FolderTest {
  CheckNotAnInput() {
    fs::create_directories(folder_ / "sub");
    write("trace", "t");
  }

  std::string refused(const std::string& output) const {
    return testing::refusal([&] {
      check_not_an_input(output, "--output o", {{"the curve", path("none")}, {"the trace", path("trace")}});
    });
  }
};

TEST_F(CheckNotAnInput, RefusesTheSameFileByAnyName) {
  const std::string sentence =
      "--output o: would replace the trace " + path("trace") + ", which is read; give another file";
  EXPECT_EQ(refused(path("trace")), sentence);
  EXPECT_EQ(refused(path("sub/../trace")), sentence);
  std::error_code no_links;
  fs::create_symlink(folder_ / "trace", folder_ / "link", no_links);
  if (!no_links) {
    EXPECT_EQ(refused(path("link")), sentence);
  }
  fs::create_hard_link(folder_ / "trace", folder_ / "hard", no_links);
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
