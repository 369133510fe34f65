#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/other_steps.h"
#include "controller/executor/stopped_server.h"
#include "controller/operations/restore/restore_support.h"
#include "controller/operations/restore/step_kinds.h"
#include "nodeagent/api/backup_operations.h"

namespace verger::controller::cluster_restore {
namespace {

using nlohmann::json;
using steps::done;
using steps::OperationNews;
using steps::text_parameter;
using steps::verdict;

/// Of the memo, from the first attempt on: no earlier restore of the backup has kept files there.
constexpr const char* kFirstLook = "no_earlier_restore";

class RestoreStep final : public StepKind {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kRestore; }
  [[nodiscard]] bool can_undo() const override { return true; }
  [[nodiscard]] bool looks_at_all_nodes() const override { return true; }
  [[nodiscard]] bool can_interrupt(const StepContext&, Interrupt why) const override {
    return why == Interrupt::kCancel || why == Interrupt::kSkip;
  }

  net::awaitable<Readiness> prepare(StepContext context) override {
    if (auto why = runs_again(context); !why.empty()) {
      co_return steps::impossible(std::move(why));
    }
    const bool all = of_whole_cluster(context.step);
    std::vector<std::string> concerned{context.step.node};
    for (const auto& each : all ? context.cluster.nodes : std::vector<ClusterNode>()) {
      concerned.push_back(each.name);
    }
    for (const auto& name : concerned) {
      if (auto why = why_not_seen_stopped(context.snapshot.find(name), name); !why.empty()) {
        co_return steps::wait(std::move(why));
      }
    }
    if (auto why = all ? std::string() : lacks_committed(context); !why.empty()) {
      co_return steps::wait(std::move(why));
    }
    json memo = *context.state.memo;
    co_await note_machine(context, memo);
    if (!memo.contains(kFirstLook)) {
      // Undo would take the files of an earlier restore of this backup for those of this one.
      const auto generation = text_parameter(context.step, "generation");
      const auto facts = co_await context.peers->facts(context.step.node);
      if (!facts) {
        co_return steps::wait(facts.error().message);
      }
      if (std::ranges::find(facts->kept_restores, generation) != facts->kept_restores.end()) {
        co_return steps::impossible(fmt::format(
            "it keeps the files from before an earlier restore of backup {}", generation));
      }
      memo[kFirstLook] = true;
    }
    co_return steps::ready(memo);
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    api::RestoreParameters parameters;
    parameters.repository = text_parameter(context.step, "repository");
    parameters.repository_id = text_parameter(context.step, "repositoryId");
    parameters.generation = text_parameter(context.step, "generation");
    parameters.bytes_per_second = steps::int_parameter(context.step, "bytesPerSecond", 0);
    parameters.threads =
        static_cast<std::int32_t>(steps::int_parameter(context.step, "threads", 2));
    parameters.other_node = steps::bool_parameter(context.step, "otherNode", false);
    parameters.keep_old = true;  // until all is well: without them there is no way back
    co_return co_await act_on_server(std::move(context), std::string(api::kRestoreKind),
                                     steps::parsed_or_empty(api::to_text(parameters)));
  }

  net::awaitable<Verdict> observe(StepContext context) override {
    if (auto why = runs_again(context); !why.empty()) {
      co_return verdict(Verdict::Kind::kFailed, "runs-again", std::move(why));
    }
    const auto operation = context.state.operation;
    const auto news = co_await steps::ask_agent(context, operation);
    if (auto open = unless_done(context, news, "its files are being replaced")) {
      co_return *std::move(open);
    }
    const auto restored = api::parse_backup_result<api::Restored>(news.result_text);
    if (!restored) {
      co_return verdict(Verdict::Kind::kUnknown, restored.error().message);
    }
    co_return done({{"bytes", restored->bytes},
                    {"duration_ms", restored->duration_ms},
                    {"end_position", restored->end_position},
                    {"old_files", restored->old_files}});
  }

  net::awaitable<void> interrupt(StepContext context) override {
    const auto operation = context.state.operation;
    static_cast<void>(co_await context.peers->cancel_operation(context.step.node, operation));
  }

  [[nodiscard]] std::string must_stay(const StepContext& context) const override {
    if (is_committed(context)) {
      return "restored servers were started: its former files are not restored by the run";
    }
    // Where the start has an undo, that is over when this is asked.
    return steps::was_given_up(context, fmt::format("start-{}", context.step.node))
               ? "its server was started, and not seen stopped without a loss"
               : std::string();
  }

  net::awaitable<ActAnswer> undo(StepContext context) override {
    const auto operation = context.state.operation;
    const auto news = co_await steps::ask_agent(context, operation);
    if (news.kind == OperationNews::Kind::kUnderWay) {
      static_cast<void>(co_await context.peers->cancel_operation(context.step.node, operation));
      co_return ActAnswer{ActAnswer::Kind::kRefused, "its restore is being stopped"};
    }
    if (news.kind == OperationNews::Kind::kUnknown) {
      co_return ActAnswer{ActAnswer::Kind::kRefused, news.reason};
    }
    const auto* node = context.node();
    if (node == nullptr || !is_seen_stopped(*node)) {
      co_return co_await act_on_server(std::move(context), std::string(api::kStopServerKind),
                                       json::object());
    }
    const api::RestoredGeneration parameters{text_parameter(context.step, "generation")};
    co_return co_await act_on_server(std::move(context), std::string(api::kRestoreRevertKind),
                                     steps::parsed_or_empty(api::to_text(parameters)));
  }

  net::awaitable<Verdict> observe_undo(StepContext context) override {
    const auto undo = co_await undo_by_agent(context, "it is being reverted to its former files");
    if (!undo) {
      co_return undo.error();
    }
    co_return undo->kind == api::kRestoreRevertKind
        ? done(json::object())
        : verdict(Verdict::Kind::kNotHappened,
                  "it was stopped; it is reverted to its former files next");
  }

  [[nodiscard]] std::string undo_command(const StepContext& context) const override {
    // Behind the line all nodes have the new history, and have to leave it together.
    return is_committed(context) && of_whole_cluster(context.step)
               ? revert_command(context) + "  # with all servers stopped, and on all nodes"
               : fmt::format("{}, with its server stopped; then {}", revert_command(context),
                             steps::start_server_command(context));
  }
};

}  // namespace

std::unique_ptr<StepKind> make_restore_step() { return std::make_unique<RestoreStep>(); }

}  // namespace verger::controller::cluster_restore
