#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/heal_parameter.h"
#include "controller/executor/stopped_server.h"
#include "controller/operations/scavenge/scavenge_support.h"
#include "controller/operations/scavenge/step_kinds.h"

namespace verger::controller::scavenge {
namespace {

using nlohmann::json;
using steps::act_through_agent;
using steps::ask_agent;
using steps::int_parameter;
using steps::judge_failed;
using steps::OperationNews;
using steps::policy_lets_stop;
using steps::ready;
using steps::running;
using steps::verdict;

class OfflineScavengeStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return "offline_scavenge"; }
  [[nodiscard]] bool can_undo() const override { return true; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    auto readiness = co_await ready_for_shared_point(context);
    if (readiness.kind != Readiness::Kind::kReady) {
      co_return readiness;
    }
    json memo = *readiness.memo;
    co_await steps::note_start_command(context, memo);
    co_return ready(memo);
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    const json memo = *context.state.memo;
    json parameters{{"point", memo.value("point", -1LL)},
                    {"threads", int_parameter(context.step, "threads", 1)}};
    if (const auto deadline = int_parameter(context.step, "serviceDeadlineMs", 0); deadline > 0) {
      parameters["serviceDeadlineMs"] = deadline;
    }
    steps::pass_heal_filter(context.step, parameters);
    co_return co_await act_through_agent(context, "offline_scavenge", std::move(parameters));
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto operation = context.state.operation;
    const auto news = co_await ask_agent(context, operation);
    switch (news.kind) {
      case OperationNews::Kind::kUnderWay:
        co_return running(news.progress.empty()
                              ? json{{"phase", "its server is stopping, stopped, or starting"}}
                              : news.progress);
      case OperationNews::Kind::kUnknown:
        co_return verdict(Verdict::Kind::kUnknown, news.reason);
      case OperationNews::Kind::kNotArrived:
        co_return verdict(Verdict::Kind::kNotArrived, "the agent never got it");
      case OperationNews::Kind::kFailed:
        if (news.code == "stopped") {
          co_return verdict(Verdict::Kind::kStopped,
                            context.state.interrupting ? "stopped-by-us" : "stopped-by-someone",
                            "it was stopped, and the server started again");
        }
        co_return judge_failed(news);
      case OperationNews::Kind::kDone:
        break;
    }
    co_return co_await seen_at_shared_point(context, news.result);
  }

  [[nodiscard]] bool waits_for_agent(const StepContext&) const override { return true; }

  [[nodiscard]] bool can_interrupt(const StepContext& context, Interrupt why) const override {
    return policy_lets_stop(context.step, why);
  }

  net::awaitable<void> interrupt(StepContext context) override {
    const auto peers = context.peers;
    const auto node = context.step.node;
    const auto operation = context.state.operation;
    static_cast<void>(co_await peers->cancel_operation(node, operation));
  }

  net::awaitable<ActAnswer> undo(StepContext context) override {
    co_return co_await steps::start_server(context);
  }

  [[nodiscard]] std::string undo_command(const StepContext& context) const override {
    return steps::start_server_command(context);
  }

  net::awaitable<Verdict> observe_undo(StepContext context) override {
    co_return co_await steps::observe_start(context);
  }
};

}  // namespace

std::unique_ptr<StepKind> make_offline_scavenge_step() {
  return std::make_unique<OfflineScavengeStep>();
}

}  // namespace verger::controller::scavenge
