#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/heal_parameter.h"
#include "controller/executor/run_state.h"
#include "controller/executor/stopped_server.h"
#include "controller/operations/backup/repository_work.h"
#include "controller/operations/backup/step_kinds.h"
#include "engine/base/clock.h"
#include "nodeagent/api/agent_backups.h"

namespace verger::controller::backups {
namespace {

using nlohmann::json;
using steps::bool_parameter;
using steps::done;
using steps::int_parameter;
using steps::parsed_or_empty;
using steps::ready;
using steps::text_parameter;
using steps::verdict;
using steps::wait;

bool is_offline(const planner::Step& step) { return text_parameter(step, "mode") == "offline"; }
bool is_of_snapshot(const planner::Step& step) {
  return text_parameter(step, "mode") == "snapshot";
}

json number_or_null(std::int64_t number) { return number < 0 ? json() : json(number); }
json time_or_null(Ticks at) { return at == Ticks() ? json() : json(format_ticks(at)); }

json result_of(const api::BackupGeneration& made) {
  return {{"generation", made.id},
          {"node", made.node},
          {"parent", made.parent},
          {"state", made.state},
          {"started_at", time_or_null(made.started_at)},
          {"checkpoints_at", time_or_null(made.checkpoints_at)},
          {"finished_at", time_or_null(made.finished_at)},
          {"end_position", number_or_null(made.end_position)},
          {"epoch_number", number_or_null(made.epoch_number)},
          {"stored_bytes", made.stored_bytes},
          {"restored_bytes", made.restored_bytes},
          {"reused_bytes", made.reused_bytes},
          {"files", made.files},
          {"logical_digest", made.logical_digest},
          {"readable_digest", made.readable_digest},
          {"warnings", made.warnings}};
}

class CreateStep final : public RepositoryWork {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kCreate; }
  [[nodiscard]] bool can_undo() const override { return true; }

  net::awaitable<Readiness> prepare(StepContext context) override {
    const auto* node = context.node();
    if (node == nullptr || !node->agent) {
      co_return wait("its agent does not report of its node");
    }
    json memo = *context.state.memo;
    if (is_offline(context.step)) {
      co_await steps::note_start_command(context, memo);
    }
    co_return ready(memo);
  }

  net::awaitable<ActAnswer> act(StepContext context) override {
    api::BackupParameters parameters;
    take_target(context, parameters);
    parameters.node = context.step.node;
    parameters.cluster = context.cluster.name;
    parameters.full = bool_parameter(context.step, "full", false);
    parameters.threads = static_cast<std::int32_t>(int_parameter(context.step, "threads", 2));
    parameters.digests = text_parameter(context.step, "digests");
    parameters.service_deadline_ms = int_parameter(context.step, "serviceDeadlineMs", 0);
    const std::string kind(is_offline(context.step)       ? api::kOfflineBackupKind
                           : is_of_snapshot(context.step) ? api::kSnapshotBackupKind
                                                          : api::kBackupKind);
    auto object = parsed_or_empty(api::to_text(parameters));
    steps::pass_heal_filter(context.step, object);
    co_return co_await steps::act_through_agent(context, kind, std::move(object));
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

 private:
  [[nodiscard]] Verdict judge_done(const StepContext& context,
                                   const std::string& result_json) const override {
    const auto made = api::parse_backup_generation(result_json);
    if (!made) {
      return unreadable_result(made.error());
    }
    if (made->id.empty() || !made->damage.empty() || made->node != context.step.node ||
        (!made->cluster.empty() && made->cluster != context.cluster.name)) {
      return verdict(
          Verdict::Kind::kFailed, "other-backup",
          fmt::format("its agent reports backup \"{}\" of node \"{}\" and cluster \"{}\"{}",
                      made->id, made->node, made->cluster,
                      made->damage.empty() ? "" : ", whose manifest is damaged: " + made->damage));
    }
    const auto* node = context.node();
    if (is_offline(context.step) &&
        (node == nullptr || !node->answered || node->role == planner::Role::kOther)) {
      return verdict(Verdict::Kind::kUnknown, "the copy is made; the node has not come back yet");
    }
    auto out = done(result_of(*made));
    out.values[std::string(names::kMadeValue) + context.step.node] =
        json{{"generation", made->id}, {"node", made->node}}.dump();
    out.values[std::string(kResultValue)] = json{
        {"at", format_ticks(made->checkpoints_at)},
        {"generation", made->id},
        {"node", made->node},
        {"bytes", made->stored_bytes}}.dump();
    return out;
  }
};

}  // namespace

std::unique_ptr<StepKind> make_create_step() { return std::make_unique<CreateStep>(); }

}  // namespace verger::controller::backups
