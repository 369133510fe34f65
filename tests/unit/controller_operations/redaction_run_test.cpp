// Runs of redactions over agents that find and redact what the test says.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include <nlohmann/json.hpp>

#include "controller/executor/run_snapshot.h"
#include "controller/operations/redaction/redaction_module.h"
#include "controller/operations/redaction/redaction_support.h"
#include "planner/redaction/redaction_policy.h"
#include "planner/restore/restore_policy.h"
#include "tests/support/controller/controller_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using redactions::ListedEvent;
using test::ControllerHarness;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

ListedEvent listed(std::int64_t number, std::int64_t position) {
  return {.stream = "customer-7",
          .number = number,
          .position = position,
          .metadata = false,
          .digest = fmt::format("{:064x}", number)};
}

/// What a node's agent finds, and what its redaction shows.
struct RedactedNode {
  std::vector<ListedEvent> has{listed(12, 100), listed(13, 200)};
  std::vector<std::string> refused{};
  std::vector<std::string> missing{};
  std::size_t to_do = 2;
  std::vector<std::string> found{};  ///< by the search
};

class RedactionRun : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.options.poll_interval = std::chrono::milliseconds(500);
    h_.cluster.operate_more = [this](test::FakeNode& node, test::FakeOperation& operation) {
      return operate(node, operation);
    };
    h_.boot();
    h_.register_cluster();
  }

  bool operate(test::FakeNode& node, test::FakeOperation& operation) {
    const auto& kind = operation.request.kind;
    auto& of = nodes_[node.name];
    if (kind == "redaction_check") {
      done_.push_back("check " + node.name);
      operation.status.result_json = json{
          {"list", redactions::list_text(of.has)},
          {"toDo", of.to_do},
          {"missing", of.missing},
          {"refused", of.refused},
          {"obstacles", json::array()}}.dump();
    } else if (kind == "offline_redaction") {
      done_.push_back("redact " + node.name);
      lists_.insert(json::parse(operation.request.parameters_json).at("list").get<std::string>());
      operation.status.result_json = json{
          {"records", of.has.size()},
          {"blanked", of.to_do},
          {"already", of.has.size() - of.to_do},
          {"missing", of.missing},
          {"chunks", json::array()},
          {"removed", json::array()},
          {"texts", of.to_do},
          {"unsearchable", 0},
          {"searchedFiles", 9},
          {"searchedBytes", 4'096},
          {"found", of.found},
          {"held", json::array()},
          {"proven", of.found.empty()}}.dump();
      of.to_do = 0;
    } else {
      return false;
    }
    operation.status.state = api::OperationState::kDone;
    return true;
  }

  std::string run() {
    auto policy = ControllerHarness::quick_policy();
    planner::RedactionPolicy wanted;
    wanted.events = "12@customer-7,13@customer-7";
    wanted.reason = "request 4711";
    policy.operation = std::move(wanted);
    auto id = h_.start_scavenge(policy);
    EXPECT_TRUE(h_.run_to_end(id, std::chrono::hours(1))) << snapshot_of(h_.state(id)).state;
    return id;
  }
  json report(const std::string& id) { return redactions::report(h_.state(id), json::object()); }
  /// What was done to nodes' files.
  std::vector<std::string> redacted() const {
    std::vector<std::string> out;
    std::ranges::copy_if(done_, std::back_inserter(out),
                         [](const auto& each) { return each.starts_with("redact"); });
    return out;
  }

  ControllerHarness h_;
  std::map<std::string, RedactedNode> nodes_;
  std::vector<std::string> done_;
  std::set<std::string> lists_;  ///< that agents were given
};

TEST_F(RedactionRun, ChecksAllNodesThenRedactsOneAfterTheOtherByOneList) {
  nodes_["n2"].has.pop_back();  // scavenged away there
  nodes_["n2"].missing = {"13@customer-7: the index has no such event"};
  nodes_["n2"].to_do = 1;
  const auto id = run();
  ASSERT_EQ(h_.state(id).status, RunStatus::kDone) << h_.state(id).reason;
  EXPECT_THAT(done_, ElementsAre("check n2", "check n3", "check n1", "redact n2", "redact n3",
                                 "redact n1"));
  EXPECT_THAT(lists_, ElementsAre(redactions::list_text({listed(12, 100), listed(13, 200)})));
  const auto shown = report(id);
  EXPECT_EQ(shown["outcome"], "redacted");
  EXPECT_EQ(shown["requester"], "test");
  EXPECT_EQ(shown["reason"], "request 4711");
  ASSERT_EQ(shown["events"].size(), 2U);
  EXPECT_EQ(shown["events"][1]["number"], 13);
  EXPECT_EQ(shown["list"], *lists_.begin());
  ASSERT_EQ(shown["nodes"].size(), 3U);
  EXPECT_EQ(shown["nodes"][0]["node"], "n2");
  EXPECT_EQ(shown["nodes"][0]["proven"], true);
  EXPECT_EQ(shown["nodes"][0]["missing"].size(), 1U);
  EXPECT_EQ(shown["backups_seen"], true);
}

TEST_F(RedactionRun, ARefusalOnTheLastNodeLeavesAllAsTheyAre) {
  nodes_["n1"].refused = {"12@customer-7: is the tombstone of its stream"};
  const auto id = run();
  EXPECT_EQ(h_.state(id).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(id).reason, HasSubstr("nothing was changed on any node"));
  EXPECT_THAT(redacted(), IsEmpty());
  EXPECT_EQ(report(id)["outcome"], "unchanged");
}

TEST_F(RedactionRun, AnotherRecordAtThePositionIsAnotherHistory) {
  nodes_["n3"].has.back().digest = std::string(64, 'f');
  const auto id = run();
  EXPECT_EQ(h_.state(id).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(id).reason, HasSubstr("the nodes do not have the same log"));
  EXPECT_THAT(redacted(), IsEmpty());
}

TEST_F(RedactionRun, AnEventThatNoNodeHasIsNamed) {
  for (const auto* name : {"n1", "n2", "n3"}) {
    nodes_[name].has.pop_back();
  }
  const auto id = run();
  EXPECT_EQ(h_.state(id).status, RunStatus::kFailed);
  EXPECT_THAT(h_.state(id).reason, HasSubstr("no node has 13@customer-7"));
  EXPECT_THAT(redacted(), IsEmpty());
}

TEST_F(RedactionRun, TextThatIsLeftIsADifferenceAndNoProof) {
  nodes_["n3"].found = {"/db/chunk-000001.000002: the text, or a part of it, 1 times"};
  const auto id = run();
  EXPECT_EQ(h_.state(id).status, RunStatus::kDoneWithDifferences);
  const auto shown = report(id);
  EXPECT_EQ(shown["outcome"], "not-proven");
  EXPECT_EQ(shown["nodes"][0]["proven"], true);
  EXPECT_EQ(shown["nodes"][1]["proven"], false);
  EXPECT_THAT(shown["nodes"][1]["left"],
              ElementsAre("n3: /db/chunk-000001.000002: the text, or a part of it, 1 times"));
}

TEST_F(RedactionRun, NodesThatAreRedactedAreNotStoppedAgain) {
  run();
  done_.clear();
  const auto id = run();
  EXPECT_EQ(h_.state(id).status, RunStatus::kDone) << h_.state(id).reason;
  EXPECT_THAT(redacted(), IsEmpty());
  const auto shown = report(id);
  EXPECT_EQ(shown["nodes"][0]["state"], "already");
  EXPECT_EQ(shown["nodes"][0]["already"], 2);
  EXPECT_THAT(shown["notes"], Contains(HasSubstr("nothing was searched there")));
}

TEST_F(RedactionRun, BackupsThatMayHoldTheDataAreNamedAndPlansOfRestoresSaySo) {
  h_.cluster.knows_restores = true;
  const auto id = run();
  EXPECT_EQ(h_.state(id).status, RunStatus::kDone) << h_.state(id).reason;
  const auto shown = report(id);
  ASSERT_EQ(shown["backups"].size(), 1U) << shown;
  EXPECT_EQ(shown["backups"][0]["generation"], "g1");
  EXPECT_EQ(shown["backups"][0]["command"], "verger backup delete prod g1 --repository main");
  EXPECT_THAT(shown["notes"], Contains(HasSubstr("brings the data back")));
  auto policy = ControllerHarness::quick_policy();
  planner::RestorePolicy restore;
  restore.repository = "main";
  restore.nodes = "n3";
  policy.operation = std::move(restore);
  const auto made = h_.wait_for(h_.executor->make_plan("prod", policy, "test"));
  ASSERT_TRUE(made.has_value() && made->has_value());
  EXPECT_THAT((*made)->plan->notes,
              Contains(HasSubstr(fmt::format("run {} redacted 2 records", id.substr(0, 12)))));
}

TEST(ListsOfRedactions, AreReadAsTheyAreWritten) {
  const std::vector<ListedEvent> list{listed(1, 10), listed(2, 20)};
  const auto read = redactions::parse_list(redactions::list_text(list));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_EQ(*read, list);
  EXPECT_FALSE(redactions::parse_list("").has_value());
  EXPECT_FALSE(redactions::parse_list("{}\n").has_value());
}

}  // namespace
}  // namespace verger::controller
