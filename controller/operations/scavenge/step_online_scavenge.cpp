#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/operations/scavenge/scavenge_support.h"
#include "controller/operations/scavenge/step_kinds.h"

namespace verger::controller::scavenge {
namespace {

using nlohmann::json;
using steps::int_parameter;
using steps::OperationNews;
using steps::running;
using steps::verdict;

/// The server serves on all the time, so there is nothing to undo: chunks that are switched stay,
/// and the node's own state says what is left.
class OnlineScavengeStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return "online_scavenge"; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    co_return co_await ready_for_shared_point(std::move(context));
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    const json memo = *context.state.memo;
    json parameters{{"point", memo.value("point", -1LL)},
                    {"threads", int_parameter(context.step, "threads", 1)},
                    {"throttlePercent", int_parameter(context.step, "throttlePercent", 100)}};
    co_return co_await steps::act_through_agent(context, "online_scavenge", std::move(parameters));
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto operation = context.state.operation;
    const auto news = co_await steps::ask_agent(context, operation);
    switch (news.kind) {
      case OperationNews::Kind::kUnderWay:
        co_return running(news.progress.empty() ? json{{"phase", "at work"}} : news.progress);
      case OperationNews::Kind::kUnknown:
        co_return verdict(Verdict::Kind::kUnknown, news.reason);
      case OperationNews::Kind::kNotArrived:
        co_return verdict(Verdict::Kind::kNotArrived, "the agent never got it");
      case OperationNews::Kind::kFailed:
        co_return judge_end(context, news);
      case OperationNews::Kind::kDone:
        break;
    }
    co_return co_await seen_at_shared_point(context, news.result);
  }

  [[nodiscard]] bool waits_for_agent(const StepContext&) const override { return true; }

  [[nodiscard]] bool can_interrupt(const StepContext& context, Interrupt why) const override {
    return steps::policy_lets_stop(context.step, why);
  }

  net::awaitable<void> interrupt(StepContext context) override {
    const auto peers = context.peers;
    const auto node = context.step.node;
    const auto operation = context.state.operation;
    static_cast<void>(co_await peers->cancel_operation(node, operation));
  }

 private:
  static Verdict judge_end(const StepContext& context, const OperationNews& news) {
    if (news.code == "stopped") {
      return verdict(Verdict::Kind::kStopped,
                     context.state.interrupting ? "stopped-by-us" : "stopped-by-someone",
                     "it was stopped between two chunks; those that are switched stay");
    }
    if (news.code == "lock_held") {
      // A scavenge or a redaction has the chunks: nothing was switched, and the gates wait for it.
      return verdict(Verdict::Kind::kStopped, news.code, news.reason);
    }
    if (news.code == "not_supported") {
      return verdict(Verdict::Kind::kFailed, news.code,
                     fmt::format("{}: use the strategy offline or rolling there", news.reason));
    }
    return steps::judge_failed(news);
  }
};

}  // namespace

std::unique_ptr<StepKind> make_online_scavenge_step() {
  return std::make_unique<OnlineScavengeStep>();
}

}  // namespace verger::controller::scavenge
