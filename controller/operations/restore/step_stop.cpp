#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/other_steps.h"
#include "controller/executor/stopped_server.h"
#include "controller/operations/restore/restore_support.h"
#include "controller/operations/restore/step_kinds.h"
#include "nodeagent/api/backup_operations.h"
#include "planner/node_work.h"

namespace verger::controller::cluster_restore {
namespace {

using nlohmann::json;
using steps::done;
using steps::verdict;

/// Of the memo: its agent had stopped it before; of the result: there was no server to stop.
constexpr const char* kWasStopped = "was_stopped";
/// Of the memo: whether it answered before.
constexpr const char* kAnswered = "answered";

/// What its agent does with the node's files, and that does not end with the server.
const planner::AgentWork* work_on_files(const planner::NodeSnapshot& node) {
  const auto found = std::ranges::find_if(node.agent_work, [](const planner::AgentWork& work) {
    return work.kind != api::kStopServerKind && planner::outlasts_server(work);
  });
  return found == node.agent_work.end() ? nullptr : &*found;
}

class StopStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kStop; }
  [[nodiscard]] bool can_undo() const override { return true; }
  [[nodiscard]] bool stops_server() const override { return true; }
  [[nodiscard]] bool can_interrupt(const StepContext&, Interrupt why) const override {
    return why == Interrupt::kCancel || why == Interrupt::kSkip;
  }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto* node = context.node();
    if (node == nullptr) {
      co_return steps::wait("it is no longer registered");
    }
    if (!node->agent_answered) {
      co_return steps::wait(node->agent_problem.empty() ? "its agent does not answer"
                                                        : node->agent_problem);
    }
    if (const auto* work = work_on_files(*node)) {
      co_return steps::wait(
          fmt::format("its agent is at work on its files: {} ({})", work->kind, work->id));
    }
    json memo = *context.state.memo;
    if (!memo.contains(kWasStopped)) {  // of an earlier attempt, that may have stopped it
      memo[kWasStopped] = is_seen_stopped(*node);
      memo[kAnswered] = node->answered;
      co_await steps::note_start_command(context, memo);
    }
    co_return steps::ready(memo);
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    auto parameters = json::object();
    if (const auto deadline = steps::int_parameter(context.step, "serviceDeadlineMs", 0);
        deadline > 0) {
      parameters["serviceDeadlineMs"] = deadline;
    }
    // A follower's agent need not know of it.
    const auto* leader = context.snapshot.leader();
    if (steps::bool_parameter(context.step, "resignFirst", false) && leader != nullptr &&
        leader->name == context.step.node) {
      parameters["resignFirst"] = true;
    }
    co_return co_await act_on_server(std::move(context), std::string(api::kStopServerKind),
                                     std::move(parameters));
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto operation = context.state.operation;
    const auto news = co_await steps::ask_agent(context, operation);
    if (auto open = unless_done(context, news, "its server stops")) {
      co_return *std::move(open);
    }
    const auto* node = context.node();
    if (node != nullptr && node->answered) {
      // Perhaps before it stopped: a look takes as long as the slowest of the servers it asks.
      const auto peers = context.peers;
      if (!co_await peers->gossip(context.step.node)) {
        co_return steps::running({{"phase", "it is stopped, and is looked at again"}});
      }
      co_return verdict(Verdict::Kind::kNotHappened, "started-again",
                        "it was stopped, and runs again: something starts it by itself");
    }
    if (node == nullptr || !is_seen_stopped(*node)) {
      co_return steps::running({{"phase", why_not_seen_stopped(node, context.step.node)}});
    }
    const json memo = *context.state.memo;
    const bool was_down = !memo.value(kAnswered, true) &&
                          !steps::parsed_or_empty(news.result_text).value("ran", true);
    co_return done({{kWasStopped, memo.value(kWasStopped, false) || was_down}});
  }

  net::awaitable<void> interrupt(StepContext context) override {
    const auto operation = context.state.operation;
    static_cast<void>(co_await context.peers->cancel_operation(context.step.node, operation));
  }

  /// The undo of its restore has ended when this is asked.
  [[nodiscard]] std::string must_stay(const StepContext& context) const override {
    return is_committed(context) || has_former_files(context, context.step.node)
               ? std::string()
               : "it does not have its former files, so its server is not started";
  }

  net::awaitable<ActAnswer> undo(StepContext context) override {
    if (was_stopped(context)) {
      co_return ActAnswer{ActAnswer::Kind::kAccepted, ""};
    }
    if (auto why = keeps_back(context); !why.empty()) {
      co_return ActAnswer{ActAnswer::Kind::kRefused, std::move(why)};
    }
    co_return co_await steps::start_server(context);
  }

  net::awaitable<Verdict> observe_undo(StepContext context) override {
    if (was_stopped(context)) {
      co_return done(json::object());
    }
    co_return co_await steps::observe_start(context);
  }

  [[nodiscard]] std::string undo_command(const StepContext& context) const override {
    return must_stay(context).empty()
               ? steps::start_server_command(context)
               : on_machine(context, "revert its files first, then start its server");
  }

 private:
  /// Then it is not started when the run is undone: in a disaster it may have no files.
  static bool was_stopped(const StepContext& context) {
    return steps::bool_parameter(context.step, "staysStopped", false) ||
           context.state.memo->value(kWasStopped, false) ||
           context.state.result->value(kWasStopped, false);
  }

  /// Its restore was never begun, or is undone.
  static bool has_former_files(const StepContext& context, const std::string& node) {
    return !steps::stands(context, fmt::format("restore-{}", node));
  }

  /// No former files beside a server that runs on restored ones: such a one was started by
  /// something else, and is stopped by its own undo. Empty: nothing does.
  static std::string keeps_back(const StepContext& context) {
    if (!of_whole_cluster(context.step) || is_committed(context)) {
      return {};
    }
    for (const auto& node : context.snapshot.nodes) {
      if (node.name != context.step.node && node.answered &&
          !has_former_files(context, node.name)) {
        return fmt::format("{} runs, and does not have its former files yet", node.name);
      }
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<StepKind> make_stop_step() { return std::make_unique<StopStep>(); }

}  // namespace verger::controller::cluster_restore
