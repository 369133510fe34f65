#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/e2e/rolling_scavenge/checks.h"

/// `verger run show --gates`: what a run waits for, from real nodes to what an operator reads.
namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::ContainsRegex;
using ::testing::HasSubstr;

/// The gates of the step that waits; null: none does.
json gates_of_the_waiting_step(const json& shown) {
  if (shown.is_object()) {
    for (const auto& step : shown.at("steps")) {
      if (step.at("state") == "waiting") {
        return step.at("gates");
      }
    }
  }
  return {};
}

/// The first one in that state with a value and a limit; null: there is none.
json gate_that_is(const json& gates, const std::string& state) {
  for (const auto& gate : gates) {
    if (gate.at("state") == state && gate.at("value") != "" && gate.at("limit") != "") {
      return gate;
    }
  }
  return {};
}

/// The closed one that says that a node is dead; null: there is none yet.
json gate_of_the_dead_node(const json& gates) {
  json said = json::array();
  for (const auto& gate : gates) {
    if (gate.at("gate") == "voters-alive" || gate.at("gate") == "agents-answer") {
      said.push_back(gate);
    }
  }
  return gate_that_is(said, "closed");
}

TEST(RunGates, ShowTheClosedOneAndTheOpenOnesWithValueAndLimit) {
  RealCluster cluster;
  cluster.start_all();
  cluster.register_cluster();
  const auto id = cluster.start_scavenge_run();
  cluster.node(2).kill();
  SCOPED_TRACE(cluster.logs());
  json gates;
  ASSERT_TRUE(eventually(seconds(60),
                         [&] {
                           gates = gates_of_the_waiting_step(
                               cluster.verger_json({"run", "show", id, "--gates"}));
                           // Closed at once; since when it holds the step up, once that waits.
                           // Which step that is depends on how soon the death is noticed.
                           const auto closed = gate_of_the_dead_node(gates);
                           return !closed.is_null() && !closed.at("since").is_null();
                         }))
      << cluster.verger({"run", "show", id, "--gates"}).out << cluster.logs();
  const auto closed = gate_of_the_dead_node(gates);
  EXPECT_NE(closed.at("reason"), "") << closed.dump(1);
  EXPECT_TRUE(closed.at("since").is_string()) << closed.dump(1);
  const auto open = gate_that_is(gates, "open");
  ASSERT_TRUE(open.is_object()) << gates.dump(1);
  const auto text = cluster.verger({"run", "show", id, "--gates"});
  EXPECT_EQ(text.status, 0) << text.err;
  const auto line = [](const json& gate) {
    return ContainsRegex(gate.at("gate").get<std::string>() + " .*" +
                         gate.at("state").get<std::string>());
  };
  EXPECT_THAT(text.out,
              AllOf(HasSubstr("run " + id), line(closed), line(open), HasSubstr("checked at ")));

  const auto run = cluster.wait_for_run(id, seconds(90));
  expect_a_good_end(run);
  EXPECT_THAT(cluster.verger({"run", "show", id, "--gates"}).out, HasSubstr("no step waits"));
  const auto unknown = cluster.verger({"run", "show", "0123456789ab", "--gates"});
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(unknown.err, HasSubstr("0123456789ab"));
}

}  // namespace
}  // namespace verger::test
