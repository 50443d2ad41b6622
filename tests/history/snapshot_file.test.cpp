// SPDX-License-Identifier: Apache-2.0
#include "reprise/history/snapshot_file.hpp"

#include <gtest/gtest.h>

#if !defined(_WIN32)  // the tests cause faults with POSIX calls

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>
#if defined(__linux__)
#include <sys/sysmacros.h>
#endif

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <functional>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "support/folder_test.hpp"
#include "support/property_cases.hpp"
#include "support/snapshots.hpp"

namespace reprise::snapshot_file_test {
namespace {

namespace fs = std::filesystem;
using detail::FileCalls;
using detail::FileKind;
using testing::Bytes;

class SnapshotFile : public testing::FolderTest {
 protected:
  [[nodiscard]] std::set<std::string> files() const {
    std::set<std::string> names;
    for (const auto& entry : fs::directory_iterator(folder_)) names.insert(entry.path().filename().string());
    return names;
  }
};
using FaultySave = SnapshotFile;
using FaultyLoad = SnapshotFile;
using KilledSave = SnapshotFile;

Bytes bytes_of(std::string_view text) {
  const auto bytes = std::as_bytes(std::span(text));
  return {bytes.begin(), bytes.end()};
}

/// Returns the contents of the file; fails the test if it cannot be loaded.
Bytes loaded(const fs::path& path) {
  reprise::Bytes bytes;
  const auto result = load_file(path, bytes);
  EXPECT_TRUE(result) << path << ": " << result.error().message << ' ' << result.error().value;
  return {bytes.begin(), bytes.end()};
}

void expect_error(const Result<void>& result, ErrorCode code, std::uint64_t value = 0) {
  ASSERT_FALSE(result);
  EXPECT_EQ(result.error().code, code) << result.error().message;
  EXPECT_EQ(result.error().value, value) << result.error().message;
  EXPECT_GE(result.error().message.size(), 20U);
}

/// The real calls, with a hook before each, and with fewer bytes per call.
struct FaultyCalls {
  /// Called before each call with its name. A result other than 0 is returned as the error of that call.
  std::function<int(std::string_view)> before = [](std::string_view) { return 0; };
  std::size_t most = unlimited;
  bool syncs = true;

  static bool interrupted(int error) { return FileCalls::interrupted(error); }
  static std::uint64_t process() { return FileCalls::process(); }
  static std::uint64_t most_bytes() { return FileCalls::most_bytes(); }
  int look(const char* path, FileKind& kind) {
    const int error = before("look");
    return error != 0 ? error : FileCalls::look(path, kind);
  }
  int measure(int file, FileKind& kind, std::uint64_t& bytes) {
    const int error = before("measure");
    return error != 0 ? error : FileCalls::measure(file, kind, bytes);
  }
  int create(const char* path, int& file) {
    const int error = before("create");
    return error != 0 ? error : FileCalls::create(path, file);
  }
  int open(const char* path, int& file) {
    const int error = before("open");
    return error != 0 ? error : FileCalls::open(path, file);
  }
  int write(int file, std::span<const std::byte> bytes, std::size_t& count) {
    const int error = before("write");
    return error != 0 ? error : FileCalls::write(file, bytes.first(std::min(bytes.size(), most)), count);
  }
  int read(int file, std::span<std::byte> bytes, std::size_t& count) {
    const int error = before("read");
    return error != 0 ? error : FileCalls::read(file, bytes.first(std::min(bytes.size(), most)), count);
  }
  int sync(int file) {
    const int error = before("sync");
    return error != 0 || !syncs ? error : FileCalls::sync(file);
  }
  /// Closes the file even if it returns an error, as Linux does.
  int close(int file) {
    const int error = before("close");
    const int closed = FileCalls::close(file);
    return error != 0 ? error : closed;
  }
  int replace(const char* from, const char* to) {
    const int error = before("replace");
    return error != 0 ? error : FileCalls::replace(from, to);
  }
  int remove(const char* path) {
    const int error = before("remove");
    return error != 0 ? error : FileCalls::remove(path);
  }
  int open_folder(const char* path, int& folder) {
    const int error = before("open_folder");
    return error != 0 ? error : FileCalls::open_folder(path, folder);
  }
  int sync_folder(int folder) {
    const int error = before("sync_folder");
    return error != 0 || !syncs ? error : FileCalls::sync_folder(folder);
  }
};

TEST_F(SnapshotFile, ComesBack) {
  for (const std::size_t size : {0U, 1U, 4095U, 4096U, 1'000'000U}) {
    const Bytes bytes(size, std::byte{0x5a});
    ASSERT_TRUE(save_file(folder_ / "a", bytes));
    EXPECT_EQ(loaded(folder_ / "a"), bytes) << "replaced by another size";
  }
  EXPECT_EQ(files(), (std::set<std::string>{"a"})) << "nothing is left beside it";
}

TEST_F(SnapshotFile, IsForItsOwnerOnly) {
  ASSERT_TRUE(save_file(folder_ / "a", bytes_of("secret")));
  struct stat status = {};
  ASSERT_EQ(::stat((folder_ / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);

  // Nothing of an old file stays: neither its mode nor its owner, if the test may give it another one.
  ASSERT_EQ(::chmod((folder_ / "a").c_str(), 0666), 0);
  static_cast<void>(::chown((folder_ / "a").c_str(), 65534, 65534));
  const int old = ::open((folder_ / "a").c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_TRUE(save_file(folder_ / "a", bytes_of("new secret")));
  ASSERT_EQ(::stat((folder_ / "a").c_str(), &status), 0);
  EXPECT_EQ(status.st_mode & 0777U, 0600U);
  EXPECT_EQ(status.st_uid, ::geteuid());
  ASSERT_EQ(::fstat(old, &status), 0);
  EXPECT_EQ(status.st_size, 6) << "a reader of the old file sees nothing new";
  ::close(old);
}

TEST_F(SnapshotFile, IsForItsOwnerOnlyFromItsCreationOn) {
  const auto before = ::umask(0);
  std::size_t seen = 0;
  FaultyCalls calls;
  calls.most = 2;
  calls.before = [&](std::string_view name) {
    if (name == "create" || name == "look" || name == "open_folder") return 0;
    for (const auto& entry : fs::directory_iterator(folder_)) {
      struct stat status = {};
      EXPECT_EQ(::stat(entry.path().c_str(), &status), 0);
      EXPECT_EQ(status.st_mode & 0777U, 0600U) << entry.path() << " before " << name;
      ++seen;
    }
    return 0;
  };
  EXPECT_TRUE(detail::save_file(calls, folder_ / "a", bytes_of("secret")));
  ::umask(before);
  EXPECT_EQ(seen, 8U) << "before each call after the creation";
}

TEST_F(SnapshotFile, IsNotWrittenThroughALinkWithTheNameOfTheNewFile) {
  ASSERT_TRUE(save_file(folder_ / "victim", bytes_of("precious")));
  const std::string planted = "a." + std::to_string(::getpid()) + "-0.tmp";
  fs::create_symlink(folder_ / "victim", folder_ / planted.c_str());
  ASSERT_TRUE(save_file(folder_ / "a", bytes_of("secret")));
  EXPECT_EQ(loaded(folder_ / "victim"), bytes_of("precious"));
  EXPECT_EQ(loaded(folder_ / "a"), bytes_of("secret"));
  EXPECT_TRUE(fs::is_regular_file(fs::symlink_status(folder_ / "a")));
}

TEST_F(SnapshotFile, AboveTheLimitForFilesIsRefusedWithoutASignal) {
  ASSERT_TRUE(save_file(folder_ / "a", bytes_of("old")));
  const pid_t child = ::fork();
  if (child == 0) {
    std::signal(SIGXFSZ, SIG_DFL);  // which would end the process, and leave the new file
    const rlimit limit = {1000, 1000};
    ::setrlimit(RLIMIT_FSIZE, &limit);
    const auto saved = save_file(folder_ / "a", Bytes(1001, std::byte{'T'}));
    const bool refused = !saved && saved.error().value == EFBIG;
    ::_exit(refused && save_file(folder_ / "b", Bytes(1000, std::byte{'T'})) ? 0 : 1);
  }
  int status = -1;
  ASSERT_EQ(::waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  EXPECT_EQ(loaded(folder_ / "a"), bytes_of("old"));
  EXPECT_EQ(files(), (std::set<std::string>{"a", "b"}));
}

TEST_F(SnapshotFile, MayBeNamedFromTheCurrentFolder) {
  const fs::path before = fs::current_path();
  fs::current_path(folder_);
  EXPECT_TRUE(save_file("a", bytes_of("1")));
  EXPECT_EQ(loaded("./a"), bytes_of("1"));
  EXPECT_FALSE(save_file("./", bytes_of("1"))) << "a folder";
  fs::current_path(before);
  EXPECT_EQ(files(), (std::set<std::string>{"a"}));
}

TEST_F(SnapshotFile, IsLoadedUpToTheLimit) {
  ASSERT_TRUE(save_file(folder_ / "a", bytes_of("12345")));
  reprise::Bytes bytes;
  EXPECT_TRUE(load_file(folder_ / "a", bytes, 5));
  EXPECT_EQ(bytes.size(), 5U);
  EXPECT_EQ(bytes.capacity(), 5U) << "as many bytes as the file has";
  const auto refused = load_file(folder_ / "a", bytes, 4);
  expect_error(refused, ErrorCode::file_too_large, 5);
  EXPECT_EQ(refused.error().limit, 4U);
  EXPECT_EQ(bytes.size(), 0U) << "nothing of the one before";
}

TEST_F(SnapshotFile, ThatIsMissingIsSaidToBe) {
  reprise::Bytes bytes;
  expect_error(load_file(folder_ / "a", bytes), ErrorCode::no_such_file);
  expect_error(load_file(folder_ / "no" / "a", bytes), ErrorCode::no_such_file);
  expect_error(save_file(folder_ / "no" / "a", bytes_of("1")), ErrorCode::file_failed, ENOENT);
  ASSERT_TRUE(save_file(folder_ / "file", bytes_of("1")));
  expect_error(load_file(folder_ / "file" / "a", bytes), ErrorCode::file_failed, ENOTDIR);
  expect_error(save_file(folder_ / "file" / "a", bytes_of("1")), ErrorCode::file_failed, ENOTDIR);
}

TEST_F(SnapshotFile, WithoutANameOrWithANulInItIsRefused) {
  for (const fs::path& path :
       {fs::path(), fs::path((folder_ / "a").string() + '\0' + "b"), fs::path(std::string(1, '\0'))}) {
    reprise::Bytes bytes;
    expect_error(save_file(path, bytes_of("1")), ErrorCode::bad_file_name);
    expect_error(load_file(path, bytes), ErrorCode::bad_file_name);
  }
  EXPECT_EQ(files(), std::set<std::string>());
}

TEST_F(SnapshotFile, ErrorsOfTheSystemAreSaidAsWhatTheyAre) {
  const auto says = [](const Result<void>& result, std::string_view words) {
    return !result && result.error().message.find(words) != std::string_view::npos;
  };
  const std::string longest(250, 'x');  // valid for the file, too long for the temporary file
  const auto too_long = save_file(folder_ / longest.c_str(), bytes_of("1"));
  expect_error(too_long, ErrorCode::file_failed, ENAMETOOLONG);
  EXPECT_TRUE(says(too_long, "too long"));
  EXPECT_TRUE(says(save_file(folder_ / std::string(300, 'x').c_str(), bytes_of("1")), "too long"));
  reprise::Bytes bytes;
  EXPECT_TRUE(says(load_file(folder_ / std::string(300, 'x').c_str(), bytes), "too long"));
  EXPECT_TRUE(says(save_file(folder_ / "no" / "a", bytes_of("1")), "does not exist"));
  EXPECT_EQ(files(), std::set<std::string>());
  EXPECT_TRUE(save_file(folder_ / longest.substr(20).c_str(), bytes_of("1")));
}

TEST_F(SnapshotFile, FoldersPipesAndDevicesAreNeitherReadNorReplaced) {
  fs::create_directory(folder_ / "folder");
  ASSERT_EQ(::mkfifo((folder_ / "pipe").c_str(), 0600), 0);
  std::set<std::string> names = {"folder", "pipe"};
#if defined(__linux__)
  // Never the devices in /dev: a bug in the tested code would replace them for the whole machine.
  if (::mknod((folder_ / "full").c_str(), S_IFCHR | 0600, makedev(1, 7)) == 0) names.insert("full");
#endif
  for (const std::string& name : names) {
    reprise::Bytes bytes;
    const auto read = load_file(folder_ / name.c_str(), bytes);
    ASSERT_FALSE(read) << name;
    // Some file systems refuse to open devices.
    EXPECT_TRUE(read.error().code == ErrorCode::not_a_regular_file || (name == "full" && read.error().value == EACCES));
    expect_error(save_file(folder_ / name.c_str(), bytes_of("1")), ErrorCode::not_a_regular_file);
    EXPECT_FALSE(fs::is_regular_file(folder_ / name.c_str())) << name << " is what it was";
  }
  EXPECT_EQ(files(), names);
}

TEST_F(SnapshotFile, LinksAreFollowedToLoadAndNeverReplaced) {
  ASSERT_TRUE(save_file(folder_ / "a", bytes_of("1")));
  fs::create_symlink(folder_ / "a", folder_ / "link");
  fs::create_symlink(folder_ / "none", folder_ / "dangling");
  EXPECT_EQ(loaded(folder_ / "link"), bytes_of("1"));
  reprise::Bytes bytes;
  expect_error(load_file(folder_ / "dangling", bytes), ErrorCode::no_such_file);
  expect_error(save_file(folder_ / "link", bytes_of("2")), ErrorCode::not_a_regular_file);
  expect_error(save_file(folder_ / "dangling", bytes_of("2")), ErrorCode::not_a_regular_file);
  EXPECT_EQ(loaded(folder_ / "a"), bytes_of("1"));
  EXPECT_EQ(files(), (std::set<std::string>{"a", "link", "dangling"}));
}

TEST_F(SnapshotFile, LeftoversOfOthersAreLeftAlone) {
  const std::string leftover = "a." + std::to_string(::getpid()) + "-0.tmp";
  std::ofstream(folder_ / leftover.c_str()) << "mine";
  ASSERT_TRUE(save_file(folder_ / "a", bytes_of("1")));
  EXPECT_EQ(loaded(folder_ / leftover.c_str()), bytes_of("mine"));
  EXPECT_EQ(files(), (std::set<std::string>{"a", leftover}));
}

TEST_F(SnapshotFile, SavedByManyThreadsIsOneOfTheirs) {
  std::vector<std::thread> threads;
  threads.reserve(4);
  for (int i = 0; i < 4; ++i)
    threads.emplace_back([this, i] {
      for (int round = 0; round < 5; ++round)
        EXPECT_TRUE(save_file(folder_ / "a", Bytes(50'000, static_cast<std::byte>(i))));
    });
  for (std::thread& thread : threads) thread.join();
  const Bytes bytes = loaded(folder_ / "a");
  EXPECT_EQ(bytes, Bytes(50'000, bytes[0]));
  EXPECT_EQ(files(), (std::set<std::string>{"a"}));
}

// Faults, one call at a time.

using Names = std::vector<std::string>;

TEST_F(FaultySave, CallsInTheOnlyOrderThatSurvivesAPowerCut) {
  Names names;
  FaultyCalls calls;
  calls.most = 2;
  calls.before = [&](std::string_view name) { return names.emplace_back(name), 0; };
  ASSERT_TRUE(detail::save_file(calls, folder_ / "a", bytes_of("12345")));
  EXPECT_EQ(names, (Names{"look", "open_folder", "create", "write", "write", "write", "sync", "close", "replace",
                          "sync_folder", "close"}));
  EXPECT_EQ(loaded(folder_ / "a"), bytes_of("12345"));
}

TEST_F(FaultySave, AnyCallThatFailsLeavesTheOldFileAndNothingElse) {
  ASSERT_TRUE(save_file(folder_ / "a", bytes_of("old")));
  Names failed;
  for (std::size_t fail_at = 0; fail_at < 8; ++fail_at) {
    std::size_t count = 0;
    FaultyCalls calls;
    calls.most = 3;
    calls.before = [&](std::string_view name) {
      if (count++ != fail_at) return 0;
      failed.emplace_back(name);
      return EIO;
    };
    expect_error(detail::save_file(calls, folder_ / "a", bytes_of("newer")), ErrorCode::file_failed, EIO);
    EXPECT_EQ(loaded(folder_ / "a"), bytes_of("old")) << failed.back();
    EXPECT_EQ(files(), (std::set<std::string>{"a"})) << failed.back();
  }
  EXPECT_EQ(failed, (Names{"look", "open_folder", "create", "write", "write", "sync", "close", "replace"}));
}

TEST_F(FaultySave, AFolderThatCannotBeSyncedIsSaidWithTheNewFileInPlace) {
  ASSERT_TRUE(save_file(folder_ / "a", bytes_of("old")));
  FaultyCalls calls;
  calls.before = [](std::string_view name) { return name == "sync_folder" ? EIO : 0; };
  const auto saved = detail::save_file(calls, folder_ / "a", bytes_of("new"));
  expect_error(saved, ErrorCode::file_failed, EIO);
  EXPECT_NE(saved.error().message.find("in place"), std::string_view::npos);
  EXPECT_EQ(loaded(folder_ / "a"), bytes_of("new"));
  EXPECT_EQ(files(), (std::set<std::string>{"a"}));
}

TEST_F(FaultySave, ASyncThatFailedIsNotTriedAgain) {
  std::size_t syncs = 0;
  FaultyCalls calls;
  calls.before = [&](std::string_view name) { return name == "sync" && ++syncs == 1 ? EIO : 0; };
  expect_error(detail::save_file(calls, folder_ / "a", bytes_of("new")), ErrorCode::file_failed, EIO);
  EXPECT_EQ(syncs, 1U);
  EXPECT_EQ(files(), std::set<std::string>());
}

TEST_F(FaultySave, AWriteOfNothingDoesNotGoOnForEver) {
  FaultyCalls calls;
  calls.most = 0;
  expect_error(detail::save_file(calls, folder_ / "a", bytes_of("new")), ErrorCode::file_failed);
  EXPECT_EQ(files(), std::set<std::string>());
}

TEST_F(FaultySave, AFolderFullOfLeftoversEndsTheSearchForAName) {
  std::size_t attempts = 0;
  FaultyCalls calls;
  calls.before = [&](std::string_view name) { return name == "create" ? (++attempts, EEXIST) : 0; };
  expect_error(detail::save_file(calls, folder_ / "a", bytes_of("new")), ErrorCode::file_failed, EEXIST);
  EXPECT_EQ(attempts, 1000U);
}

TEST_F(FaultySave, AFullDiskAndAFileSystemThatIsOnlyReadAreSaid) {
  const auto message = [&](std::string_view failing, int error) {
    FaultyCalls calls;
    calls.before = [&](std::string_view name) { return name == failing ? error : 0; };
    return detail::save_file(calls, folder_ / "a", bytes_of("new")).error().message;
  };
  EXPECT_NE(message("write", ENOSPC).find("disk is full"), std::string_view::npos);
  EXPECT_NE(message("write", EDQUOT).find("quota"), std::string_view::npos);
  EXPECT_NE(message("close", EDQUOT).find("quota"), std::string_view::npos);
  EXPECT_NE(message("sync", ENOSPC).find("disk is full"), std::string_view::npos);
  EXPECT_NE(message("create", EROFS).find("read-only"), std::string_view::npos);
  EXPECT_NE(message("create", EEXIST).find("*.tmp"), std::string_view::npos);
  EXPECT_EQ(message("create", EIO).find("*.tmp"), std::string_view::npos);
  EXPECT_NE(message("replace", EACCES).find("permissions"), std::string_view::npos);
}

TEST_F(FaultySave, MakesCallsThatSignalsInterruptAgainButForClose) {
  const Bytes bytes = bytes_of("1234567");
  std::size_t interruptions = 0;
  std::size_t closes = 0;
  FaultyCalls calls;
  calls.most = 2;
  calls.before = [&](std::string_view name) {
    if (name == "close") return ++closes, EINTR;
    if (name == "look" || name == "measure" || name == "replace") return 0;
    return ++interruptions % 3 != 0 ? EINTR : 0;
  };
  ASSERT_TRUE(detail::save_file(calls, folder_ / "a", bytes));
  EXPECT_EQ(interruptions, 24U) << "folder, name, four writes, two syncs: three calls each";
  EXPECT_EQ(closes, 2U);
  reprise::Bytes back;
  ASSERT_TRUE(detail::load_file(calls, folder_ / "a", back, unlimited));
  EXPECT_TRUE(std::ranges::equal(back, bytes));
  EXPECT_EQ(closes, 3U);
}

TEST_F(FaultyLoad, AnyCallThatFailsIsAnErrorWithoutBytes) {
  ASSERT_TRUE(save_file(folder_ / "a", bytes_of("12345")));
  for (const std::string_view failing : {"open", "measure", "read"}) {
    FaultyCalls calls;
    calls.before = [&](std::string_view name) { return name == failing ? EIO : 0; };
    reprise::Bytes bytes;
    ASSERT_TRUE(bytes.resize(3, std::byte{1}));
    expect_error(detail::load_file(calls, folder_ / "a", bytes, unlimited), ErrorCode::file_failed, EIO);
    EXPECT_EQ(bytes.size(), 0U);
  }
}

TEST_F(FaultyLoad, AFileThatBecomesShorterMeanwhileIsAnError) {
  ASSERT_TRUE(save_file(folder_ / "a", bytes_of("12345")));
  FaultyCalls calls;
  calls.before = [&](std::string_view name) { return name == "read" ? ::truncate((folder_ / "a").c_str(), 3) : 0; };
  reprise::Bytes bytes;
  expect_error(detail::load_file(calls, folder_ / "a", bytes, unlimited), ErrorCode::file_failed);
  EXPECT_EQ(bytes.size(), 0U);
}

TEST_F(FaultyLoad, AFileThatBecomesAFolderMeanwhileIsRefused) {
  ASSERT_TRUE(save_file(folder_ / "a", bytes_of("12345")));
  FaultyCalls calls;
  calls.before = [&](std::string_view name) {
    if (name == "open") {
      fs::remove(folder_ / "a");
      fs::create_directory(folder_ / "a");
    }
    return 0;
  };
  reprise::Bytes bytes;
  expect_error(detail::load_file(calls, folder_ / "a", bytes, unlimited), ErrorCode::not_a_regular_file);
}

TEST(SystemFault, ADeviceThatIsFullIsAnErrorOfTheWrite) {
  const int full = ::open("/dev/full", O_WRONLY | O_CLOEXEC);
  if (full < 0) GTEST_SKIP() << "no /dev/full here";
  std::size_t count = 1;
  EXPECT_EQ(FileCalls::write(full, Bytes(10), count), ENOSPC);
  EXPECT_EQ(count, 0U);
  EXPECT_EQ(FileCalls::close(full), 0);
}

// A process that is killed while it saves. REPRISE_KILLS sets the number of kills.

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
constexpr std::size_t usual_kills = 200;  // a fork takes twenty times as long there
#else
constexpr std::size_t usual_kills = 1000;
#endif

std::size_t kills() { return testing::environment_number("REPRISE_KILLS", usual_kills); }

TEST_F(KilledSave, AtAnyCallLeavesTheOldFileOrTheNewOne) {
  testing::Random random(12);
  Bytes old = testing::sample_snapshot(1, false, 0);
  ASSERT_TRUE(save_file(folder_ / "a", old));
  std::size_t replaced = 0;
  std::size_t kept = 0;
  for (std::size_t i = 0; i < kills(); ++i) {
    const Bytes fresh = testing::sample_snapshot(1 + random.below(20), false, i + 1);
    FaultyCalls calls;
    calls.syncs = false;  // sync matters only for a power failure
    calls.most = 1 + fresh.size() / (1 + random.below(20));
    const std::size_t writes = (fresh.size() + calls.most - 1) / calls.most;
    // look, open_folder, create, writes, sync, close, replace, sync_folder, close
    const std::size_t kill_at = random.below(8 + writes + 1);
    const bool published = kill_at > 5 + writes;
    std::size_t count = 0;
    calls.before = [&](std::string_view) { return count++ == kill_at ? ::raise(SIGKILL) : 0; };
    const pid_t child = ::fork();
    if (child == 0) ::_exit(detail::save_file(calls, folder_ / "a", fresh) ? 0 : 1);
    int status = 0;
    ASSERT_EQ(::waitpid(child, &status, 0), child);
    ASSERT_EQ(WIFSIGNALED(status), kill_at < 8 + writes);
    ASSERT_EQ(loaded(folder_ / "a"), published ? fresh : old) << "kill " << i << " before call " << kill_at;
    ASSERT_TRUE(SnapshotReader::open(loaded(folder_ / "a"), testing::some_tokenizer));
    ASSERT_EQ(files().size(), kill_at > 2 && !published ? 2U : 1U) << "at most one leftover";
    for (const std::string& name : files())
      if (name.ends_with(".tmp")) fs::remove(folder_ / name.c_str());
    ++(published ? replaced : kept);
    if (published) old = fresh;
  }
  if (kills() >= 100) {
    EXPECT_GT(replaced, 5U);
    EXPECT_GT(kept, 50U);
  }
}

}  // namespace
}  // namespace reprise::snapshot_file_test

#endif
