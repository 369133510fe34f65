#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/openssl_authority.h"
#include "tests/support/processes/ports.h"
#include "tests/support/processes/process.h"
#include "tests/support/temp_directory.h"

/// vergerd's own API over https.
namespace verger::test {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class TlsApi : public ::testing::Test {
 protected:
  TlsApi() : authority_(directory_.path() / "authority", "Verger test root") { renew(); }
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  std::string renew(const std::string& names = "IP:127.0.0.1") const {
    return authority_.issue(directory_.path() / "api", "vergerd", names, "serverAuth");
  }
  std::string url() const { return fmt::format("https://127.0.0.1:{}", ports_[0]); }
  std::vector<std::string> command(const std::vector<std::string>& more) const {
    std::vector<std::string> out{
        program("vergerd"),    "--data", path("c"), "--port", std::to_string(ports_[0]),
        "--end-after-seconds", "300"};
    out.insert(out.end(), more.begin(), more.end());
    return out;
  }
  std::vector<std::string> with_certificate(std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"--api-certificate-file", path("api.crt"),
                             "--api-certificate-private-key-file", path("api.key")});
    return command(more);
  }
  void start(const std::vector<std::string>& more = {}) {
    controller_.emplace(Process::Options{
        .command = with_certificate(more), .environment = {}, .output = path("c.log")});
    ASSERT_TRUE(eventually(seconds(30), [&] {
      return !HttpsCaller().served_serial(url()).empty();
    })) << file_text(path("c.log"));
  }
  Finished verger(std::vector<std::string> arguments, const std::string& controller,
                  const std::string& roots) const {
    arguments.insert(arguments.begin(), program("verger"));
    arguments.insert(arguments.end(), {"--controller", controller});
    if (!roots.empty()) {
      arguments.insert(arguments.end(), {"--ca-file", roots});
    }
    return run(arguments);
  }
  Finished verger(std::vector<std::string> arguments) const {
    return verger(std::move(arguments), url(), authority_.root().string());
  }

  TempDirectory directory_;
  PortLease ports_{1};
  OpensslAuthority authority_;
  std::optional<Process> controller_;
};

TEST_F(TlsApi, TheCommandLineVerifiesWhoAnswers) {
  start();
  EXPECT_EQ(verger({"cluster", "list"}).status, 0) << file_text(path("c.log"));
  EXPECT_EQ(run({program("verger"), "cluster", "list"},
                {{"VERGER_CONTROLLER", url()}, {"VERGER_CA_FILE", authority_.root().string()}})
                .status,
            0);
  const OpensslAuthority stranger(directory_.path() / "stranger", "Another root");
  const auto unknown = verger({"cluster", "list"}, url(), stranger.root().string());
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.err, AllOf(HasSubstr("is not accepted"), HasSubstr("CN=vergerd")));
  const auto no_roots = verger({"cluster", "list"}, url(), "");
  EXPECT_EQ(no_roots.status, 64);
  EXPECT_THAT(no_roots.err, HasSubstr("--ca-file"));
  const auto plain =
      verger({"cluster", "list"}, "http://127.0.0.1:" + std::to_string(ports_[0]), "");
  EXPECT_NE(plain.status, 0);
  const auto far = verger({"cluster", "list"}, "http://10.1.2.3:2115", "");
  EXPECT_EQ(far.status, 64);
  EXPECT_THAT(far.err, HasSubstr("use https"));
}

TEST_F(TlsApi, AKeyThatEverybodyMayReadIsSaidInTheLog) {
  std::filesystem::permissions(path("api.key"), std::filesystem::perms(0644));
  start();
  EXPECT_THAT(file_text(path("c.log")), HasSubstr("chmod 600 " + path("api.key")));
}

TEST_F(TlsApi, PlainHttpListensOnLoopbackOnly) {
  const auto refused = run(command({"--host", "0.0.0.0"}));
  EXPECT_EQ(refused.status, 64);
  EXPECT_THAT(refused.err, AllOf(HasSubstr("plain HTTP is for this machine alone"),
                                 HasSubstr("--api-certificate-file")));
  EXPECT_FALSE(std::filesystem::exists(path("c"))) << "nothing is made before that";
  const auto half = run(command({"--api-certificate-file", path("api.crt")}));
  EXPECT_EQ(half.status, 64);
  const auto missing = run(command({"--api-certificate-file", path("no.crt"),
                                    "--api-certificate-private-key-file", path("no.key")}));
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(missing.err, HasSubstr("no.crt: cannot open"));
  // With TLS every address will do; before the first token the bootstrap token opens it.
  start({"--host", "0.0.0.0"});
  const auto file = path("c/bootstrap-token");
  EXPECT_EQ(std::filesystem::status(file).permissions(), std::filesystem::perms(0600));
  HttpsCaller caller(authority_.root());
  const auto unknown = caller.ask(url(), {.target = "/api/v1/clusters"}, false);
  ASSERT_TRUE(unknown.has_value());
  EXPECT_EQ(unknown->status, 401) << "being on this machine is not enough";
  const auto known =
      caller.ask(url(),
                 {.target = "/api/v1/clusters",
                  .headers = {{"Authorization",
                               "Bearer " + file_text(file).substr(0, file_text(file).find('\n'))}}},
                 false);
  ASSERT_TRUE(known.has_value());
  EXPECT_EQ(known->status, 200);
  // Who may not read the file gets no further than what it says.
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  const auto exposed = verger({"cluster", "list"});
  EXPECT_EQ(exposed.status, 2);
  EXPECT_THAT(exposed.err, AllOf(HasSubstr("bootstrap token"), HasSubstr(file)));
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  EXPECT_EQ(verger({"token", "create", "ann", "--role", "admin"}).status, 0);
  EXPECT_FALSE(std::filesystem::exists(file));
  const auto nobody = verger({"cluster", "list"});
  EXPECT_EQ(nobody.status, 2);
  EXPECT_THAT(nobody.err, HasSubstr("asks for a token"));
}

TEST_F(TlsApi, TheCertificateIsReloadedOnASignalAllOrNothing) {
  start();
  HttpsCaller caller(authority_.root());
  const auto first = caller.served_serial(url());
  const auto second = renew();
  ASSERT_NE(first, second);
  controller_->signal(SIGHUP);
  EXPECT_TRUE(eventually(seconds(20), [&] { return caller.served_serial(url()) == second; }))
      << file_text(path("c.log"));
  EXPECT_EQ(verger({"cluster", "list"}).status, 0);
  std::ofstream(path("api.key")) << "no key\n";
  controller_->signal(SIGHUP);
  EXPECT_TRUE(eventually(seconds(20), [&] {
    return file_text(path("c.log")).contains("the former one stays");
  })) << file_text(path("c.log"));
  EXPECT_EQ(caller.served_serial(url()), second);
  EXPECT_EQ(verger({"cluster", "list"}).status, 0);
}

}  // namespace
}  // namespace verger::test
