// What the API says of a cluster's backup repositories and of what is in them.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>

#include "nodeagent/api/agent_backups.h"
#include "nodeagent/api/json_answer.h"
#include "tests/unit/controller_api/api_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using ::testing::AllOf;
using testing::ApiHarness;
using ::testing::HasSubstr;

constexpr const char* kMain = "0d7e5c5e-6f0c-4b0e-9f44-6a6f6c1a2b3c";
constexpr const char* kOther = "11111111-2222-4333-8444-555555555555";

/// In front of the agents: answers what they say of backups.
class BackupAgents final : public http::Client {
 public:
  explicit BackupAgents(http::Client& behind) : behind_(behind) {}

  net::awaitable<Result<http::Response>> send(http::Endpoint to, http::Request request,
                                              std::chrono::milliseconds deadline) override {
    if (!request.target.starts_with("/agent/v1/backups")) {
      co_return co_await behind_.send(std::move(to), std::move(request), deadline);
    }
    const auto node = std::string("n") + to.host.back();
    if (request.target.starts_with("/agent/v1/backups/repositories")) {
      if (silent.contains(node)) {
        co_return Error{Errc::kUnavailable, "nothing listens there"};
      }
      co_return answer(api::to_text(repositories[node]));
    }
    asked.push_back(node);
    if (no_lists.contains(node)) {
      co_return api::problem(503, "unavailable", "the directory is not mounted");
    }
    const auto target = *http::parse_target(request.target);
    co_return answer(api::to_text(generations[std::string(*target.parameter("repository"))]));
  }

  std::map<std::string, std::vector<api::BackupRepository>> repositories;  ///< by node
  std::map<std::string, std::vector<api::BackupGeneration>> generations;   ///< by repository
  std::set<std::string> silent;    ///< nodes whose agents do not answer
  std::set<std::string> no_lists;  ///< nodes whose agents have no list of generations
  std::vector<std::string> asked;  ///< for generations

 private:
  static http::Response answer(std::string body) {
    http::Response out;
    out.headers.set("Content-Type", "application/json; charset=utf-8");
    out.body = std::move(body);
    return out;
  }
  http::Client& behind_;
};

class BackupsTest : public ::testing::Test {
 protected:
  BackupsTest() : agents_(a_.h.cluster) {
    a_.crash();
    a_.h.client = &agents_;
    a_.boot();
    for (const auto* node : {"n1", "n2", "n3"}) {
      agents_.repositories[node] = {main_repository()};
    }
  }
  ~BackupsTest() override {
    a_.crash();
    a_.h.client = nullptr;
    a_.boot();
  }
  static api::BackupRepository main_repository() {
    return {.name = "main",
            .location = "/backup/prod",
            .id = kMain,
            .compression = "zstd",
            .free_bytes = 1'000'000,
            .generations = 2};
  }
  api::BackupGeneration backup(std::string id, std::string node, int minutes_ago) {
    api::BackupGeneration out;
    out.id = std::move(id);
    out.node = std::move(node);
    out.cluster = "prod";
    out.host = "host-1";
    out.state = "live";
    out.finished_at = ago(minutes_ago);
    out.started_at = out.checkpoints_at = out.finished_at;
    out.end_position = 10'000;
    out.restored_bytes = 4'096;
    out.files = 7;
    return out;
  }
  Ticks ago(int minutes) { return Ticks(a_.h.time.now().value() - minutes * 60 * kTicksPerSecond); }
  json backups(const std::string& query = "") { return a_.get("/clusters/prod/backups" + query); }

  ApiHarness a_;
  BackupAgents agents_;
};

TEST_F(BackupsTest, ARepositoryThatAllAgentsHaveIsOne) {
  agents_.repositories["n2"][0].name = "store";
  agents_.repositories["n3"][0].drills = true;
  const auto answer = a_.get("/clusters/prod/backup-repositories");
  ASSERT_EQ(answer["repositories"].size(), 1U) << answer.dump(1);
  const auto& repository = answer["repositories"][0];
  EXPECT_EQ(repository["id"], kMain);
  EXPECT_EQ(repository["name"], "main");
  EXPECT_EQ(repository["backups"], 2);
  ASSERT_EQ(repository["agents"].size(), 3U);
  EXPECT_EQ(repository["agents"][1]["name"], "store");
  EXPECT_EQ(repository["agents"][1]["location"], "/backup/prod");
  EXPECT_EQ(repository["agents"][2]["drills"], true);
  EXPECT_TRUE(answer["conflicts"].empty());
  EXPECT_TRUE(answer["problems"].empty());
}

TEST_F(BackupsTest, WhatAnAgentDoesNotSayStandsWithItsNode) {
  agents_.silent = {"n1"};
  agents_.repositories["n2"][0].id.clear();
  agents_.repositories["n2"][0].error = "/backup/prod is not mounted";
  const auto answer = a_.get("/clusters/prod/backup-repositories");
  ASSERT_EQ(answer["repositories"].size(), 1U) << answer.dump(1);
  EXPECT_EQ(answer["repositories"][0]["agents"].size(), 1U);
  ASSERT_EQ(answer["problems"].size(), 2U) << answer.dump(1);
  EXPECT_EQ(answer["problems"][0]["node"], "n1");
  EXPECT_TRUE(answer["problems"][0]["repository"].is_null());
  EXPECT_EQ(
      answer["problems"][1],
      json({{"node", "n2"}, {"repository", "main"}, {"reason", "/backup/prod is not mounted"}}));
}

TEST_F(BackupsTest, OneNameForTwoRepositoriesIsAConflict) {
  agents_.repositories["n3"][0].id = kOther;
  const auto answer = a_.get("/clusters/prod/backup-repositories");
  EXPECT_EQ(answer["repositories"].size(), 2U);
  ASSERT_EQ(answer["conflicts"].size(), 1U) << answer.dump(1);
  EXPECT_THAT(answer["conflicts"][0].get<std::string>(),
              AllOf(HasSubstr("main names different repositories"),
                    HasSubstr(std::string(kMain) + " at n1, n2"),
                    HasSubstr(std::string(kOther) + " at n3")));
}

TEST_F(BackupsTest, BeforeTheFirstBackupARepositoryHasNoIdAndNoList) {
  for (auto& [node, list] : agents_.repositories) {
    list[0].id.clear();
  }
  const auto known = a_.get("/clusters/prod/backup-repositories");
  ASSERT_EQ(known["repositories"].size(), 1U) << known.dump(1);
  EXPECT_TRUE(known["repositories"][0]["id"].is_null());
  EXPECT_TRUE(known["conflicts"].empty());
  EXPECT_TRUE(backups()["backups"].empty());
  EXPECT_TRUE(agents_.asked.empty());
}

TEST_F(BackupsTest, AreListedOnceNewestFirstWithTheirChecks) {
  auto old = backup("20261120t000000z-00000001", "n2", 120);
  old.last_verify = api::BackupCheckSummary{
      .at = ago(60), .passed = true, .summary = "4096 bytes", .duration_ms = 1'500};
  auto newer = backup("20261121t000000z-00000002", "n3", 5);
  newer.parent = old.id;
  agents_.generations["main"] = {old, newer};
  const auto answer = backups();
  ASSERT_EQ(answer["backups"].size(), 2U) << answer.dump(1);
  const auto& first = answer["backups"][0];
  EXPECT_EQ(first["id"], newer.id);
  EXPECT_EQ(first["repository"], "main");
  EXPECT_EQ(first["full"], false);
  EXPECT_EQ(first["age_seconds"], 300);
  EXPECT_TRUE(first["last_verify"].is_null());
  EXPECT_TRUE(first["damage"].is_null());
  const auto& second = answer["backups"][1];
  EXPECT_EQ(second["full"], true);
  EXPECT_EQ(second["last_verify"]["passed"], true);
  EXPECT_EQ(second["last_verify"]["age_seconds"], 3'600);
  EXPECT_TRUE(second["last_drill"].is_null());
  EXPECT_EQ(agents_.asked.size(), 1U) << "the same repository is read once";
  EXPECT_EQ(answer["repositories"][0]["listed_by"], "n1");
}

TEST_F(BackupsTest, TheNextAgentIsQueriedWhereOneCannotList) {
  agents_.generations["main"] = {backup("20261120t000000z-00000001", "n2", 120)};
  agents_.no_lists = {"n1"};
  const auto answer = backups();
  EXPECT_EQ(answer["backups"].size(), 1U) << answer.dump(1);
  EXPECT_EQ(answer["repositories"][0]["listed_by"], "n2");
  ASSERT_EQ(answer["problems"].size(), 1U);
  EXPECT_EQ(answer["problems"][0]["node"], "n1");
  EXPECT_THAT(answer["problems"][0]["reason"].get<std::string>(), HasSubstr("not mounted"));

  agents_.no_lists = {"n1", "n2", "n3"};
  const auto none = backups();
  EXPECT_TRUE(none["backups"].empty());
  EXPECT_TRUE(none["repositories"][0]["listed_by"].is_null());
  EXPECT_EQ(none["problems"].size(), 3U);
}

TEST_F(BackupsTest, OfOtherClustersAreCountedAndShownOnRequest) {
  auto foreign = backup("20261120t000000z-00000001", "n1", 120);
  foreign.cluster = "billing";
  auto by_hand = backup("20261120t000000z-00000002", "n1", 60);
  by_hand.cluster.clear();
  agents_.generations["main"] = {foreign, by_hand, backup("20261120t000000z-00000003", "n2", 30)};
  const auto own = backups();
  EXPECT_EQ(own["backups"].size(), 2U) << own.dump(1);
  EXPECT_EQ(own["of_other_clusters"], 1);
  EXPECT_EQ(backups("?all=true")["backups"].size(), 3U);
  EXPECT_EQ(backups("?node=n2")["backups"].size(), 1U);
}

TEST_F(BackupsTest, ComeInPages) {
  for (int i = 0; i < 5; ++i) {
    agents_.generations["main"].push_back(
        backup(fmt::format("20261120t000000z-0000000{}", i), "n1", 10 * (i + 1)));
  }
  const auto first = backups("?limit=3");
  EXPECT_EQ(first["backups"].size(), 3U);
  ASSERT_TRUE(first["next_cursor"].is_string()) << first.dump(1);
  const auto rest =
      backups("?limit=3&cursor=" + http::percent_encode(first["next_cursor"].get<std::string>()));
  EXPECT_EQ(rest["backups"].size(), 2U);
  EXPECT_TRUE(rest["next_cursor"].is_null());
  EXPECT_EQ(rest["cluster"], "prod") << "each page has the rest, too";
}

TEST_F(BackupsTest, OfARepositoryThatNoAgentHasAreAnErrorThatSaysWhichThereAre) {
  const auto answer = a_.call("GET", "/clusters/prod/backups?repository=tape");
  EXPECT_EQ(answer.status, 404);
  EXPECT_THAT(answer.body, AllOf(HasSubstr("tape"), HasSubstr("they have: main")));
  agents_.silent = {"n2"};
  EXPECT_EQ(a_.call("GET", "/clusters/prod/backups?repository=tape").status, 200)
      << "n2 may have it";
  EXPECT_EQ(a_.call("GET", "/clusters/nowhere/backups").status, 404);
  EXPECT_EQ(a_.call("GET", "/clusters/nowhere/backup-repositories").status, 404);
}

}  // namespace
}  // namespace verger::controller
