#include "planner/backup/plan_backup.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <utility>

#include "engine/base/quantities.h"
#include "planner/backup/backup_order.h"
#include "planner/backup/backup_refusals.h"
#include "planner/backup/backup_steps.h"
#include "planner/detail/heal_parameter.h"
#include "planner/detail/hours_note.h"
#include "planner/detail/preflight_facts.h"
#include "planner/detail/stages.h"
#include "planner/detail/text.h"

namespace verger::planner::detail {
namespace {

/// A backup that is read: one that is there, or the one that the run makes of a node.
struct ReadBackup {
  std::string generation{};  ///< empty: the one of `made`
  std::string made{};        ///< a source
  const NodeSnapshot* worker = nullptr;
  [[nodiscard]] const std::string& name() const { return made.empty() ? generation : made; }
};

/// The stages of a run that nothing stands against.
class BackupStages {
 public:
  explicit BackupStages(const BackupOrder& order) : order_(order), wanted_(order.wanted) {}

  Plan build() {
    plan_.cluster = order_.snapshot.cluster;
    plan_.policy = order_.policy;
    switch (wanted_.task) {
      case BackupTask::kCreate:
        add_create();
        break;
      case BackupTask::kVerify:
        for (const auto& each : wanted_backups()) {
          plan_.stages.push_back(verify_stage(each));
        }
        break;
      case BackupTask::kDrill:
        for (const auto& each : wanted_backups()) {
          plan_.stages.push_back(drill_stage(each));
        }
        break;
      case BackupTask::kDelete:
        add_retain();
        break;
    }
    add_notes();
    return std::move(plan_);
  }

 private:
  void add_create() {
    for (const auto* source : order_.sources) {
      if (wanted_.interrupt_scavenge) {
        plan_.stages.push_back(hold_stage(*source));
      }
      plan_.stages.push_back(copy_stage(*source));
      if (wanted_.interrupt_scavenge) {
        plan_.stages.push_back(release_stage(*source));
      }
      plan_.forecast.push_back({.node = source->name, .row = forecast(*source)});
    }
    for (const auto* source : order_.sources) {
      const ReadBackup made{.made = source->name, .worker = source};
      if (wanted_.verify) {
        plan_.stages.push_back(verify_stage(made));
      }
    }
    for (const auto* source : order_.sources) {
      if (order_.drill_is_due(source->name)) {
        plan_.stages.push_back(
            drill_stage({.made = source->name, .worker = order_.drill_worker(source->name)}));
      }
    }
    if (wanted_.has_keep_rules()) {
      add_retain();
    }
  }

  /// Of the tasks verify and drill: as named, or the latest of each node.
  [[nodiscard]] std::vector<ReadBackup> wanted_backups() const {
    std::vector<ReadBackup> out;
    for (const auto& id : listed(wanted_.generations)) {
      out.push_back(
          {.generation = id, .worker = reader_of(order_.facts->find_generation(id)->node)});
    }
    if (!out.empty()) {
      return out;
    }
    for (const auto& node : order_.snapshot.nodes) {
      const auto* latest = order_.facts->latest_of(node.name);
      const bool named = wanted_.nodes.empty() ||
                         std::ranges::find(order_.candidates, &node) != order_.candidates.end();
      if (latest != nullptr && named) {
        out.push_back({.generation = latest->id, .worker = reader_of(node.name)});
      }
    }
    return out;
  }
  [[nodiscard]] const NodeSnapshot* reader_of(const std::string& source) const {
    if (wanted_.task == BackupTask::kDrill) {
      return order_.drill_worker(source);
    }
    const auto own = std::ranges::find(order_.workers, source, &NodeSnapshot::name);
    return own == order_.workers.end() ? order_.workers.front() : *own;
  }

  [[nodiscard]] Stage stage_of(std::string id, std::string title, std::int64_t deadline_ms) const {
    Stage stage;
    stage.id = std::move(id);
    stage.title = std::move(title);
    stage.deadline_ms = deadline_ms;
    stage.undo_deadline_ms = order_.policy.limits.undo_deadline_ms;
    return stage;
  }

  [[nodiscard]] std::string repository_id(const NodeSnapshot& worker) const {
    const auto* agent = order_.facts->find_agent(worker.name);
    return agent == nullptr ? std::string() : agent->repository_id;
  }

  /// What all steps at an agent have.
  [[nodiscard]] Step step_at(std::string_view kind, std::string_view prefix, std::string_view of,
                             const NodeSnapshot& worker) const {
    Step step;
    step.id = joined(prefix, "-", of);
    step.kind = std::string(kind);
    step.node = worker.name;
    step.parameters["repository"] = wanted_.repository;
    if (auto id = repository_id(worker); !id.empty()) {
      step.parameters["repositoryId"] = std::move(id);
    }
    step.attempts = 3;
    step.expected = order_.expected(kind, worker);
    return step;
  }
  void add_pace(Step& step) const {
    step.parameters["bytesPerSecond"] = wanted_.rate_bytes;
    step.parameters["throttlePercent"] = wanted_.throttle_percent;
    step.parameters["onClose"] = to_string(order_.policy.pauses.on_close);
    step.parameters["onPause"] = to_string(order_.policy.pauses.on_pause);
  }

  Stage hold_stage(const NodeSnapshot& source) const {
    Step step;
    step.id = joined("hold-", source.name);
    step.kind = std::string(backup_steps::kHold);
    step.node = source.name;
    // Nothing is stopped for a copy that could not begin.
    step.gates = order_.copy_gates();
    std::erase_if(step.gates, [](const Gate& gate) { return gate.name == "no-scavenge-on-node"; });
    step.act = joined("stop the scavenge that runs on ", source.name, ", if one does");
    step.observe = "none runs there";
    step.reason = "a scavenge during the copy would make it unusable";
    step.attempts = 5;
    step.expected = {1'000, 60'000};
    auto stage = stage_of(step.id, joined("stop a scavenge on ", source.name),
                          order_.wanted.copy_deadline_ms);
    stage.groups.push_back(alone(std::move(step)));
    return stage;
  }

  Stage release_stage(const NodeSnapshot& source) const {
    Step step;
    step.id = joined("release-", source.name);
    step.kind = std::string(backup_steps::kRelease);
    step.parameters["of"] = source.name;
    if (wanted_.resume_threads != 1) {
      step.parameters["threads"] = wanted_.resume_threads;
    }
    step.gates = {{"cluster-identity", 0}};
    step.act = joined("start the scavenge of ", source.name, " again, where this run stopped it");
    step.observe = "it runs, or has ended";
    step.reason = "the run leaves the node as it was, however it ends";
    step.attempts = 5;
    step.expected = {1'000, 60'000};
    auto stage = stage_of(step.id, joined("continue the scavenge of ", source.name),
                          order_.policy.limits.move_deadline_ms);
    // A node that cannot be reached must not keep the run from ending.
    stage.on_failure = FailureRule::kUndoAll;
    stage.groups.push_back(alone(std::move(step)));
    return stage;
  }

  [[nodiscard]] bool reads_everything(const NodeSnapshot& source) const {
    return order_.is_full(source.name) || !order_.other_history(source).empty();
  }

  Stage copy_stage(const NodeSnapshot& source) const {
    const bool offline = wanted_.mode == BackupMode::kOffline;
    auto step = step_at(backup_steps::kCreate, "backup", source.name, source);
    add_pace(step);
    step.parameters["digests"] = to_string(wanted_.digests);
    step.parameters["full"] = reads_everything(source);
    step.parameters["mode"] = to_string(wanted_.mode);
    step.parameters["threads"] = wanted_.threads;
    if (offline) {
      step.parameters["serviceDeadlineMs"] = order_.policy.limits.service_deadline_ms;
      add_heal_filter(step, wanted_.heal_existence_filter);
    }
    step.gates = order_.copy_gates();
    step.act = offline ? joined("stop ", source.name, ", copy its files to ", wanted_.repository,
                                ", and start it again")
               : wanted_.mode == BackupMode::kSnapshot
                   ? joined("have a disk snapshot of ", source.name, " made, copy it to ",
                            wanted_.repository, ", and have it deleted")
                   : joined("copy the files of ", source.name, " to ", wanted_.repository,
                            " beside the running server");
    step.observe = "its agent shows the new backup with its manifest, of this node and cluster";
    step.undo = offline ? "the server is started" : "";
    step.reason = source.read_only_replica              ? "a read-only replica serves no quorum"
                  : order_.snapshot.leader() == &source ? "the policy lets the leader be read"
                                                        : "a follower has all that the leader has";
    if (offline) {
      const auto voters = static_cast<std::int32_t>(order_.snapshot.voters());
      step.cost.quorum_margin = voters - (source.read_only_replica ? 0 : 1) - (voters / 2 + 1);
    }
    auto stage = stage_of(joined("backup-", source.name),
                          joined("back up ", source.name, " (", to_string(source.role), ")"),
                          wanted_.copy_deadline_ms);
    if (offline) {
      stage.on_failure = FailureRule::kUndoAll;
    }
    stage.groups.push_back(alone(std::move(step)));
    return stage;
  }

  Step reading_step(std::string_view kind, std::string_view prefix, const ReadBackup& of) const {
    auto step = step_at(kind, prefix, of.name(), *of.worker);
    add_pace(step);
    if (of.made.empty()) {
      step.parameters["generation"] = of.generation;
    } else {
      step.parameters["made"] = of.made;
    }
    step.gates = order_.repository_gates();
    return step;
  }
  static std::string described(const ReadBackup& of) {
    return of.made.empty() ? joined("backup ", of.generation) : joined("the backup of ", of.made);
  }

  Stage verify_stage(const ReadBackup& of) const {
    auto step = reading_step(backup_steps::kVerify, "verify", of);
    step.act = joined("read all of ", described(of), " at ", of.worker->name, " and check it");
    step.observe = "its agent has read every byte; what is damaged is named";
    step.reason = "damage is found before the backup is needed";
    auto stage = stage_of(step.id, joined("verify ", described(of)), wanted_.verify_deadline_ms);
    stage.groups.push_back(alone(std::move(step)));
    return stage;
  }

  Stage drill_stage(const ReadBackup& of) const {
    auto step = reading_step(backup_steps::kDrill, "drill", of);
    step.act = joined("restore ", described(of), " to a scratch directory at ", of.worker->name,
                      ", start a node on it and read everything");
    step.observe = "its agent has read everything, compared the digests, and removed the directory";
    step.reason = "only a backup that was restored is known to be one";
    auto stage = stage_of(step.id, joined("drill ", described(of)), wanted_.drill_deadline_ms);
    stage.groups.push_back(alone(std::move(step)));
    return stage;
  }

  void add_retain() {
    auto stage = stage_of("retain", "delete older backups", wanted_.verify_deadline_ms);
    const auto& worker = *order_.workers.front();
    const auto add = [&](Step step) {
      step.gates = order_.repository_gates();
      step.observe = "its agent lists what was deleted";
      step.reason = "the repository has room for the next ones";
      step.attempts = 5;
      stage.groups.push_back(alone(std::move(step)));
    };
    if (const auto ids = listed(wanted_.generations);
        wanted_.task == BackupTask::kDelete && !ids.empty()) {
      auto step = step_at(backup_steps::kRetain, "retain", "named", worker);
      Json::Array named;
      for (const auto& id : ids) {
        named.emplace_back(id);
      }
      step.parameters["generations"] = std::move(named);
      step.act = fmt::format("delete {}", fmt::join(ids, ", "));
      add(std::move(step));
    } else {
      for (const auto& node : order_.snapshot.nodes) {
        if (!has_backups(node)) {
          continue;
        }
        auto step = step_at(backup_steps::kRetain, "retain", node.name, worker);
        add_rules(step, node.name);
        step.act = joined("delete what the rules do not keep of the backups of ", node.name);
        add(std::move(step));
      }
    }
    if (!stage.groups.empty()) {
      plan_.stages.push_back(std::move(stage));
    }
  }

  [[nodiscard]] bool has_backups(const NodeSnapshot& node) const {
    return order_.facts->latest_of(node.name) != nullptr ||
           (wanted_.task == BackupTask::kCreate &&
            std::ranges::find(order_.sources, &node) != order_.sources.end());
  }
  void add_rules(Step& step, const std::string& node) const {
    if (wanted_.task == BackupTask::kCreate) {
      Json::Array after;
      for (const auto* source : order_.sources) {
        after.emplace_back(source->name);
      }
      step.parameters["after"] = std::move(after);
    }
    step.parameters["keepDaily"] = wanted_.keep_daily;
    step.parameters["keepLast"] = wanted_.keep_last;
    step.parameters["keepMonthly"] = wanted_.keep_monthly;
    step.parameters["keepWeekly"] = wanted_.keep_weekly;
    step.parameters["keepWithinDays"] = wanted_.keep_within_days;
    step.parameters["of"] = node;
  }

  [[nodiscard]] std::string forecast(const NodeSnapshot& source) const {
    const auto* latest = order_.facts->latest_of(source.name);
    if (latest == nullptr) {
      return "its first backup: everything is read";
    }
    return reads_everything(source)
               ? joined("full: everything is read again; content that is there is not stored twice")
               : joined("differential to ", latest->id, " of ", latest->started_at);
  }

  void add_notes() {
    if (wanted_.task == BackupTask::kCreate) {
      add_notes_on_sources();
    }
    add_hours_note(order_.snapshot, plan_.notes);
  }
  void add_notes_on_sources() {
    for (const auto* source : order_.sources) {
      if (const auto why = order_.other_history(*source); !why.empty()) {
        plan_.notes.push_back(fmt::format(
            "{} was restored or cut since its latest backup ({}): everything is read again",
            source->name, why));
      }
      if (source == order_.snapshot.leader() && order_.snapshot.voters() > 1) {
        plan_.notes.push_back(fmt::format(
            "{} leads: its disk is read beside the writes of all clients", source->name));
      }
    }
    for (const auto& why : order_.unfit) {
      plan_.notes.push_back(
          fmt::format("{} is not copied ({}): {}", why.node, why.code, why.message));
    }
    const auto quorum = order_.snapshot.quorum();
    if (order_.sources.size() > 1) {
      plan_.notes.push_back(fmt::format(
          "{} nodes are copied, each into a chain of its own{}", order_.sources.size(),
          order_.sources.size() >= quorum ? "; that is a majority of the voters' number" : ""));
    }
    if (!wanted_.verify) {
      plan_.notes.push_back("the new backup is not verified, as the policy says");
    }
    if (wanted_.drill_every == 0) {
      plan_.notes.push_back("it is not drilled: nothing proves that it can be restored");
    }
    if (!wanted_.has_keep_rules()) {
      plan_.notes.push_back("no older backup is deleted, as the policy has no rules (backup.keep)");
    }
    if (std::ranges::any_of(order_.workers,
                            [this](const auto* node) { return repository_id(*node).empty(); }) &&
        order_.workers.size() > 1) {
      plan_.notes.push_back(
          "nothing is stored in the repository yet: that all agents mean the same one is checked "
          "from the second backup on");
    }
  }

  const BackupOrder& order_;
  const BackupPolicy& wanted_;
  Plan plan_;
};

}  // namespace

std::expected<Plan, std::vector<Refusal>> plan_backup(const ClusterSnapshot& snapshot,
                                                      const Policy& policy,
                                                      const History& history) {
  std::vector<Refusal> refusals;
  auto found = facts_of_preflight(snapshot, parse_backup_facts, refusals);
  if (was_not_looked_at(snapshot)) {
    refusals.push_back({"not-looked-at", "", "the agents' repositories were not looked at",
                        "make the plan with vergerd, which looks at them first"});
  }
  const BackupOrder order(snapshot, policy, history, std::move(found));
  auto others = backup_refusals(order);
  refusals.insert(refusals.end(), std::make_move_iterator(others.begin()),
                  std::make_move_iterator(others.end()));
  if (!refusals.empty() || !order.facts) {
    return std::unexpected(std::move(refusals));
  }
  auto plan = BackupStages(order).build();
  if (plan.stages.empty()) {
    return std::unexpected(
        std::vector{Refusal{"nothing-to-do", "", "no backup is there that the task could be about",
                            "verger backup list CLUSTER has the backups"}});
  }
  return plan;
}

}  // namespace verger::planner::detail
