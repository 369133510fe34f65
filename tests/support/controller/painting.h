#pragma once

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "controller/executor/events.h"
#include "tests/support/controller/controller_harness.h"

/// An operation that exists in tests alone: walls of nodes are painted green.
namespace verger::test {

/// Walls that outlive controllers.
struct Walls {
  std::map<std::string, std::string> colour;
  std::map<std::string, int> painted;
  std::map<std::string, int> stripped;
  std::string breaks;  ///< painting it fails
  std::string sticks;  ///< its paint does not come off
  std::string late;    ///< why it is too late to begin it
  std::chrono::milliseconds takes{1'000};
  int at_once = 0;
  int at_once_max = 0;

  [[nodiscard]] int green() const {
    return static_cast<int>(
        std::ranges::count_if(colour, [](const auto& each) { return !each.second.empty(); }));
  }
};

/// A kind that the executor's core has never heard of.
class PaintStep final : public controller::StepKind {
 public:
  explicit PaintStep(Walls& walls, http::Timers& timers) : walls_(walls), timers_(timers) {}
  [[nodiscard]] std::string_view name() const override { return "paint"; }
  [[nodiscard]] bool can_undo() const override { return true; }
  [[nodiscard]] bool can_interrupt(const controller::StepContext&,
                                   controller::Interrupt) const override {
    return true;
  }
  [[nodiscard]] std::string too_late(const controller::StepContext& context) const override {
    return context.step.node == walls_.late ? "the paint is dry" : "";
  }
  net::awaitable<controller::Readiness> prepare(controller::StepContext context) override {
    co_return controller::Readiness{.values = {{"brush", '"' + context.step.node + '"'}}};
  }
  net::awaitable<controller::ActAnswer> act(controller::StepContext context) override {
    ++walls_.at_once;
    walls_.at_once_max = std::max(walls_.at_once_max, walls_.at_once);
    co_await timers_.sleep_for(walls_.takes);
    --walls_.at_once;
    if (context.step.node != walls_.breaks) {
      walls_.colour[context.step.node] = *context.step.parameters.at("colour").as_string();
      ++walls_.painted[context.step.node];
    }
    co_return controller::ActAnswer{controller::ActAnswer::Kind::kUnknown,
                                    "painters do not answer"};
  }
  net::awaitable<controller::Verdict> observe(controller::StepContext context) override {
    controller::Verdict out;
    if (context.step.node == walls_.breaks) {
      out.kind = controller::Verdict::Kind::kFailed;
      out.reason = "the wall fell down";
    } else if (walls_.colour[context.step.node].empty()) {
      out.kind = controller::Verdict::Kind::kNotHappened;
      out.reason = "it is bare";
    } else {
      out.kind = controller::Verdict::Kind::kDone;
    }
    co_return out;
  }
  net::awaitable<controller::ActAnswer> undo(controller::StepContext context) override {
    if (context.step.node != walls_.sticks) {
      walls_.colour[context.step.node].clear();
    }
    ++walls_.stripped[context.step.node];
    co_return controller::ActAnswer{controller::ActAnswer::Kind::kUnknown, ""};
  }
  net::awaitable<controller::Verdict> observe_undo(controller::StepContext context) override {
    controller::Verdict out;
    out.kind = walls_.colour[context.step.node].empty() ? controller::Verdict::Kind::kDone
                                                        : controller::Verdict::Kind::kNotHappened;
    co_return out;
  }

 private:
  Walls& walls_;
  http::Timers& timers_;
};

inline planner::Step paint(const std::string& node) {
  planner::Step step;
  step.id = "paint-" + node;
  step.kind = "paint";
  step.node = node;
  step.parameters = planner::Json::Object{{"colour", "green"}};
  step.gates = {{"voters-alive", 0}};
  step.reason = "green is restful";
  step.undo = "strip it";
  step.attempts = 2;
  step.expected = {1'000, 2'000};
  return step;
}

/// n1 and n2 side by side, then n3; all of it or nothing.
inline planner::Stage painting() {
  planner::Stage stage;
  stage.id = "paint-all";
  stage.title = "paint";
  stage.deadline_ms = 600'000;
  stage.undo_deadline_ms = 60'000;
  stage.on_failure = planner::FailureRule::kUndoAll;
  stage.groups = {{paint("n1"), paint("n2")}, {paint("n3")}};
  return stage;
}

/// Journals a plan with these stages as if it had been planned; the next controller finds it.
/// Returns its hash.
inline std::string journal_plan(ControllerHarness& h, std::vector<planner::Stage> stages) {
  const auto snapshot = *h.wait_for(h.executor->observe("prod"));
  planner::Plan plan;
  plan.cluster = "prod";
  plan.policy = ControllerHarness::quick_policy();
  plan.basis = planner::basis_of(snapshot);
  plan.stages = std::move(stages);
  plan.made_at = h.time.now();
  plan.hash = planner::hash_of(plan);
  const auto text = fmt::format(R"({{"by":"test","plan":{}}})", planner::text_of(plan));
  const auto epoch = *h.journal->epoch();
  const auto stream = "plan/" + plan.hash;
  if (h.journal->revision(stream)->value() == 0) {
    EXPECT_TRUE(h.journal
                    ->append(stream, controller::Revision(0),
                             {{std::string(controller::events::kPlanMade), text}}, epoch)
                    .has_value());
  }
  return plan.hash;
}

/// The same, and starts the controller again and applies it. Returns the run.
inline std::string start_plan(ControllerHarness& h, std::vector<planner::Stage> stages) {
  const auto hash = journal_plan(h, std::move(stages));
  h.crash();
  h.boot();
  auto run = h.wait_for(h.executor->apply(hash, "test"));
  EXPECT_TRUE(run.has_value()) << run.error().error.message;
  return *run;
}

}  // namespace verger::test
