#include "planner/backup/backup_order.h"

#include <algorithm>
#include <fmt/format.h>
#include <tuple>

#include "planner/backup/backup_steps.h"
#include "planner/gates.h"

namespace verger::planner::detail {
namespace {

/// Read from a disk and written to another, at best and at worst.
constexpr std::int64_t kFastBytesPerMs = 400'000;
constexpr std::int64_t kSlowBytesPerMs = 10'000;

/// Of the order of candidates: the less it costs the cluster, the sooner.
int burden(const ClusterSnapshot& snapshot, const NodeSnapshot& node) {
  return node.read_only_replica ? 0 : &node == snapshot.leader() ? 2 : 1;
}

bool fits(BackupSource source, const ClusterSnapshot& snapshot, const NodeSnapshot& node) {
  switch (source) {
    case BackupSource::kFollower:
      return burden(snapshot, node) == 1;
    case BackupSource::kReplica:
      return burden(snapshot, node) == 0;
    case BackupSource::kLeader:
      return burden(snapshot, node) == 2;
    case BackupSource::kAny:
      break;
  }
  return true;
}

}  // namespace

std::vector<std::string> listed(std::string_view text) {
  std::vector<std::string> out;
  while (!text.empty()) {
    const auto comma = text.find(',');
    auto part = text.substr(0, comma);
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
    while (part.starts_with(' ')) {
      part.remove_prefix(1);
    }
    while (part.ends_with(' ')) {
      part.remove_suffix(1);
    }
    if (!part.empty()) {
      out.emplace_back(part);
    }
  }
  return out;
}

BackupOrder::BackupOrder(const ClusterSnapshot& seen, const Policy& of, const History& past,
                         std::optional<BackupFacts> found)
    : snapshot(seen), policy(of), wanted(backup_of(of)), history(past), facts(std::move(found)) {
  choose_candidates();
  choose_sources();
}

void BackupOrder::choose_candidates() {
  if (const auto names = listed(wanted.nodes); !names.empty()) {
    for (const auto& name : names) {
      const auto* node = snapshot.find(name);
      if (node == nullptr) {
        unknown_names.push_back(name);
      } else if (std::ranges::find(candidates, node) == candidates.end()) {
        candidates.push_back(node);
      }
    }
    return;
  }
  // What only reads the repository is any agent's work.
  const auto source = wanted.task == BackupTask::kCreate ? wanted.source : BackupSource::kAny;
  for (const auto& node : snapshot.nodes) {
    if (fits(source, snapshot, node)) {
      candidates.push_back(&node);
    }
  }
  const auto newest = [this](const NodeSnapshot& node) {
    const auto* latest = facts ? facts->latest_of(node.name) : nullptr;
    return latest == nullptr ? std::string_view() : std::string_view(latest->started_at);
  };
  std::ranges::sort(candidates, [&](const NodeSnapshot* a, const NodeSnapshot* b) {
    return std::tuple(burden(snapshot, *a), newest(*b), std::string_view(a->name)) <
           std::tuple(burden(snapshot, *b), newest(*a), std::string_view(b->name));
  });
}

void BackupOrder::choose_sources() {
  for (const auto* node : candidates) {
    if (auto why = why_unfit(*node)) {
      unfit.push_back(*std::move(why));
    } else if (std::ssize(sources) < wanted.copies || wanted.task != BackupTask::kCreate) {
      sources.push_back(node);
    }
  }
  workers = sources;
  for (const auto& node : snapshot.nodes) {
    const auto* agent = facts ? facts->find_agent(node.name) : nullptr;
    const bool named =
        wanted.nodes.empty() || std::ranges::find(candidates, &node) != candidates.end();
    if (agent != nullptr && agent->problem.empty() && named &&
        std::ranges::find(workers, &node) == workers.end()) {
      workers.push_back(&node);
    }
  }
}

std::optional<Refusal> BackupOrder::why_unfit(const NodeSnapshot& node) const {
  if (!node.has_agent()) {
    return Refusal{.code = "no-agent",
                   .node = node.name,
                   .message = "it has no agent that could copy its files",
                   .hint = "install verger-agent on that machine, and register its address"};
  }
  if (const auto* agent = facts ? facts->find_agent(node.name) : nullptr;
      agent != nullptr && !agent->problem.empty()) {
    return Refusal{.code = agent->problem_code,
                   .node = node.name,
                   .message = agent->problem,
                   .hint = agent->hint};
  }
  if (wanted.task != BackupTask::kCreate) {
    return std::nullopt;
  }
  const Gate current{"node-current", policy.gates.lag_limit_bytes};
  for (auto& state : evaluate_causes(current, snapshot, &node)) {
    if (state.verdict != GateVerdict::kOpen) {
      return Refusal{std::move(state.code), node.name, std::move(state.reason),
                     std::move(state.hint)};
    }
  }
  if (wanted.mode == BackupMode::kSnapshot) {
    const auto* agent = facts ? facts->find_agent(node.name) : nullptr;
    if (agent != nullptr && !agent->snapshot_problem.empty()) {
      return Refusal{.code = "no-snapshots",
                     .node = node.name,
                     .message = "its agent can make no disk snapshot: " + agent->snapshot_problem,
                     .hint =
                         "give it --snapshot-command, or make backups in another mode "
                         "(backup.mode)"};
    }
    return std::nullopt;
  }
  const Gate no_scavenge{"no-scavenge-on-node", 0};
  for (auto& state : evaluate_causes(no_scavenge, snapshot, &node)) {
    const bool may_stop = wanted.interrupt_scavenge && node.scavenge_running.value_or(false);
    if (state.verdict != GateVerdict::kOpen && !may_stop) {
      return Refusal{std::move(state.code), node.name, std::move(state.reason),
                     node.scavenge_running.value_or(false)
                         ? "wait until it ends, or let the backup stop and continue it "
                           "(backup.interrupt_scavenge: true)"
                         : std::move(state.hint)};
    }
  }
  if (wanted.mode == BackupMode::kOffline && &node == snapshot.leader() && snapshot.voters() > 1) {
    return Refusal{.code = "offline-leader",
                   .node = node.name,
                   .message = "it leads, and would be stopped for the copy",
                   .hint = "copy a follower, or move the leader first"};
  }
  if (wanted.mode == BackupMode::kOffline && node.agent && !node.agent->service_control) {
    return Refusal{.code = "offline-needs-service-control",
                   .node = node.name,
                   .message = "its agent cannot stop and start its server",
                   .hint = "give it --service-unit, or --start-command and --stop-command"};
  }
  return std::nullopt;
}

std::vector<Gate> BackupOrder::copy_gates() const {
  // Another node that is down is no reason to go without a backup.
  std::vector<Gate> out{{"cluster-identity", 0}};
  if (wanted.mode == BackupMode::kOffline) {
    out.push_back({"agents-answer", 0});
    out.push_back({"voters-alive", 0});
    out.push_back({"one-leader", 0});
    out.push_back({"quorum-margin", 1});
    out.push_back({"leader-settled", policy.limits.election_settle_ms});
  }
  out.push_back({"node-current", policy.gates.lag_limit_bytes});
  if (wanted.mode != BackupMode::kSnapshot) {
    out.push_back({"no-scavenge-on-node", 0});
    out.push_back({"no-other-work", 0});
  }
  if (!policy.gates.queries.empty()) {
    out.push_back({"queries", 0});
  }
  if (wanted.mode == BackupMode::kOffline && snapshot.voters() > 1) {
    out.push_back({"not-leader", 0});
  }
  out.push_back({"maintenance-window", 0});
  return out;
}

std::vector<Gate> BackupOrder::repository_gates() const {
  std::vector<Gate> out{{"cluster-identity", 0}};
  if (!policy.gates.queries.empty()) {
    out.push_back({"queries", 0});
  }
  out.push_back({"maintenance-window", 0});
  return out;
}

bool BackupOrder::is_full(std::string_view node) const {
  if (wanted.full_every <= 0 || !facts) {
    return false;
  }
  std::int32_t since = 0;
  bool any_full = false;
  for (const auto& each : facts->generations) {
    if (each.node == node && each.damage.empty()) {
      any_full = any_full || each.parent.empty();
      since = each.parent.empty() ? 0 : since + 1;
    }
  }
  // Where the last full one was deleted, how long ago that was is not known.
  return !any_full || since + 1 >= wanted.full_every;
}

std::string BackupOrder::other_history(const NodeSnapshot& node) const {
  const auto* latest = facts ? facts->latest_of(node.name) : nullptr;
  if (latest == nullptr) {
    return {};
  }
  if (latest->writer_position >= 0 && node.writer_checkpoint >= 0 &&
      node.writer_checkpoint < latest->end_position) {
    return fmt::format("its log ends at {}, before the end of its latest backup {} at {}",
                       node.writer_checkpoint, latest->id, latest->end_position);
  }
  if (latest->epoch_number >= 0 && node.epoch_number >= 0 &&
      node.epoch_number < latest->epoch_number) {
    return fmt::format("it is in epoch {}, and its latest backup {} has epoch {}",
                       node.epoch_number, latest->id, latest->epoch_number);
  }
  if (latest->epoch_number == node.epoch_number && !latest->epoch_id.empty() &&
      !node.epoch_id.empty() && latest->epoch_id != node.epoch_id) {
    return fmt::format("its epoch {} is another than that of its latest backup {}",
                       node.epoch_number, latest->id);
  }
  return {};
}

bool BackupOrder::drill_is_due(std::string_view node) const {
  if (wanted.drill_every <= 0) {
    return false;
  }
  std::int32_t since = 0;
  bool drilled = false;
  if (facts) {
    for (const auto& each : facts->generations) {
      if (each.node == node && each.damage.empty()) {
        drilled = drilled || each.drill_passed;
        since = each.drill_passed ? 0 : since + 1;
      }
    }
  }
  return !drilled || since + 1 >= wanted.drill_every;
}

const NodeSnapshot* BackupOrder::drill_worker(std::string_view source) const {
  const NodeSnapshot* out = nullptr;
  for (const auto* node : workers) {
    const auto* agent = facts ? facts->find_agent(node->name) : nullptr;
    if (agent == nullptr || !agent->drill_problem.empty()) {
      continue;
    }
    if (node->name == source) {
      return node;
    }
    out = out == nullptr ? node : out;
  }
  return out;
}

DurationRange BackupOrder::expected(std::string_view kind, const NodeSnapshot& node) const {
  DurationRange out;
  bool known = false;
  for (const auto& past : history.durations) {
    if (past.kind == kind && past.node == node.name && past.duration_ms > 0) {
      const auto longer = past.duration_ms + past.duration_ms / 4;
      out = known ? DurationRange{std::min(out.low_ms, past.duration_ms),
                                  std::max(out.high_ms, longer)}
                  : DurationRange{past.duration_ms, longer};
      known = true;
    }
  }
  if (known || kind == backup_steps::kRetain || !node.agent || node.agent->database_bytes <= 0) {
    return out;
  }
  const auto bytes = node.agent->database_bytes;
  const auto percent = std::clamp<std::int64_t>(wanted.throttle_percent, 1, 100);
  out = {bytes / kFastBytesPerMs * 100 / percent, bytes / kSlowBytesPerMs * 100 / percent};
  if (wanted.rate_bytes > 0) {
    const auto limited = bytes / std::max<std::int64_t>(wanted.rate_bytes / 1'000, 1);
    out = {std::max(out.low_ms, limited), std::max(out.high_ms, limited)};
  }
  // What was copied before is not read again.
  if (kind == backup_steps::kCreate && facts && facts->latest_of(node.name) != nullptr) {
    out.low_ms = 0;
  }
  return out;
}

}  // namespace verger::planner::detail
