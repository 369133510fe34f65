#include <cctype>
#include <fmt/format.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/e2e/daemons/external_agent.h"

/// An agent is killed (SIGKILL) at a named place of an offline scavenge and started again: the
/// server comes back, and the next scavenge ends what the killed one left.
namespace verger::test {
namespace {

class KilledOffline : public ExternalAgent, public ::testing::WithParamInterface<const char*> {
 protected:
  ~KilledOffline() override { run({"/bin/sh", path("stop.sh")}); }
};

TEST_P(KilledOffline, TheServerReturnsAndTheScavengeIsEnded) {
  const std::string failpoint = GetParam();
  const auto point = leave_a_point_unfinished();
  make_a_service_of_the_server(
      {{"VERGER_FAILPOINT", failpoint}, {"VERGER_FAILPOINT_LOG", path("reached")}},
      /*forget_scavenge=*/true);
  facts_when([](const json& now) { return complete(now) && !now.at("points").empty(); });
  const json parameters{{"point", point}, {"threads", 1}};
  begin("op-1", "offline_scavenge", parameters);
  ASSERT_EQ(agent_->wait(seconds(30)), 128 + SIGKILL)
      << "never reached: " << failpoint << file_text(path("agent.log"));
  EXPECT_EQ(file_text(path("reached")), failpoint + "\n");

  start_agent(service_commands());
  const auto first = status_when("op-1", has_ended);
  const bool done = first.at("state") == "done";
  if (!done) {
    EXPECT_EQ(first.value("errorCode", ""), "interrupted") << first.dump(1);
  }
  const auto back = facts_when(complete);
  EXPECT_EQ(back.contains("lastFinishedPoint"), done) << back.dump(1);

  const auto second = operate("op-2", "offline_scavenge", parameters);
  EXPECT_EQ(second.at("state"), "done") << second.dump(1) << file_text(path("agent.log"));
  const auto after = facts_when(
      [](const json& now) { return complete(now) && now.contains("lastFinishedPoint"); });
  EXPECT_EQ(after.at("lastFinishedPoint").at("number"), point);
  EXPECT_FALSE(after.contains("unfinished"));
  EXPECT_EQ(after.value("filesProblem", ""), "");
}

constexpr const char* kPlaces[] = {
    "agent.stopped-server.before-stop",  // each phase of the bracket around the job …
    "agent.stopped-server.stopped",
    "scavenge.accumulate.before-commit",  // … and of the job
    "scavenge.calculate.before-commit",  "scavenge.execute.after-switch",
    "scavenge.merge.after-switch",       "scavenge.index.after-table",
    "scavenge.clean.before-commit",      "scavenge.done.before-commit",
    "agent.stopped-server.before-start", "agent.stopped-server.started",
    "agent.operation.after-act",
};

INSTANTIATE_TEST_SUITE_P(AtEachPhase, KilledOffline, testing::ValuesIn(kPlaces),
                         [](const testing::TestParamInfo<const char*>& info) {
                           std::string name = info.param;
                           for (auto& c : name) {
                             c = std::isalnum(static_cast<unsigned char>(c)) == 0 ? '_' : c;
                           }
                           return name;
                         });

}  // namespace
}  // namespace verger::test
