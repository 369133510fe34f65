// Clusters without agents of servers that advertise other addresses than those registered, lose
// entries of their history, or are of another version than 24.6.
#include <algorithm>
#include <deque>
#include <fmt/format.h>
#include <functional>
#include <gtest/gtest.h>
#include <map>
#include <memory>

#include <nlohmann/json.hpp>

#include "tests/support/controller/controller_harness.h"

namespace verger::test {
namespace {

using nlohmann::json;

/// Members are shown by what they advertise to clients, entries are signed with it (as from 24.6).
void advertise(const http::Request& request, http::Response& response) {
  if (response.status != 200 || response.body.empty()) {
    return;
  }
  auto body = json::parse(response.body, nullptr, false);
  if (request.target == "/gossip") {
    for (auto& member : body["members"]) {
      const auto address = member["httpEndPointIp"].get<std::string>();
      member["internalTcpIp"] = address;
      member["httpEndPointIp"] = "node" + address.substr(7) + ".example.com";
      member["httpEndPointPort"] = 12113;
    }
    response.body = body.dump();
  } else if (request.target.starts_with("/streams/$scavenges")) {
    for (auto& entry : body["entries"]) {
      auto data =
          entry["data"].is_string() ? json::parse(entry["data"].get<std::string>()) : entry["data"];
      const auto endpoint = data["nodeEndpoint"].get<std::string>();
      data["nodeEndpoint"] =
          "node" + endpoint.substr(7, endpoint.find(':') - 7) + ".example.com:12113";
      entry["data"] = data.dump();
    }
    response.body = body.dump();
  }
}

using Dress = std::function<void(const FakeNode&, const http::Request&, http::Response&)>;

/// How often each node was ordered to scavenge in a run that ends well.
std::vector<int> starts_of(const std::function<void(FakeCluster&)>& set_up, const Dress& dress) {
  ControllerHarness harness(3, false);
  set_up(harness.cluster);
  harness.cluster.dress = dress;
  harness.boot();
  harness.register_cluster();
  const auto run = harness.start_scavenge(ControllerHarness::quick_policy());
  EXPECT_TRUE(harness.run_to_end(run));
  EXPECT_EQ(harness.state(run).status, controller::RunStatus::kDone);
  EXPECT_EQ(harness.cluster.points.size(), 1U);
  std::vector<int> starts;
  for (const auto& node : harness.cluster.nodes) {
    EXPECT_EQ(node.last_finished, 0) << node.name;
    starts.push_back(node.scavenge_starts);
  }
  return starts;
}

TEST(OtherServers, AdvertisedAddressesDoNotHideAStartWhoseAnswerWasLost) {
  const auto lose_first_answer = [](FakeCluster& cluster) {
    const auto lost = std::make_shared<int>(0);
    cluster.fate = [lost](const FakeNode&, const http::Request& request) {
      const bool start = request.method == "POST" && request.target.starts_with("/admin/scavenge");
      return start && (*lost)++ == 0 ? std::optional(Fate::kReplyLost) : std::nullopt;
    };
  };
  const auto plain = starts_of(lose_first_answer, {});
  const auto advertised =
      starts_of(lose_first_answer, [](const FakeNode&, const http::Request& request,
                                      http::Response& response) { advertise(request, response); });
  EXPECT_EQ(advertised, plain) << "found again, not started again";
}

/// Servers of 24.10 whose last entry about a run is lost, as in a change of leader.
void forget_ends(const FakeNode& node, const http::Request& request, http::Response& response) {
  if (request.target == "/auto-scavenge/status") {
    response = http::Response{.status = 404};
  } else if (request.target == "/admin/scavenge/last") {
    const auto* last = node.log.empty() ? nullptr : &node.log.back();
    const bool ended = last != nullptr && last->type == "$scavengeCompleted";
    response = http::Response{.headers = {{"Content-Type", "application/json; charset=utf-8"}}};
    response.body = json{{"scavengeId", last == nullptr ? "" : last->scavenge_id},
                         {"scavengeLink", ""},
                         {"scavengeResult", last == nullptr ? "Unknown"
                                            : ended         ? last->result
                                                            : "InProgress"}}
                        .dump();
  } else if (request.target.starts_with("/streams/$scavenges/")) {
    auto body = json::parse(response.body);
    auto kept = json::array();
    for (auto& entry : body["entries"]) {
      if (entry["eventType"] != "$scavengeCompleted") {
        kept.push_back(entry);
      }
    }
    body["entries"] = kept;
    response.body = body.dump();
  }
}

TEST(OtherServers, WhatTheLogLostTheNodeRemembers) {
  const auto set_up = [](FakeCluster& cluster) {
    for (auto& node : cluster.nodes) {
      node.version = "24.10.4";
    }
    cluster.node("n2").next_ends = {"Errored"};
  };
  const auto no_auto_scavenge = [](const FakeNode&, const http::Request& request,
                                   http::Response& response) {
    if (request.target == "/auto-scavenge/status") {
      response = http::Response{.status = 404};
    }
  };
  EXPECT_EQ(starts_of(set_up, forget_ends), starts_of(set_up, no_auto_scavenge))
      << "no run was repeated because its end was not seen, and Errored was not taken for done";
}

/// Entries are written without waiting: the last one comes some seconds after the end.
TEST(OtherServers, TheLastEntryOfALongScavengeMayBeLate) {
  const auto ended = std::make_shared<std::map<std::string, Monotonic>>();
  ControllerHarness harness(3, false);
  harness.cluster.scavenge_takes = std::chrono::minutes(3);
  harness.cluster.dress = [&](const FakeNode& node, const http::Request& request,
                              http::Response& response) {
    if (node.running || node.log.empty()) {
      return;
    }
    const auto& id = node.log.back().scavenge_id;
    const auto since = ended->try_emplace(id, harness.time.monotonic()).first->second;
    if (request.target.starts_with("/streams/$scavenges/") &&
        harness.time.monotonic() - since < std::chrono::seconds(12)) {
      forget_ends(node, request, response);
    }
  };
  harness.boot();
  harness.register_cluster();
  const auto run = harness.start_scavenge(ControllerHarness::quick_policy());
  ASSERT_TRUE(harness.run_to_end(run));
  EXPECT_EQ(harness.state(run).status, controller::RunStatus::kDone);
  EXPECT_EQ(harness.cluster.points.size(), 1U) << "a second point was made";
  for (const auto& node : harness.cluster.nodes) {
    EXPECT_EQ(node.finished.at(0), 1) << node.name << " was scavenged again";
  }
}

TEST(OtherServers, AResumedScavengeThatReportsNothingReachedThePointAllTheSame) {
  const auto set_up = [](FakeCluster& cluster) {
    cluster.node("n2").resumes_quietly = true;
    cluster.node("n2").next_ends = {"Success", "Success", "Interrupted"};
  };
  EXPECT_EQ(starts_of(set_up, {}).at(1), 4) << "two that clear the way, one interrupted, one more";
}

TEST(OtherServers, AHeldChunkLockIsWaitedFor) {
  for (const bool agents : {false, true}) {
    ControllerHarness harness(3, agents);
    harness.cluster.node("n2").chunk_lock_held = 12;  // more than a step has attempts
    harness.boot();
    harness.register_cluster();
    const auto run = harness.start_scavenge(ControllerHarness::quick_policy());
    ASSERT_TRUE(harness.run_to_end(run));
    EXPECT_EQ(harness.state(run).status, controller::RunStatus::kDone) << harness.state(run).reason;
    EXPECT_EQ(harness.cluster.node("n2").chunk_lock_held, 0);
  }
}

/// A resignation as it was seen on real servers: leaders within a second of each other, five
/// epochs.
TEST(OtherServers, AResignationOfFiveEpochsIsOneMove) {
  ControllerHarness harness(3, false);
  int elections = 0;
  Monotonic next{};
  harness.cluster.acted = [&](const FakeNode&, const http::Request& request) {
    if (request.target == "/admin/node/resign") {
      elections = 4;
      next = harness.time.monotonic() + std::chrono::milliseconds(1200);
    }
  };
  harness.cluster.dress = [&](const FakeNode&, const http::Request&, http::Response&) {
    if (elections > 0 && harness.time.monotonic() >= next) {
      harness.cluster.elect(elections % 2 == 0 ? "n2" : "n3");
      --elections;
      next = harness.time.monotonic() + std::chrono::milliseconds(1200);
    }
  };
  harness.boot();
  harness.register_cluster();
  const auto run = harness.start_scavenge(planner::Policy{});  // holds 5 s, settles 10 s
  ASSERT_TRUE(harness.run_to_end(run));
  EXPECT_EQ(harness.state(run).status, controller::RunStatus::kDone);
  EXPECT_EQ(elections, 0) << "all of them happened";
  EXPECT_EQ(harness.cluster.total_resigns(), 1);
  const auto state = harness.state(run);
  EXPECT_EQ(std::ranges::count_if(state.moves, &controller::LeaderMove::planned), 1);
}

TEST(OtherServers, GossipMayLagByFourSeconds) {
  ControllerHarness harness(3, false);
  std::map<std::string, std::deque<std::pair<Monotonic, std::string>>> past;
  harness.cluster.dress = [&](const FakeNode& node, const http::Request& request,
                              http::Response& response) {
    if (request.target != "/gossip" || response.status != 200) {
      return;
    }
    auto& old = past[node.name];
    const auto now = harness.time.monotonic();
    old.emplace_back(now, response.body);
    while (old.size() > 1 && now - old[1].first >= std::chrono::seconds(4)) {
      old.pop_front();
    }
    response.body = old.front().second;
  };
  harness.boot();
  harness.register_cluster();
  const auto run = harness.start_scavenge(planner::Policy{});
  ASSERT_TRUE(harness.run_to_end(run));
  EXPECT_EQ(harness.state(run).status, controller::RunStatus::kDone);
  EXPECT_EQ(harness.cluster.total_resigns(), 1);
  for (const auto& node : harness.cluster.nodes) {
    EXPECT_EQ(node.priority, 0) << node.name << ": restored";
  }
}

TEST(OtherServers, AStopWhoseAnswerIsLostIsSeenAllTheSame) {
  ControllerHarness harness(3, false);
  harness.cluster.scavenge_takes = std::chrono::minutes(10);
  int lost = 0;
  harness.cluster.fate = [&](const FakeNode&, const http::Request& request) {
    if (request.method != "DELETE") {
      return std::optional<Fate>();
    }
    ++lost;
    return std::optional(Fate::kReplyLost);
  };
  harness.boot();
  harness.register_cluster();
  const auto run = harness.start_scavenge(ControllerHarness::quick_policy());
  const auto busy = [&] {
    return std::ranges::any_of(harness.cluster.nodes,
                               [](const FakeNode& node) { return node.running.has_value(); });
  };
  ASSERT_TRUE(harness.run_until(busy));
  ASSERT_TRUE(harness.executor->pause(run, "me", "").has_value());
  ASSERT_TRUE(harness.run_until(
      [&] { return harness.state(run).status == controller::RunStatus::kPaused; }));
  EXPECT_FALSE(busy());
  EXPECT_GE(lost, 1);
}

TEST(OtherServers, OneThatIsTooOldIsRefusedWithItsVersion) {
  ControllerHarness harness(3, false);
  harness.cluster.node("n3").version = "21.10.11.0";
  harness.boot();
  harness.register_cluster();
  try {
    harness.start_scavenge(ControllerHarness::quick_policy());
    ADD_FAILURE() << "it was planned";
  } catch (const std::runtime_error& refused) {
    EXPECT_NE(std::string(refused.what()).find("n3 version-too-old: version 21.10.11.0"),
              std::string::npos)
        << refused.what();
  }
}

}  // namespace
}  // namespace verger::test
