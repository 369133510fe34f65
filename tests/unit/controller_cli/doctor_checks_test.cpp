#include "controller/cli/doctor_checks.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "engine/base/unix_time.h"
#include "tests/unit/controller_cli/cli_output.h"

namespace verger::cli {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using ::testing::Each;
using ::testing::ElementsAre;
using ::testing::Field;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

auto finding(Verdict verdict, const std::string& subject, const std::string& text) {
  return AllOf(Field(&Diagnosis::verdict, verdict), Field(&Diagnosis::subject, subject),
               Field(&Diagnosis::text, HasSubstr(text)));
}

json healthy_node(const std::string& name) {
  return {{"name", name},
          {"url", "https://" + name + ":2113"},
          {"agent_url", "https://" + name + ":2114"},
          {"reachable", true},
          {"agent_reachable", true},
          {"agent_version", "1.0.0"},
          {"is_alive", true},
          {"version", "23.10.1"},
          {"state", "Follower"},
          {"database_bytes", std::int64_t{10} << 30U},
          {"disk_free_bytes", std::int64_t{100} << 30U},
          {"clock_ahead_ms", -12},
          {"clock_error_ms", 3},
          {"problem", nullptr}};
}

json healthy_cluster() {
  return {{"name", "orders"},
          {"paused", false},
          {"snapshot",
           {{"leader", "n1"},
            {"warnings", json::array()},
            {"strangers", json::array()},
            {"nodes", {healthy_node("n1"), healthy_node("n2")}}}}};
}

/// What is found when the second node is changed so.
std::vector<Diagnosis> with_second_node(const std::string& member, const json& value) {
  auto cluster = healthy_cluster();
  cluster["snapshot"]["nodes"][1][member] = value;
  auto found = check_cluster(cluster, "1.0.0");
  std::erase_if(found, [](const Diagnosis& each) { return each.subject == "orders/n1"; });
  return found;
}

TEST(Doctor, FindsNothingWrongWithAHealthyCluster) {
  EXPECT_THAT(check_cluster(healthy_cluster(), "1.0.0"),
              ElementsAre(finding(Verdict::kOk, "orders/n1", "23.10.1"),
                          finding(Verdict::kOk, "orders/n2", "23.10.1")));
}

TEST(Doctor, FindsWhatIsWrongWithANode) {
  EXPECT_THAT(with_second_node("reachable", false),
              ElementsAre(finding(Verdict::kError, "orders/n2", "does not answer")));
  EXPECT_THAT(with_second_node("is_alive", false),
              ElementsAre(finding(Verdict::kError, "orders/n2", "alive")));
  EXPECT_THAT(with_second_node("problem", "wrong password"),
              ElementsAre(finding(Verdict::kError, "orders/n2", "wrong password")));
  EXPECT_THAT(with_second_node("agent_reachable", false),
              ElementsAre(finding(Verdict::kError, "orders/n2", "its agent at")));
  EXPECT_THAT(with_second_node("agent_url", ""),
              ElementsAre(finding(Verdict::kNote, "orders/n2", "no agent")));
  EXPECT_THAT(with_second_node("disk_free_bytes", 1 << 20U),
              ElementsAre(finding(Verdict::kError, "orders/n2", "1 MiB are free")));
  EXPECT_THAT(with_second_node("disk_free_bytes", 900 << 20U),
              ElementsAre(finding(Verdict::kWarning, "orders/n2", "900 MiB are free")));
  EXPECT_THAT(with_second_node("agent_version", "0.9.0"),
              ElementsAre(finding(Verdict::kOk, "orders/n2", "23.10.1"),
                          finding(Verdict::kWarning, "orders/n2", "its agent is 0.9.0")));
  EXPECT_THAT(with_second_node("version", "24.2.0"),
              ElementsAre(finding(Verdict::kOk, "orders/n2", "24.2.0"),
                          finding(Verdict::kWarning, "orders", "23.10.1, 24.2.0")));
}

TEST(Doctor, FindsClocksThatAreWrongByMoreThanTheQuestionCost) {
  EXPECT_THAT(with_second_node("clock_ahead_ms", -9'000),
              ElementsAre(finding(Verdict::kWarning, "orders/n2", "9 s behind")));
  EXPECT_THAT(with_second_node("clock_ahead_ms", 70'000),
              ElementsAre(finding(Verdict::kError, "orders/n2", "70 s ahead of")));
  EXPECT_THAT(with_second_node("clock_ahead_ms", nullptr),
              ElementsAre(finding(Verdict::kOk, "orders/n2", "23.10.1")));
  EXPECT_THAT(with_second_node("clock_error_ms", 120'000),
              ElementsAre(finding(Verdict::kOk, "orders/n2", "23.10.1")));
}

TEST(Doctor, EachWarningAndErrorHasARemedy) {
  auto cluster = healthy_cluster();
  cluster["paused"] = true;
  cluster["pause_reason"] = "upgrade";
  auto& snapshot = cluster["snapshot"];
  snapshot["leader"] = nullptr;
  snapshot["warnings"] = {"a newer controller was seen"};
  snapshot["strangers"] = {"n9:2113"};
  snapshot["nodes"][0]["reachable"] = false;
  auto found = check_cluster(cluster, "1.0.0");
  std::erase_if(found, [](const Diagnosis& each) { return each.verdict == Verdict::kOk; });
  EXPECT_EQ(found.size(), 5U);
  EXPECT_THAT(found, Each(Field(&Diagnosis::remedy, Not(IsEmpty()))));
}

TEST(Doctor, ComparesVersionsWithTheController) {
  EXPECT_THAT(
      check_controller({{"status", "ok"}, {"version", "1.0.0"}, {"controller_epoch", 4}}, "1.0.0"),
      ElementsAre(finding(Verdict::kOk, "vergerd", "epoch 4")));
  EXPECT_THAT(
      check_controller({{"status", "ok"}, {"version", "1.0.1"}, {"controller_epoch", 4}}, "1.0.0"),
      ElementsAre(finding(Verdict::kWarning, "vergerd", "1.0.1")));
  EXPECT_THAT(check_controller({{"status", "standby"}, {"reason", "the other acts"}}, "1.0.0"),
              ElementsAre(finding(Verdict::kError, "vergerd", "the other acts")));
}

json certificates_that_end_in(std::int64_t days) {
  return {{"cluster", "orders"},
          {"nodes",
           {{{"node", "n1"},
             {"file_differs", false},
             {"served", {{{"subject", "CN=root"}, {"days_left", 3000}}}},
             {"agent",
              {{{"subject", "CN=n1"},
                {"days_left", days},
                {"not_after", "2026-12-01T00:00:00.000Z"}}}}}}}};
}

TEST(Doctor, WarnsOfTheCertificateThatEndsFirst) {
  EXPECT_THAT(check_certificates(certificates_that_end_in(90)),
              ElementsAre(finding(Verdict::kOk, "orders", "CN=n1 (agent)")));
  EXPECT_THAT(check_certificates(certificates_that_end_in(20)),
              ElementsAre(finding(Verdict::kWarning, "orders/n1", "in 20 days")));
  EXPECT_THAT(check_certificates(certificates_that_end_in(-1)),
              ElementsAre(finding(Verdict::kError, "orders/n1", "in -1 days")));
  auto differs = certificates_that_end_in(90);
  differs["nodes"][0]["file_differs"] = true;
  EXPECT_THAT(check_certificates(differs),
              ElementsAre(finding(Verdict::kOk, "orders", "first"),
                          finding(Verdict::kWarning, "orders/n1", "another certificate")));
  EXPECT_THAT(check_certificates({{"cluster", "orders"}, {"nodes", json::array()}}), IsEmpty());
}

json backups_with(const json& newest) {
  return {{"cluster", "orders"}, {"repositories", {{{"name", "daily"}}}}, {"backups", {newest}}};
}

TEST(Doctor, JudgesTheNewestUsableBackup) {
  const json verified{{"id", "b2"},
                      {"age_seconds", 3600},
                      {"damage", nullptr},
                      {"last_verify", {{"passed", true}}}};
  EXPECT_THAT(check_backups(backups_with(verified)),
              ElementsAre(finding(Verdict::kOk, "orders", "b2, is 1 h")));
  auto unverified = verified;
  unverified["last_verify"] = nullptr;
  EXPECT_THAT(check_backups(backups_with(unverified)),
              ElementsAre(finding(Verdict::kWarning, "orders", "never verified")));
  auto failed = verified;
  failed["last_verify"] = {{"passed", false}, {"summary", "3 chunks differ"}};
  EXPECT_THAT(check_backups(backups_with(failed)),
              ElementsAre(finding(Verdict::kError, "orders", "3 chunks differ")));
  auto damaged = verified;
  damaged["damage"] = "its manifest is cut off";
  EXPECT_THAT(check_backups(backups_with(damaged)),
              ElementsAre(finding(Verdict::kError, "orders", "no usable backup")));
  EXPECT_THAT(check_backups({{"cluster", "orders"}}),
              ElementsAre(finding(Verdict::kNote, "orders", "no agent has a repository")));
}

TEST(Doctor, ReportsWhatPoliciesWaitFor) {
  // With all members, and their types, as the API has them.
  const auto selected = [](const char* member, const char* text) {
    json out{{"cluster", "orders"}, {"last_due", nullptr}, {"outcome", ""},    {"late", ""},
             {"too_old", ""},       {"run", ""},           {"plan", ""},       {"reason", ""},
             {"waiting", ""},       {"open", true},        {"hours", nullptr}, {"until", nullptr}};
    out[member] = text;
    return json{{"policies", {{{"name", "nightly"}, {"enabled", true}, {"selected", {out}}}}}};
  };
  EXPECT_THAT(check_policies(selected("reason", "as it was"), "orders"), IsEmpty());
  EXPECT_THAT(check_policies(selected("cluster", "others"), "orders"),
              ElementsAre(finding(Verdict::kNote, "orders", "no policy selects it")));
  EXPECT_THAT(check_policies(selected("too_old", "the newest backup is 9 d old"), "orders"),
              ElementsAre(finding(Verdict::kError, "orders", "nightly: the newest backup is 9 d")));
  EXPECT_THAT(check_policies(selected("late", "a certificate ends before"), "orders"),
              ElementsAre(finding(Verdict::kWarning, "orders", "a certificate ends before")));
  EXPECT_THAT(check_policies(selected("outcome", "needs-approval"), "orders"),
              ElementsAre(finding(Verdict::kNote, "orders", "waits for approval")));
  auto disabled = selected("too_old", "the newest backup is 9 d old");
  disabled["policies"][0]["enabled"] = false;
  EXPECT_THAT(check_policies(disabled, "orders"),
              ElementsAre(finding(Verdict::kNote, "orders", "no policy selects it")));
}

TEST(Doctor, FindsWhatIsDueOutsideOfItsWindowsOnceForEachPolicy) {
  const auto due = [](const char* policy, bool inside) {
    return json{{"kind", "due"},     {"policy", policy}, {"policys", "2026-12-01 12:00"},
                {"zone", "Etc/UTC"}, {"inside", inside}, {"until", nullptr}};
  };
  EXPECT_THAT(
      check_schedule({{"cluster", "orders"},
                      {"times", {due("nightly", true), due("noon", false), due("noon", false)}}}),
      ElementsAre(finding(Verdict::kWarning, "orders", "noon: what is due at 2026-12-01")));
}

TEST(Doctor, NamesTheTokensRole) {
  const Ticks now = ticks_at_unix(1'700'000'000);
  EXPECT_THAT(check_caller({{"name", "ann"}, {"role", "admin"}}, now),
              ElementsAre(finding(Verdict::kOk, "token", "ann with the role admin")));
  EXPECT_THAT(check_caller({{"name", "bob"}, {"role", "viewer"}}, now),
              ElementsAre(finding(Verdict::kNote, "token", "may look")));
}

TEST(Doctor, WithoutAControllerFails) {
  const auto result = verger_without_vergerd({"doctor"});
  EXPECT_EQ(result.status, kFailed);
  EXPECT_THAT(result.err, HasSubstr("127.0.0.1:1"));
}

}  // namespace
}  // namespace verger::cli
