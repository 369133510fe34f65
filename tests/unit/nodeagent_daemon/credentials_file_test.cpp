#include "nodeagent/daemon/credentials_file.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_directory.h"

namespace verger::agent {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

class Lines final : public Log {
 public:
  void write(LogLevel level, std::string_view message, std::span<const LogField>) override {
    if (level >= LogLevel::kWarning) {
      said.emplace_back(message);
    }
  }
  std::vector<std::string> said;
};

class CredentialsFileTest : public ::testing::Test {
 protected:
  void write(const std::string& text, fs::perms mode = fs::perms::owner_read) {
    fs::remove(path_);
    std::ofstream(path_) << text;
    fs::permissions(path_, mode);
  }
  test::TempDirectory directory_;
  fs::path path_ = directory_.path() / "node-credentials";
  Lines log_;
};

TEST_F(CredentialsFileTest, AnotherPasswordCountsForThoseWhoHaveTheFormer) {
  write("ops\nold\n");
  auto file = CredentialsFile::open(path_, posix_file_system(), log_);
  ASSERT_TRUE(file.has_value());
  const auto held = (*file)->current();
  EXPECT_EQ(held->password, "old");
  write("ops\r\nnew\r\n");
  (*file)->look();
  EXPECT_EQ(held->user, "ops");
  EXPECT_EQ(held->password, "new");
  EXPECT_THAT(log_.said, IsEmpty());
}

TEST_F(CredentialsFileTest, HalfAFileChangesNothingAndIsReportedOnce) {
  write("ops\nold\n");
  auto file = CredentialsFile::open(path_, posix_file_system(), log_).value();
  write("ops\n");
  file->look();
  file->look();
  EXPECT_EQ(file->current()->password, "old");
  EXPECT_THAT(file->warning(), HasSubstr("the second the password"));
  EXPECT_THAT(log_.said, ElementsAre(HasSubstr("the former ones stay")));
  write("ops\nnew\n");
  file->look();
  EXPECT_EQ(file->current()->password, "new");
  EXPECT_EQ(file->warning(), "");
  EXPECT_FALSE(CredentialsFile::open(directory_.path() / "none", posix_file_system(), log_));
}

TEST_F(CredentialsFileTest, AFileThatOthersMayReadIsReportedUntilItIsCorrected) {
  write("ops\nsecret\n", fs::perms(0644));
  auto file = CredentialsFile::open(path_, posix_file_system(), log_).value();
  file->look();
  EXPECT_THAT(file->warning(), HasSubstr("chmod 600 " + path_.string()));
  EXPECT_THAT(log_.said, ElementsAre(HasSubstr("chmod 600")));
  fs::permissions(path_, fs::perms(0640));
  file->look();
  EXPECT_EQ(file->warning(), "");
}

}  // namespace
}  // namespace verger::agent
