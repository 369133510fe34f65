#include "planner/growth/growth_order.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/quantities.h"
#include "planner/detail/gate_checks.h"
#include "planner/detail/hours_note.h"

namespace verger::planner::detail {
namespace {

/// Registered voters that are up, with their names.
std::vector<std::string_view> voters_up(const GrowthOrder& order) {
  std::vector<std::string_view> out;
  for (const auto& node : order.snapshot.nodes) {
    if (!node.read_only_replica && is_up(node) && &node != order.replaced) {
      out.emplace_back(node.name);
    }
  }
  return out;
}

std::string seeding_text(const GrowthOrder& order) {
  const auto& backup = order.facts->generation;
  const auto* leader = order.snapshot.leader();
  return fmt::format(
      "{} is seeded from backup {} of {}, which ends at {}{}; the rest comes from the leader",
      order.joins->name, backup.id, backup.node, with_separators(backup.end_position),
      leader == nullptr || leader->writer_checkpoint < backup.end_position
          ? std::string()
          : fmt::format(" ({} behind {})",
                        human_bytes(leader->writer_checkpoint - backup.end_position),
                        leader->name));
}

}  // namespace

GrowthOrder::GrowthOrder(const ClusterSnapshot& seen, const Policy& of,
                         std::optional<RestoreFacts> found)
    : snapshot(seen),
      policy(of),
      wanted(growth_of(of)),
      facts(std::move(found)),
      joins(seen.joining.empty() ? nullptr : &seen.joining.front()) {
  const auto old = std::ranges::find(snapshot.nodes, wanted.replaces, &NodeSnapshot::name);
  replaced = wanted.replaces.empty() || old == snapshot.nodes.end() ? nullptr : &*old;
}

std::vector<Gate> GrowthOrder::gates() const {
  std::vector<Gate> out{{"cluster-identity", 0}, {"one-leader", 0}};
  if (!policy.gates.queries.empty()) {
    out.push_back({"queries", 0});
  }
  out.push_back({std::string(kMaintenanceWindow), 0});
  return out;
}

std::vector<std::string> growth_notes(const GrowthOrder& order) {
  std::vector<std::string> out;
  const auto voters = order.snapshot.voters();
  const auto quorum = order.snapshot.quorum();
  const auto up = voters_up(order).size();
  out.push_back(seeding_text(order));
  if (order.votes()) {
    out.push_back(fmt::format(
        "quorum before: {} of {} voters are up, {} are needed, so {} more may fail; meanwhile: the "
        "same, {} counts for nothing until it follows; afterwards: {} of {} up, {} may fail",
        up, voters, quorum, up - std::min(up, quorum), order.joins->name, up + 1, voters,
        up + 1 - std::min(up + 1, quorum)));
    out.push_back(fmt::format(
        "{0} must never start again: with it there would be {1} voters, of which two halves could "
        "each elect a leader. {2}",
        order.replaced->name, voters + 1,
        order.replaced->agent_answered
            ? "Its agent keeps it stopped from the first step on"
            : "Its agent is silent, and you have answered for it (replaced_is_gone)"));
    out.push_back(fmt::format(
        "the other nodes find {} by gossip; put it in the place of {} in their gossip seeds when "
        "you next change their configuration",
        order.joins->name, order.replaced->name));
  } else {
    out.push_back(fmt::format(
        "quorum before, meanwhile and afterwards: {} of {} voters; a read-only replica neither "
        "votes nor confirms writes",
        quorum, voters));
    out.push_back(fmt::format(
        "the configuration of {} has to say ReadOnlyReplica; if it starts as a voter, it is "
        "stopped at once and everything is undone",
        order.joins->name));
  }
  out.push_back(fmt::format(
      "until it is registered, a failure or a cancelled run stops {} again, reverts its files and "
      "leaves the registration as it is; from then on the run reverts nothing",
      order.joins->name));
  add_hours_note(order.snapshot, out);
  return out;
}

}  // namespace verger::planner::detail
