#include "controller/executor/detail/permits.h"

#include <algorithm>

#include "controller/cluster/gather.h"

namespace verger::controller::detail {
namespace {

net::awaitable<Result<void>> ask(std::shared_ptr<Peers> peers, std::string node,
                                 api::Permit permit) {
  auto answer = co_await peers->permit(node, std::move(permit));
  if (!answer) {
    co_return answer.error().within(node);
  }
  co_return answer;
}

}  // namespace

api::Permit Permits::permit_for(const StepContext& context,
                                std::chrono::milliseconds valid_for) const {
  api::Permit out;
  out.controller_epoch = run_->parts().epoch.value();
  out.run = context.run;
  out.step = context.attempt_name();
  out.valid_for_ms = valid_for.count();
  return out;
}

net::awaitable<Result<void>> Permits::permit(StepContext context,
                                             std::chrono::milliseconds valid_for) {
  // What brings a node back to how it was must not wait for the others: the agent that acts refuses
  // older epochs by itself.
  const bool restores = std::ranges::find(context.step.gates, planner::kAgentsAnswer,
                                          &planner::Gate::name) == context.step.gates.end();
  if (restores) {
    co_return co_await permit_at_own_agent(std::move(context), valid_for);
  }
  std::vector<net::awaitable<Result<void>>> asks;
  for (const auto& node : context.cluster.nodes) {
    // The step's own agent is the one that must not let a late request in, skipped or not.
    const bool counts =
        node.name == context.step.node || !context.skipped_nodes.contains(node.name);
    if (!node.agent_url.empty() && counts) {
      asks.push_back(ask(context.peers, node.name, permit_for(context, valid_for)));
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

net::awaitable<Result<void>> Permits::permit_at_own_agent(StepContext context,
                                                          std::chrono::milliseconds valid_for) {
  if (!context.peers->has_agent(context.step.node)) {
    co_return Result<void>{};
  }
  auto answer = co_await ask(context.peers, context.step.node, permit_for(context, valid_for));
  run_->check();
  co_return answer;
}

net::awaitable<bool> Permits::shut_out_late_request(StepContext context) {
  const auto answer =
      co_await permit_at_own_agent(std::move(context), std::chrono::milliseconds(0));
  co_return answer.has_value();
}

}  // namespace verger::controller::detail
