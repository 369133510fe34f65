#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/controller_operations/redaction_runs.h"

namespace verger::controller {
namespace {

using redactions::ListedEvent;
using test::listed;
using test::RedactionRun;
using ::testing::Contains;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;
using ::testing::UnorderedElementsAre;

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

TEST_F(RedactionRun, WhatAnAgentHasNotedOfTheTextsStaysInAPauseAndGoesWithACancelledRun) {
  nodes_["n2"].stays = 2;
  const auto errors = [this] {
    std::vector<std::string> out;
    for (const auto& [id, operation] : h_.cluster.node("n2").operations) {
      if (!operation.status.error.empty()) {
        out.push_back(operation.status.error);
      }
    }
    return out;
  };
  const auto id = h_.start_scavenge(wanted_policy());
  ASSERT_TRUE(h_.run_until([this] { return redacted().size() == 1; }, std::chrono::hours(1)));
  ASSERT_TRUE(h_.executor->pause(id, "test", "lunch").has_value());
  ASSERT_TRUE(h_.run_until([&] { return h_.state(id).status == RunStatus::kPaused; }));
  EXPECT_THAT(errors(), ElementsAre("stopped; notes kept")) << "the next attempt needs them";
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(id, "test")).has_value());
  ASSERT_TRUE(h_.run_until([this] { return redacted().size() == 2; }, std::chrono::hours(1)));
  ASSERT_TRUE(h_.executor->cancel(id, "test", "the wrong events").has_value());
  ASSERT_TRUE(h_.run_to_end(id, std::chrono::hours(1)));
  EXPECT_EQ(h_.state(id).status, RunStatus::kCancelled);
  EXPECT_THAT(errors(), UnorderedElementsAre("stopped; notes kept", "stopped; notes removed"));
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

TEST_F(RedactionRun, FormerFilesThatARestoreKeptAreNamedWithWhatRemovesThem) {
  nodes_["n3"].found = {
      "/db/old-before-20261129t013152z-0bac394f/chunk-000001.000002: the text, or a part of it, 1 "
      "times",
      "/db/old-before-20261129t013152z-0bac394f/chunk-000007.000000: the text, or a part of it, 3 "
      "times",
      "/db/chunk-000002.000001: the text, or a part of it, 1 times"};
  const auto id = run();
  EXPECT_EQ(h_.state(id).status, RunStatus::kDoneWithDifferences);
  const auto notes = report(id)["notes"].get<std::vector<std::string>>();
  EXPECT_THAT(notes, Contains(HasSubstr("n3: the former files that a restore kept")).Times(1));
  EXPECT_THAT(notes, Contains(HasSubstr("verger restore discard-old prod --generation "
                                        "20261129t013152z-0bac394f --nodes n3")));
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

TEST_F(RedactionRun, WhatWasRedactedBeforeIsNamedAsNotSearched) {
  nodes_["n2"].to_do = 1;  // an earlier run was cancelled between the two
  const auto id = run();
  EXPECT_EQ(h_.state(id).status, RunStatus::kDone) << h_.state(id).reason;
  const auto notes = report(id)["notes"];
  EXPECT_THAT(notes, Contains(HasSubstr("n2: 1 of 2 records were redacted before this run, which "
                                        "searched for the texts of the others alone")));
  EXPECT_THAT(notes, Not(Contains(HasSubstr("n1: "))));
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
