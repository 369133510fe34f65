#include <algorithm>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>

#include <nlohmann/json.hpp>

#include "controller/executor/plan_json.h"
#include "controller/executor/run_snapshot.h"
#include "nodeagent/api/member_names.h"
#include "planner/gate_table.h"
#include "tests/support/controller/controller_harness.h"

/// Version 0.1 wrote what steps note into the journal in camelCase.
namespace verger::controller {
namespace {

using nlohmann::json;
using test::ControllerHarness;

std::string as_of_old(const std::string& text, std::initializer_list<const char*> members) {
  auto data = json::parse(text);
  for (const auto* name : members) {
    if (const auto found = data.find(name); found != data.end()) {
      *found = json::parse(api::in_camel_case(found->dump()));
    }
  }
  return data.dump();
}

class OldNames : public ::testing::Test {
 protected:
  OldNames() {
    h_.boot();
    h_.register_cluster();
    run_ = h_.start_scavenge(ControllerHarness::quick_policy());
    EXPECT_TRUE(h_.run_to_end(run_));
    stream_ = "run/" + run_;
    now_ = snapshot_of(h_.state(run_)).state;
  }
  /// A journal with the run's events, changed by `change`, and with `snapshot` where there is one;
  /// the run as it reads there.
  std::string replayed(const std::string& journal,
                       const std::function<std::string(const std::string&)>& change,
                       const std::optional<Snapshot>& snapshot = std::nullopt) {
    const auto copy = open_sqlite_journal(h_.disk, "/state/" + journal, h_.time).value();
    const auto epoch = copy->begin_epoch("test").value();
    const auto events = h_.journal->read(stream_);
    EXPECT_TRUE(events.has_value());
    for (const auto& event : *events) {
      EXPECT_TRUE(
          copy->append(stream_, kAnyRevision, {NewEvent{event.type, change(event.data)}}, epoch)
              .has_value());
    }
    if (snapshot) {
      EXPECT_TRUE(copy->save_snapshot(*snapshot, epoch).has_value());
    }
    const auto state = replay_run(*copy, stream_);
    EXPECT_TRUE(state.has_value()) << state.error().message;
    return state ? snapshot_of(*state).state : "";
  }
  static std::string unchanged(const std::string& data) { return data; }

  ControllerHarness h_;
  std::string run_;
  std::string stream_;
  std::string now_;
};

TEST_F(OldNames, OfEventsReadAsThoseOfToday) {
  int changed = 0;
  const auto of_old = replayed("old.db", [&changed](const std::string& data) {
    auto old = as_of_old(data, {"memo", "result", "progress", "value"});
    changed += old != data ? 1 : 0;
    return old;
  });
  EXPECT_GT(changed, 5);
  EXPECT_EQ(of_old, replayed("new.db", unchanged));
}

TEST_F(OldNames, OfSnapshotsReadAsThoseOfToday) {
  auto state = json::parse(now_);
  int changed = 0;
  const auto rename = [&](json& text) {
    const auto old = api::in_camel_case(text.get<std::string>());
    changed += old != text.get<std::string>() ? 1 : 0;
    text = old;
  };
  for (auto& step : state.at("steps")) {
    for (const auto* name : {"memo", "result", "progress"}) {
      rename(step.at(name));
    }
  }
  for (auto& value : state.at("values")) {
    rename(value);
  }
  EXPECT_GT(changed, 5);
  auto snapshot = snapshot_of(h_.state(run_));
  snapshot.state = state.dump();
  EXPECT_EQ(replayed("old.db", unchanged, snapshot), now_);
}

/// As version 0.1 made it: its hash covers its names.
planner::Plan as_planned_of_old(planner::Plan plan) {
  for (auto& stage : plan.stages) {
    for (auto& group : stage.groups) {
      for (auto& step : group) {
        for (auto& gate : step.gates) {
          gate.planned_as = planner::find_gate(gate.name)->former_name;
        }
      }
    }
  }
  plan.hash = planner::hash_of(plan);
  return plan;
}

TEST_F(OldNames, OfGatesInPlansKeepThePlansHashAndAreThoseOfToday) {
  const auto today = h_.state(run_).plan;
  const auto text = planner::text_of(as_planned_of_old(*today));
  for (const auto* name : {"right-cluster", "nobody-scavenges", "idle", "hours"}) {
    EXPECT_THAT(text, ::testing::HasSubstr(fmt::format("\"name\":\"{}\"", name)));
  }
  const auto read = parse_plan(json::parse(text));
  ASSERT_TRUE(read.has_value()) << read.error().message;
  EXPECT_NE(read->hash, today->hash);
  EXPECT_EQ(planner::text_of(*read), text) << "a run of it journals the plan as it was made";
  for (const auto* id : {"scavenge-n2", "digest-n1", "resign-n1"}) {
    const auto& of_old = read->find_step(id)->gates;
    const auto& of_today = today->find_step(id)->gates;
    ASSERT_EQ(of_old.size(), of_today.size());
    for (std::size_t i = 0; i < of_old.size(); ++i) {
      EXPECT_EQ(of_old[i].name, of_today[i].name) << id;
    }
  }
}

TEST_F(OldNames, OfGatesThatAStepWaitsForAreThoseOfToday) {
  h_.cluster.scavenge_takes = std::chrono::seconds(20);
  run_ = h_.start_scavenge(ControllerHarness::quick_policy());
  stream_ = "run/" + run_;
  const auto runs = [](const test::FakeNode& node) { return node.running.has_value(); };
  ASSERT_TRUE(h_.run_until([&] { return std::ranges::any_of(h_.cluster.nodes, runs); }));
  h_.cluster.scavenge_takes = std::chrono::minutes(10);
  h_.cluster.start_by_hand(std::ranges::find_if_not(h_.cluster.nodes, runs)->name);
  const bool waits = h_.run_until(
      [this] {
        const auto steps = h_.state(run_).steps;
        return std::ranges::any_of(steps, [](const auto& step) {
          return step.second.gates.contains("no-scavenge-on-node");
        });
      },
      std::chrono::minutes(5));
  ASSERT_TRUE(waits) << snapshot_of(h_.state(run_)).state;
  const auto waiting = snapshot_of(h_.state(run_));
  ASSERT_THAT(waiting.state, ::testing::HasSubstr("no-scavenge-on-node"));
  const auto of_old = [](std::string text) {
    const std::string now = "no-scavenge-on-node";
    for (auto at = text.find(now); at != std::string::npos; at = text.find(now)) {
      text.replace(at, now.size(), "idle");
    }
    return text;
  };
  const auto events = replayed("events.db", [&of_old](const std::string& data) {
    return data.contains("\"plan\"") ? data : of_old(data);
  });
  EXPECT_THAT(events, ::testing::HasSubstr("no-scavenge-on-node"));
  EXPECT_THAT(events, ::testing::Not(::testing::HasSubstr(R"(\"idle\")")));
  auto snapshot = waiting;
  snapshot.state = of_old(snapshot.state);
  EXPECT_EQ(replayed("snapshot.db", unchanged, snapshot), waiting.state);
}

}  // namespace
}  // namespace verger::controller
