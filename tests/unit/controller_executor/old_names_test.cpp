#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "controller/executor/run_snapshot.h"
#include "nodeagent/api/member_names.h"
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
    copy_ = open_sqlite_journal(h_.disk, "/state/copy.db", h_.time).value();
    epoch_ = copy_->begin_epoch("test").value();
  }
  std::string replayed() {
    const auto state = replay_run(*copy_, stream_);
    EXPECT_TRUE(state.has_value()) << state.error().message;
    return state ? snapshot_of(*state).state : "";
  }

  ControllerHarness h_;
  std::string run_;
  std::string stream_;
  std::string now_;
  std::unique_ptr<Journal> copy_;
  ControllerEpoch epoch_;
};

TEST_F(OldNames, OfEventsReadAsThoseOfToday) {
  int changed = 0;
  const auto events = h_.journal->read(stream_);
  ASSERT_TRUE(events.has_value());
  for (const auto& event : *events) {
    const auto old = as_of_old(event.data, {"memo", "result", "progress", "value"});
    changed += old != event.data ? 1 : 0;
    ASSERT_TRUE(
        copy_->append(stream_, kAnyRevision, {NewEvent{event.type, old}}, epoch_).has_value());
  }
  EXPECT_GT(changed, 5);
  EXPECT_EQ(replayed(), now_);
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
  const auto events = h_.journal->read(stream_);
  ASSERT_TRUE(events.has_value());
  for (const auto& event : *events) {
    ASSERT_TRUE(copy_->append(stream_, kAnyRevision, {NewEvent{event.type, event.data}}, epoch_)
                    .has_value());
  }
  auto snapshot = snapshot_of(h_.state(run_));
  snapshot.state = state.dump();
  ASSERT_TRUE(copy_->save_snapshot(snapshot, epoch_).has_value());
  EXPECT_EQ(replayed(), now_);
}

}  // namespace
}  // namespace verger::controller
