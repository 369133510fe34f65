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
  bool filled_again = false;         ///< after its redaction, from a node that had the data
  /// After its redaction its look is refused so, or fails.
  std::vector<std::string> refused_later{};
  bool fails_later = false;
  bool is_redacted = false;
};

class RedactionRun : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.options.poll_interval = std::chrono::milliseconds(500);
    for (auto& node : h_.cluster.nodes) {
      node.online_problem = "it offers no socket";
    }
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
      const auto asked = json::parse(operation.request.parameters_json);
      done_.push_back((asked.contains("list") ? "look again " : "check ") + node.name);
      if (of.fails_later && of.is_redacted) {
        operation.status.state = api::OperationState::kFailed;
        operation.status.error_code = "io";
        operation.status.error = "/db: no such device";
        return true;
      }
      operation.status.result_json = json{
          {"list", redactions::list_text(of.has)},
          {"toDo", of.to_do},
          {"missing", of.missing},
          {"refused", of.is_redacted && !of.refused_later.empty() ? of.refused_later : of.refused},
          {"obstacles", json::array()}}.dump();
    } else if (kind == "offline_redaction" || kind == "online_redaction") {
      done_.push_back((kind == "online_redaction" ? "redact running " : "redact ") + node.name);
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
      of.to_do = of.filled_again ? 2 : 0;
      of.is_redacted = true;
    } else if (kind == "restored_redaction") {
      done_.push_back("again " + node.name);
      lists_.insert(json::parse(operation.request.parameters_json).at("list").get<std::string>());
      operation.status.result_json =
          json{{"records", 2}, {"blanked", 2}, {"found", of.found}}.dump();
    } else {
      return false;
    }
    operation.status.state = api::OperationState::kDone;
    return true;
  }

  static planner::Policy wanted_policy() {
    auto policy = ControllerHarness::quick_policy();
    planner::RedactionPolicy wanted;
    wanted.events = "12@customer-7,13@customer-7";
    wanted.reason = "request 4711";
    policy.operation = std::move(wanted);
    return policy;
  }

  std::string run() {
    auto id = h_.start_scavenge(wanted_policy());
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
                                 "redact n1", "look again n2", "look again n3", "look again n1"));
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

TEST_F(RedactionRun, NodesRunOnWhereTheirServersOfferItAndTheReportSaysHow) {
  for (auto& node : h_.cluster.nodes) {
    node.online_problem = node.name == "n2" ? "no process listens there" : "";
  }
  const auto id = run();
  ASSERT_EQ(h_.state(id).status, RunStatus::kDone) << h_.state(id).reason;
  EXPECT_THAT(redacted(), ElementsAre("redact n2", "redact running n3", "redact running n1"));
  EXPECT_EQ(h_.cluster.total_resigns(), 0);
  const auto shown = report(id);
  EXPECT_EQ(shown["outcome"], "redacted");
  EXPECT_EQ(shown["nodes"][0]["online"], false);
  EXPECT_THAT(shown["nodes"][0]["way"].get<std::string>(), HasSubstr("no process listens there"));
  EXPECT_EQ(shown["nodes"][1]["online"], true);
  EXPECT_EQ(shown["nodes"][1]["confirmed"], true);
}

TEST_F(RedactionRun, ANodeThatWasFilledAgainMeanwhileIsADifference) {
  nodes_["n2"].filled_again = true;
  const auto id = run();
  EXPECT_EQ(h_.state(id).status, RunStatus::kDoneWithDifferences) << h_.state(id).reason;
  const auto shown = report(id);
  EXPECT_EQ(shown["outcome"], "not-proven");
  EXPECT_EQ(shown["nodes"][0]["confirmed"], false);
  EXPECT_EQ(shown["nodes"][0]["proven"], false);
  EXPECT_THAT(shown["nodes"][0]["left"][0].get<std::string>(), HasSubstr("have their data again"));
}

TEST_F(RedactionRun, ANodeThatHasAnotherLogAtTheEndIsADifference) {
  nodes_["n3"].refused_later = {"log position 100: another record than the list's"};
  const auto id = run();
  EXPECT_EQ(h_.state(id).status, RunStatus::kDoneWithDifferences) << h_.state(id).reason;
  const auto shown = report(id);
  EXPECT_EQ(shown["outcome"], "not-proven");
  EXPECT_EQ(shown["nodes"][1]["confirmed"], false);
  EXPECT_THAT(shown["nodes"][1]["left"][0].get<std::string>(), HasSubstr("another record"));
}

TEST_F(RedactionRun, ANodeThatCannotBeLookedAtAtTheEndIsNotProven) {
  nodes_["n3"].fails_later = true;
  const auto id = run();
  EXPECT_EQ(h_.state(id).status, RunStatus::kDoneWithDifferences) << h_.state(id).reason;
  const auto shown = report(id);
  EXPECT_EQ(shown["outcome"], "not-proven");
  EXPECT_EQ(shown["nodes"][1]["proven"], false);
  EXPECT_THAT(shown["nodes"][1]["left"][0].get<std::string>(), HasSubstr("not looked at again"));
  EXPECT_EQ(shown["nodes"][0]["confirmed"], true);
  EXPECT_EQ(shown["nodes"][2]["confirmed"], true);
  EXPECT_EQ(shown["backups_seen"], true) << "the rest of the run is done";
}

TEST_F(RedactionRun, ANodeThatIsDownAtItsTurnIsWaitedFor) {
  const auto id = h_.start_scavenge(wanted_policy());
  ASSERT_TRUE(h_.run_until([this] { return redacted() == std::vector<std::string>{"redact n2"}; },
                           std::chrono::hours(1)));
  h_.cluster.node("n3").up = false;
  h_.run_until([] { return false; }, std::chrono::minutes(5));
  EXPECT_EQ(redacted().size(), 1U) << "one voter is away already";
  h_.cluster.node("n3").up = true;
  ASSERT_TRUE(h_.run_to_end(id, std::chrono::hours(1))) << h_.state(id).reason;
  EXPECT_EQ(h_.state(id).status, RunStatus::kDone) << h_.state(id).reason;
  EXPECT_EQ(report(id)["outcome"], "redacted");
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

TEST_F(RedactionRun, BackupsThatMayHoldTheDataAreNamedAndPlansOfRestoresRedactThem) {
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
  const auto* again = (*made)->plan->find_step("redact-n3");
  ASSERT_NE(again, nullptr);
  EXPECT_EQ(again->kind, "redaction_again");
  const auto restored = h_.start_scavenge(policy);
  ASSERT_TRUE(h_.run_to_end(restored, std::chrono::hours(1)));
  EXPECT_EQ(h_.state(restored).status, RunStatus::kDone) << h_.state(restored).reason;
  EXPECT_EQ(done_.back(), "again n3");
  EXPECT_EQ(lists_.size(), 1U) << "by the list of the run";
}

TEST_F(RedactionRun, WhatWasRedactedByHandIsRedactedAgainInRestores) {
  h_.cluster.knows_restores = true;
  for (const auto* name : {"n1", "n2", "n3"}) {
    nodes_[name].to_do = 0;
  }
  const auto id = run();
  EXPECT_EQ(h_.state(id).status, RunStatus::kDone) << h_.state(id).reason;
  EXPECT_THAT(redacted(), IsEmpty());
  auto policy = ControllerHarness::quick_policy();
  planner::RestorePolicy restore;
  restore.repository = "main";
  restore.nodes = "n3";
  policy.operation = std::move(restore);
  const auto made = h_.wait_for(h_.executor->make_plan("prod", policy, "test"));
  ASSERT_TRUE(made.has_value() && made->has_value());
  EXPECT_NE((*made)->plan->find_step("redact-n3"), nullptr);
  EXPECT_THAT((*made)->plan->notes, ::testing::Not(Contains("")));
}

/// With the agents' repository "main", that has a backup of before.
class ExpiringRun : public RedactionRun {
 protected:
  void SetUp() override {
    h_.cluster.backups = std::make_unique<test::FakeBackups>(h_.time);
    RedactionRun::SetUp();
    add_backup("old", "prod", 600'000);
  }
  void add_backup(std::string id, std::string cluster, std::int64_t end) {
    api::BackupGeneration made;
    made.id = std::move(id);
    made.node = "n2";
    made.cluster = std::move(cluster);
    made.end_position = end;
    backups().generations.push_back(std::move(made));
  }
  test::FakeBackups& backups() { return *h_.cluster.backups; }
  static planner::Policy expiring() {
    auto policy = wanted_policy();
    planner::redaction_of(policy).expire_backups = "main";
    return policy;
  }
  std::string run_expiring() {
    auto id = h_.start_scavenge(expiring());
    EXPECT_TRUE(h_.run_to_end(id, std::chrono::hours(1))) << snapshot_of(h_.state(id)).state;
    return id;
  }
  std::vector<std::string> kept() {
    std::vector<std::string> out;
    for (const auto& each : backups().generations) {
      out.push_back(each.id);
    }
    return out;
  }
};

TEST_F(ExpiringRun, DeletesThisClustersBackupsThatMayHoldTheDataOnceANewOneIsSound) {
  add_backup("older", "prod", 100);  // ends before the first of the records
  add_backup("foreign", "other", 600'000);
  add_backup("nameless", "", 600'000);
  const auto id = run_expiring();
  EXPECT_EQ(h_.state(id).status, RunStatus::kDone) << h_.state(id).reason;
  EXPECT_THAT(kept(), ElementsAre("older", "foreign", "nameless", "g1"));
  EXPECT_THAT(backups().done, ElementsAre("backup n2 g1 full", "verify g1", "retain named"));
  const auto shown = report(id);
  EXPECT_EQ(shown["outcome"], "redacted");
  std::map<std::string, bool> expired;
  for (const auto& each : shown["backups"]) {
    expired[each["generation"]] = each["expired"];
  }
  EXPECT_EQ(expired, (std::map<std::string, bool>{{"nameless", false}, {"old", true}}));
  EXPECT_THAT(shown["notes"], Contains(HasSubstr("backup delete --undo")));
}

TEST_F(ExpiringRun, DeletesNoneBehindADamagedNewOne) {
  backups().damages_next = true;
  const auto id = run_expiring();
  EXPECT_EQ(h_.state(id).status, RunStatus::kDoneWithDifferences) << h_.state(id).reason;
  EXPECT_THAT(kept(), ElementsAre("old", "g1"));
  EXPECT_EQ(report(id)["backups"][0]["expired"], false);
}

TEST_F(ExpiringRun, DeletesNoneWhereTheNewOneMayHoldTheData) {
  nodes_["n2"].filled_again = true;
  const auto id = run_expiring();
  EXPECT_EQ(h_.state(id).status, RunStatus::kDoneWithDifferences) << h_.state(id).reason;
  EXPECT_THAT(kept(), ElementsAre("old", "g1"));
  EXPECT_EQ(report(id)["backups"][0]["expired"], false);
}

TEST_F(ExpiringRun, IsRefusedWhereNoAgentHasTheRepository) {
  for (const auto* name : {"n1", "n2", "n3"}) {
    backups().at[name].configured = false;
  }
  const auto made = h_.wait_for(h_.executor->make_plan("prod", expiring(), "test"));
  ASSERT_TRUE(made.has_value());
  ASSERT_FALSE(made->has_value());
  EXPECT_EQ(made->error().refusals.front().code, "no-repository");
}

TEST_F(RedactionRun, WhatCannotBeRedactedAgainInARestoreIsADifference) {
  h_.cluster.knows_restores = true;
  run();
  nodes_["n3"].found = {"12@customer-7 is in chunk-000004.000000, which is still written to"};
  auto policy = ControllerHarness::quick_policy();
  planner::RestorePolicy restore;
  restore.repository = "main";
  restore.nodes = "n3";
  policy.operation = std::move(restore);
  const auto id = h_.start_scavenge(policy);
  ASSERT_TRUE(h_.run_to_end(id, std::chrono::hours(1)));
  EXPECT_EQ(h_.state(id).status, RunStatus::kDoneWithDifferences) << h_.state(id).reason;
}

TEST_F(RedactionRun, ARestoreAsItWasIsOnRequest) {
  h_.cluster.knows_restores = true;
  run();
  auto policy = ControllerHarness::quick_policy();
  planner::RestorePolicy restore;
  restore.repository = "main";
  restore.nodes = "n3";
  restore.redact_again = false;
  policy.operation = std::move(restore);
  const auto made = h_.wait_for(h_.executor->make_plan("prod", policy, "test"));
  ASSERT_TRUE(made.has_value() && made->has_value());
  EXPECT_EQ((*made)->plan->find_step("redact-n3"), nullptr);
}

/// The controller dies once so many events of the run are journaled, then lives on.
class OneRedactionCrash : public RedactionRun {
 public:
  void TestBody() override {}

  /// False: it never came to that.
  bool dies_after(std::int64_t nth, bool online) {
    SetUp();
    for (auto& node : h_.cluster.nodes) {
      node.online_problem = online ? "" : "it offers no socket";
    }
    const auto id = h_.start_scavenge(wanted_policy());
    const auto first = h_.journal->last_sequence()->value();
    bool crashed = false;
    h_.news = true;
    h_.run_until(
        [&] {
          const bool news = std::exchange(h_.news, false);
          crashed = crashed || (news && h_.journal->last_sequence()->value() - first >= nth);
          return crashed || (news && has_ended(h_.state(id).status));
        },
        std::chrono::hours(1));
    if (crashed) {
      h_.crash();
      h_.boot();
    }
    EXPECT_TRUE(h_.run_to_end(id)) << snapshot_of(h_.state(id)).state;
    EXPECT_EQ(h_.state(id).status, RunStatus::kDone) << h_.state(id).reason;
    const std::string_view word = online ? "redact running " : "redact ";
    for (const auto* name : {"n1", "n2", "n3"}) {
      EXPECT_EQ(std::ranges::count(done_, fmt::format("{}{}", word, name)), 1)
          << name << ": once, by its id";
    }
    EXPECT_EQ(report(id)["outcome"], "redacted");
    return crashed;
  }
};

int die_at_each_event_of_a_redaction(bool online) {
  for (std::int64_t nth = 1;; ++nth) {
    SCOPED_TRACE(fmt::format("after event {}", nth));
    OneRedactionCrash life;
    const bool died = life.dies_after(nth, online);
    if (::testing::Test::HasFailure()) {
      return 0;
    }
    if (!died) {
      return static_cast<int>(nth) - 1;
    }
  }
}

TEST(RedactionCrashes, AfterEachJournaledEventTheRunFinishesWithNodesThatRun) {
  EXPECT_GT(die_at_each_event_of_a_redaction(/*online=*/true), 20);
}

TEST(RedactionCrashes, AfterEachJournaledEventTheRunFinishesWithNodesThatAreStopped) {
  EXPECT_GT(die_at_each_event_of_a_redaction(/*online=*/false), 30);
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
