#include "controller/daemon/bootstrap_token_file.h"

#include <fstream>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_directory.h"

namespace verger::controller {
namespace {

class BootstrapTokenFileTest : public ::testing::Test {
 protected:
  std::string take() {
    BootstrapTokenFile token(file_, random_, null_log());
    auto text = token.take();
    EXPECT_TRUE(text.has_value());
    return text.value_or("");
  }
  mode_t mode() const {
    struct stat seen{};
    EXPECT_EQ(::stat(file_.c_str(), &seen), 0);
    return seen.st_mode & 0777U;
  }
  test::TempDirectory directory_;
  Path file_ = directory_.path() / "bootstrap-token";
  SeededRandom random_{5};
};

TEST_F(BootstrapTokenFileTest, IsItsOwnersAloneAndTheSameAfterARestart) {
  const auto token = take();
  EXPECT_TRUE(token.starts_with(kBootstrapTokenMark));
  EXPECT_GE(token.size(), kBootstrapTokenMark.size() + 64);
  EXPECT_EQ(mode(), 0600U);
  EXPECT_EQ(take(), token);
}

TEST_F(BootstrapTokenFileTest, OneThatOthersCouldReadOrThatWasCutIsReplaced) {
  const auto first = take();
  ASSERT_EQ(::chmod(file_.c_str(), 0644), 0);
  const auto second = take();
  EXPECT_NE(second, first);
  EXPECT_EQ(mode(), 0600U);
  std::ofstream(file_, std::ios::trunc) << kBootstrapTokenMark << '\n';
  EXPECT_NE(take(), std::string(kBootstrapTokenMark));
}

TEST_F(BootstrapTokenFileTest, TheFirstAdminsTokenIsReadAsItWasMade) {
  const auto file = FirstTokenFile::in(directory_.path());
  EXPECT_EQ(FirstTokenFile::read(file).value(), std::nullopt);
  ASSERT_TRUE(FirstTokenFile::make(file, "ann", random_).has_value());
  EXPECT_EQ(FirstTokenFile::make(file, "eve", random_).error().code, Errc::kExists);
  const auto read = FirstTokenFile::read(file).value();
  ASSERT_TRUE(read.has_value());
  EXPECT_EQ(read->name, "ann");
  std::string line;
  std::getline(std::ifstream(file) >> std::ws, line);
  EXPECT_EQ(line, "verger_" + read->id + "_" + read->secret);

  ASSERT_EQ(::chmod(file.c_str(), 0644), 0);
  EXPECT_EQ(FirstTokenFile::read(file).error().code, Errc::kRefused);
  ASSERT_EQ(::chmod(file.c_str(), 0600), 0);
  std::ofstream(file, std::ios::trunc) << "verger_short_x\n";
  EXPECT_EQ(FirstTokenFile::read(file).error().code, Errc::kCorruption);
}

TEST_F(BootstrapTokenFileTest, IsGoneOnceItOpensNothing) {
  take();
  BootstrapTokenFile token(file_, random_, null_log());
  token.drop();
  EXPECT_FALSE(std::filesystem::exists(file_));
  token.drop();
}

}  // namespace
}  // namespace verger::controller
