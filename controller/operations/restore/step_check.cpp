#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/looking_step.h"
#include "controller/operations/restore/restore_support.h"
#include "controller/operations/restore/step_kinds.h"

namespace verger::controller::cluster_restore {
namespace {

using nlohmann::json;
using planner::NodeSnapshot;

/// Why the node is not yet a whole member of the leader's history; empty: it is.
std::string lacks(const StepContext& context, const NodeSnapshot* node, const std::string& name) {
  const auto* leader = context.snapshot.leader();
  if (leader == nullptr) {
    return "no single node leads";
  }
  if (node == nullptr) {
    return fmt::format("{} is no longer registered", name);
  }
  if (!node->answered || !node->alive) {
    return fmt::format("{} does not answer: {}", name,
                       node->problem.empty() ? node->agent_problem : node->problem);
  }
  if (node->role == planner::Role::kOther) {
    return fmt::format("{} is in state {}", name, node->state);
  }
  if (node->sees_leader != leader->instance_id && !node->read_only_replica) {
    return fmt::format("{} does not take {} for the leader", name, leader->name);
  }
  if (node->epoch_number != leader->epoch_number || node->epoch_id != leader->epoch_id) {
    return fmt::format("{} is in epoch {} ({}), the leader {} in {} ({})", name, node->epoch_number,
                       node->epoch_id, leader->name, leader->epoch_number, leader->epoch_id);
  }
  const auto end = steps::int_parameter(context.step, "endPosition", -1);
  if (node->writer_checkpoint < end) {
    return fmt::format("{} ends at {}, the backup at {}", name, node->writer_checkpoint, end);
  }
  const auto lag = context.snapshot.lag(*node);
  if (node != leader && (lag < 0 || lag > steps::int_parameter(context.step, "lagLimitBytes", 0))) {
    return lag < 0 ? fmt::format("how far {} is behind is not known", name)
                   : fmt::format("{} is {} bytes behind {}", name, lag, leader->name);
  }
  return {};
}

/// Of all nodes, as far as their agents have read it. Nodes of several databases: `mixed` says so.
struct Databases {
  std::string id;
  std::string mixed;
};
Databases databases_of(const StepContext& context, const std::vector<std::string>& nodes) {
  Databases out;
  std::string first;
  for (const auto& name : nodes) {
    const auto* node = context.snapshot.find(name);
    if (node == nullptr || !node->agent || node->agent->database_id.empty()) {
      continue;
    }
    if (first.empty()) {
      first = name;
      out.id = node->agent->database_id;
    } else if (node->agent->database_id != out.id) {
      out.mixed = fmt::format("{} has the database {}, {} has {}", first, out.id, name,
                              node->agent->database_id);
    }
  }
  return out;
}

class CheckStep final : public steps::LookingStep {
 public:
  [[nodiscard]] std::string_view name() const override { return names::kCheck; }

 private:
  net::awaitable<Verdict> look(StepContext context) override {
    const auto nodes = steps::list_parameter(context.step, "nodes");
    auto positions = json::object();
    for (const auto& name : nodes) {
      const auto* node = context.snapshot.find(name);
      if (auto why = lacks(context, node, name); !why.empty()) {
        co_return steps::running({{"phase", why}});
      }
      positions[name] = node->writer_checkpoint;
    }
    const auto databases = databases_of(context, nodes);
    if (!databases.mixed.empty()) {
      co_return steps::running({{"phase", databases.mixed}});
    }
    const auto leader = context.snapshot.leader()->name;
    const auto epoch = context.snapshot.leader()->epoch_number;
    const auto read = co_await context.peers->read_a_stream(leader);
    if (!read &&
        (read.error().code == Errc::kUnavailable || read.error().code == Errc::kUnknownOutcome)) {
      co_return steps::running({{"phase", fmt::format("a stream of {} cannot be read yet: {}",
                                                      leader, read.error().message)}});
    }
    auto out = steps::done({{"leader", leader},
                            {"epoch", epoch},
                            {"positions", std::move(positions)},
                            {"stream_read", read.has_value()},
                            {"not_read", read ? std::string() : read.error().message}});
    if (of_whole_cluster(context.step)) {
      out.values[std::string(kNewHistoryValue)] = json{{"database", databases.id}}.dump();
    }
    co_return out;
  }
};

}  // namespace

std::unique_ptr<StepKind> make_check_step() { return std::make_unique<CheckStep>(); }

}  // namespace verger::controller::cluster_restore
