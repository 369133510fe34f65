#include "planner/scavenge/scavenge_refusals.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>
#include <set>
#include <tuple>

#include "engine/base/quantities.h"
#include "planner/detail/refusal_list.h"
#include "planner/gates.h"
#include "planner/scavenge/auto_scavenge_stages.h"
#include "planner/scavenge/scavenge_stage.h"

namespace verger::planner::detail {
namespace {

class Refusing : private RefusalList {
 public:
  Refusing(const ScavengeOrder& order, const History& history) : order_(order), history_(history) {}

  std::vector<Refusal> all() {
    check_policy();
    check_nodes();
    check_versions();
    if (order_.scavenge.strategy == Strategy::kOffline) {
      check_offline();
    } else if (order_.scavenge.strategy == Strategy::kOnline) {
      check_online();
    }
    check_gates();
    return take();
  }

 private:
  void check_policy() {
    if (order_.scavenge.threads < 1 || order_.scavenge.threads > 4) {
      refuse("policy-invalid", "", fmt::format("threads is {}", order_.scavenge.threads),
             "1 to 4; a server fails with more");
    }
    if (order_.scavenge.throttle_percent < 1 || order_.scavenge.throttle_percent > 100) {
      refuse("policy-invalid", "",
             fmt::format("throttle percent is {}", order_.scavenge.throttle_percent), "1 to 100");
    } else {
      refuse_policy(ScavengePolicy::operation(), order_.policy);
    }
    for (const auto& [who, threads, throttle] :
         {std::tuple("leader", order_.scavenge.leader_threads,
                     order_.scavenge.leader_throttle_percent),
          std::tuple("replica", order_.scavenge.replica_threads,
                     order_.scavenge.replica_throttle_percent)}) {
      if (threads == 0 && throttle == 0) {
        continue;  // as the others
      }
      const auto t = threads == 0 ? order_.scavenge.threads : threads;
      const auto p = throttle == 0 ? order_.scavenge.throttle_percent : throttle;
      if (threads < 0 || threads > 4 || throttle < 0 || throttle > 100 || (t > 1 && p != 100)) {
        refuse("policy-invalid", "",
               fmt::format("parameters of the role {}: {} threads at {} percent", who, t, p),
               "1 to 4 threads; several of them cannot be throttled");
      }
    }
    if (order_.policy.limits.resign_attempts < 1 || order_.policy.limits.resign_attempts > 3) {
      refuse("policy-invalid", "",
             fmt::format("resign attempts is {}", order_.policy.limits.resign_attempts), "1 to 3");
    }
    if (order_.scavenge.scavenge_attempts < 1) {
      refuse("policy-invalid", "",
             fmt::format("scavenge attempts is {}", order_.scavenge.scavenge_attempts),
             "1 or more");
    }
    if (order_.policy.gates.lag_limit_bytes < 0 || order_.policy.gates.disk_reserve_bytes < 0 ||
        order_.policy.limits.election_settle_ms < 0 || order_.policy.limits.move_settle_ms < 0 ||
        order_.policy.limits.leader_hold_ms < 0 || order_.scavenge.scavenge_deadline_ms <= 0 ||
        order_.policy.limits.move_deadline_ms <= 0 || order_.scavenge.digest_deadline_ms <= 0 ||
        order_.policy.limits.undo_deadline_ms <= 0 ||
        order_.policy.limits.service_deadline_ms <= 0 ||
        order_.policy.limits.gate_deadline_ms < 0 || order_.policy.gates.clock_skew_limit_ms < 0 ||
        order_.policy.gates.certificate_margin_ms < 0 ||
        order_.policy.limits.server_work_back_ms < 0 || order_.scavenge.server_below_bytes < 0 ||
        order_.policy.limits.server_work_wait_ms < 0) {
      refuse("policy-invalid", "", "a limit is negative, or a deadline is not above 0",
             "correct the policy");
    }
  }

  void check_nodes() {
    if (order_.snapshot.nodes.empty()) {
      refuse("no-nodes", "", "the cluster has no nodes", "register it with its nodes");
    }
    if (order_.scavenge.strategy == Strategy::kFollowersOnly && order_.followers.empty() &&
        order_.leader != nullptr) {
      refuse("no-followers", "", "the strategy is followers-only and there is no follower",
             "use the strategy rolling");
    }
  }

  /// What cannot be had without an agent that may stop its server.
  void check_offline() {
    for (const auto* node : order_.included()) {
      for (auto& each : offline_obstacles(*node)) {
        refuse(std::move(each.code), node->name, std::move(each.message), std::move(each.hint));
      }
    }
    if (order_.scavenge.leader == LeaderRule::kInPlace) {
      refuse("policy-invalid", "", "the strategy is offline and the leader is not to resign",
             "a leader is not stopped: say leader: resign");
    }
    if (order_.voters < 3) {
      refuse("quorum-margin", "",
             fmt::format("the strategy is offline and there {} {}: the cluster would be down with "
                         "the one that is stopped",
                         order_.voters == 1 ? "is" : "are",
                         counted(static_cast<std::int64_t>(order_.voters), "voter")),
             "use the strategy rolling");
    }
  }

  /// What cannot be had without an agent that reaches the server's own call, and without consent.
  void check_online() {
    for (const auto* node : order_.included()) {
      for (auto& each : online_obstacles(*node, order_.scavenge)) {
        refuse(std::move(each.code), node->name, std::move(each.message), std::move(each.hint));
      }
    }
  }

  void check_versions() {
    for (const auto* node : order_.included()) {
      int major = 0;
      int minor = 0;
      const char* end = node->version.data() + node->version.size();
      const auto first = std::from_chars(node->version.data(), end, major);
      const bool read = first.ec == std::errc() && first.ptr != end && *first.ptr == '.' &&
                        std::from_chars(first.ptr + 1, end, minor).ec == std::errc();
      if (!node->answered) {
        continue;  // voters-alive says so
      }
      if (!read) {
        refuse("version-unknown", node->name,
               fmt::format("its version \"{}\" cannot be read", node->version),
               "check that the URL is a node's");
      } else if (std::tuple(major, minor) < std::tuple(22, 10)) {
        refuse("version-too-old", node->name,
               fmt::format("version {} has no scavenge points", node->version),
               "22.10 or newer is needed for a scavenge of all nodes to one point");
      }
    }
  }

  void check_gates() {
    std::set<std::tuple<std::string, std::string, std::string>> seen;
    auto nodes = order_.included();
    if (nodes.empty() && !order_.snapshot.nodes.empty()) {
      nodes.push_back(&order_.snapshot.nodes.front());
    }
    // One voter may be missing everywhere if two more than the quorum need are up.
    const auto up = static_cast<std::size_t>(
        std::ranges::count_if(order_.snapshot.nodes, [](const NodeSnapshot& node) {
          return !node.read_only_replica && node.answered && node.alive &&
                 node.role != Role::kOther;
        }));
    const bool margin_everywhere = up > order_.voters / 2 + 1;
    std::int64_t longest = 0;
    for (const auto* node : nodes) {
      longest = std::max(
          longest,
          expected_scavenge(history_, *node, {.throttle_percent = throttle_of(order_, *node)})
              .high_ms);
    }
    for (const auto* node : nodes) {
      for (const auto& gate : order_.scavenge_gates(*node)) {
        // What says the same of the cluster whichever node the step is about is looked at once.
        const auto* entry = find_gate(gate.name);
        if ((entry != nullptr &&
             (!entry->refuses_plans || (!entry->per_node && node != nodes.front()))) ||
            (gate.name == "quorum-margin" && margin_everywhere) ||
            (gate.name == "voters-alive" && node != nodes.front() && !node->read_only_replica)) {
          continue;
        }
        for (auto& state :
             evaluate_causes(gate, order_.snapshot, node, longest, threads_of(order_, *node))) {
          if (state.code == "auto-scavenge-active" && will_be_paused(state.node)) {
            continue;
          }
          if (state.verdict != GateVerdict::kOpen &&
              seen.emplace(state.code, state.node, state.reason).second) {
            refuse(state.code, state.node, state.reason, state.hint);
          }
        }
      }
    }
  }

  /// The run's first stage pauses what is known to be scheduled there.
  [[nodiscard]] bool will_be_paused(std::string_view name) const {
    const auto* node = order_.snapshot.find(name);
    return order_.scavenge.auto_scavenge == AutoScavengeRule::kPause && node != nullptr &&
           may_scavenge_by_itself(node->auto_scavenge);
  }

  const ScavengeOrder& order_;
  const History& history_;
};

}  // namespace

std::vector<Refusal> scavenge_refusals(const ScavengeOrder& order, const History& history) {
  return Refusing(order, history).all();
}

}  // namespace verger::planner::detail
