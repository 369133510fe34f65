#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/step_kinds.h"
#include "controller/executor/step_support.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using steps::act_through_agent;
using steps::ask_agent;
using steps::bool_parameter;
using steps::done;
using steps::impossible;
using steps::int_parameter;
using steps::judge_failed;
using steps::not_needed;
using steps::OperationNews;
using steps::ready;
using steps::running;
using steps::to_answer;
using steps::verdict;
using steps::wait;

class ResignStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return "resign"; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto* leader = context.snapshot.leader();
    if (leader == nullptr) {
      co_return wait("no node leads");
    }
    if (leader->name != context.step.node) {
      co_return not_needed({{"not_needed", fmt::format("{} leads", leader->name)},
                            {"from", context.step.node},
                            {"to", leader->name}});
    }
    if (std::ranges::any_of(context.moves, &LeaderMove::planned)) {
      co_return impossible("the run's one planned move of the leader is used up");
    }
    // Between equals the node that resigns may win again; below it no other node does.
    for (const auto& node : context.snapshot.nodes) {
      if (!node.read_only_replica && node.answered && node.priority < leader->priority) {
        co_return wait(fmt::format("{} has the priority {}, the leader {}: it would win again",
                                   node.name, node.priority, leader->priority));
      }
    }
    co_return ready({{"instance", leader->instance_id}, {"epoch", leader->epoch_number}});
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    if (bool_parameter(context.step, "agent", false)) {
      co_return co_await act_through_agent(context, "resign", json::object());
    }
    const auto peers = context.peers;
    const auto node = context.step.node;
    co_return to_answer(co_await peers->resign(node));
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto hold = int_parameter(context.step, "holdMs", 5'000);
    const auto* leader = context.snapshot.leader();
    if (leader == nullptr) {
      co_return running({{"leader", json()}});
    }
    const bool agreed = std::ranges::all_of(context.snapshot.nodes, [leader](const auto& node) {
      return node.read_only_replica || !node.answered || node.sees_leader == leader->instance_id;
    });
    if (!agreed || context.snapshot.leader_stable_ms < hold) {
      co_return running({{"leader", leader->name}});
    }
    const json memo = *context.state.memo;
    if (leader->name != context.step.node) {
      // Another machine at the address of a member leads no node but itself, in epochs of its own.
      if (leader->epoch_number <= memo.value("epoch", -1)) {
        co_return running({{"leader", json()}});
      }
      co_return done(
          {{"from", context.step.node}, {"to", leader->name}, {"epoch", leader->epoch_number}});
    }
    if (leader->epoch_number > memo.value("epoch", 0)) {
      co_return verdict(Verdict::Kind::kNotHappened, "it resigned and was elected again");
    }
    if (bool_parameter(context.step, "agent", false)) {
      const auto operation = context.state.operation;
      const auto news = co_await ask_agent(context, operation);
      switch (news.kind) {
        case OperationNews::Kind::kNotArrived:
          co_return verdict(Verdict::Kind::kNotArrived, "the agent never got it");
        case OperationNews::Kind::kUnderWay:
          co_return running({{"leader", leader->name}});
        case OperationNews::Kind::kUnknown:
          co_return verdict(Verdict::Kind::kUnknown, news.reason);
        case OperationNews::Kind::kFailed:
          if (news.code == "gate_closed") {
            co_return judge_failed(news);
          }
          break;
        case OperationNews::Kind::kDone:
          break;
      }
    }
    // A resignation that no quorum agrees to leaves no trace. The request may still take
    // effect for as long as an election needs.
    const auto settled_after = hold + int_parameter(context.step, "settleMs", 10'000);
    if (context.in_state.count() < settled_after) {
      co_return running({{"leader", leader->name}});
    }
    co_return verdict(Verdict::Kind::kNotHappened, "it still leads, in the same epoch");
  }
};

}  // namespace

std::unique_ptr<StepKind> make_resign_step() { return std::make_unique<ResignStep>(); }

}  // namespace verger::controller
