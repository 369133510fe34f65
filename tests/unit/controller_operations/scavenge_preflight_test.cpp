#include <chrono>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "nodeagent/api/problem.h"
#include "nodeagent/api/scavenge_estimate.h"
#include "tests/support/controller/controller_harness.h"

// Of the strategy auto: agents count what a scavenge would remove before its plan is made.
namespace verger::controller {
namespace {

using test::ControllerHarness;
using ::testing::AllOf;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::SizeIs;
using ::testing::StartsWith;

/// On each node a TiB of log was written: by the log there is much to do.
constexpr std::int64_t kLittle = 5'000;

struct EstimateOfAgent {
  http::Response answer;
  std::chrono::milliseconds after{1};  ///< longer than the deadline: none in time
};

/// Agents that count: those of a FakeCluster know no such route.
class CountingAgents final : public http::Client {
 public:
  explicit CountingAgents(ControllerHarness& h) : h_(h) {}
  net::awaitable<Result<http::Response>> send(http::Endpoint to, http::Request request,
                                              std::chrono::milliseconds deadline) override {
    const auto node = "n" + to.host.substr(to.host.rfind('.') + 1);
    const auto scripted = answers.find(node);
    if (!request.target.starts_with("/agent/v1/scavenge/estimate")) {
      co_return co_await h_.cluster.send(std::move(to), std::move(request), deadline);
    }
    asked.push_back(node + " " + request.target.substr(request.target.find('?') + 1));
    if (scripted == answers.end()) {
      co_return co_await h_.cluster.send(std::move(to), std::move(request), deadline);
    }
    const auto [answer, after] = scripted->second;
    co_await h_.time.sleep_for(std::min(after, deadline));
    if (after > deadline) {
      co_return Error{Errc::kUnknownOutcome, "GET " + to.url() + request.target + ": no answer"};
    }
    co_return answer;
  }
  std::map<std::string, EstimateOfAgent> answers;  ///< by node; without one: an older agent
  std::vector<std::string> asked;

 private:
  ControllerHarness& h_;
};

EstimateOfAgent counted(std::int64_t bytes, bool at_least = false) {
  return {.answer = {
              .status = 200,
              .body = api::to_text(api::ScavengeEstimate{
                  .removed_bytes = bytes, .removed_records = bytes / 100, .at_least = at_least})}};
}

EstimateOfAgent cannot(std::string why) {
  return {.answer = {
              .status = 503,
              .body = api::to_json(api::make_problem(503, "unavailable", std::move(why))).dump()}};
}

class PreflightOfAuto : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.client = &agents_;
    h_.boot();
    h_.register_cluster();
  }
  planner::Plan plan(planner::Strategy strategy = planner::Strategy::kAuto,
                     std::int64_t little = kLittle) {
    auto policy = ControllerHarness::quick_policy();
    auto& wanted = planner::scavenge_of(policy);
    wanted.strategy = strategy;
    wanted.server_below_bytes = little;
    wanted.threshold = 7;
    const auto made = *h_.wait_for(h_.executor->make_plan("prod", policy, "test"));
    EXPECT_TRUE(made.has_value());
    return made ? *made->plan : planner::Plan();
  }
  static std::vector<std::string> rows(const planner::Plan& plan) {
    std::vector<std::string> out;
    for (const auto& each : plan.forecast) {
      out.push_back(each.node + ": " + each.row);
    }
    return out;
  }
  ControllerHarness h_;
  CountingAgents agents_{h_};
};

TEST_F(PreflightOfAuto, ChoosesByWhatTheAgentsCountAndThePlanSaysWhy) {
  agents_.answers = {
      {"n1", counted(kLittle, true)}, {"n2", counted(kLittle - 1)}, {"n3", counted(1'000'000)}};
  const auto made = plan();
  EXPECT_THAT(rows(made),
              ElementsAre(AllOf(StartsWith("n2: server (estimate: 4.9 KiB would go; "),
                                HasSubstr("less than 4.9 KiB would go by its agent's estimate")),
                          AllOf(StartsWith("n3: online (estimate: 976.6 KiB would go; "),
                                HasSubstr("there is much to do")),
                          StartsWith("n1: online (estimate: at least 4.9 KiB would go; ")));
  ASSERT_NE(made.find_step("scavenge-n2"), nullptr);
  EXPECT_THAT(made.find_step("scavenge-n2")->reason, HasSubstr("; server: less than"));
  ASSERT_NE(made.find_step("online-n3"), nullptr);
  EXPECT_THAT(made.find_step("online-n3")->reason, HasSubstr("; online: there is much to do"));
}

TEST_F(PreflightOfAuto, AsksEachAgentOnceForWhatThePolicyWants) {
  agents_.answers = {{"n1", counted(1)}, {"n2", counted(1)}, {"n3", counted(1)}};
  plan();
  EXPECT_THAT(agents_.asked, ::testing::UnorderedElementsAre("n1 threshold=7&enough=5000",
                                                             "n2 threshold=7&enough=5000",
                                                             "n3 threshold=7&enough=5000"));
  // 0 bytes would be no number of bytes for an agent.
  agents_.asked.clear();
  plan(planner::Strategy::kAuto, 0);
  EXPECT_THAT(agents_.asked, ::testing::Each(HasSubstr("enough=1")));
}

TEST_F(PreflightOfAuto, OtherStrategiesAskNoAgent) {
  for (const auto strategy :
       {planner::Strategy::kRolling, planner::Strategy::kOnline, planner::Strategy::kOffline}) {
    plan(strategy);
  }
  EXPECT_THAT(agents_.asked, IsEmpty());
}

TEST_F(PreflightOfAuto, LittleToRemoveIsLeftToTheServersThoughMuchLogWasWritten) {
  agents_.answers = {{"n1", counted(0)}, {"n2", counted(0)}, {"n3", counted(0)}};
  const auto made = plan();
  EXPECT_THAT(rows(made), ::testing::Each(HasSubstr(": server (estimate: 0 B would go; ")));
  EXPECT_EQ(made.find_step("online-n2"), nullptr);
}

TEST_F(PreflightOfAuto, AnAnswerThatComesTooLateIsNoneAndTheLogDecides) {
  auto late = counted(0);
  late.after = std::chrono::minutes(10);
  agents_.answers = {{"n1", counted(0)}, {"n2", late}, {"n3", counted(0)}};
  const auto begun = h_.time.monotonic();
  const auto made = plan();
  EXPECT_LE(h_.time.monotonic() - begun, std::chrono::minutes(1));
  EXPECT_THAT(
      rows(made),
      ElementsAre(AllOf(StartsWith("n2: online ("),
                        HasSubstr("of log, never scavenged; no estimate: no answer")),
                  StartsWith("n3: server (estimate:"), StartsWith("n1: server (estimate:")));
}

TEST_F(PreflightOfAuto, AgentsThatCountAtTheSameTimeTakeNoLongerThanOne) {
  for (const auto* node : {"n1", "n2", "n3"}) {
    agents_.answers[node] = counted(1);
    agents_.answers[node].after = std::chrono::seconds(25);
  }
  const auto begun = h_.time.monotonic();
  plan();
  EXPECT_LE(h_.time.monotonic() - begun, std::chrono::seconds(30));
}

TEST_F(PreflightOfAuto, AnAnswerThatFailsIsNamedInThePlanAndTheLogDecides) {
  agents_.answers = {{"n1", cannot("a scavenge of it runs")},
                     {"n2", {.answer = {.status = 200, .body = "not at all"}}}};
  EXPECT_THAT(rows(plan()),
              ElementsAre(AllOf(StartsWith("n2: online ("), HasSubstr("; no estimate: ")),
                          AllOf(StartsWith("n3: online ("),
                                HasSubstr("; no estimate: its agent is of an older version)")),
                          AllOf(StartsWith("n1: online ("),
                                HasSubstr("; no estimate: a scavenge of it runs)"))));
  // The same answers, and little log: the servers do it.
  EXPECT_THAT(rows(plan(planner::Strategy::kAuto, std::int64_t{1} << 50U)),
              AllOf(SizeIs(3),
                    ::testing::Each(AllOf(HasSubstr(": server ("), HasSubstr("; no estimate: ")))));
}

}  // namespace
}  // namespace verger::controller
