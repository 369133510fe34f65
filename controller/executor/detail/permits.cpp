#include "controller/executor/detail/permits.h"

#include <algorithm>

#include "controller/cluster/gather.h"

namespace verger::controller::detail {

net::awaitable<Result<void>> Permits::permit(StepContext context,
                                             std::chrono::milliseconds valid_for) {
  struct Ask {
    static net::awaitable<Result<void>> one(std::shared_ptr<Peers> peers, std::string node,
                                            api::Permit permit) {
      auto answer = co_await peers->permit(node, std::move(permit));
      if (!answer) {
        co_return answer.error().within(node);
      }
      co_return answer;
    }
  };
  api::Permit permit;
  permit.controller_epoch = run_->parts().epoch.value();
  permit.run = context.run;
  permit.step = context.attempt_name();
  permit.valid_for_ms = valid_for.count();
  // What brings a node back to how it was must not wait for the others: the agent that acts refuses
  // older epochs by itself.
  const bool restores =
      context.state.undoing || std::ranges::find(context.step.gates, planner::kAgentsAnswer,
                                                 &planner::Gate::name) == context.step.gates.end();
  std::vector<net::awaitable<Result<void>>> asks;
  for (const auto& node : context.cluster.nodes) {
    // The step's own agent is the one that must not let a late request in, skipped or not.
    const bool counts =
        node.name == context.step.node || (!restores && !context.skipped_nodes.contains(node.name));
    if (!node.agent_url.empty() && counts) {
      asks.push_back(Ask::one(context.peers, node.name, permit));
    }
  }
  const auto answers = co_await gather(std::move(asks));
  run_->check();
  for (const auto& answer : answers) {
    if (!answer) {
      co_return answer.error();
    }
  }
  co_return Result<void>{};
}

net::awaitable<bool> Permits::shut_out_late_request(StepContext context) {
  const auto* node = context.node();
  if (node == nullptr || !node->has_agent()) {
    co_return true;
  }
  api::Permit permit;
  permit.controller_epoch = run_->parts().epoch.value();
  permit.run = context.run;
  permit.step = context.attempt_name();
  permit.valid_for_ms = 0;
  const auto answer = co_await context.peers->permit(context.step.node, std::move(permit));
  run_->check();
  co_return answer.has_value();
}

}  // namespace verger::controller::detail
