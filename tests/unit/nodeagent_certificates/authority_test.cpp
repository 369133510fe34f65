#include "nodeagent/certificates/authority.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include "engine/base/clock.h"
#include "tests/support/temp_directory.h"

namespace verger::certificates {
namespace {

using std::chrono::hours;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

std::string text_of(const Path& path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

class AuthorityTest : public ::testing::Test {
 protected:
  Authority open(const std::string& name = "ca.pem") {
    auto made = Authority::open_or_make(directory_.path() / name, now_);
    EXPECT_TRUE(made.has_value()) << made.error().message;
    return *std::move(made);
  }
  test::TempDirectory directory_;
  Ticks now_ = *parse_ticks("2026-03-01T12:00:00Z");
  Subject agent_{.common_name = std::string(kAgentCommonName),
                 .identity = agent_identity("orders", "n1"),
                 .hosts = {"n1.example.com", "10.0.0.1", "::1"},
                 .usage = Usage::kServer};
};

TEST_F(AuthorityTest, IsMadeOnceAndOnlyForItsOwner) {
  const auto path = directory_.path() / "ca.pem";
  const auto first = open().fingerprint();
  struct stat seen{};
  ASSERT_EQ(::stat(path.c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 07777U, 0600U);
  const auto text = text_of(path);
  EXPECT_EQ(open().fingerprint(), first);
  EXPECT_EQ(text_of(path), text);
  EXPECT_NE(open("other.pem").fingerprint(), first);
  EXPECT_EQ(std::distance(fs::directory_iterator(directory_.path()), fs::directory_iterator()), 2)
      << "nothing is left lying about";
}

TEST_F(AuthorityTest, IsRefusedWhereOthersCanReadIt) {
  open();
  const auto path = directory_.path() / "ca.pem";
  ASSERT_EQ(::chmod(path.c_str(), 0640), 0);
  const auto refused = Authority::open_or_make(path, now_);
  ASSERT_FALSE(refused.has_value());
  EXPECT_EQ(refused.error().code, Errc::kRefused);
  EXPECT_THAT(refused.error().message, HasSubstr("chmod 600"));
}

TEST_F(AuthorityTest, WhatIsBrokenIsNeverReplaced) {
  const auto path = directory_.path() / "ca.pem";
  const auto other = text_of((open("other.pem"), directory_.path() / "other.pem"));
  open();
  const auto good = text_of(path);
  const auto key_end = good.find("-----BEGIN CERTIFICATE");
  const auto mixed = good.substr(0, key_end) + other.substr(other.find("-----BEGIN CERTIFICATE"));
  for (const auto& broken :
       {std::string("hello"), good.substr(0, key_end), good.substr(key_end), mixed}) {
    std::ofstream(path) << broken;
    const auto refused = Authority::open_or_make(path, now_);
    ASSERT_FALSE(refused.has_value()) << broken;
    EXPECT_THAT(refused.error().message, HasSubstr("Restore it from a backup"));
    EXPECT_EQ(text_of(path), broken);
  }
}

TEST_F(AuthorityTest, IssuesWhatTheSubjectSaysForTheRequestsKey) {
  const auto authority = open();
  const auto made = make_key_and_request();
  ASSERT_TRUE(made.has_value());
  const auto issued = authority.issue(made->request, agent_, now_, hours(24));
  ASSERT_TRUE(issued.has_value()) << issued.error().message;
  const auto checked = check_issued(issued->certificate, made->key, authority.root());
  ASSERT_TRUE(checked.has_value()) << checked.error().message;
  EXPECT_EQ(checked->identity, "urn:verger:agent:orders/n1");
  EXPECT_EQ(checked->serial, issued->serial);
  EXPECT_EQ(format_ticks(checked->not_before), "2026-03-01T11:55:00Z");
  EXPECT_EQ(format_ticks(checked->not_after), "2026-03-02T12:00:00Z");
}

TEST_F(AuthorityTest, AForeignKeyOrRootDoesNotFit) {
  const auto authority = open();
  const auto other = open("other.pem");
  const auto mine = make_key_and_request();
  const auto theirs = make_key_and_request();
  const auto issued = authority.issue(mine->request, agent_, now_, hours(1));
  ASSERT_TRUE(issued.has_value());
  EXPECT_THAT(check_issued(issued->certificate, theirs->key, authority.root()).error().message,
              HasSubstr("not for this key"));
  EXPECT_THAT(check_issued(issued->certificate, mine->key, other.root()).error().message,
              HasSubstr("not issued by the authority"));
}

TEST_F(AuthorityTest, RefusesRequestsThatProveNothing) {
  const auto authority = open();
  auto made = make_key_and_request();
  ASSERT_TRUE(made.has_value());
  EXPECT_FALSE(authority.issue("no request", agent_, now_, hours(1)).has_value());
  // One changed byte of the signature, which ends the text.
  auto forged = made->request;
  const auto at = forged.find("\n-----END") - 12;
  forged[at] = forged[at] == 'A' ? 'B' : 'A';
  EXPECT_FALSE(key_of_request(forged).has_value());
  EXPECT_TRUE(key_of_request(made->request).has_value());
  auto odd = agent_;
  odd.hosts = {"n1.example.com,DNS:*.example.com"};
  EXPECT_THAT(authority.issue(made->request, odd, now_, hours(1)).error().message,
              HasSubstr("neither a host's name nor an address"));
}

TEST_F(AuthorityTest, NothingOutlivesTheRoot) {
  const auto authority = open();
  const auto made = make_key_and_request();
  const Ticks late(authority.not_after().value() - 60 * kTicksPerSecond);
  const auto last = authority.issue(made->request, agent_, late, hours(1));
  ASSERT_TRUE(last.has_value());
  EXPECT_EQ(last->not_after, authority.not_after());
  EXPECT_FALSE(authority.issue(made->request, agent_, authority.not_after(), hours(1)).has_value());
}

}  // namespace
}  // namespace verger::certificates
