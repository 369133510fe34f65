#include <fmt/format.h>

#include "planner/detail/gate_checks.h"
#include "planner/detail/refusal_list.h"
#include "planner/growth/new_node.h"
#include "planner/node_work.h"
#include "planner/resize/resize_order.h"

namespace verger::planner::detail {
namespace {

class RefusingResize : private RefusalList {
 public:
  explicit RefusingResize(const ResizeOrder& order) : order_(order) {}

  std::vector<Refusal> all() {
    check_policy();
    check_sizes();
    refuse_closed(order_.gates(), order_.snapshot);
    for (const auto* node : order_.stays) {
      check_member(*node);
    }
    if (order_.grows()) {
      check_joining();
    } else {
      check_leaving();
    }
    return take();
  }

 private:
  void check_policy() {
    refuse_policy(ResizePolicy::operation(), order_.policy);
    if (order_.wanted.resize_deadline_ms <= 0 || order_.policy.limits.undo_deadline_ms <= 0 ||
        order_.policy.limits.service_deadline_ms <= 0 || order_.policy.gates.lag_limit_bytes < 0 ||
        order_.policy.gates.disk_reserve_bytes < 0) {
      refuse("policy-invalid", "", "a limit is negative, or a deadline is not above 0",
             "correct the policy");
    }
  }

  /// Two more or fewer at a time: only then is a quorum of the larger size none without those that
  /// have what the smaller one has confirmed.
  void check_sizes() {
    const std::int64_t to = order_.wanted.to;
    if (order_.from < 3 || order_.from % 2 == 0 ||
        (to != order_.from + 2 && to != order_.from - 2)) {
      refuse("size-not-possible", "",
             fmt::format("{} voters are registered, and {} are wanted", order_.from, to),
             "two more or two fewer at a time, and three or more: an odd number each time");
    }
    if (order_.grows() && static_cast<std::int64_t>(order_.joins.size()) != to - order_.from) {
      refuse("no-node-named", "",
             fmt::format("{} new nodes are named, and {} are needed", order_.joins.size(),
                         to - order_.from),
             "name each: --node NAME=URL --agent URL");
    }
    if (!order_.grows() && static_cast<std::int64_t>(order_.leaves.size()) != order_.from - to) {
      refuse("no-node-named", "",
             fmt::format("{} voters are to leave, and {} of those that are named are voters of the "
                         "cluster",
                         order_.from - to, order_.leaves.size()),
             "name as many as leave (--leaving), or none");
    }
  }

  void check_size_in_file(const NodeSnapshot& node, std::int64_t expected) {
    const auto* own = order_.facts_of(node);
    if (own == nullptr || !own->agent_problem.empty()) {
      refuse("agent-cannot-resize", node.name,
             own == nullptr ? "its agent was not asked for the server's configuration file"
                            : own->agent_problem,
             "start verger-agent of the controller's version there, and make the plan again");
      return;
    }
    if (own->file.empty()) {
      refuse("no-server-config", node.name, own->file_problem,
             "name the server's configuration file in the agent's (ServerConfig)");
    } else if (!own->file_problem.empty()) {
      refuse("size-not-in-file", node.name, own->file_problem,
             "have the server take ClusterSize from that file alone, which its agent may write");
    } else if (own->size != expected) {
      refuse(
          "another-size", node.name,
          fmt::format("{} has ClusterSize {}, and {} is expected", own->file, own->size, expected),
          "correct the file");
    }
    if (!own->service_control) {
      refuse("no-service-control", node.name, "its agent has no way to stop and start the server",
             "give it --service-unit, or --start-command and --stop-command");
    }
  }

  void check_member(const NodeSnapshot& node) {
    if (!node.has_agent()) {
      refuse("no-agent", node.name, "it has no agent that could change its configuration",
             "install verger-agent on its machine, and register its URL");
      return;
    }
    if (!is_up(node)) {
      refuse("member-down", node.name, node.problem.empty() ? "it does not answer" : node.problem,
             "every voter that stays is needed: start it");
    }
    if (!node.agent_answered) {
      refuse("agent-gone", node.name,
             node.agent_problem.empty() ? "its agent does not answer" : node.agent_problem,
             "start verger-agent there");
      return;
    }
    for (const auto& work : node.agent_work) {
      if (outlasts_server(work)) {
        refuse("agent-busy", node.name,
               fmt::format("its agent is at work on its files: {} ({})", work.kind, work.id),
               "wait until it ends, or cancel its run");
      }
    }
    check_size_in_file(node, order_.from);
    const auto* own = order_.facts_of(node);
    for (const auto* joins : order_.joins) {
      if (own != nullptr && own->seeds > 0 && seed_of(*joins).starts_with('[')) {
        refuse("seed-not-possible", node.name,
               fmt::format("{} lists gossip seeds, and {} of {} is an address in brackets, which "
                           "cannot be added there",
                           own->file, seed_of(*joins), joins->name),
               "name the new node by its host name (--node NAME=URL)");
      }
    }
  }

  void check_joining() {
    if (!order_.named.empty()) {
      refuse("policy-invalid", "", "voters are to leave, and the number of voters grows",
             "leave out --leaving");
    }
    if (order_.wanted.repository.empty()) {
      refuse("no-repository-named", "", "no repository is named",
             "name it (--repository); see them with: verger backup repositories");
    }
    const RefusingNewNode looks(order_.snapshot, order_.restore(), order_.wanted.repository,
                                order_.policy.gates.disk_reserve_bytes);
    for (const auto* node : order_.joins) {
      looks.check_node(*node, *this);
      if (node == order_.joins.front()) {
        looks.check_backup(*node, *this);
      }
      if (node->has_agent() && node->agent_answered) {
        check_size_in_file(*node, order_.wanted.to);
      }
    }
  }

  void check_leaving() {
    for (const auto& name : order_.named) {
      const auto* node = order_.snapshot.find(name);
      if (node == nullptr || node->read_only_replica) {
        refuse("unknown-node", name, "the cluster has no voter of that name",
               "see the names with: verger cluster show");
      }
    }
    for (const auto* node : order_.leaves) {
      if (!node->agent_answered && !order_.is_gone(*node)) {
        refuse("not-fenced", node->name,
               node->answered
                   ? "its agent is silent, so nothing can stop its server and keep it so"
                   : "its agent is silent, so nothing keeps its server from starting again beside "
                     "those of the smaller size: two leaders could be elected",
               node->answered ? "start verger-agent there"
                              : "make sure that it never starts again (take the machine away, or "
                                "its data), then say so: --leaving-are-gone");
      } else if (const auto* own = order_.facts_of(*node);
                 node->agent_answered && own != nullptr && !own->service_control) {
        refuse("no-service-control", node->name,
               "its agent has no way to stop its server and keep it so",
               "give it --service-unit, or --start-command and --stop-command");
      }
    }
  }

  const ResizeOrder& order_;
};

}  // namespace

std::vector<Refusal> resize_refusals(const ResizeOrder& order) {
  return RefusingResize(order).all();
}

}  // namespace verger::planner::detail
