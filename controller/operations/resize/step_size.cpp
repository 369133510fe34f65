#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/heal_parameter.h"
#include "controller/executor/other_steps.h"
#include "controller/executor/stopped_server.h"
#include "controller/operations/resize/resize_support.h"
#include "controller/operations/resize/step_kinds.h"
#include "controller/operations/restore/restore_support.h"
#include "nodeagent/api/server_config.h"

namespace verger::controller::resize {
namespace {

using nlohmann::json;
using steps::OperationNews;
using steps::verdict;

/// The run's own name: the former bytes of the file are kept under it, over all attempts.
std::string change_of(const StepContext& context) { return context.run; }

class ServerSizeStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kSize; }
  [[nodiscard]] bool can_undo() const override { return true; }
  [[nodiscard]] bool looks_at_all_nodes() const override { return true; }
  [[nodiscard]] bool can_interrupt(const StepContext&, Interrupt why) const override {
    return why == Interrupt::kCancel || why == Interrupt::kSkip;
  }

  net::awaitable<Readiness> prepare(StepContext context) override {
    if (auto why = who_must_not_run(context); !why.empty()) {
      co_return steps::impossible(std::move(why));
    }
    const auto* node = context.node();
    if (node == nullptr || !node->agent_answered) {
      co_return steps::wait(node == nullptr               ? "it is no longer registered"
                            : node->agent_problem.empty() ? "its agent does not answer"
                                                          : node->agent_problem);
    }
    // One is down at a time.
    for (const auto& name : steps::list_parameter(context.step, "nodes")) {
      const auto* other = context.snapshot.find(name);
      if (name != context.step.node && (other == nullptr || !other->answered)) {
        co_return steps::wait(fmt::format("{} does not answer", name));
      }
    }
    json memo = *context.state.memo;
    co_await steps::note_start_command(context, memo);
    co_return steps::ready(memo);
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    api::ServerSize wanted;
    wanted.change = change_of(context);
    wanted.from = static_cast<std::int32_t>(steps::int_parameter(context.step, "from", 0));
    wanted.to = static_cast<std::int32_t>(steps::int_parameter(context.step, "to", 0));
    wanted.add_seeds = steps::list_parameter(context.step, "addSeeds");
    wanted.remove_seeds = steps::list_parameter(context.step, "removeSeeds");
    wanted.service_deadline_ms = steps::int_parameter(context.step, "serviceDeadlineMs", 0);
    auto parameters = steps::parsed_or_empty(api::to_text(wanted));
    steps::pass_heal_filter(context.step, parameters);
    co_return co_await cluster_restore::act_on_server(
        std::move(context), std::string(api::kServerSizeKind), std::move(parameters));
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    if (auto why = who_must_not_run(context); !why.empty()) {
      co_return verdict(Verdict::Kind::kFailed, "runs-again", std::move(why));
    }
    const auto operation = context.state.operation;
    const auto news = co_await steps::ask_agent(context, operation);
    // The file does not say what counts: each further attempt would be a restart for nothing.
    if (news.kind == OperationNews::Kind::kFailed &&
        (news.code == "no_effect" || news.code == "conflict")) {
      co_return verdict(Verdict::Kind::kFailed, news.code, news.reason);
    }
    if (auto open = cluster_restore::unless_done(context, news, "its server restarts")) {
      // An attempt all the same, which has to be undone.
      if (context.state.interrupting && open->kind == Verdict::Kind::kRunning) {
        co_return verdict(Verdict::Kind::kNotHappened, "stopped-by-us", "stopped on request");
      }
      co_return *std::move(open);
    }
    const auto* node = context.node();
    if (node == nullptr || !node->answered) {
      co_return steps::running({{"phase", "its server starts"}});
    }
    const auto changed = api::parse_server_size_changed(news.result_text);
    if (!changed) {
      co_return verdict(Verdict::Kind::kUnknown, changed.error().message);
    }
    co_return steps::done(
        {{"instance", changed->instance}, {"seeds", changed->seeds}, {"size", changed->size}});
  }

  net::awaitable<void> interrupt(StepContext context) override {
    const auto operation = context.state.operation;
    static_cast<void>(co_await context.peers->cancel_operation(context.step.node, operation));
  }

  /// A new voter that could not be stopped must not run beside one of the former size.
  [[nodiscard]] std::string must_stay(const StepContext& context) const override {
    if (is_committed(context)) {
      return "the registration has changed: the size stays";
    }
    for (const auto& start : steps::list_parameter(context.step, "starts")) {
      if (steps::was_given_up(context, start)) {
        return fmt::format("{} was not undone, and must not run beside a voter of size {}", start,
                           steps::int_parameter(context.step, "from", 0));
      }
    }
    return {};
  }

  net::awaitable<ActAnswer> undo(StepContext context) override {
    auto why = goes_back_before(context);
    if (why.empty()) {
      why = co_await restarts_before(context);
    }
    if (!why.empty()) {
      co_return ActAnswer{ActAnswer::Kind::kRefused, std::move(why)};
    }
    const auto operation = context.state.operation;
    const auto news = co_await steps::ask_agent(context, operation);
    if (news.kind == OperationNews::Kind::kUnderWay) {
      static_cast<void>(co_await context.peers->cancel_operation(context.step.node, operation));
      co_return ActAnswer{ActAnswer::Kind::kRefused, "its restart is under way"};
    }
    if (news.kind == OperationNews::Kind::kUnknown) {
      co_return ActAnswer{ActAnswer::Kind::kRefused, news.reason};
    }
    api::ServerSizeRestore wanted;
    wanted.change = change_of(context);
    wanted.service_deadline_ms = steps::int_parameter(context.step, "serviceDeadlineMs", 0);
    co_return co_await cluster_restore::act_on_server(std::move(context),
                                                      std::string(api::kServerSizeRestoreKind),
                                                      steps::parsed_or_empty(api::to_text(wanted)));
  }

  net::awaitable<Verdict> observe_undo(StepContext context) override {
    const auto undo = co_await cluster_restore::undo_by_agent(
        context, "its server restarts with its former file");
    if (!undo) {
      co_return undo.error();
    }
    const auto* node = context.node();
    co_return node != nullptr && node->answered
        ? steps::done(json::object())
        : verdict(Verdict::Kind::kRunning, "its server does not answer yet");
  }

  [[nodiscard]] std::string undo_command(const StepContext& context) const override {
    const auto file = steps::text_parameter(context.step, "file");
    // Beside a new voter, one of the former size makes two leaders possible.
    const auto starts = steps::list_parameter(context.step, "starts");
    const bool first = std::ranges::any_of(
        starts, [&](const std::string& start) { return steps::stands(context, start); });
    const auto new_ones = steps::list_parameter(context.step, "absent");
    return cluster_restore::on_machine(
        context,
        fmt::format("{}set ClusterSize: {} in {} (its former bytes are in server-config of the "
                    "agent's state), and restart its server",
                    first ? fmt::format("once the servers of {} are stopped for good, ",
                                        fmt::join(new_ones, " and "))
                          : std::string(),
                    steps::int_parameter(context.step, "from", 0),
                    file.empty() ? std::string("the server's configuration file") : file));
  }

 private:
  /// A member that was changed later and has to go back before this one does: one restarts at a
  /// time. Empty: there is none. One whose agent is out of reach must not keep the others from
  /// being a quorum again.
  static net::awaitable<std::string> restarts_before(StepContext context) {
    for (const auto& later : steps::list_parameter(context.step, "later")) {
      if (!steps::stands(context, later) || steps::was_given_up(context, later)) {
        continue;
      }
      const auto peers = context.peers;
      const auto reached = co_await peers->facts(later.substr(std::string("size-").size()));
      if (reached) {
        co_return fmt::format("{} is undone first", later);
      }
    }
    co_return std::string();
  }

  /// What else has to go back before this node does; empty: nothing.
  static std::string goes_back_before(const StepContext& context) {
    for (const auto& start : steps::list_parameter(context.step, "starts")) {
      if (steps::stands(context, start)) {
        return fmt::format("{} is undone first", start);
      }
    }
    // New ones were perhaps started by something else.
    for (const auto& name : steps::list_parameter(context.step, "absent")) {
      const auto* node = context.snapshot.find(name);
      if (!steps::list_parameter(context.step, "starts").empty() && node != nullptr &&
          node->answered) {
        return fmt::format("{} runs", name);
      }
    }
    return {};
  }
};

}  // namespace

std::unique_ptr<StepKind> make_size_step() { return std::make_unique<ServerSizeStep>(); }

}  // namespace verger::controller::resize
