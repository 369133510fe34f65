#include <algorithm>
#include <fmt/format.h>

#include "planner/backup/backup_order.h"
#include "planner/backup/backup_steps.h"
#include "planner/backup/plan_backup.h"
#include "planner/detail/make_field.h"
#include "planner/operation.h"

namespace verger::planner {
namespace {

using detail::field;

/// Names are parts of hashes and journals.
std::span<const Field> backup_fields() {
  static const std::vector<Field> kFields{
      field<&BackupPolicy::task>("task", "backup.task", "What is done with backups").accepted(),
      field<&BackupPolicy::repository>("repository", "backup.repository",
                                       "Repository of the agents, by name")
          .accepted(),
      field<&BackupPolicy::source>("source", "backup.source",
                                   "Whose files are copied, where no nodes are named")
          .accepted(),
      field<&BackupPolicy::nodes>(
          "nodes", "backup.nodes",
          "Nodes to choose from, in this order, with commas between; instead of source")
          .accepted(),
      field<&BackupPolicy::copies>("copies", "backup.copies",
                                   "Of so many nodes, one after the other")
          .between(1, 100)
          .accepted(),
      field<&BackupPolicy::mode>(
          "mode", "backup.mode",
          "Beside the running server, of the stopped one, or of a disk snapshot")
          .accepted(),
      field<&BackupPolicy::full_every>(
          "fullEvery", "backup.full_every",
          "Each so many-th backup of a node reads everything again; 0: none, 1: each")
          .between(0, 10'000)
          .accepted(),
      field<&BackupPolicy::digests>("digests", "backup.digests",
                                    "Digests of the log in the manifest, for drills and restores")
          .accepted(),
      field<&BackupPolicy::threads>("threads", "backup.threads", "Files copied side by side")
          .between(1, 64)
          .accepted(),
      field<&BackupPolicy::throttle_percent>("throttlePercent", "backup.throttle_percent",
                                             "Share of the time spent working")
          .between(1, 100)
          .accepted(),
      field<&BackupPolicy::rate_bytes>("bytesPerSecond", "backup.bytes_per_second",
                                       "Read at most so much a second; 0: no limit")
          .size()
          .accepted(),
      field<&BackupPolicy::verify>("verify", "backup.verify",
                                   "Whether all of a new backup is read and checked")
          .accepted(),
      field<&BackupPolicy::drill_every>(
          "drillEvery", "backup.drill_every",
          "Each so many-th backup of a node is restored to a scratch directory; 0: none")
          .between(0, 10'000)
          .accepted(),
      field<&BackupPolicy::keep_last>("keepLast", "backup.keep.last",
                                      "Of each node so many of the latest backups are kept")
          .between(0, 100'000)
          .accepted(),
      field<&BackupPolicy::keep_daily>("keepDaily", "backup.keep.daily",
                                       "The latest of each of so many days")
          .between(0, 100'000)
          .accepted(),
      field<&BackupPolicy::keep_weekly>("keepWeekly", "backup.keep.weekly",
                                        "The latest of each of so many weeks")
          .between(0, 100'000)
          .accepted(),
      field<&BackupPolicy::keep_monthly>("keepMonthly", "backup.keep.monthly",
                                         "The latest of each of so many months")
          .between(0, 100'000)
          .accepted(),
      field<&BackupPolicy::keep_within_days>("keepWithinDays", "backup.keep.within_days",
                                             "All that are no older than so many days")
          .between(0, 100'000)
          .accepted(),
      field<&BackupPolicy::generations>(
          "generations", "backup.generations",
          "Backups by id, with commas between, of the tasks verify, drill and delete; without it "
          "the latest of each node, or what the rules do not keep")
          .accepted(),
      field<&BackupPolicy::interrupt_scavenge>(
          "interruptScavenge", "backup.interrupt_scavenge",
          "Whether a scavenge of the source is stopped for the copy, and continued after it")
          .accepted(),
      field<&BackupPolicy::resume_threads>(
          "resumeThreads", "backup.resume_threads",
          "Threads with which a scavenge that was stopped for the copy continues")
          .between(1, 64)
          .later(),
      field<&BackupPolicy::heal_existence_filter>(
          "healExistenceFilter", "heal_existence_filter",
          "Whether a node that is stopped for it makes its existence filter anew")
          .shown()
          .later(),
      field<&BackupPolicy::max_age_ms>("maxAgeMs", "backup.max_age",
                                       "An alert fires once the newest backup is older; 0s: never")
          .length()
          .shown(),
      field<&BackupPolicy::copy_deadline_ms>("copyDeadlineMs", "deadlines.copy",
                                             "For the copy of one node")
          .length(),
      field<&BackupPolicy::verify_deadline_ms>("verifyDeadlineMs", "deadlines.verify",
                                               "For reading and checking one backup")
          .length(),
      field<&BackupPolicy::drill_deadline_ms>("drillDeadlineMs", "deadlines.drill",
                                              "For the drill of one backup")
          .length(),
  };
  return kFields;
}

std::vector<FieldProblem> check_backup(const Policy& policy) {
  const auto& own = backup_of(policy);
  std::vector<FieldProblem> out;
  const auto problem = [&out](std::string message, std::string hint) {
    out.push_back({.place = "backup", .message = std::move(message), .hint = std::move(hint)});
  };
  if (own.repository.find_first_of("/ ") != std::string::npos) {
    problem(fmt::format("repository is \"{}\"", own.repository),
            "it takes the name of a repository, no path: verger backup repositories CLUSTER");
  }
  if (own.copies < 1 || own.threads < 1 || own.throttle_percent < 1 || own.throttle_percent > 100 ||
      own.full_every < 0 || own.drill_every < 0) {
    problem("a number is out of range",
            "copies and threads are 1 or more, throttle_percent is 1 to 100");
  }
  const auto named = detail::listed(own.nodes);
  if (own.task == BackupTask::kCreate && !named.empty() && std::ssize(named) < own.copies) {
    problem(fmt::format("{} copies are wanted, of {} nodes", own.copies, named.size()),
            "name as many nodes as copies, or more");
  }
  if (own.mode == BackupMode::kSnapshot && own.interrupt_scavenge) {
    problem("interrupt_scavenge is true, and the mode is snapshot",
            "a scavenge does not disturb a disk snapshot: leave interrupt_scavenge out");
  }
  if (own.task == BackupTask::kDelete && own.generations.empty() && !own.has_keep_rules()) {
    problem("the task is delete, and nothing says what",
            "name backups (generations), or say which are kept (keep)");
  }
  return out;
}

constexpr std::string_view kBackupWork[] = {backup_steps::kCreate, backup_steps::kVerify,
                                            backup_steps::kDrill, backup_steps::kRetain};
/// Others keep away from a node whose files are copied; the rest works on the repository.
constexpr AgentKind kBackupKinds[] = {{.name = "backup", .keeps_others_out = true},
                                      {.name = "offline_backup", .keeps_others_out = true},
                                      {.name = "snapshot_backup", .touches_files = false},
                                      {.name = "backup_verify", .touches_files = false},
                                      {.name = "backup_drill", .touches_files = false},
                                      {.name = "backup_retain", .touches_files = false}};

std::int64_t time_at_backup_ms(const Policy& /*policy*/, std::span<const PastDuration> durations) {
  std::int64_t out = 0;
  for (const auto& past : durations) {
    out +=
        std::ranges::find(kBackupWork, past.kind) != std::end(kBackupWork) ? past.duration_ms : 0;
  }
  return out;
}

}  // namespace

std::string_view to_string(BackupTask task) {
  switch (task) {
    case BackupTask::kCreate:
      return "create";
    case BackupTask::kVerify:
      return "verify";
    case BackupTask::kDrill:
      return "drill";
    case BackupTask::kDelete:
      return "delete";
  }
  return "create";
}
std::string_view to_string(BackupSource source) {
  switch (source) {
    case BackupSource::kFollower:
      return "follower";
    case BackupSource::kReplica:
      return "replica";
    case BackupSource::kLeader:
      return "leader";
    case BackupSource::kAny:
      return "any";
  }
  return "follower";
}
std::string_view to_string(BackupMode mode) {
  switch (mode) {
    case BackupMode::kLive:
      return "live";
    case BackupMode::kOffline:
      return "offline";
    case BackupMode::kSnapshot:
      return "snapshot";
  }
  return "live";
}
std::string_view to_string(BackupDigests digests) {
  switch (digests) {
    case BackupDigests::kNone:
      return "none";
    case BackupDigests::kLogical:
      return "logical";
    case BackupDigests::kReadable:
      return "readable";
  }
  return "none";
}

BackupPolicy& backup_of(Policy& policy) { return std::get<BackupPolicy>(policy.operation); }
const BackupPolicy& backup_of(const Policy& policy) {
  return std::get<BackupPolicy>(policy.operation);
}

const Operation& BackupPolicy::operation() {
  static const Operation kBackup{
      .name = "backup",
      .summary = "Plan a backup of a cluster's nodes, its check, its drill, or its deletion",
      .example = "--repository main",
      .fields = backup_fields,
      .defaults = [] { return OperationPolicy(BackupPolicy()); },
      .plan = detail::plan_backup,
      .check = check_backup,
      .moves_leader = [](const Policy&) { return false; },
      .time_at_work_ms = time_at_backup_ms,
      .max_age_ms = [](const Policy& policy) { return backup_of(policy).max_age_ms; },
      .due_after_replacement =
          [](const Policy& policy) { return backup_of(policy).task == BackupTask::kCreate; },
      .work_steps = kBackupWork,
      .agent_kinds = kBackupKinds};
  return kBackup;
}

}  // namespace verger::planner
