#include "planner/resize/resize_order.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <iterator>

#include "engine/base/quantities.h"
#include "planner/detail/gate_checks.h"
#include "planner/detail/hours_note.h"
#include "planner/restore/restore_policy.h"

namespace verger::planner::detail {
namespace {

std::vector<std::string_view> names_in(const std::vector<const NodeSnapshot*>& nodes) {
  std::vector<std::string_view> out;
  out.reserve(nodes.size());
  for (const auto* node : nodes) {
    out.emplace_back(node->name);
  }
  return out;
}

/// Dead ones first, then those whose names come last; not the leader.
std::vector<std::string> chosen_to_leave(const ClusterSnapshot& snapshot, std::int64_t count) {
  std::vector<std::string> dead;
  std::vector<std::string> others;
  const auto* leader = snapshot.leader();
  for (const auto& node : snapshot.nodes) {
    if (!node.read_only_replica && &node != leader) {
      (is_up(node) ? others : dead).push_back(node.name);
    }
  }
  std::ranges::reverse(others);
  dead.insert(dead.end(), others.begin(), others.end());
  dead.resize(std::min(dead.size(), static_cast<std::size_t>(std::max<std::int64_t>(count, 0))));
  return dead;
}

std::string may_fail(std::int64_t running, std::int64_t needed) {
  return running < needed ? std::string("no writes") : fmt::format("{} may fail", running - needed);
}

}  // namespace

ResizeOrder::ResizeOrder(const ClusterSnapshot& seen, const Policy& of,
                         std::optional<ResizeFacts> found)
    : snapshot(seen),
      policy(of),
      wanted(resize_of(of)),
      facts(std::move(found)),
      from(static_cast<std::int64_t>(seen.voters())),
      named(listed_names(wanted.leaving)) {
  const auto leaving = grows()
                           ? std::vector<std::string>()
                           : (named.empty() ? chosen_to_leave(snapshot, from - wanted.to) : named);
  const NodeSnapshot* last = nullptr;
  for (const auto& node : snapshot.nodes) {
    if (node.read_only_replica) {
      continue;
    }
    if (std::ranges::find(leaving, node.name) != leaving.end()) {
      leaves.push_back(&node);
    } else if (&node == snapshot.leader()) {
      last = &node;
    } else {
      stays.push_back(&node);
    }
  }
  if (last != nullptr) {
    stays.push_back(last);
  }
  // One that leads goes last, so that one of those that stay is elected.
  if (const auto leads = std::ranges::find(leaves, snapshot.leader()); leads != leaves.end()) {
    std::rotate(leads, std::next(leads), leaves.end());
  }
  for (const auto& node : snapshot.joining) {
    joins.push_back(&node);
  }
}

std::vector<Gate> ResizeOrder::gates() const {
  std::vector<Gate> out{{"cluster-identity", 0}};
  // Dead ones may leave; those that stay are looked at by the refusals and each step.
  if (std::ranges::all_of(leaves, [](const auto* node) { return node->agent_answered; })) {
    out.push_back({std::string(kAgentsAnswer), 0});
  }
  if (std::ranges::all_of(leaves, [](const auto* node) { return is_up(*node); })) {
    out.push_back({"voters-alive", 0});
  }
  out.push_back({"one-leader", 0});
  out.push_back({"lag-below", policy.gates.lag_limit_bytes});
  out.push_back({"no-scavenge-running", 0});
  if (!policy.gates.queries.empty()) {
    out.push_back({"queries", 0});
  }
  out.push_back({std::string(kMaintenanceWindow), 0});
  return out;
}

std::string seed_of(const NodeSnapshot& node) {
  auto out = node.url;
  if (const auto scheme = out.find("://"); scheme != std::string::npos) {
    out.erase(0, scheme + 3);
  }
  if (const auto path = out.find('/'); path != std::string::npos) {
    out.erase(path);
  }
  return out;
}

std::vector<std::string> resize_notes(const ResizeOrder& order) {
  std::vector<std::string> out;
  const auto from = order.from;
  const std::int64_t to = order.wanted.to;
  const auto kept = static_cast<std::int64_t>(order.stays.size());
  const auto quorum = [](std::int64_t voters) { return voters / 2 + 1; };
  const auto names = names_in(order.stays);
  // Nodes of different sizes may not follow each other: writes pause from the restart that leaves
  // too few of the former size to the one that makes enough of the new one.
  const auto pause_begins =
      static_cast<std::size_t>(std::max<std::int64_t>(kept - quorum(from), 0));
  const auto pause_ends =
      std::min(static_cast<std::size_t>(quorum(to) - 1), names.empty() ? 0 : names.size() - 1);
  const auto up = std::ranges::count_if(order.snapshot.nodes, [](const NodeSnapshot& node) {
    return !node.read_only_replica && is_up(node);
  });
  if (const auto* restore = order.restore(); restore != nullptr && order.grows()) {
    out.push_back(fmt::format("{} are seeded from backup {} of {}, which ends at {}",
                              fmt::join(names_in(order.joins), " and "), restore->generation.id,
                              restore->generation.node,
                              with_separators(restore->generation.end_position)));
  }
  out.push_back(fmt::format("before: {} voters, {} up, {} confirm a write, {}", from, up,
                            quorum(from), may_fail(up, quorum(from))));
  if (order.grows()) {
    out.push_back(
        fmt::format("from the restart of {}: {} voters, one of them of size {}, {} of the "
                    "others confirm a write, {}",
                    names.front(), kept, to, quorum(from), may_fail(kept - 1, quorum(from))));
    const auto left = kept - 1 - static_cast<std::int64_t>(pause_begins);
    out.push_back(fmt::format(
        "from the restart of {}: {} of size {} {} left, {} are needed; writes may pause until {} "
        "is restarted{}",
        names[pause_begins], left, from, left == 1 ? "is" : "are", quorum(from), names[pause_ends],
        pause_ends + 1 == names.size() ? ", which resigns first" : ""));
    out.push_back(
        fmt::format("from the restart of {}: {} voters of size {}, {} confirm a write, {}",
                    names.back(), kept, to, quorum(to), may_fail(kept, quorum(to))));
    out.push_back(fmt::format(
        "only once all of these have what is committed, {} start: until then they would be voters "
        "beside some that count to {}",
        fmt::join(names_in(order.joins), " and "), from));
  } else {
    out.push_back(fmt::format("once {} are stopped: {} voters of size {}, {} confirm a write, {}",
                              fmt::join(names_in(order.leaves), " and "), kept, from, quorum(from),
                              may_fail(kept, quorum(from))));
    if (order.leaves.back() == order.snapshot.leader()) {
      out.push_back(fmt::format(
          "{} leads: it resigns before it is stopped; writes pause until another one is elected",
          order.leaves.back()->name));
    }
    out.push_back(fmt::format("from the restart of {}: writes may pause until {} is restarted, too",
                              names[pause_begins], names[pause_ends]));
    out.push_back(fmt::format(
        "{} must never start again: {}", fmt::join(names_in(order.leaves), " and "),
        std::ranges::any_of(order.leaves, [&](const auto* node) { return order.is_gone(*node); })
            ? "you have answered for those whose agents are silent (leaving_are_gone)"
            : "their agents keep them stopped"));
  }
  out.push_back(fmt::format("afterwards: {} voters, {} confirm a write, {}", to, quorum(to),
                            may_fail(to, quorum(to))));
  for (const auto* node : order.stays) {
    const auto* own = order.facts_of(*node);
    if (own != nullptr && !own->seeds_from.empty()) {
      out.push_back(fmt::format("the gossip seeds of {} are given by {}, and are not changed",
                                node->name, own->seeds_from));
    }
  }
  out.push_back(
      "until the registration changes, a failure or a cancelled run goes the same way back, one "
      "node after the other; from then on the run reverts nothing");
  add_hours_note(order.snapshot, out);
  return out;
}

}  // namespace verger::planner::detail
