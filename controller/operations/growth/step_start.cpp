#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/stopped_server.h"
#include "controller/operations/growth/growth_support.h"
#include "controller/operations/growth/step_kinds.h"
#include "controller/operations/restore/restore_support.h"
#include "nodeagent/api/backup_operations.h"

namespace verger::controller::growth {
namespace {

using nlohmann::json;
using steps::OperationNews;
using steps::verdict;

class JoinStartStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kStart; }
  [[nodiscard]] bool can_undo() const override { return true; }
  [[nodiscard]] bool looks_at_all_nodes() const override { return true; }
  [[nodiscard]] bool can_interrupt(const StepContext&, Interrupt why) const override {
    return why == Interrupt::kCancel || why == Interrupt::kSkip;
  }

  net::awaitable<Readiness> prepare(StepContext context) override {
    if (auto why = why_not_a_member(context); !why.empty()) {
      co_return steps::impossible(std::move(why));
    }
    // An earlier attempt may have started it.
    const auto* node = context.node();
    if (context.state.attempt == 0 && node != nullptr && node->answered) {
      co_return steps::impossible(cluster_restore::runs_again(context));
    }
    json memo = *context.state.memo;
    co_await steps::note_start_command(context, memo);
    co_return steps::ready(memo);
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    co_return co_await steps::start_server(context);
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    if (context.state.interrupting) {
      // An attempt all the same, which has to be undone: its server may be on its way up.
      co_return verdict(Verdict::Kind::kNotHappened, "stopped-by-us", "stopped on request");
    }
    if (auto why = why_not_a_member(context); !why.empty()) {
      co_return verdict(Verdict::Kind::kFailed, std::move(why));
    }
    const auto* node = context.node();
    if (node != nullptr && node->answered && node->alive) {
      co_return steps::done({{"instance", node->instance_id}});
    }
    const auto operation = context.state.operation;
    const auto news = co_await steps::ask_agent(context, operation);
    switch (news.kind) {
      case OperationNews::Kind::kNotArrived:
        co_return verdict(Verdict::Kind::kNotArrived, "the agent never got it");
      case OperationNews::Kind::kFailed:
        co_return steps::judge_failed(news);
      case OperationNews::Kind::kUnderWay:
      case OperationNews::Kind::kUnknown:
      case OperationNews::Kind::kDone:
        break;
    }
    co_return steps::running({{"phase", "its server starts"}});
  }

  [[nodiscard]] std::string must_stay(const StepContext& context) const override {
    return cluster_restore::is_committed(context)
               ? "it follows, and its registration has begun: it stays"
               : std::string();
  }

  net::awaitable<ActAnswer> undo(StepContext context) override {
    co_return co_await cluster_restore::act_on_server(
        std::move(context), std::string(api::kStopServerKind), json::object());
  }

  /// While it followed, a voter may have confirmed writes: what it has must be on the others before
  /// its files go.
  net::awaitable<Verdict> observe_undo(StepContext context) override {
    const auto undo =
        co_await cluster_restore::undo_by_agent(context, "its server is being stopped");
    if (!undo) {
      co_return undo.error();
    }
    if (auto why = cluster_restore::why_not_seen_stopped(context.node(), context.step.node);
        !why.empty()) {
      co_return verdict(Verdict::Kind::kRunning, std::move(why));
    }
    if (auto why = cluster_restore::lacks_committed(context); !why.empty()) {
      co_return verdict(Verdict::Kind::kRunning, std::move(why));
    }
    co_return steps::done(json::object());
  }

  [[nodiscard]] std::string undo_command(const StepContext& context) const override {
    const auto* node = context.node();
    return must_stay(context).empty() || node == nullptr
               ? cluster_restore::on_machine(
                     context,
                     "stop its server; start it again where the other voters do not have "
                     "all that is committed")
               : fmt::format("verger cluster update {} with --node {}={} --agent {}",
                             context.cluster.name, node->name, node->url, node->agent_url);
  }
};

}  // namespace

std::unique_ptr<StepKind> make_join_start_step() { return std::make_unique<JoinStartStep>(); }

}  // namespace verger::controller::growth
