#include "controller/daemon/event_log.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/api/access.h"
#include "controller/scheduler/policy_book.h"
#include "tests/support/controller/controller_harness.h"

namespace verger::controller {
namespace {

using test::ControllerHarness;
using ::testing::AllOf;
using ::testing::Contains;
using ::testing::Each;
using ::testing::HasSubstr;
using ::testing::Not;
using ::testing::StartsWith;

class KeptLines final : public Log {
 public:
  void write(LogLevel level, std::string_view message, std::span<const LogField> fields) override {
    std::string line(level == LogLevel::kInfo ? "" : "! ");
    line += message;
    for (const auto& field : fields) {
      line += " " + std::string(field.name) + "=" + field.value;
    }
    lines.push_back(line);
  }
  std::vector<std::string> lines;
};

class LogOfEvents : public ::testing::Test {
 protected:
  void SetUp() override {
    h_.boot();
    open();
  }
  void open() {
    auto opened = EventLog::open(
        {.journal = *h_.journal, .log = log_, .cluster_of = [this](const std::string& run) {
           return h_.executor->find_run(run).value()->cluster;
         }});
    ASSERT_TRUE(opened.has_value());
    events_ = *std::move(opened);
  }
  void TearDown() override {
    events_.reset();
    h_.crash();
  }

  ControllerHarness h_;
  KeptLines log_;
  std::unique_ptr<EventLog> events_;
};

TEST_F(LogOfEvents, HasALineForEachTransitionOfARun) {
  h_.register_cluster();
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_to_end(run));
  const auto about = " run=" + run + " cluster=prod";
  const auto plan = h_.state(run).plan->hash;
  EXPECT_THAT(log_.lines, Contains("cluster added cluster=prod"));
  EXPECT_THAT(log_.lines, Contains("plan made plan=" + plan + " cluster=prod by=test"));
  EXPECT_THAT(log_.lines, Contains("run started" + about + " plan=" + plan + " by=test"));
  EXPECT_THAT(log_.lines, Contains(StartsWith("stage started" + about + " stage=")));
  EXPECT_THAT(log_.lines, Contains("step done" + about + " step=scavenge-n2"));
  EXPECT_THAT(log_.lines, Contains(AllOf(StartsWith("step begins" + about), HasSubstr("attempt=1"),
                                         HasSubstr("operation="))));
  EXPECT_THAT(log_.lines, Contains("leader moved" + about + " from=n1 to=n2 planned=true"));
  EXPECT_EQ(log_.lines.back(), "run ended" + about + " state=done");
  EXPECT_THAT(log_.lines, Each(Not(HasSubstr("progress"))));
}

TEST_F(LogOfEvents, KnowsTheClusterOfARunThatBeganBefore) {
  h_.register_cluster();
  events_.reset();
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  open();
  log_.lines.clear();
  ASSERT_TRUE(h_.executor->cancel(run, "ann", "a test").has_value());
  EXPECT_THAT(log_.lines,
              Contains("run is to be cancelled run=" + run + " cluster=prod by=ann reason=a test"));
}

TEST_F(LogOfEvents, HasPeoplesActionsAndPoliciesWithoutSecrets) {
  SeededRandom random(5);
  Access access(*h_.journal, random, h_.epoch, h_.time, null_log());
  const auto token = access.create("ann", "admin", "local");
  ASSERT_TRUE(token.has_value());
  PolicyBook book(*h_.journal, h_.epoch, ControllerHarness::quick_policy());
  auto policy = book.parse("name: nightly\nclusters: [prod]\n");
  ASSERT_TRUE(policy.has_value());
  ASSERT_TRUE(book.apply(*std::move(policy), "ann").has_value());
  http::Request request;
  request.method = "POST";
  request.target = "/api/v1/runs/r1/cancel";
  request.body = R"({"reason":"too slow"})";
  request.peer.address = "10.0.0.9";
  const auto recorded =
      access.record_request(Principal{"ann", ApiRole::kOperator}, request, "cancelRun").value();
  access.record_outcome(recorded, 404);
  EXPECT_THAT(log_.lines,
              Contains("token created token=" + token->token.id + " name=ann role=admin by=local"));
  EXPECT_THAT(log_.lines, Contains("policy applied policy=nightly by=ann"));
  const auto number = std::to_string(recorded.value());
  EXPECT_THAT(log_.lines,
              Contains("request audit=" + number +
                       " request=POST /api/v1/runs/r1/cancel by=ann role=operator from=10.0.0.9 "
                       "reason=too slow"));
  EXPECT_THAT(log_.lines, Contains("request refused audit=" + number +
                                   " status=404 request=POST /api/v1/runs/r1/cancel"));
  EXPECT_THAT(log_.lines, Each(Not(HasSubstr(token->token.kept.hash))));
}

}  // namespace
}  // namespace verger::controller
