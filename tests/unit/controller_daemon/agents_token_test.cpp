#include "controller/daemon/agents_token.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include "tests/support/temp_directory.h"

namespace verger::controller {
namespace {

TEST(AgentsToken, IsMadeOnceForItsOwnerAlone) {
  const test::TempDirectory directory;
  const auto file = directory.path() / "agents-token";
  SeededRandom random(2);
  const auto made = open_or_make_agents_token(file, random);
  ASSERT_TRUE(made.has_value());
  EXPECT_GE(made->size(), 64U);
  EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0600));
  EXPECT_EQ(open_or_make_agents_token(file, random).value_or(""), *made);
}

TEST(AgentsToken, OneThatOthersMayReadOrThatIsNoneIsRefused) {
  const test::TempDirectory directory;
  const auto file = directory.path() / "agents-token";
  SeededRandom random(2);
  ASSERT_TRUE(open_or_make_agents_token(file, random).has_value());
  std::filesystem::permissions(file, std::filesystem::perms(0640));
  const auto exposed = open_or_make_agents_token(file, random);
  ASSERT_FALSE(exposed.has_value());
  EXPECT_EQ(exposed.error().code, Errc::kRefused);
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  std::ofstream(file, std::ios::trunc) << "x\n";
  const auto short_one = open_or_make_agents_token(file, random);
  ASSERT_FALSE(short_one.has_value());
  EXPECT_EQ(short_one.error().code, Errc::kCorruption);
}

}  // namespace
}  // namespace verger::controller
