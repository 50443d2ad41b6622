// SPDX-License-Identifier: Apache-2.0
#include "common/files.hpp"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <iterator>
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

#if !defined(_WIN32)
struct ReplaceText : testing::FolderTest {
  using perms = fs::perms;
  [[nodiscard]] perms mode(const std::string& name) const { return fs::status(path(name)).permissions(); }
};

TEST_F(ReplaceText, IsForTheOwnerAndAFileThatIsReplacedKeepsItsPermissions) {
  ASSERT_TRUE(replace_text(path("report"), "new"));
  EXPECT_EQ(mode("report"), perms::owner_read | perms::owner_write);
  fs::permissions(path("report"), perms::others_read, fs::perm_options::add);
  ASSERT_TRUE(replace_text(path("report"), "newer"));
  EXPECT_EQ(mode("report"), perms::owner_read | perms::owner_write | perms::others_read);
  EXPECT_EQ(read(path("report")), "newer");
  EXPECT_EQ(std::distance(fs::directory_iterator(folder_), fs::directory_iterator()), 1);
}

TEST_F(ReplaceText, FollowsTheLinkThatIsGivenAndNoOther) {
  write("victim", "precious");
  fs::create_symlink("victim", folder_ / "report.new");
  fs::create_symlink("real", folder_ / "report");  // leads to no file yet
  ASSERT_TRUE(replace_text(path("report"), "1"));
  ASSERT_TRUE(replace_text(path("report"), "2"));
  EXPECT_EQ(read(path("real")), "2");
  EXPECT_TRUE(fs::is_symlink(folder_ / "report"));
  EXPECT_EQ(read(path("victim")), "precious");
}

TEST_F(ReplaceText, WritesDevicesAndNamesWithoutRoomForATemporaryFileDirectly) {
  EXPECT_TRUE(replace_text("/dev/null", "text"));
  EXPECT_FALSE(fs::is_regular_file("/dev/null"));
  const std::string longest(250, 'x');
  EXPECT_TRUE(replace_text(path(longest), "text"));
  EXPECT_EQ(read(path(longest)), "text");
  EXPECT_FALSE(replace_text(path("none/report"), "text"));
}
#endif

}  // namespace
}  // namespace reprise::tools::files_test
