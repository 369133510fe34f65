#include "controller/cli/bootstrap_token.h"

#include <filesystem>
#include <fstream>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/secret.h"
#include "tests/support/temp_directory.h"

namespace verger::cli {
namespace {

constexpr const char* kToken = "verger_bootstrap_0123456789abcdef0123456789abcdef";

class BootstrapTokenTest : public ::testing::Test {
 protected:
  std::string file(const std::string& text, unsigned mode = 0600) const {
    const auto path = directory_.path() / "bootstrap-token";
    std::ofstream(path, std::ios::trunc) << text;
    std::filesystem::permissions(path, std::filesystem::perms(mode));
    return path.string();
  }
  static http::Response refusal(const std::string& file, const std::string& proof) {
    return {.status = 401,
            .body = nlohmann::json{{"bootstrap_token_file", file}, {"bootstrap_token_proof", proof}}
                        .dump()};
  }
  test::TempDirectory directory_;
};

TEST_F(BootstrapTokenTest, IsReadForAControllerThatKnowsItAlready) {
  const auto path = file(std::string(kToken) + "\n");
  EXPECT_EQ(bootstrap_token_for(refusal(path, hmac_sha256(kToken, "n")), "n"), kToken);
}

TEST_F(BootstrapTokenTest, IsShownToNoOtherUser) {
  const auto path = file(std::string(kToken) + "\n");
  EXPECT_FALSE(bootstrap_token_for(refusal(path, ""), "n"));
  EXPECT_FALSE(bootstrap_token_for(refusal(path, hmac_sha256(kToken, "another nonce")), "n"));
  EXPECT_FALSE(bootstrap_token_for({.status = 401, .body = "{}"}, "n"));
  EXPECT_FALSE(bootstrap_token_for({.status = 401, .body = "not JSON"}, "n"));
  auto other_status = refusal(path, hmac_sha256(kToken, "n"));
  other_status.status = 403;
  EXPECT_FALSE(bootstrap_token_for(other_status, "n"));
}

TEST_F(BootstrapTokenTest, OnlyAPrivateFileWithSuchATokenIsOne) {
  const auto key = file("-----BEGIN PRIVATE KEY-----\n");
  EXPECT_FALSE(
      bootstrap_token_for(refusal(key, hmac_sha256("-----BEGIN PRIVATE KEY-----", "n")), "n"));
  const auto proof = hmac_sha256(kToken, "n");
  EXPECT_FALSE(bootstrap_token_for(refusal(file(kToken, 0644), proof), "n"));
  const auto target = file(kToken, 0600);
  const auto link = directory_.path() / "link";
  std::filesystem::create_symlink(target, link);
  EXPECT_FALSE(bootstrap_token_for(refusal(link.string(), proof), "n"));
  EXPECT_FALSE(bootstrap_token_for(refusal(directory_.path().string(), proof), "n"));
}

}  // namespace
}  // namespace verger::cli
