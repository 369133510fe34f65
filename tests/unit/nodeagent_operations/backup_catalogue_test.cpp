#include "nodeagent/client/agent_client.h"
#include "nodeagent/operations/backup/catalogue.h"
#include "tests/unit/nodeagent_operations/backup_fixture.h"

/// What an agent shows of its repositories, and what it does with the backups in them.
namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;

class ABackupCatalogue : public BackupFixture {
 protected:
  void overwrite_manifest(const std::string& id) {
    value(write_file_durably(host_.disk(), "/backup/generations/" + id,
                             as_bytes(std::string_view("not a manifest"))));
  }
};

TEST_F(ABackupCatalogue, ShowsWhatIsWrongWithARepositoryBesideTheOthers) {
  describe("broken", R"({"location":1})");
  ASSERT_EQ(back_up("o1").value("state", ""), "done");
  ASSERT_EQ(ask("GET", "/agent/v1/backups/repositories"), "200");
  const auto& all = answer_["repositories"];
  ASSERT_THAT(all, SizeIs(3));
  EXPECT_EQ(all[0].value("name", ""), "broken");
  EXPECT_THAT(all[0].value("error", ""), HasSubstr("location"));
  EXPECT_EQ(all[1].value("name", ""), "gone");
  EXPECT_THAT(all[1].value("error", ""), HasSubstr("mount its file system"));
  EXPECT_EQ(all[1].value("location", ""), "/mnt/gone");
  EXPECT_EQ(all[2].value("name", ""), "nightly");
  EXPECT_FALSE(all[2].contains("error")) << all;
  EXPECT_EQ(all[2].value("location", ""), "/backup");
  EXPECT_EQ(all[2].value("generations", -1), 1);
  EXPECT_EQ(all[2].value("id", "").size(), 36U);
  EXPECT_TRUE(all[2].contains("freeBytes"));
  EXPECT_THAT(all[2].value("drillProblem", ""), HasSubstr("--backup-scratch"));
  EXPECT_EQ(ask("GET", "/agent/v1/backups?repository=gone"), "503 unavailable");
  EXPECT_EQ(ask("GET", "/agent/v1/backups?repository=unknown"), "404 not_found");
  EXPECT_EQ(ask("GET", "/agent/v1/backups?repository=../etc"), "400 bad_request");
  EXPECT_EQ(ask("GET", "/agent/v1/backups"), "400 bad_request");
}

TEST_F(ABackupCatalogue, OfARepositoryWithoutABackupIsEmpty) {
  EXPECT_THAT(generations(), IsEmpty());
  ASSERT_EQ(ask("GET", "/agent/v1/backups/repositories"), "200");
  EXPECT_FALSE(answer_["repositories"][1].contains("error")) << answer_;
  EXPECT_EQ(answer_["repositories"][1].value("generations", -1), 0);
  EXPECT_FALSE(*host_.disk().exists("/backup/repository")) << "to look makes none";
}

TEST_F(ABackupCatalogue, IsReadByTheAgentsClient) {
  const auto made = back_up("o1")["result"];
  host_.serve_http(2114, agent_->handler());
  struct Answers {
    client::Outcome<std::vector<api::BackupRepository>> repositories;
    client::Outcome<std::vector<api::BackupGeneration>> generations;
    client::Outcome<std::vector<api::BackupGeneration>> of_another_node;
    client::Outcome<std::vector<api::BackupGeneration>> of_none;
  };
  std::optional<Answers> answers;
  host_.spawn([](http::Client& http, std::optional<Answers>& into) -> net::awaitable<void> {
    const client::AgentClient agent(http, {.tls = false, .host = "n1", .port = 2114});
    into = Answers{.repositories = co_await agent.backup_repositories(),
                   .generations = co_await agent.backups("nightly"),
                   .of_another_node = co_await agent.backups("nightly", "a node & more"),
                   .of_none = co_await agent.backups("unknown")};
  }(host_.client(), answers));
  ASSERT_TRUE(world_.run_until([&] { return answers.has_value(); }, milliseconds(20'000)));
  ASSERT_TRUE(answers->repositories.value) << answers->repositories.why;
  EXPECT_EQ(answers->repositories.value->at(1).name, "nightly");
  ASSERT_TRUE(answers->generations.value) << answers->generations.why;
  ASSERT_THAT(*answers->generations.value, SizeIs(1));
  EXPECT_EQ(api::to_text(answers->generations.value->front()),
            api::to_text(value(api::parse_backup_generation(made.dump()))));
  ASSERT_TRUE(answers->of_another_node.value) << answers->of_another_node.why;
  EXPECT_THAT(*answers->of_another_node.value, IsEmpty());
  EXPECT_TRUE(answers->of_none.refused());
  EXPECT_EQ(answers->of_none.code, "not_found");
}

TEST_F(ABackupCatalogue, ReadsEachManifestOnce) {
  const auto id = back_up("o1")["result"].value("id", "");
  const auto listed = generations();
  overwrite_manifest(id);
  EXPECT_EQ(generations(), listed) << "it is kept";
  open_agent();
  const auto anew = generations();
  ASSERT_THAT(anew, SizeIs(1));
  EXPECT_EQ(anew[0].value("id", ""), id);
  EXPECT_THAT(anew[0].value("damage", ""), ::testing::Not(IsEmpty())) << anew;
}

/// Never comes back from a repository.
class StuckRunner final : public node::JobRunner {
 public:
  StuckRunner(http::Timers& timers, node::JobRunner& others) : timers_(timers), others_(others) {}
  net::awaitable<Result<void>> run(std::shared_ptr<Job> job,
                                   std::shared_ptr<const node::StopFlag> stop) override {
    const auto* const look = dynamic_cast<const CatalogueJob*>(job.get());
    if (look != nullptr && look->repository().name == "gone") {
      ++stuck;
      co_await timers_.sleep_for(std::chrono::hours(1));
    }
    co_return co_await others_.run(std::move(job), std::move(stop));
  }
  int stuck = 0;

 private:
  http::Timers& timers_;
  node::JobRunner& others_;
};

TEST_F(ABackupCatalogue, DoesNotWaitForARepositoryThatDoesNotAnswer) {
  StuckRunner stuck(host_.timers(), *runner_);
  const auto all = access();
  backups_ = std::make_shared<BackupAccess>(BackupAccess{.repositories = all->repositories,
                                                         .temporary = all->temporary,
                                                         .files = all->files,
                                                         .database = all->database,
                                                         .clock = all->clock,
                                                         .random = all->random,
                                                         .log = all->log,
                                                         .jobs = stuck,
                                                         .host = all->host});
  open_agent();
  const auto began = world_.now();
  ASSERT_EQ(ask("GET", "/agent/v1/backups/repositories"), "200");
  EXPECT_LT(world_.now() - began, seconds(10));
  EXPECT_THAT(answer_["repositories"][0].value("error", ""),
              HasSubstr("\"gone\" has not answered within 8 s"));
  EXPECT_FALSE(answer_["repositories"][1].contains("error")) << answer_;
  EXPECT_EQ(ask("GET", "/agent/v1/backups?repository=gone"), "503 unavailable");
  EXPECT_EQ(stuck.stuck, 1) << "one look at a time";
  EXPECT_THAT(generations(), IsEmpty()) << "the other one answers at once";
  agent_ = nullptr;  // before its runner
}

TEST_F(ABackupCatalogue, ShowsTheCheckThatAVerifyRecorded) {
  const auto id = back_up("o1", {{"digests", "logical"}})["result"].value("id", "");
  node_runs_ = false;  // a repository is all it needs
  const auto status =
      run("o2", "backup_verify", {{"repository", "nightly"}, {"generation", id}, {"by", "run 7"}});
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"].value("passed", false), true) << status;
  EXPECT_EQ(status["result"].value("generation", ""), id);
  EXPECT_GT(status["result"].value("bytes", 0), 16 * 1024);
  const auto listed = generations();
  EXPECT_EQ(listed[0]["lastVerify"].value("passed", false), true) << listed;
  EXPECT_THAT(listed[0]["lastVerify"].value("summary", ""), HasSubstr("no damage"));
  EXPECT_FALSE(listed[0].contains("lastDrill"));
  EXPECT_EQ(value(repository().checks(id)).at(0).by, "run 7");
}

TEST_F(ABackupCatalogue, ShowsDamageAsAResultOfAVerify) {
  const auto id = back_up("o1")["result"].value("id", "");
  const auto manifest = value(repository().load(id));
  const auto* const chunk = manifest.find("chunk-000001.000000");
  ASSERT_NE(chunk, nullptr);
  const auto path = store_.blob_path(chunk->sha256);
  value(host_.disk().set_read_only(path, false));
  auto file = value(host_.disk().open(path, OpenMode::kReadWrite));
  value(file->write_at(500, as_bytes(std::string_view("\x01"))));
  const auto status = run("o2", "backup_verify", {{"repository", "nightly"}, {"generation", id}});
  ASSERT_EQ(status.value("state", ""), "done") << status;
  ASSERT_EQ(status["result"].value("passed", true), false);
  ASSERT_THAT(status["result"]["damage"], ::testing::Not(IsEmpty()));
  EXPECT_EQ(status["result"]["damage"][0].value("path", ""), "chunk-000001.000000");
  EXPECT_EQ(generations()[0]["lastVerify"].value("passed", true), false);
  EXPECT_THAT(generations()[0]["lastVerify"].value("summary", ""),
              HasSubstr("chunk-000001.000000"));
}

TEST_F(ABackupCatalogue, VerifiesOnlyWhatIsThere) {
  EXPECT_EQ(run("o1", "backup_verify", {{"repository", "nightly"}, {"generation", "latest"}})
                .value("errorCode", ""),
            "invalid_argument");
  ASSERT_EQ(back_up("o2").value("state", ""), "done");
  EXPECT_EQ(run("o3", "backup_verify",
                {{"repository", "nightly"}, {"generation", "20200101t000000z-00000000"}})
                .value("errorCode", ""),
            "not_found");
}

TEST_F(ABackupCatalogue, RetainsByRulesOneNodeAtATime) {
  std::vector<std::string> ids;
  for (int i = 0; i < 3; ++i) {
    ids.push_back(back_up("o" + std::to_string(i))["result"].value("id", ""));
    world_.run_for(seconds(60));
  }
  const auto other = back_up("other", {{"node", "n2"}})["result"].value("id", "");
  const auto before = value(repository().load(other));
  const auto status =
      run("r1", "backup_retain", {{"repository", "nightly"}, {"node", "n1"}, {"keepLast", 1}});
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["deleted"], json({ids[0], ids[1]})) << status;
  EXPECT_EQ(status["result"].value("bytes", 0), 0) << "content stays a day longer";
  const auto left = generations();
  ASSERT_THAT(left, SizeIs(2));
  EXPECT_EQ(value(repository().load(other)), before) << "another node's is left as it is";
}

TEST_F(ABackupCatalogue, RetainsNothingThatARunningBackupMayNeed) {
  const auto first = back_up("o1")["result"].value("id", "");
  world_.run_for(seconds(60));
  ASSERT_EQ(
      run("r1", "backup_retain", {{"repository", "nightly"}, {"generations", json::array({first})}})
          .value("state", ""),
      "done");
  EXPECT_THAT(generations(), IsEmpty());
  world_.run_for(std::chrono::hours(25));
  permit();
  ASSERT_EQ(begin("o2"), "202");
  copy_some("o2");
  const auto during = run("r2", "backup_retain", {{"repository", "nightly"}});
  ASSERT_EQ(during.value("state", ""), "done") << during;
  EXPECT_THAT(during["result"].value("postponed", ""), ::testing::Not(IsEmpty())) << during;
  const auto second = ended("o2");
  ASSERT_EQ(second.value("state", ""), "done") << second;
  const auto after = run("r3", "backup_retain", {{"repository", "nightly"}});
  EXPECT_FALSE(after["result"].contains("postponed")) << after;
  const auto checked =
      run("v1", "backup_verify",
          {{"repository", "nightly"}, {"generation", second["result"].value("id", "")}});
  EXPECT_EQ(checked["result"].value("passed", false), true) << checked;
}

TEST_F(ABackupCatalogue, RefusesRulesThatCannotBeMeant) {
  const auto code = [this](const std::string& id, json parameters) {
    parameters["repository"] = "nightly";
    return run(id, "backup_retain", parameters).value("errorCode", "");
  };
  EXPECT_EQ(code("r1", {{"keepLast", -1}}), "invalid_argument");
  EXPECT_EQ(code("r2", {{"generations", json::array({"x"})}}), "invalid_argument");
  EXPECT_EQ(
      code("r3", {{"keepLast", 1}, {"generations", json::array({"20200101t000000z-00000000"})}}),
      "invalid_argument");
  EXPECT_EQ(code("r4", {{"keepLast", 1}}), "not_found") << "nothing was ever stored there";
}

}  // namespace
}  // namespace verger::agent
