#pragma once

#include <algorithm>
#include <chrono>
#include <deque>
#include <functional>
#include <gtest/gtest.h>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/executor/events.h"
#include "controller/executor/step_support.h"
#include "tests/support/controller/run_on_journal.h"

namespace verger::controller::detail {

/// What a step's node shows, look after look; the last of it stays.
struct Script {
  std::string too_late{};
  Readiness readiness{};
  std::vector<ActAnswer::Kind> answers{ActAnswer::Kind::kAccepted};
  std::deque<Verdict::Kind> verdicts{};
  bool can_undo = true;
  bool can_interrupt = true;
  bool waits_for_agent = false;
  std::function<void()> looked{};  ///< at each look at its outcome
  int prepared = 0;
  int acts = 0;
  int interrupts = 0;
};

class ScriptedStep final : public StepKind {
 public:
  explicit ScriptedStep(Script& script) : script_(script) {}
  [[nodiscard]] std::string_view name() const override { return "scripted"; }
  [[nodiscard]] bool can_undo() const override { return script_.can_undo; }
  [[nodiscard]] bool can_interrupt(const StepContext&, Interrupt) const override {
    return script_.can_interrupt;
  }
  [[nodiscard]] bool waits_for_agent(const StepContext&) const override {
    return script_.waits_for_agent;
  }
  [[nodiscard]] std::string too_late(const StepContext&) const override { return script_.too_late; }
  net::awaitable<void> interrupt(StepContext) override {
    ++script_.interrupts;
    co_return;
  }
  net::awaitable<Readiness> prepare(StepContext) override {
    ++script_.prepared;
    co_return script_.readiness;
  }
  net::awaitable<ActAnswer> act(StepContext) override {
    const auto nth =
        std::min<std::size_t>(static_cast<std::size_t>(script_.acts++), script_.answers.size() - 1);
    co_return ActAnswer{.kind = script_.answers[nth], .reason = "so it goes"};
  }
  net::awaitable<Verdict> observe(StepContext) override {
    if (script_.looked) {
      script_.looked();
    }
    const auto kind = script_.verdicts.front();
    if (script_.verdicts.size() > 1) {
      script_.verdicts.pop_front();
    }
    co_return steps::verdict(kind, "it looks so");
  }

 private:
  Script& script_;
};

/// A stage "s" of one scripted step "x-n1" of two attempts, for a part of the machinery by itself.
class ScriptedRun : public ::testing::Test {
 protected:
  static planner::Stage stage_of_one() {
    planner::Step step;
    step.id = "x-n1";
    step.kind = "scripted";
    step.node = "n1";
    step.attempts = 2;
    planner::Stage stage;
    stage.id = "s";
    stage.deadline_ms = std::chrono::milliseconds(std::chrono::minutes(10)).count();
    stage.undo_deadline_ms = 60'000;
    stage.on_failure = planner::FailureRule::kUndoAll;
    stage.groups = {{step}};
    return stage;
  }
  void begin(planner::Stage stage) {
    h_.kinds.add(std::make_unique<ScriptedStep>(script_));
    h_.start({std::move(stage)});
    h_.run->record(events::kStageStarted, {{"stage", "s"}});
    h_.run->begin_deadline(this->stage(), this->stage().deadline_ms);
  }
  /// The step's intent is journaled; whether it arrived is not known.
  void intend() {
    h_.run->record(
        events::kStepIntended,
        {{"step", "x-n1"}, {"operation", "o"}, {"attempt", 1}, {"memo", nlohmann::json::object()}});
  }
  void answered() {
    h_.run->record(events::kStepActed, {{"step", "x-n1"},
                                        {"operation", "o"},
                                        {"answer", "accepted"},
                                        {"reason", ""},
                                        {"memo", nlohmann::json::object()}});
  }
  [[nodiscard]] const planner::Stage& stage() { return h_.run->state().plan->stages.front(); }
  [[nodiscard]] const planner::Step& step() { return stage().groups.front().front(); }
  StepState& state() { return h_.run->state_of(step()); }
  /// As of a look now.
  StepContext context() { return h_.run->context_of(step(), h_.wait_for(h_.run->look(step()))); }

  Script script_;
  test::RunOnJournal h_;
};

}  // namespace verger::controller::detail
