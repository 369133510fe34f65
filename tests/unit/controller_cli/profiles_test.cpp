#include "controller/cli/profiles.h"

#include <cstdlib>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "tests/support/temp_directory.h"
#include "tests/unit/controller_cli/cli_output.h"

namespace verger::cli {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// With a home directory of its own.
class ProfilesTest : public ::testing::Test {
 protected:
  ProfilesTest() {
    for (const auto* name : {"VERGER_CONTROLLER", "VERGER_PROFILE", "VERGER_TOKEN",
                             "VERGER_TOKEN_FILE", "VERGER_CA_FILE"}) {
      ::unsetenv(name);  // NOLINT(concurrency-mt-unsafe): one thread
    }
    ::setenv("XDG_CONFIG_HOME", directory_.path().c_str(), 1);  // NOLINT(concurrency-mt-unsafe)
  }
  ~ProfilesTest() override {
    ::unsetenv("XDG_CONFIG_HOME");  // NOLINT(concurrency-mt-unsafe)
  }
  Path home() const { return directory_.path() / "verger"; }
  void log_in(const std::string& name, const std::string& url) {
    auto profiles = Profiles::load(home()).value();
    ASSERT_TRUE(profiles.log_in(name, {.controllers = {url}}, "token-of-" + name, "").has_value());
  }
  static unsigned mode(const Path& path) {
    struct stat seen{};
    EXPECT_EQ(::stat(path.c_str(), &seen), 0) << path;
    return seen.st_mode & 0777U;
  }
  test::TempDirectory directory_;
};

TEST_F(ProfilesTest, AreTheirOwnersAloneAndTheNewestIsInUse) {
  auto profiles = Profiles::load(home()).value();
  EXPECT_TRUE(profiles.all().empty());
  ASSERT_TRUE(
      profiles.log_in("prod", {.controllers = {"https://v:2115"}}, "secret", "a root").has_value());
  ASSERT_TRUE(
      profiles.log_in("test", {.controllers = {"http://127.0.0.1:2115"}}, "other", "").has_value());
  EXPECT_EQ(mode(home()), 0700U);
  EXPECT_EQ(mode(home() / "prod.token"), 0600U);
  EXPECT_EQ(mode(home() / "profiles.json"), 0600U);
  auto read = Profiles::load(home()).value();
  EXPECT_EQ(read.current(), "test");
  EXPECT_EQ(read.find("prod").value().ca_file, (home() / "prod-ca.pem").string());
  EXPECT_EQ(read.find("prod").value().controllers, std::vector<std::string>{"https://v:2115"});
  EXPECT_THAT(read.find("other").error().message, HasSubstr("prod, test"));

  ASSERT_TRUE(read.remove("test").has_value());
  EXPECT_FALSE(std::filesystem::exists(home() / "test.token"));
  EXPECT_EQ(Profiles::load(home()).value().current(), "");
  EXPECT_EQ(read.log_in("../x", {}, "t", "").error().code, Errc::kInvalidArgument);
}

TEST_F(ProfilesTest, TheOneInUseSaysWhereVergerdIs) {
  log_in("one", "http://127.0.0.1:1");
  log_in("two", "http://127.0.0.1:2");
  EXPECT_THAT(verger({"run", "list"}).err, HasSubstr("http://127.0.0.1:2:"));
  EXPECT_THAT(verger({"run", "list", "--profile", "one"}).err, HasSubstr("http://127.0.0.1:1:"));
  EXPECT_EQ(verger({"profile", "use", "one"}).status, kDone);
  EXPECT_THAT(verger({"run", "list"}).err, HasSubstr("http://127.0.0.1:1:"));
  EXPECT_THAT(verger({"profile", "list"}).out,
              AllOf(HasSubstr("one"), HasSubstr("http://127.0.0.1:2"), Not(HasSubstr("token-of"))));
  // A controller that is named has nothing to do with a profile, nor with its token.
  EXPECT_THAT(verger({"run", "list", "--controller", "http://127.0.0.1:3"}).err,
              HasSubstr("http://127.0.0.1:3:"));
  EXPECT_EQ(verger({"run", "list", "--profile", "one", "--controller", "http://x"}).status, kUsage);
  EXPECT_EQ(verger({"run", "list", "--profile", "none"}).status, kUsage);
  EXPECT_EQ(verger({"profile", "remove", "one"}).status, kDone);
  EXPECT_EQ(verger({"profile", "use", "one"}).status, kUsage);
}

TEST_F(ProfilesTest, ALoginStoresNothingBeforeVergerdHasTakenTheToken) {
  const auto token = directory_.path() / "token";
  std::ofstream(token) << "verger_abc_def\n";
  const auto silent =
      verger({"login", "http://127.0.0.1:1", "--token-file", token.c_str(), "--name", "x"});
  EXPECT_EQ(silent.status, kFailed);
  EXPECT_THAT(silent.err, HasSubstr("cannot be reached"));
  EXPECT_FALSE(std::filesystem::exists(home() / "x.token"));
  const auto no_root = verger({"login", "https://127.0.0.1:1", "--token-file", token.c_str()});
  EXPECT_EQ(no_root.status, kUsage);
  EXPECT_THAT(no_root.err, HasSubstr("--ca-fingerprint"));
  std::ofstream(token, std::ios::trunc) << "\n";
  EXPECT_THAT(verger({"login", "http://127.0.0.1:1", "--token-file", token.c_str()}).err,
              HasSubstr("no token"));
}

}  // namespace
}  // namespace verger::cli
