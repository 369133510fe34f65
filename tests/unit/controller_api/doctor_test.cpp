#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/cli/doctor_checks.h"
#include "controller/cluster/agent_book.h"
#include "tests/support/temp_directory.h"
#include "tests/unit/controller_api/api_harness.h"

/// `verger doctor` on what this API really answers.
namespace verger::controller {
namespace {

using cli::Diagnosis;
using cli::Verdict;
using nlohmann::json;
using std::chrono::days;
using std::chrono::hours;
using std::chrono::minutes;
using ::testing::AllOf;
using testing::ApiHarness;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

auto finding(Verdict verdict, const std::string& subject, const std::string& text) {
  return AllOf(Field(&Diagnosis::verdict, verdict), Field(&Diagnosis::subject, subject),
               Field(&Diagnosis::text, HasSubstr(text)));
}
/// With something to do about it.
auto problem(Verdict verdict, const std::string& subject, const std::string& text,
             const std::string& remedy) {
  return AllOf(finding(verdict, subject, text), Field(&Diagnosis::remedy, HasSubstr(remedy)));
}

class Doctor : public ::testing::Test {
 protected:
  Doctor() {
    authority_.emplace(
        *certificates::Authority::open_or_make(directory_.path() / "ca.pem", a_.h.time.now()));
    a_.make_agents = [this](Journal& journal, ControllerEpoch epoch) {
      auto book = std::make_unique<AgentBook>(AgentBook::Parts{.journal = journal,
                                                               .epoch = epoch,
                                                               .random = a_.random,
                                                               .clock = a_.h.time,
                                                               .authority = &*authority_,
                                                               .certificate_lifetime = days(90)});
      EXPECT_TRUE(book->load().has_value());
      return book;
    };
    a_.crash();
    a_.boot();
    a_.token = a_.create_token("root", "admin");
  }
  /// The secret of a new token that expires so long from now.
  std::string expiring(const std::string& name, const std::string& role, hours after) {
    const Ticks end(now().value() + std::chrono::seconds(after).count() * kTicksPerSecond);
    const auto made = a_.call("POST", "/tokens",
                              {{"name", name}, {"role", role}, {"expires_at", format_ticks(end)}});
    EXPECT_EQ(made.status, 201) << made.body;
    return ApiHarness::json_of(made).value("token", std::string());
  }
  std::vector<Diagnosis> of_caller(std::string secret) {
    const auto before = std::exchange(a_.token, std::move(secret));
    auto out = cli::check_caller(a_.get("/whoami"), now());
    a_.token = before;
    return out;
  }
  std::vector<Diagnosis> of_tokens() { return cli::check_tokens(a_.get("/tokens"), "root", now()); }
  std::vector<Diagnosis> of_agents(const std::string& cluster = "") {
    return cli::check_agents(a_.get("/agents"), cluster, now());
  }
  Ticks now() { return a_.h.time.now(); }
  void pass(std::chrono::milliseconds time) { a_.h.time.jump(time); }

  test::TempDirectory directory_;
  std::optional<certificates::Authority> authority_;
  ApiHarness a_;
};

TEST_F(Doctor, WarnsOfItsOwnTokenBeforeItExpires) {
  EXPECT_THAT(of_caller(a_.token), ElementsAre(finding(Verdict::kOk, "token", "root")));
  EXPECT_THAT(of_caller(expiring("far", "admin", days(90))),
              ElementsAre(finding(Verdict::kOk, "token", "far")));
  EXPECT_THAT(of_caller(expiring("ann", "admin", days(3))),
              ElementsAre(problem(Verdict::kWarning, "token", "in 3 d",
                                  "verger token create NAME --role admin")));
  EXPECT_THAT(of_caller(expiring("vic", "viewer", days(3))),
              ElementsAre(problem(Verdict::kWarning, "token", "in 3 d", "ask an admin")));
}

TEST_F(Doctor, WarnsAdminsOfTheTokensOfOthers) {
  EXPECT_THAT(of_tokens(), IsEmpty()) << "none of them expires";
  expiring("far", "viewer", days(90));
  expiring("prometheus", "viewer", days(5));
  expiring("ci", "operator", hours(1));
  EXPECT_THAT(
      of_tokens(),
      ::testing::UnorderedElementsAre(
          problem(Verdict::kWarning, "token prometheus", "in 5 d", "--role viewer --expires 90d"),
          problem(Verdict::kWarning, "token ci", "in 1 h", "--role operator")));
  pass(hours(2));
  EXPECT_THAT(of_tokens(),
              ::testing::UnorderedElementsAre(
                  finding(Verdict::kWarning, "token prometheus", "in 4 d 22 h"),
                  problem(Verdict::kNote, "token ci", "expired at", "verger token revoke ")));
  const auto tokens = a_.get("/tokens")["tokens"];
  const auto expired =
      std::ranges::find(tokens, "ci", [](const json& each) { return each["name"]; });
  EXPECT_EQ(a_.call("DELETE", "/tokens/" + expired->at("id").get<std::string>()).status, 204);
  EXPECT_THAT(of_tokens(), ElementsAre(finding(Verdict::kWarning, "token prometheus", "in 4 d")))
      << "what is revoked is out of the way";
}

TEST_F(Doctor, SaysWhichOneTimeTokenNoAgentHasUsed) {
  const auto made = a_.call("POST", "/agents/tokens",
                            {{"cluster", "orders"},
                             {"node", "n1"},
                             {"hosts", {"n1.example.com"}},
                             {"valid_for_seconds", 3'600}});
  ASSERT_EQ(made.status, 201) << made.body;
  EXPECT_THAT(of_agents(), ElementsAre(problem(Verdict::kNote, "orders/n1", "expires in 1 h",
                                               "verger agent enrol orders/n1")));
  EXPECT_THAT(of_agents("others"), IsEmpty());
  pass(minutes(61));
  EXPECT_THAT(of_agents("orders"),
              ElementsAre(problem(Verdict::kWarning, "orders/n1", "has not enrolled with it",
                                  "verger agent enrol orders/n1")));
}

TEST_F(Doctor, WarnsOfAnAgentThatDoesNotRenewItsCertificate) {
  const auto made = a_.call("POST", "/agents/tokens",
                            {{"cluster", "orders"}, {"node", "n1"}, {"hosts", {"n1.example.com"}}});
  const auto keys = certificates::make_key_and_request();
  ASSERT_TRUE(keys.has_value());
  const auto enrolled =
      a_.call("POST", "/agents/enrol",
              {{"token", ApiHarness::json_of(made).at("token")}, {"request", keys->request}});
  ASSERT_EQ(enrolled.status, 200) << enrolled.body;
  EXPECT_THAT(of_agents(), IsEmpty());
  const auto agents = a_.get("/agents");
  const auto at = [](const json& answer, const char* name, std::int64_t later) {
    const auto time = parse_ticks(answer["agents"][0][name].get<std::string>());
    return Ticks(time->value() + later * kTicksPerSecond);
  };
  EXPECT_THAT(cli::check_agents(agents, "", at(agents, "renew_at", 3'600)), IsEmpty())
      << "it may be under way";
  EXPECT_THAT(cli::check_agents(agents, "", at(agents, "renew_at", 2 * 86'400)),
              ElementsAre(problem(Verdict::kWarning, "orders/n1", "should have renewed",
                                  "journalctl -u verger-agent")));
  EXPECT_THAT(cli::check_agents(agents, "", at(agents, "not_after", 1)),
              ElementsAre(problem(Verdict::kError, "orders/n1", "ended at",
                                  "verger agent enrol orders/n1")));
}

}  // namespace
}  // namespace verger::controller
