#include "controller/operations/backup/preflight.h"

#include <algorithm>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <set>
#include <vector>

#include "controller/cluster/backup_catalogue.h"
#include "engine/base/clock.h"
#include "planner/backup/backup_facts.h"
#include "planner/backup/backup_policy.h"

namespace verger::controller::backups {
namespace {

std::string time_text(Ticks at) { return at == Ticks() ? std::string() : format_ticks(at); }

planner::BackupGenerationFacts facts_of(const api::BackupGeneration& seen) {
  return {.id = seen.id,
          .parent = seen.parent,
          .node = seen.node,
          .cluster = seen.cluster,
          .started_at = time_text(seen.started_at),
          .finished_at = time_text(seen.finished_at),
          .epoch_id = seen.epoch_id,
          .epoch_number = seen.epoch_number,
          .end_position = seen.end_position,
          .writer_position = seen.writer_position,
          .restored_bytes = seen.restored_bytes,
          .damage = seen.damage,
          .drilled_at = seen.last_drill ? time_text(seen.last_drill->at) : std::string(),
          .drill_passed = seen.last_drill && seen.last_drill->passed};
}

/// What a node's agent has under the name.
const api::BackupRepository* repository_at(const KnownRepositories& known, const std::string& node,
                                           const std::string& name) {
  for (const auto& repository : known.repositories) {
    for (const auto& each : repository.at) {
      if (each.node == node && each.seen.name == name) {
        return &each.seen;
      }
    }
  }
  return nullptr;
}

std::string names_at(const KnownRepositories& known, const std::string& node) {
  std::vector<std::string> names;
  for (const auto& repository : known.repositories) {
    for (const auto& each : repository.at) {
      if (each.node == node) {
        names.push_back(each.seen.name);
      }
    }
  }
  return names.empty() ? std::string("it has none")
                       : fmt::format("it has: {}", fmt::join(names, ", "));
}

planner::BackupAgentFacts facts_of_agent(const KnownRepositories& known, const std::string& node,
                                         const std::string& name) {
  planner::BackupAgentFacts out;
  out.node = node;
  if (const auto* seen = repository_at(known, node, name)) {
    out.location = seen->location;
    out.repository_id = seen->id;
    out.compression = seen->compression;
    out.free_bytes = seen->free_bytes;
    out.drill_problem = seen->drills                  ? std::string()
                        : seen->drill_problem.empty() ? std::string("it has no scratch directory")
                                                      : seen->drill_problem;
    // An agent of a former version says neither.
    out.snapshot_problem = seen->snapshots                  ? std::string()
                           : seen->snapshot_problem.empty() ? std::string("it is too old for that")
                                                            : seen->snapshot_problem;
    if (!seen->error.empty()) {
      out.problem_code = "repository-unreachable";
      out.problem = fmt::format("its agent cannot use {}: {}", seen->location, seen->error);
      out.hint = fmt::format("look at {}.json in its --backup-repositories", name);
    }
    return out;
  }
  const auto gap = std::ranges::find_if(known.gaps, [&](const CatalogueGap& each) {
    return each.node == node && (each.repository.empty() || each.repository == name);
  });
  if (gap != known.gaps.end()) {
    const bool silent = gap->repository.empty();
    out.problem_code = silent ? "agent-silent" : "repository-unreachable";
    out.problem =
        silent ? fmt::format("its agent does not say what repositories it has: {}", gap->reason)
               : fmt::format("its agent cannot use the repository \"{}\": {}", name, gap->reason);
    out.hint = silent ? "start its agent, or upgrade it"
                      : fmt::format("look at {}.json in its --backup-repositories", name);
    return out;
  }
  out.problem_code = "no-repository";
  out.problem = fmt::format("its agent has no repository \"{}\"; {}", name, names_at(known, node));
  out.hint = fmt::format("put {}.json into its --backup-repositories", name);
  return out;
}

/// A repository that exists and whose content no agent lists: nothing is known of what is there.
void refuse_unlisted(const KnownBackups& known, const std::string& name,
                     planner::Preflight& preflight) {
  for (const auto& repository : known.where.repositories) {
    const bool is_named = std::ranges::any_of(
        repository.at, [&name](const auto& each) { return each.seen.name == name; });
    if (!is_named || repository.id.empty() || known.listed_by.contains(repository.id)) {
      continue;
    }
    std::vector<std::string> reasons;
    for (const auto& gap : known.gaps) {
      if (gap.repository == name) {
        reasons.push_back(fmt::format("{}: {}", gap.node, gap.reason));
      }
    }
    preflight.refusals.push_back(
        {.code = "repository-unreachable",
         .node = {},
         .message = fmt::format("no agent lists what is in the repository \"{}\" ({})", name,
                                fmt::join(reasons, "; ")),
         .hint = "see to what the agents say; vergerd has to know the backups that are there"});
  }
}

}  // namespace

net::awaitable<planner::Preflight> preflight(
    PreflightContext context, std::shared_ptr<const OperationSettings> /*settings*/) {
  const auto name = planner::backup_of(context.policy).repository;
  planner::Preflight out;
  if (name.empty()) {
    out.facts = planner::to_json(planner::BackupFacts());
    co_return out;
  }
  const auto known = co_await known_backups(context.peers, name);
  planner::BackupFacts facts;
  std::set<std::string> ids;
  for (const auto& node : context.cluster.nodes) {
    if (!context.peers->has_agent(node.name)) {
      continue;
    }
    auto agent = facts_of_agent(known.where, node.name, name);
    if (!agent.repository_id.empty()) {
      ids.insert(agent.repository_id);
    }
    facts.agents.push_back(std::move(agent));
  }
  for (auto each = known.backups.rbegin(); each != known.backups.rend(); ++each) {
    if (ids.contains(each->repository_id)) {
      facts.generations.push_back(facts_of(each->generation));
    }
  }
  refuse_unlisted(known, name, out);
  out.facts = planner::to_json(facts);
  co_return out;
}

}  // namespace verger::controller::backups
