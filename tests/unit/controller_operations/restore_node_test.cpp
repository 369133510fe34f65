// Single nodes of a cluster that lives on.
#include <fmt/format.h>

#include "tests/unit/controller_operations/restore_run.h"

namespace verger::controller {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class RestoreNode : public test::RestoreRun {
 protected:
  void expect_follows(const std::string& run, const std::string& name) {
    ASSERT_TRUE(ends(run)) << snapshot_of(h_.state(run)).state;
    ASSERT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
    EXPECT_EQ(files(name).restores, 1);
    EXPECT_EQ(node(name).state, node(name).read_only_replica ? api::NodeState::kReadOnlyReplica
                                                             : api::NodeState::kFollower);
    EXPECT_EQ(node(name).writer, node("n1").writer) << "it has caught up";
    EXPECT_EQ(report(run)["outcome"], "restored");
    EXPECT_THAT(report(run)["notes"].dump(), Not(HasSubstr("reads everything")))
        << "its log continues that of its earlier backups";
  }
};

TEST_F(RestoreNode, CatchesUpFromAnOlderBackup) {
  begin();
  const auto run = start(of_node());
  expect_follows(run, "n3");
  EXPECT_EQ(files("n1").starts + files("n2").starts, 0);
  const auto shown = report(run);
  ASSERT_EQ(shown["nodes"].size(), 1U);
  EXPECT_TRUE(shown["nodes"][0]["lost_bytes"].is_null()) << "the others have it";
  EXPECT_EQ(shown["leader"], "n1");
}

TEST_F(RestoreNode, ADeadNodeIsReplaced) {
  node("n3").up = false;
  node("n3").state = api::NodeState::kUnknown;
  begin();
  expect_follows(start(of_node()), "n3");
}

TEST_F(RestoreNode, AReadOnlyReplicaIsRestored) {
  h_.cluster.add_replica();
  begin();
  expect_follows(start(of_node("n4")), "n4");
}

TEST_F(RestoreNode, TwoComeOneAfterTheOther) {
  h_.cluster.add_replica();
  begin();
  bool together = false;
  h_.cluster.acted = [&](const test::FakeNode&, const http::Request&) {
    together = together || (!node("n3").up && !node("n4").up);
  };
  const auto run = start(of_node("n4,n3"));
  expect_follows(run, "n3");
  expect_follows(run, "n4");
  EXPECT_FALSE(together);
}

TEST_F(RestoreNode, TheLeaderIsRefusedWithWhatToDo) {
  begin();
  EXPECT_THAT(refusals(of_node("n1")), ElementsAre("is-leader n1"));
}

TEST_F(RestoreNode, WithoutAQuorumOfTheOthersItIsRefused) {
  node("n2").up = false;
  begin();
  EXPECT_THAT(refusals(of_node()), ElementsAre("quorum-margin n3"));
}

TEST_F(RestoreNode, AFailureBringsItBackAsItWas) {
  files("n3").failing_restores = 5;
  begin();
  const auto run = start(of_node());
  ASSERT_TRUE(ends(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_EQ(files("n3").history, "own");
  EXPECT_TRUE(node("n3").up);
  EXPECT_EQ(report(run)["outcome"], "undone");
}

TEST_F(RestoreNode, AnotherVoterThatGoesMeanwhileIsWaitedFor) {
  begin();
  when("stop_server", "n3", [this] { node("n2").up = false; });
  const auto run = start(of_node());
  ASSERT_TRUE(h_.run_until([this] { return !node("n3").up; }));
  h_.run_until([] { return false; }, std::chrono::minutes(2));
  EXPECT_EQ(files("n3").restores, 0) << "its former files may be needed";
  node("n2").up = true;
  expect_follows(run, "n3");
}

TEST_F(RestoreNode, ItsFilesStayUntilTheOthersHaveAllThatIsCommitted) {
  begin();
  when("stop_server", "n3", [this] {
    node("n1").writer = 50'000'000;
    node("n2").writer = 49'000'000;
  });
  const auto run = start(of_node());
  ASSERT_TRUE(h_.run_until([this] { return !node("n3").up; }));
  h_.run_until([] { return false; }, std::chrono::minutes(2));
  EXPECT_EQ(files("n3").restores, 0);
  EXPECT_THAT(h_.state(run).steps.at("restore-n3").reason,
              HasSubstr("1 other voters have all that is committed"));
  node("n2").writer = 50'000'000;
  expect_follows(run, "n3");
}

TEST_F(RestoreNode, ANodeThatStartsByItselfStopsItsRestore) {
  begin();
  when("restore", "n3", [this] { h_.cluster.start_by_itself("n3"); });
  const auto run = start(of_node());
  ASSERT_TRUE(ends(run));
  EXPECT_EQ(h_.state(run).status, RunStatus::kFailed);
  EXPECT_EQ(files("n3").restores, 0);
  EXPECT_TRUE(node("n3").up);
}

TEST_F(RestoreNode, SayingLatestWithoutABackupIsRefused) {
  h_.cluster.restorable.clear();
  begin();
  EXPECT_THAT(refusals(of_node()), ElementsAre("no-generation"));
}

TEST_F(RestoreNode, OneThatDoesNotCatchUpIsShownAndNotPutBack) {
  h_.cluster.catch_up_takes = std::chrono::hours(3);
  begin();
  const auto run = start(of_node());
  ASSERT_TRUE(h_.run_until([this] { return files("n3").starts == 1; }));
  h_.run_until([] { return false; }, std::chrono::hours(2));
  EXPECT_FALSE(has_ended(h_.state(run).status));
  EXPECT_EQ(files("n3").reverts, 0);
  expect_follows(run, "n3");
}

}  // namespace
}  // namespace verger::controller
