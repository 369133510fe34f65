#include "controller/operations/resize/preflight.h"

#include <algorithm>
#include <fmt/format.h>

#include <boost/asio/awaitable.hpp>

#include "controller/cluster/gather.h"
#include "controller/operations/growth/preflight.h"
#include "planner/growth/growth_policy.h"
#include "planner/resize/resize_facts.h"
#include "planner/resize/resize_policy.h"

namespace verger::controller::resize {
namespace {

net::awaitable<planner::SizeNode> ask_for_size(std::shared_ptr<Peers> peers, std::string name) {
  planner::SizeNode out;
  out.name = name;
  const auto facts = co_await peers->facts(name);
  if (!facts) {
    out.agent_problem = facts.error().message;
    co_return out;
  }
  out.service_control = facts->service_control;
  const auto config = co_await peers->server_config(name);
  if (!config) {
    out.agent_problem = config.error().code == Errc::kNotFound
                            ? "its agent is of a version that changes no configuration"
                            : config.error().message;
    co_return out;
  }
  out.file = config->path;
  out.file_problem = config->problem;
  out.size = config->cluster_size;
  out.seeds = static_cast<std::int64_t>(config->seeds.size());
  out.seeds_from = config->seeds_from;
  if (out.file_problem.empty() && facts->node_running && config->reported == 0) {
    out.file_problem =
        "the running server does not report its cluster size (GET /info/options): the agent's "
        "user needs a role that may read it";
  }
  co_return out;
}

/// What a growth of this one node would ask.
PreflightContext of_growth(const PreflightContext& context, const JoiningMember& joins) {
  const auto& wanted = planner::resize_of(context.policy);
  auto out = context;
  planner::GrowthPolicy growth;
  growth.name = joins.node.name;
  growth.node = joins.node.url;
  growth.agent = joins.node.agent_url;
  growth.repository = wanted.repository;
  growth.generation = wanted.generation;
  out.cluster.joining = {joins};
  out.policy.operation = std::move(growth);
  return out;
}

}  // namespace

net::awaitable<planner::Preflight> preflight(PreflightContext context,
                                             std::shared_ptr<const OperationSettings> settings) {
  planner::Preflight out;
  planner::ResizeFacts facts;
  for (const auto& joins : context.cluster.joining) {
    if (joins.node.agent_url.empty()) {
      continue;
    }
    auto one = co_await growth::preflight(of_growth(context, joins), settings);
    out.refusals.insert(out.refusals.end(), one.refusals.begin(), one.refusals.end());
    out.notes.insert(out.notes.end(), one.notes.begin(), one.notes.end());
    auto restore = one.facts.is_null() ? Result<planner::RestoreFacts>(Error{Errc::kNotFound, ""})
                                       : planner::parse_restore_facts(one.facts);
    if (!restore) {
      continue;
    }
    if (!facts.restore) {
      facts.restore = *std::move(restore);
      continue;
    }
    // Both get the same backup, so that one list of what is restored describes both.
    if (restore->generation.id != facts.restore->generation.id) {
      out.refusals.push_back(
          {"another-backup", joins.node.name,
           fmt::format("it finds backup {}, the other one {}", restore->generation.id,
                       facts.restore->generation.id),
           "name the backup (--generation), in a repository that both agents reach"});
    }
    facts.restore->nodes.insert(facts.restore->nodes.end(), restore->nodes.begin(),
                                restore->nodes.end());
  }
  std::vector<net::awaitable<planner::SizeNode>> questions;
  for (const auto& node : context.cluster.nodes) {
    const auto* seen = context.snapshot.find(node.name);
    if (!node.agent_url.empty() && (seen == nullptr || !seen->read_only_replica)) {
      questions.push_back(ask_for_size(context.peers, node.name));
    }
  }
  for (const auto& joins : context.cluster.joining) {
    if (!joins.node.agent_url.empty()) {
      questions.push_back(ask_for_size(context.peers, joins.node.name));
    }
  }
  facts.nodes = co_await gather(std::move(questions));
  out.facts = planner::to_json(facts);
  co_return out;
}

}  // namespace verger::controller::resize
