#include "planner/restore/restore_order.h"

#include <algorithm>

#include "planner/gates.h"
#include "planner/restore/restore_steps.h"

namespace verger::planner::detail {
namespace {

/// Copy, comparison and index, on disks as they are; a rate limit counts besides.
constexpr std::int64_t kFastRestoreBytesPerMs = 400'000;
constexpr std::int64_t kSlowRestoreBytesPerMs = 20'000;
/// A server that opens a large index takes minutes.
constexpr DurationRange kStopOrStart{.low_ms = 2'000, .high_ms = 300'000};
constexpr DurationRange kLook{.low_ms = 500, .high_ms = 30'000};

DurationRange restoring(std::int64_t bytes, std::int64_t bytes_per_second) {
  DurationRange out{.low_ms = bytes / kFastRestoreBytesPerMs + 1'000,
                    .high_ms = bytes / kSlowRestoreBytesPerMs + 60'000};
  if (bytes_per_second > 0) {
    const auto limited = bytes / std::max<std::int64_t>(bytes_per_second / 1'000, 1);
    out.low_ms = std::max(out.low_ms, limited);
    out.high_ms = std::max(out.high_ms, 2 * limited);
  }
  return out;
}

}  // namespace

DurationRange expected_of_restore(std::string_view kind, std::int64_t bytes,
                                  std::int64_t bytes_per_second) {
  if (kind == restore_steps::kRestore) {
    return restoring(bytes, bytes_per_second);
  }
  return kind == restore_steps::kStop || kind.contains("start") ? kStopOrStart : kLook;
}

RestoreOrder::RestoreOrder(const ClusterSnapshot& seen, const Policy& of, const History& past,
                           std::optional<RestoreFacts> found)
    : snapshot(seen),
      policy(of),
      wanted(restore_of(of)),
      history(past),
      facts(std::move(found)),
      named(listed_names(wanted.nodes)) {
  const bool all = named.empty() && (whole_cluster() || wanted.task == RestoreTask::kDiscardOld);
  for (const auto& node : snapshot.nodes) {
    if (all || std::ranges::find(named, node.name) != named.end()) {
      nodes.push_back(&node);
    }
  }
}

DurationRange RestoreOrder::expected(std::string_view kind, std::string_view node) const {
  auto out = expected_of_restore(kind, facts ? facts->generation.restored_bytes : 0,
                                 wanted.bytes_per_second);
  for (const auto& past : history.durations) {
    if (past.kind == kind && past.node == node && kind == restore_steps::kRestore) {
      out = {std::min(out.low_ms, past.duration_ms), std::max(out.high_ms, 2 * past.duration_ms)};
    }
  }
  return out;
}

std::vector<Gate> RestoreOrder::first_gates() const {
  if (whole_cluster()) {
    return {};  // a disaster closes each of them, and waits for no hours
  }
  std::vector<Gate> out;
  if (!wanted.replace_database) {
    out.push_back({"cluster-identity", 0});
  }
  // The agent of a damaged node may not be able to read its files, which is why it is restored.
  const Gate agents{std::string(kAgentsAnswer), 0};
  if (std::ranges::all_of(evaluate_causes(agents, snapshot, nullptr), [](const GateState& state) {
        return state.verdict == GateVerdict::kOpen;
      })) {
    out.push_back(agents);
  }
  out.push_back({"one-leader", 0});
  out.push_back({"quorum-margin", 1});
  out.push_back({"not-leader", 0});
  if (!policy.gates.queries.empty()) {
    out.push_back({"queries", 0});
  }
  out.push_back({std::string(kMaintenanceWindow), 0});
  return out;
}

std::vector<Gate> RestoreOrder::later_gates() const {
  return whole_cluster() ? std::vector<Gate>{}
                         : std::vector<Gate>{{"one-leader", 0}, {"quorum-margin", 1}};
}

std::int32_t RestoreOrder::margin(const NodeSnapshot& node) const {
  if (whole_cluster()) {
    return 0;
  }
  const auto others = snapshot.voters() - (node.read_only_replica ? 0U : 1U);
  return static_cast<std::int32_t>(others) - static_cast<std::int32_t>(snapshot.quorum());
}

}  // namespace verger::planner::detail
