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
using steps::int_parameter;
using steps::judge_failed;
using steps::not_needed;
using steps::OperationNews;
using steps::ready;
using steps::running;
using steps::to_answer;
using steps::verdict;
using steps::wait;

/// Gossip carries a priority to all nodes within some seconds.
constexpr std::chrono::seconds kGossipGrace{15};

class SetPriorityStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return "set_priority"; }
  [[nodiscard]] bool can_undo() const override { return true; }
  [[nodiscard]] bool restores(const planner::Step& step) const override {
    return !step.node.empty() &&
           int_parameter(step, "priority", 0) == int_parameter(step, "restore", 0);
  }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto* node = context.node();
    if (node == nullptr || !node->answered) {
      co_return wait(node == nullptr ? "it is no longer registered" : node->problem);
    }
    const auto* leader = context.snapshot.leader();
    if (bool_parameter(context.step, "onlyIfLeader", false)) {
      if (leader == nullptr) {
        co_return wait("no node leads");
      }
      if (leader->name != context.step.node) {
        co_return not_needed({{"not_needed", fmt::format("{} leads", leader->name)}});
      }
    }
    const auto wanted = int_parameter(context.step, "priority", 0);
    if (is_everywhere(context, wanted)) {
      co_return not_needed({{"priority", wanted}, {"not_needed", "it has that priority already"}});
    }
    co_return ready({{"before", node->priority}});
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    const auto wanted = int_parameter(context.step, "priority", 0);
    co_return co_await set(std::move(context), wanted);
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto wanted = int_parameter(context.step, "priority", 0);
    const auto operation = context.state.operation;
    co_return co_await look(std::move(context), wanted, operation);
  }

  net::awaitable<ActAnswer> undo(StepContext context) override {
    const auto wanted = int_parameter(context.step, "restore", 0);
    co_return co_await set(std::move(context), wanted);
  }

  [[nodiscard]] std::string undo_command(const StepContext& context) const override {
    const auto* node = context.node();
    return steps::post_command(
        node == nullptr ? "" : node->url,
        fmt::format("/admin/node/priority/{}", int_parameter(context.step, "restore", 0)));
  }

  net::awaitable<Verdict> observe_undo(StepContext context) override {
    const auto wanted = int_parameter(context.step, "restore", 0);
    const auto operation = context.state.undo_operation;
    co_return co_await look(std::move(context), wanted, operation);
  }

 private:
  /// The node itself and every voter that answers show it.
  static bool is_everywhere(const StepContext& context, std::int64_t wanted) {
    const auto* node = context.node();
    if (node == nullptr || !node->answered || node->priority != wanted) {
      return false;
    }
    for (const auto& witness : context.snapshot.nodes) {
      const auto seen = witness.sees_priorities.find(context.step.node);
      if (!witness.read_only_replica && witness.answered && seen != witness.sees_priorities.end() &&
          seen->second != wanted) {
        return false;
      }
    }
    return true;
  }

  static net::awaitable<ActAnswer> set(StepContext context, std::int64_t wanted) {
    if (bool_parameter(context.step, "agent", false)) {
      co_return co_await act_through_agent(context, "set_priority", {{"priority", wanted}});
    }
    const auto peers = context.peers;
    const auto node = context.step.node;
    co_return to_answer(co_await peers->set_priority(node, static_cast<std::int32_t>(wanted)));
  }

  static net::awaitable<Verdict> look(StepContext context, std::int64_t wanted,
                                      std::string operation) {
    if (is_everywhere(context, wanted)) {
      co_return done({{"priority", wanted}});
    }
    const auto* node = context.node();
    if (node == nullptr || !node->answered) {
      co_return verdict(Verdict::Kind::kUnknown,
                        node == nullptr ? "it is no longer registered" : node->problem);
    }
    if (node->priority == wanted) {
      co_return running({{"waiting_for", "the other nodes' gossip"}});
    }
    if (bool_parameter(context.step, "agent", false)) {
      const auto news = co_await ask_agent(context, operation);
      switch (news.kind) {
        case OperationNews::Kind::kNotArrived:
          co_return verdict(Verdict::Kind::kNotArrived, "the agent never got it");
        case OperationNews::Kind::kUnderWay:
          co_return running({{"waiting_for", "the agent"}});
        case OperationNews::Kind::kUnknown:
          co_return verdict(Verdict::Kind::kUnknown, news.reason);
        case OperationNews::Kind::kFailed:
          co_return judge_failed(news);
        case OperationNews::Kind::kDone:
          break;  // the node has lost it again, by a restart
      }
    }
    if (context.in_state < kGossipGrace) {
      co_return running({{"waiting_for", "the node's gossip"}});
    }
    co_return verdict(Verdict::Kind::kNotHappened, "gossip does not show it");
  }
};

}  // namespace

std::unique_ptr<StepKind> make_set_priority_step() { return std::make_unique<SetPriorityStep>(); }

}  // namespace verger::controller
