#include "controller/daemon/certificate_signing.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "engine/base/clock.h"
#include "nodeagent/certificates/key.h"
#include "nodeagent/certificates/signed_answer.h"
#include "tests/support/temp_directory.h"

namespace verger::controller {
namespace {

namespace fs = std::filesystem;
using certificates::CertificateKind;
using certificates::CertificateTerms;
using std::chrono::milliseconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

constexpr std::int64_t kYear = 365LL * 86'400 * kTicksPerSecond;

class CertificateSigningTest : public ::testing::Test {
 protected:
  CertificateSigningTest() {
    for (const auto* each : {"authorities", "commands"}) {
      fs::create_directory(path(each));
      fs::permissions(path(each), fs::perms(0755));
    }
    wanted_ = terms(CertificateKind::kNode, "node");
    wanted_.ip_addresses = {"10.0.0.1"};
    request_ = *certificates::make_request(key_text(), "", wanted_);
  }
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  static std::string key_text(const std::string& password = {}) {
    return *certificates::new_private_key(certificates::KeyType::kEcP256, password);
  }
  CertificateTerms terms(CertificateKind kind, const std::string& name) const {
    return {.kind = kind,
            .common_name = name,
            .not_before = now_,
            .not_after = Ticks(now_.value() + kYear)};
  }
  void write(const std::string& name, const std::string& text, unsigned mode) const {
    std::ofstream(path(name), std::ios::trunc) << text;
    fs::permissions(path(name), fs::perms(mode));
  }
  void write_authority(const std::string& name, const std::string& password = {}) const {
    const auto key = key_text(password);
    const auto root = certificates::make_root(key, password, terms(CertificateKind::kRoot, name));
    write("authorities/" + name + ".crt", root->certificates, 0644);
    write("authorities/" + name + ".key", key, 0600);
  }
  void write_command(const std::string& name, const std::string& text) const {
    write("commands/" + name, "#!/bin/sh\n" + text + "\n", 0755);
  }
  CertificateSigning signing(milliseconds limit = std::chrono::seconds(60)) const {
    return {{.authorities = path("authorities"), .commands = path("commands"), .limit = limit},
            http::system_timers()};
  }
  Result<std::string> sign(SignerName by, milliseconds limit = std::chrono::seconds(60)) {
    auto signer = signing(limit);
    boost::asio::io_context context{1};
    auto signed_ = boost::asio::co_spawn(context,
                                         signer.sign({.by = std::move(by),
                                                      .cluster = "prod",
                                                      .node = "n1",
                                                      .request = request_,
                                                      .terms = wanted_}),
                                         boost::asio::use_future);
    context.run();
    return signed_.get();
  }
  std::string error_of(SignerName by, milliseconds limit = std::chrono::seconds(60)) {
    const auto answer = sign(std::move(by), limit);
    return answer ? "no error: " + *answer : answer.error().message;
  }

  test::TempDirectory directory_;
  Ticks now_ = *parse_ticks("2026-03-01T12:00:00Z");
  CertificateTerms wanted_;
  std::string request_;
};

TEST_F(CertificateSigningTest, AnAuthorityOfTheDirectorySigns) {
  write_authority("corp");
  const auto answer = sign({.authority = "corp"});
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  const auto taken = certificates::take_answer(request_, wanted_, *answer);
  ASSERT_TRUE(taken.has_value()) << taken.error().message;
  EXPECT_EQ(taken->leaf.issuer, "CN=corp");
  EXPECT_EQ(taken->roots, *signing().issuer({.authority = "corp"}));
}

TEST_F(CertificateSigningTest, AnEncryptedKeyIsOpenedWithItsPasswordFile) {
  write_authority("corp", "open sesame");
  EXPECT_THAT(error_of({.authority = "corp"}), HasSubstr("corp.key"));
  write("authorities/corp.password", "open sesame\n", 0600);
  EXPECT_TRUE(sign({.authority = "corp"}).has_value());
  fs::permissions(path("authorities/corp.password"), fs::perms(0644));
  EXPECT_THAT(error_of({.authority = "corp"}),
              AllOf(HasSubstr("corp.password"), Not(HasSubstr("sesame"))));
}

TEST_F(CertificateSigningTest, WhatIsNoSafeAuthorityIsRefusedBeforeItSigns) {
  EXPECT_THAT(error_of({.authority = "corp"}), HasSubstr("corp.crt"));
  write_authority("corp");
  fs::permissions(path("authorities/corp.key"), fs::perms(0640));
  EXPECT_THAT(signing().issuer({.authority = "corp"}).error().message, HasSubstr("corp.key"));
  EXPECT_THAT(error_of({.authority = "../corp"}), HasSubstr("is no name of an authority"));
  EXPECT_THAT(error_of({}), HasSubstr("neither an authority nor a signing command"));
  CertificateSigning none({}, http::system_timers());
  EXPECT_THAT(none.issuer({.authority = "corp"}).error().message,
              HasSubstr("--authorities-directory"));
  EXPECT_THAT(none.issuer({.command = "sign"}).error().message, HasSubstr("--signing-commands"));
}

TEST_F(CertificateSigningTest, ACommandGetsTheRequestAndItsOutputIsTheAnswer) {
  ASSERT_EQ(::setenv("VERGER_TOKEN", "a-secret-of-vergerd", 1), 0);
  write_command("sign", "echo \"$1 $2\"; cat; env");
  const auto answer = sign({.command = "sign"});
  ::unsetenv("VERGER_TOKEN");
  ASSERT_TRUE(answer.has_value()) << answer.error().message;
  EXPECT_THAT(*answer,
              AllOf(HasSubstr("prod n1\n" + request_), Not(HasSubstr("a-secret-of-vergerd"))));
  EXPECT_EQ(*signing().issuer({.command = "sign"}), "");
}

TEST_F(CertificateSigningTest, TheAuthoritysCertificatesAreKnownWhereACommandSigns) {
  write_authority("corp");
  fs::remove(path("authorities/corp.key"));
  write_command("sign", "echo leaf");
  const auto root = signing().issuer({.authority = "corp", .command = "sign"});
  ASSERT_TRUE(root.has_value()) << root.error().message;
  EXPECT_EQ(*sign({.authority = "corp", .command = "sign"}), "leaf\n" + *root);
}

TEST_F(CertificateSigningTest, ACommandThatFailsSaysWhy) {
  write_command("sign", "echo 'quota exceeded' >&2; exit 3");
  EXPECT_THAT(error_of({.command = "sign"}),
              HasSubstr("the signing command sign failed: it exited with 3: quota exceeded"));
  write_command("leak", "echo '-----BEGIN PRIVATE KEY-----' >&2; exit 1");
  EXPECT_THAT(error_of({.command = "leak"}), Not(HasSubstr("BEGIN")));
}

TEST_F(CertificateSigningTest, ACommandThatHangsIsKilledWithAllThatItStarted) {
  write_command("sign", "echo 'waiting for the approver' >&2; sleep 1000 & wait");
  EXPECT_THAT(
      error_of({.command = "sign"}, milliseconds(50)),
      AllOf(HasSubstr("was killed: it did not end within"), HasSubstr("waiting for the approver")));
}

TEST_F(CertificateSigningTest, ACommandThatWritesWithoutEndIsStopped) {
  write_command("sign", "exec yes");
  EXPECT_THAT(error_of({.command = "sign"}), HasSubstr("wrote more than 256 KiB"));
}

}  // namespace
}  // namespace verger::controller
