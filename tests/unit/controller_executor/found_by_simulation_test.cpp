// Interleavings that the control simulation found, each as one example.
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <nlohmann/json.hpp>

#include "tests/support/controller/controller_harness.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using std::chrono::minutes;
using std::chrono::seconds;
using test::ControllerHarness;
using test::FakeNode;
using test::Fate;
using ::testing::HasSubstr;

class FoundBySimulation : public ::testing::Test {
 protected:
  FoundBySimulation() {
    h_.cluster.scavenge_takes = seconds(20);
    h_.boot();
    h_.register_cluster();
  }
  FakeNode& node(const std::string& name) { return h_.cluster.node(name); }
  void pass(std::chrono::milliseconds time) {
    h_.run_until([] { return false; }, time);
  }
  StepState step(const std::string& run, const std::string& id) {
    return h_.state(run).steps.at(id);
  }
  bool reaches(const std::string& run, const std::string& id, StepStatus status) {
    return h_.run_until([&] { return step(run, id).status == status; });
  }
  void expect_done(const std::string& run) {
    ASSERT_TRUE(h_.run_to_end(run));
    EXPECT_EQ(h_.state(run).status, RunStatus::kDone) << h_.state(run).reason;
    for (const auto& each : h_.cluster.nodes) {
      EXPECT_EQ(each.finished.at(0), 1) << each.name;
      EXPECT_EQ(each.priority, 0) << each.name;
    }
  }
  ControllerHarness h_;
};

/// Another server at the address of n2 calls itself the leader of an epoch of its own, and the
/// members' gossip repeats that.
void show_another_server_as_leader(const FakeNode&, const http::Request& request,
                                   http::Response& response) {
  if (request.target != "/gossip") {
    return;
  }
  auto body = json::parse(response.body);
  for (auto& member : body["members"]) {
    if (member["httpEndPointIp"] == "10.0.0.2") {
      member["instanceId"] = "another-server";
      member["state"] = "Leader";
      member["epochNumber"] = 0;
    }
  }
  response.body = body.dump();
}

TEST_F(FoundBySimulation, AnotherServerThatCallsItselfLeaderDoesNotEndTheResignation) {
  h_.cluster.election_takes = minutes(30);
  h_.cluster.acted = [this](const FakeNode& acting, const http::Request&) {
    if (acting.resigns == 1 && !h_.cluster.dress) {
      node("n2").agent_up = false;  // so that the other database is not seen
      h_.cluster.dress = show_another_server_as_leader;
    }
  };
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_until([this] { return h_.cluster.total_resigns() == 1; }));
  pass(seconds(30));
  EXPECT_EQ(step(run, "resign-n1").status, StepStatus::kActing) << *step(run, "resign-n1").result;

  h_.cluster.acted = nullptr;
  h_.cluster.dress = nullptr;
  node("n2").agent_up = true;
  h_.cluster.elect("n3");
  ASSERT_TRUE(reaches(run, "resign-n1", StepStatus::kDone));
  EXPECT_EQ(json(*step(run, "resign-n1").result)["to"], "n3");
  expect_done(run);
  EXPECT_EQ(h_.cluster.total_resigns(), 1);
}

TEST_F(FoundBySimulation, ARequestThatArrivesWhileTheRunPausesIsStillStopped) {
  // The request is lost for now, the run pauses, the agent says that it knows of none; and then,
  // before the permit is revoked, the request arrives.
  std::optional<http::Request> late;
  bool arrived = false;
  h_.cluster.fate = [&](const FakeNode& to, const http::Request& request) {
    if (late || to.name != "n2" || request.target != "/agent/v1/operations") {
      return std::optional<Fate>();
    }
    late = request;
    return std::optional(Fate::kLost);
  };
  h_.cluster.dress = [&](const FakeNode& asked, const http::Request& request,
                         http::Response& response) {
    if (arrived || !late || asked.name != "n2" || response.status != 404 ||
        !request.target.starts_with("/agent/v1/operations/")) {
      return;
    }
    arrived = true;
    net::co_spawn(
        *h_.context,
        h_.cluster.send({.tls = false, .host = "10.0.0.2", .port = 2114}, *late, seconds(2)),
        net::detached);
  };
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(h_.run_until([&] { return late.has_value(); }));
  ASSERT_TRUE(h_.executor->pause(run, "me", "peak hours").has_value());
  ASSERT_TRUE(h_.run_until([&] { return h_.state(run).status == RunStatus::kPaused; }));
  ASSERT_TRUE(arrived);
  ASSERT_EQ(node("n2").scavenge_starts, 1) << "it came before its permit was revoked";
  EXPECT_FALSE(node("n2").running.has_value()) << "the run is paused, its scavenge works";
  ASSERT_TRUE(h_.wait_for(h_.executor->resume(run, "me")).has_value());
  expect_done(run);
  EXPECT_EQ(node("n2").scavenge_starts, 2);
}

/// n3 stops answering when the digests are there and are about to be compared.
class ComparisonWithout : public FoundBySimulation,
                          public ::testing::WithParamInterface<const char*> {};

TEST_P(ComparisonWithout, WaitsUntilThePointOfEachNodeIsKnown) {
  const auto set = [this](bool answers) {
    node("n3").agent_up = answers;
    node("n3").up = answers || std::string_view(GetParam()) == "agent";
  };
  const auto run = h_.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(reaches(run, "compare-digests", StepStatus::kActing));
  set(false);
  pass(minutes(1));
  EXPECT_EQ(step(run, "compare-digests").status, StepStatus::kUnknown)
      << *step(run, "compare-digests").result;
  EXPECT_THAT(step(run, "compare-digests").reason, HasSubstr("n3"));
  set(true);
  expect_done(run);
  const auto compared = json(*step(run, "compare-digests").result);
  EXPECT_EQ(compared["same_point"], true) << compared.dump();
  EXPECT_EQ(compared["readable_equal"], true) << compared.dump();
}

INSTANTIATE_TEST_SUITE_P(, ComparisonWithout, ::testing::Values("server", "agent"),
                         [](const auto& each) { return std::string(each.param); });

}  // namespace
}  // namespace verger::controller
