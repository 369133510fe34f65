#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/redaction/chunk_switch.h"
#include "tests/unit/nodeagent_redaction/online_redaction_fixture.h"

namespace verger::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

TEST_F(AnOnlineRedaction, BlanksReadsBackAndSearches) {
  const auto list = both();
  const auto status = redact(list);
  ASSERT_EQ(status.value("state", ""), "done") << status;
  const auto& result = status["result"];
  EXPECT_EQ(result["online"], true);
  EXPECT_EQ(result["records"], 2);
  EXPECT_EQ(result["blanked"], 2);
  EXPECT_EQ(result["readBack"], 2);
  EXPECT_EQ(result["texts"], 2);
  EXPECT_EQ(result["chunks"].size(), 2U);
  EXPECT_GT(result["searchedFiles"], 3);
  EXPECT_EQ(result["proven"], true) << result;
  EXPECT_EQ(server_.locks, 1);
  EXPECT_FALSE(server_.locked);
  EXPECT_THAT(files_with(kAda), IsEmpty());
  EXPECT_THAT(files_with(kErika), IsEmpty());
  EXPECT_EQ(both(), list) << "the digests are those of the redacted records";
  EXPECT_THAT(status.dump(), Not(HasSubstr("Lovelace")));
}

TEST_F(AnOnlineRedaction, DoesNothingWhereAllIsRedacted) {
  ASSERT_EQ(redact(both()).value("state", ""), "done");
  EXPECT_EQ(operate("o2", "online_redaction", {{"list", both()}}, 1), "202") << answer_;
  const auto status = ended("o2");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["already"], 2);
  EXPECT_EQ(status["result"]["blanked"], 0);
  EXPECT_EQ(status["result"]["searchedFiles"], 0) << "no text is known";
  EXPECT_EQ(server_.switches, 2);
}

TEST_F(AnOnlineRedaction, WaitsForTheChunkLockAndSaysSo) {
  server_.lock_busy_for = 4;
  EXPECT_EQ(operate("o1", "online_redaction", {{"list", both()}}, 1), "202") << answer_;
  world_.run_for(milliseconds(2'000));
  EXPECT_THAT(look("o1").dump(), HasSubstr("waiting for the chunk lock"));
  EXPECT_EQ(server_.switches, 0);
  const auto status = ended("o1");
  EXPECT_EQ(status.value("state", ""), "done") << status;
  EXPECT_THAT(files_with(kAda), IsEmpty());
}

TEST_F(AnOnlineRedaction, GivesUpTheLockAtItsDeadline) {
  server_.lock_busy_for = 1'000'000;
  const auto status = redact(both(), {{"lockDeadlineMs", 20'000}});
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_EQ(status.value("errorCode", ""), "timeout") << status;
  EXPECT_THAT(status.value("error", ""), HasSubstr("nothing was changed"));
  EXPECT_EQ(files_with(kAda).size(), 1U);
}

TEST_F(AnOnlineRedaction, PassesEachRefusalOfASwitchOnAndChangesNothing) {
  using redaction::SwitchResult;
  const auto list = both();
  for (int n = static_cast<int>(SwitchResult::kTargetNameInvalid);
       n <= static_cast<int>(SwitchResult::kTargetFormatNotSupported); ++n) {
    const std::string reason(redaction::reason_of(static_cast<SwitchResult>(n)));
    ASSERT_NE(reason, "") << n;
    server_.refuses_switch = reason;
    const auto id = "o" + std::to_string(n + 10);
    EXPECT_EQ(operate(id, "online_redaction", {{"list", list}}, 1), "202") << answer_;
    const auto status = ended(id);
    EXPECT_EQ(status.value("state", ""), "failed") << reason;
    EXPECT_THAT(status.value("error", ""), HasSubstr(reason));
    EXPECT_EQ(files_with(kAda).size(), 1U) << "the copy is gone, the chunk as it was";
    EXPECT_FALSE(server_.locked);
  }
  EXPECT_EQ(server_.switches, 0);
}

TEST_F(AnOnlineRedaction, RefusesTheListOfAnotherHistory) {
  auto list = value(redaction::decode_list(both()));
  list.front().digest.front() ^= std::byte{1};
  const auto status = redact(redaction::encode_list(list));
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_THAT(status.value("error", ""), HasSubstr("belongs to another database"));
  EXPECT_EQ(server_.switches, 0);
}

TEST_F(AnOnlineRedaction, RefusesAnEventInTheActiveChunk) {
  const auto status = redact(list_of({"0@customer-7", "0@customer-9"}));
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_EQ(server_.switches, 0) << "and not the other one either";
}

TEST_F(AnOnlineRedaction, NeedsAServerThatOffersIt) {
  server_.problem = "neither eventstore.sock nor kurrent.sock is there";
  const auto status = redact(both());
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_THAT(status.value("error", ""), HasSubstr("kurrent.sock"));
  EXPECT_EQ(ask("GET", "/agent/v1/facts"), "200");
  EXPECT_EQ(answer_.value("onlineProblem", ""), server_.problem);
}

TEST_F(AnOnlineRedaction, IsNotDoneWhileReadersGetTheData) {
  server_.gives_data = true;
  const auto status = redact(both());
  EXPECT_EQ(status.value("state", ""), "failed");
  EXPECT_THAT(status.value("error", ""), HasSubstr("still gives readers"));
}

TEST_F(AnOnlineRedaction, ChecksWithoutServiceControl) {
  EXPECT_EQ(operate("o1", "redaction_check", {{"events", {"0@customer-7"}}, {"online", true}}, 1),
            "202")
      << answer_;
  const auto status = ended("o1");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["toDo"], 1);
  EXPECT_EQ(operate("o2", "redaction_check", {{"events", {"0@customer-7"}}}, 1), "202") << answer_;
  EXPECT_EQ(ended("o2").value("state", ""), "failed") << "it cannot stop its server";
}

}  // namespace
}  // namespace verger::agent
