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
using steps::done;
using steps::int_parameter;
using steps::judge_failed;
using steps::not_needed;
using steps::OperationNews;
using steps::ready;
using steps::running;
using steps::verdict;
using steps::wait;

class StartServerStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return "start_server"; }

  [[nodiscard]] bool restores(const planner::Step& step) const override {
    return !step.node.empty();
  }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto* node = context.node();
    if (node == nullptr) {
      co_return wait("it is no longer registered");
    }
    if (node->answered) {
      co_return not_needed({{"not_needed", "it runs"}, {"instance", node->instance_id}});
    }
    // A service manager that starts ended servers has done so by then.
    if (context.in_reason.count() < int_parameter(context.step, "graceMs", 10'000)) {
      co_return wait("its server ended; it may be started again by itself");
    }
    co_return ready({{"ended", node->problem}});
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    co_return co_await act_through_agent(context, "start_service", json::object());
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    const auto* node = context.node();
    if (node != nullptr && node->answered && node->alive && node->role != planner::Role::kOther) {
      co_return done({{"instance", node->instance_id}});
    }
    const auto operation = context.state.operation;
    const auto news = co_await ask_agent(context, operation);
    switch (news.kind) {
      case OperationNews::Kind::kNotArrived:
        co_return verdict(Verdict::Kind::kNotArrived, "the agent never got it");
      case OperationNews::Kind::kFailed:
        co_return judge_failed(news);
      case OperationNews::Kind::kUnderWay:
      case OperationNews::Kind::kUnknown:
      case OperationNews::Kind::kDone:
        break;
    }
    co_return running({{"phase", phase_of(context, news)}});
  }

 private:
  static std::string phase_of(const StepContext& context, const OperationNews& news) {
    const auto* node = context.node();
    if (node != nullptr && node->answered && node->alive) {
      return context.snapshot.leader() != nullptr
                 ? fmt::format("its server runs, and is in state {}", node->state)
                 : "its server runs, and waits for a leader: a majority of the voters has to run";
    }
    return news.kind == OperationNews::Kind::kUnknown && !news.reason.empty() ? news.reason
                                                                              : "its server starts";
  }
};

}  // namespace

std::unique_ptr<StepKind> make_start_server_step() { return std::make_unique<StartServerStep>(); }

}  // namespace verger::controller
