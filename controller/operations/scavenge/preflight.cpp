#include "controller/operations/scavenge/preflight.h"

#include <algorithm>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "controller/cluster/gather.h"
#include "planner/scavenge/scavenge_estimates.h"
#include "planner/scavenge/scavenge_policy.h"

namespace verger::controller::scavenge {
namespace {

/// What the agent says, for people: without the request, which messages of clients begin with.
std::string reason_of(const Error& error) {
  const auto& message = error.message;
  const auto said = message.starts_with("GET ") ? message.find(": ") : std::string::npos;
  return said == std::string::npos ? message : message.substr(said + 2);
}

net::awaitable<planner::NodeEstimate> ask_estimate(std::shared_ptr<Peers> peers, std::string node,
                                                   std::int32_t threshold, std::int64_t enough) {
  const auto seen = co_await peers->scavenge_estimate(std::move(node), threshold, enough);
  if (seen) {
    co_return planner::NodeEstimate{.removed_bytes = seen->removed_bytes,
                                    .removed_records = seen->removed_records,
                                    .at_least = seen->at_least};
  }
  const bool is_old =
      seen.error().code == Errc::kNotFound || seen.error().code == Errc::kUnsupported;
  co_return planner::NodeEstimate{.problem = is_old ? "its agent is of an older version"
                                                    : reason_of(seen.error())};
}

}  // namespace

net::awaitable<planner::Preflight> preflight(
    PreflightContext context, std::shared_ptr<const OperationSettings> /*settings*/) {
  planner::Preflight out;
  const auto& wanted = planner::scavenge_of(context.policy);
  if (wanted.strategy != planner::Strategy::kAuto) {
    co_return out;
  }
  std::vector<std::string> nodes;
  std::vector<net::awaitable<planner::NodeEstimate>> questions;
  for (const auto& node : context.snapshot.nodes) {
    // Of one that is stopped, or that does not answer, there is no plan.
    if (node.has_agent() && node.agent) {
      nodes.push_back(node.name);
      questions.push_back(ask_estimate(context.peers, node.name, wanted.threshold,
                                       std::max<std::int64_t>(wanted.server_below_bytes, 1)));
    }
  }
  const auto answers = co_await gather(std::move(questions));
  planner::ScavengeEstimates estimates;
  for (std::size_t n = 0; n < nodes.size(); ++n) {
    estimates.emplace(nodes[n], answers[n]);
  }
  out.facts = planner::to_json(estimates);
  co_return out;
}

}  // namespace verger::controller::scavenge
