#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>

#include "controller/daemon/mailer.h"
#include "tests/support/processes/npm_packages.h"
#include "tests/support/processes/openssl_authority.h"
#include "tests/support/processes/process.h"
#include "tests/support/temp_directory.h"

/// Mails of vergerd, taken by a mail server of others in a process of its own.
namespace verger::controller {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

class MailTest : public ::testing::Test {
 protected:
  MailTest() : authority_(directory_.path() / "authority", "Verger mail test") {
    authority_.issue(base(), "mail", "IP:127.0.0.1,DNS:localhost", "serverAuth");
    problem_ = test::install_npm_packages(VERGER_MAIL, packages());
    if (problem_.empty()) {
      fs::copy_file(fs::path(VERGER_MAIL) / "server.js", packages() / "server.js");
    }
  }
  fs::path packages() const { return directory_.path() / "server"; }
  fs::path base() const { return directory_.path() / "mail"; }
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }

  /// Starts a server; its URL.
  std::string serve(const std::string& mode) {
    const auto place = directory_.path() / mode;
    fs::create_directories(place);
    server_.emplace(test::Process::Options{.command = {"node", (packages() / "server.js").string(),
                                                       place.string(), mode, base().string()},
                                           .environment = {},
                                           .output = path("server.log")});
    const auto port = place / "port";
    EXPECT_TRUE(test::eventually(seconds(30), [&] { return fs::exists(port); }))
        << test::file_text(path("server.log"));
    return fmt::format("{}://127.0.0.1:{}", mode == "tls" ? "smtps" : "smtp",
                       test::file_text(port));
  }
  std::string credentials(const std::string& password) const {
    auto file = path("credentials-" + password);
    std::ofstream(file) << "verger\n" << password << "\n";
    ::chmod(file.c_str(), 0600);
    return file;
  }
  MailSettings settings(const std::string& url, const std::string& password = "right") const {
    return {.url = url,
            .from = "verger@example.com",
            .credentials = credentials(password),
            .trusted_roots = authority_.root().string(),
            .limit = seconds(20)};
  }
  Result<void> send(const MailSettings& with, const std::string& to = "ops@example.com") {
    Mailer mailer(with);
    net::io_context context{1};
    auto sent =
        net::co_spawn(context,
                      mailer.send({.to = to,
                                   .subject = "prod: run 7980f017 failed: \u00e9\r\nBcc: x@y",
                                   .text = ".\nthe reason\n",
                                   .id = "17-abcdef01"}),
                      net::use_future);
    context.run();
    return sent.get();
  }

  test::TempDirectory directory_;
  test::OpensslAuthority authority_;
  std::string problem_;
  std::optional<test::Process> server_;
};

TEST_F(MailTest, IsTakenOverTlsFromTheStartAndByStarttls) {
  ASSERT_EQ(problem_, "");
  for (const auto* mode : {"tls", "starttls"}) {
    const auto sent = send(settings(serve(mode)));
    ASSERT_TRUE(sent.has_value()) << mode << ": " << sent.error().message
                                  << test::file_text(path("server.log"));
    const auto mail = test::file_text(directory_.path() / mode / "mail-0.txt");
    EXPECT_THAT(mail, AllOf(HasSubstr("secure=true from=verger@example.com to=ops@example.com\n"),
                            HasSubstr("Message-ID: <17-abcdef01@example.com>"),
                            HasSubstr("Subject: =?UTF-8?B?"), HasSubstr("\nTo: <ops@example.com>"),
                            HasSubstr("Lgp0aGUgcmVhc29uCg=="), Not(HasSubstr("Bcc"))))
        << mode;
  }
}

TEST_F(MailTest, GoesToNoServerThatIsNotTrustedAndShowsNoPassword) {
  ASSERT_EQ(problem_, "");
  const auto url = serve("starttls");
  const auto wrong = send(settings(url, "wrong-password"));
  EXPECT_EQ(wrong.error().code, Errc::kRefused);
  EXPECT_THAT(wrong.error().message, Not(HasSubstr("wrong-password")));
  EXPECT_THAT(send(settings(url), "nobody@example.com").error().message, HasSubstr(url));

  const test::OpensslAuthority other(directory_.path() / "other", "Another root");
  auto untrusting = settings(url);
  untrusting.trusted_roots = other.root().string();
  EXPECT_EQ(send(untrusting).error().code, Errc::kRefused);

  auto exposed = settings(url);
  ::chmod(exposed.credentials.c_str(), 0644);
  EXPECT_EQ(send(exposed).error().code, Errc::kRefused);
  EXPECT_FALSE(fs::exists(directory_.path() / "starttls" / "mail-0.txt"));
  // A server that offers no TLS is not used without, where its roots are known.
  EXPECT_EQ(send(settings(serve("plain"))).error().code, Errc::kRefused);
  EXPECT_FALSE(fs::exists(directory_.path() / "plain" / "mail-0.txt"));
}

TEST_F(MailTest, WithoutTlsGoesToThisMachineAlone) {
  ASSERT_EQ(problem_, "");
  const auto url = serve("plain");
  const MailSettings plain{.url = url, .from = "verger@example.com"};
  EXPECT_TRUE(check_mail_settings(plain).has_value());
  EXPECT_TRUE(send(plain).has_value());
  for (const auto& wrong : std::initializer_list<MailSettings>{
           {.url = "smtp://mail.example.com:25", .from = "verger@example.com"},
           {.url = "smtps://mail.example.com", .from = "verger@example.com"},
           {.url = "smtps://user:secret@mail.example.com", .from = "a@b", .trusted_roots = "x"},
           {.url = "https://mail.example.com", .from = "a@b", .trusted_roots = "x"},
           {.url = url, .from = "not an address"},
           {.from = "verger@example.com"}}) {
    const auto checked = check_mail_settings(wrong);
    ASSERT_FALSE(checked.has_value()) << wrong.url;
    EXPECT_THAT(checked.error().message, Not(HasSubstr("secret")));
  }
}

}  // namespace
}  // namespace verger::controller
