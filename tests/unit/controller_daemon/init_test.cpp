#include "controller/daemon/init.h"

#include <algorithm>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/stat.h>

#include "controller/daemon/agent_renewal.h"
#include "controller/daemon/bootstrap_token_file.h"
#include "controller/daemon/vergerd_options.h"
#include "engine/settings/daemon_call.h"
#include "nodeagent/certificates/certificate_info.h"
#include "nodeagent/http/tls.h"
#include "tests/support/temp_directory.h"

namespace verger::controller {
namespace {

using ::testing::AllOf;
using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::Not;

struct InitSaid {
  int status = 0;
  std::string out, err;
};

class Init : public ::testing::Test {
 protected:
  InitSaid init(std::vector<std::string> more = {}) {
    std::vector<std::string> words{"init", "--data", data(), "--file", file()};
    words.insert(words.end(), more.begin(), more.end());
    std::vector<const char*> arguments;
    std::ranges::transform(words, std::back_inserter(arguments), &std::string::c_str);
    std::ostringstream out;
    std::ostringstream err;
    const int status = run_init(static_cast<int>(arguments.size()), arguments.data(), out, err);
    return {status, out.str(), err.str()};
  }
  std::string data() const { return (directory_.path() / "data").string(); }
  std::string file() const { return (directory_.path() / "etc" / "vergerd.yaml").string(); }
  std::string text(const std::string& path) const {
    std::ostringstream out;
    out << std::ifstream(path).rdbuf();
    return out.str();
  }
  static unsigned mode(const std::string& path) {
    struct stat seen{};
    EXPECT_EQ(::stat(path.c_str(), &seen), 0) << path;
    return seen.st_mode & 0777U;
  }
  VergerdOptions options() const {
    VergerdOptions out;
    settings::Settings all("vergerd", "");
    add_options(all, out);
    EXPECT_TRUE(all.parse({"--config", file()}, {}).has_value());
    return out;
  }
  test::TempDirectory directory_;
};

TEST_F(Init, PreparesAnApiThatIsHttpsAndAsksForAToken) {
  const auto said = init({"--api-names", "verger.example.com, 10.0.0.5", "--admin", "ann"});
  ASSERT_EQ(said.status, 0) << said.err;
  for (const auto* secret : {"/agents-ca.pem", "/api.pem", "/admin-token"}) {
    EXPECT_EQ(mode(data() + secret), 0600U) << secret;
  }
  EXPECT_THAT(said.out, Not(HasSubstr(text(data() + "/admin-token").substr(0, 40))));
  const auto token = FirstTokenFile::read(FirstTokenFile::in(data())).value();
  ASSERT_TRUE(token.has_value());
  EXPECT_EQ(token->name, "ann");

  const auto configured = options();
  EXPECT_TRUE(check_options(configured).has_value());
  EXPECT_EQ(configured.host, "0.0.0.0");
  EXPECT_EQ(configured.reached_at(), "https://verger.example.com:2115");
  // A client finds the root by the fingerprint that was printed, among what a server shows.
  const auto served =
      http::TlsContext::server(configured.api_files(), http::ClientCertificate::kNotRequested);
  ASSERT_TRUE(served.has_value()) << served.error().message;
  const auto shown = certificates::read_certificates(data() + "/api.pem").value();
  ASSERT_EQ(shown.size(), 2U);
  EXPECT_THAT(shown.front().names, AllOf(Contains("verger.example.com"), Contains("10.0.0.5"),
                                         Contains("127.0.0.1"), Contains("localhost")));
  EXPECT_THAT(said.out, HasSubstr("--ca-fingerprint " + shown.back().fingerprint));
  EXPECT_THAT(said.out, HasSubstr("verger login https://verger.example.com:2115 --token-file -"));
}

TEST_F(Init, ReplacesNothingAndSaysWhatIsThere) {
  ASSERT_EQ(init({"--api-names", "a.example.com"}).status, 0);
  const auto token = text(data() + "/admin-token");
  const auto certificate = text(data() + "/api.pem");
  const auto again = init({"--api-names", "a.example.com"});
  EXPECT_EQ(again.status, 0) << again.err;
  EXPECT_THAT(again.out, AllOf(HasSubstr("kept"), Not(HasSubstr("made")), Not(HasSubstr("set "))));
  const auto other = init({"--api-names", "b.example.com"});
  EXPECT_EQ(other.status, 2);
  EXPECT_THAT(other.err, AllOf(HasSubstr(file()), HasSubstr("nothing was made"),
                               HasSubstr("--api-names b.example.com")));
  EXPECT_EQ(text(data() + "/admin-token"), token);
  EXPECT_EQ(text(data() + "/api.pem"), certificate);
}

TEST_F(Init, SetsTheFileOfAPackageThatHasNothingButDefaultsAndKeepsItsMode) {
  VergerdOptions ignored;
  settings::Settings all("vergerd", "");
  add_options(all, ignored);
  std::filesystem::create_directories(std::filesystem::path(file()).parent_path());
  std::ofstream(file()) << settings::defaults_of(all, {"--data", data()}, "vergerd").value();
  ASSERT_EQ(::chmod(file().c_str(), 0640), 0);
  const auto said = init({"--api-names", "a.example.com"});
  ASSERT_EQ(said.status, 0) << said.err;
  EXPECT_EQ(options().api_names, "a.example.com");
  EXPECT_EQ(mode(file()), 0640U);

  std::ofstream(file(), std::ios::app) << "# a line of the operator's\n";
  EXPECT_EQ(init({"--api-names", "c.example.com"}).status, 2);
}

TEST_F(Init, MakesNoTokenWhereTheJournalMayHaveSome) {
  std::filesystem::create_directories(data());
  std::ofstream(data() + "/journal.db") << "x";
  const auto said = init();
  EXPECT_EQ(said.status, 0) << said.err;
  EXPECT_FALSE(std::filesystem::exists(data() + "/admin-token"));
  EXPECT_THAT(said.out, AllOf(HasSubstr("verger token create"), Not(HasSubstr("verger login"))));
  EXPECT_EQ(options().host, "127.0.0.1") << "without a certificate this machine alone";
  // As vergerd leaves it as long as there is none.
  std::ofstream(data() + "/bootstrap-token") << "x";
  ASSERT_EQ(init().status, 0);
  EXPECT_TRUE(std::filesystem::exists(data() + "/admin-token"));
}

TEST_F(Init, RefusesWhatAStartWouldRefuse) {
  EXPECT_EQ(init({"--host", "0.0.0.0"}).status, 64) << "plain, on all addresses";
  EXPECT_EQ(init({"--api-names", "a", "--api-certificate-file", "x",
                  "--api-certificate-private-key-file", "y"})
                .status,
            64);
  const auto missing = init({"--api-certificate-file", data() + "/no.crt",
                             "--api-certificate-private-key-file", data() + "/no.key"});
  EXPECT_NE(missing.status, 0);
  EXPECT_THAT(missing.err, HasSubstr("no.crt"));
  EXPECT_FALSE(std::filesystem::exists(data())) << "nothing is made before all was looked at";
}

TEST_F(Init, TheApisCertificateIsRenewedInTimeAndForOtherNames) {
  const auto authority =
      certificates::Authority::open_or_make(directory_.path() / "ca.pem", Ticks(0)).value();
  const auto path = directory_.path() / "api.pem";
  const auto renew = [&](std::int64_t day, const std::vector<std::string>& hosts) {
    return renew_api_certificate(authority, path, hosts, std::chrono::hours(24 * 90),
                                 Ticks(day * 86'400 * kTicksPerSecond))
        .value();
  };
  EXPECT_TRUE(renew(0, {"a", "10.0.0.5"}));
  EXPECT_FALSE(renew(59, {"10.0.0.5", "a"}));
  EXPECT_TRUE(renew(59, {"a"}));
  EXPECT_FALSE(renew(60, {"a"}));
  EXPECT_TRUE(renew(59 + 61, {"a"}));
}

}  // namespace
}  // namespace verger::controller
