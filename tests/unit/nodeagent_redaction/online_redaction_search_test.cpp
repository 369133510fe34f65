// What the search after an online redaction shows.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/unit/nodeagent_redaction/online_redaction_fixture.h"

namespace verger::agent {
namespace {

using std::chrono::milliseconds;
using ::testing::HasSubstr;

TEST_F(AnOnlineRedaction, AFormerFileThatTheServerDoesNotRemoveIsFoundBySearch) {
  server_.keeps_former = true;
  const auto status = redact(both());
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["blanked"], 2);
  EXPECT_EQ(status["result"]["proven"], false);
  EXPECT_THAT(status["result"]["found"].dump(), HasSubstr("chunk-000000.000000")) << status;
}

TEST_F(AnOnlineRedaction, FindsACopyOfTheTextThatLiesBeside) {
  value(write_file_durably(host_.disk(), "/db/notes", as_bytes(kAda)));
  const auto status = redact(both());
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(status["result"]["proven"], false);
  EXPECT_THAT(status["result"]["found"].dump(), HasSubstr("/db/notes"));
}

TEST_F(AnOnlineRedaction, SearchesOnceMoreWhatIsWrittenMeanwhile) {
  runner_ =
      std::make_unique<node::InlineJobRunner>(host_.timers(), Budget{.units = 1}, milliseconds(50));
  open_agent([this] { return &node_; });
  ASSERT_EQ(permit(1, 86'400'000), "204");
  EXPECT_EQ(operate("o1", "online_redaction", {{"list", both()}}, 1), "202") << answer_;
  for (int looks = 0; looks < 1'000 && server_.switches < 2; ++looks) {
    world_.run_for(milliseconds(10));
  }
  for (int looks = 0; looks < 1'000 && !look("o1").dump().contains("searching"); ++looks) {
    world_.run_for(milliseconds(5));
  }
  // By another process, after the directory was listed.
  value(write_file_durably(host_.disk(), "/db/late.tmp", as_bytes(kErika)));
  const auto status = ended("o1");
  ASSERT_EQ(status.value("state", ""), "done") << status;
  EXPECT_GT(status["result"]["searchRounds"], 1) << status;
  EXPECT_EQ(status["result"]["proven"], false);
  EXPECT_THAT(status["result"]["found"].dump(), HasSubstr("late.tmp"));
}

}  // namespace
}  // namespace verger::agent
