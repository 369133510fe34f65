#include "engine/base/database_files.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include "engine/base/sqlite.h"
#include "tests/support/results.h"
#include "tests/support/temp_directory.h"

namespace verger {
namespace {

using testing::HasSubstr;

struct stat look_at(const Path& path) {
  struct stat found{};
  EXPECT_EQ(::stat(path.c_str(), &found), 0) << path;
  return found;
}

/// While it lives, what the process makes is for its user alone.
class NarrowMask {
 public:
  ~NarrowMask() { ::umask(old_); }
  NarrowMask() = default;
  NarrowMask(const NarrowMask&) = delete;
  NarrowMask& operator=(const NarrowMask&) = delete;

 private:
  mode_t old_ = ::umask(077);
};

class DatabaseFiles : public testing::Test {
 protected:
  DatabaseFiles() {
    EXPECT_EQ(::mkdir(directory_.c_str(), 0700), 0);
    EXPECT_EQ(::chmod(directory_.c_str(), 0775), 0);
    if (is_root_) {
      EXPECT_EQ(::chown(directory_.c_str(), 4242, 4343), 0);
    }
  }

  /// It is as of `like`; of its permissions those of `bits`.
  void expect_inherited(const Path& path, std::uint32_t bits) {
    const auto wanted = look_at(directory_);
    const auto found = look_at(path);
    EXPECT_EQ(found.st_uid, wanted.st_uid) << path;
    EXPECT_EQ(found.st_gid, wanted.st_gid) << path;
    EXPECT_EQ(found.st_mode & 0777U, wanted.st_mode & bits) << path;
  }

  const bool is_root_ = ::geteuid() == 0;
  test::TempDirectory temp_;
  const Path directory_ = temp_.path() / "db";
  FileSystem& files_ = database_file_system();
};

TEST_F(DatabaseFiles, GetTheirDirectorysOwnerFromAnyCreator) {
  const NarrowMask mask;
  ASSERT_TRUE(files_.open(directory_ / "new", OpenMode::kCreateNew));
  ASSERT_TRUE(files_.open(directory_ / "created", OpenMode::kCreate));
  ok(write_file_durably(files_, directory_ / "writer.chk", as_bytes("12345678")));
  ASSERT_TRUE(files_.lock(directory_ / "verger.lock"));
  ok(files_.make_directories(directory_ / "index" / "scavenging"));
  const auto state = directory_ / "index" / "scavenging" / "scavenging.db";
  {
    auto database = sqlite::Database::open(files_, state, {.create = true});
    ASSERT_TRUE(database) << database.error().message;
    ok(database->execute("CREATE TABLE a (b)"));
  }
  for (const auto* name : {"new", "created", "writer.chk", "verger.lock"}) {
    expect_inherited(directory_ / name, 0666);
  }
  expect_inherited(state, 0666);
  expect_inherited(directory_ / "index", 0777);
  expect_inherited(directory_ / "index" / "scavenging", 0777);
}

TEST_F(DatabaseFiles, ThatAreThereKeepWhatTheyHave) {
  const auto path = directory_ / "there";
  ASSERT_TRUE(posix_file_system().open(path, OpenMode::kCreateNew));
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  ASSERT_TRUE(files_.open(path, OpenMode::kCreate));
  EXPECT_EQ(files_.open(path, OpenMode::kCreateNew).error().code, Errc::kExists);
  EXPECT_EQ(look_at(path).st_mode & 0777U, 0600U);
  EXPECT_EQ(look_at(path).st_uid, ::geteuid());
}

TEST_F(DatabaseFiles, OfADirectoryThatUsersShareAreTheirMakers) {
  ASSERT_EQ(::chmod(directory_.c_str(), 01777), 0);
  ok(files_.make_directories(directory_ / "mine"));
  ASSERT_TRUE(files_.open(directory_ / "file", OpenMode::kCreate));
  EXPECT_EQ(look_at(directory_ / "mine").st_uid, ::geteuid());
  EXPECT_EQ(look_at(directory_ / "mine").st_mode & 0022U, 0U);
  EXPECT_EQ(look_at(directory_ / "file").st_uid, ::geteuid());
}

TEST_F(DatabaseFiles, ThatCannotBeGivenAwayAreNotMade) {
  if (!is_root_) {
    GTEST_SKIP() << "needs root, to become somebody else";
  }
  // Another user may write there, and may not give files away.
  ASSERT_EQ(::chmod(temp_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chmod(directory_.c_str(), 0777), 0);
  ASSERT_EQ(::seteuid(4999), 0);
  const auto made = files_.open(directory_ / "new", OpenMode::kCreate);
  ASSERT_EQ(::seteuid(0), 0);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::kRefused);
  EXPECT_THAT(made.error().message, HasSubstr("cannot be given to 4242:4343"));
  EXPECT_FALSE(*files_.exists(directory_ / "new"));
}

TEST_F(DatabaseFiles, NeedTheUserOrRoot) {
  const auto is = look_at(directory_);
  const Path directories[] = {directory_, directory_ / "not-there"};
  const auto check = [&](FileMaker maker) { return check_file_owner(directories, maker); };
  EXPECT_TRUE(check({.user = is.st_uid, .groups = {7, is.st_gid}}));
  EXPECT_TRUE(check({.user = 0, .groups = {7}}));
  const auto stranger = check({.user = is.st_uid + 9, .groups = {is.st_gid}});
  ASSERT_FALSE(stranger);
  EXPECT_EQ(stranger.error().code, Errc::kRefused);
  EXPECT_THAT(stranger.error().message, HasSubstr(directory_.string() + ": belongs to "));
  EXPECT_THAT(stranger.error().message, HasSubstr("or as root"));
  if (is.st_uid != 0) {
    const auto outsider = check({.user = is.st_uid, .groups = {is.st_gid + 1}});
    ASSERT_FALSE(outsider);
    EXPECT_THAT(outsider.error().message, HasSubstr("not in that group"));
  }
}

}  // namespace
}  // namespace verger
