#include "controller/operations/restore/preflight.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <tuple>

#include <boost/asio/awaitable.hpp>

#include "controller/cluster/gather.h"
#include "controller/operations/restore/room.h"
#include "engine/base/clock.h"
#include "planner/restore/restore_facts.h"
#include "planner/restore/restore_policy.h"
#include "planner/restore/restore_steps.h"

namespace verger::controller::cluster_restore {
namespace {

using api::BackupCheckSummary;
using api::BackupGeneration;
using planner::RestoreGeneration;
using planner::RestoreNode;

/// What one node's agent says, and the backups that it sees.
struct AgentAnswer {
  RestoreNode node{};
  std::vector<std::string> kept{};
  std::vector<BackupGeneration> backups{};
};

net::awaitable<AgentAnswer> ask_one(std::shared_ptr<Peers> peers, std::string name,
                                    std::string repository) {
  AgentAnswer out;
  out.node.name = name;
  const auto facts = co_await peers->facts(name);
  if (!facts) {
    out.node.agent_problem = facts.error().message;
    co_return out;
  }
  out.node.room = room_on(*facts);
  out.kept = facts->kept_restores;
  if (!facts->service_control) {
    out.node.service_problem = "its agent has no way to stop and start the server";
  } else {
    out.node.service_problem = facts->offline_problem;
  }
  const auto repositories = co_await peers->backup_repositories(name);
  if (!repositories) {
    out.node.agent_problem = repositories.error().code == Errc::kNotFound
                                 ? "its agent is of a version that knows no backups"
                                 : repositories.error().message;
    co_return out;
  }
  const auto own = std::ranges::find(*repositories, repository, &api::BackupRepository::name);
  out.node.has_repository = own != repositories->end();
  if (!out.node.has_repository) {
    co_return out;
  }
  out.node.repository_id = own->id;
  out.node.repository_problem = own->error;
  if (!own->error.empty()) {
    co_return out;
  }
  auto backups = co_await peers->backups(name, repository);
  if (backups) {
    out.backups = *std::move(backups);
  } else {
    out.node.repository_problem = backups.error().message;
  }
  co_return out;
}

/// The newest of both kinds of checks.
const BackupCheckSummary* newest_check(const BackupGeneration& backup) {
  const auto* verify = backup.last_verify ? &*backup.last_verify : nullptr;
  const auto* drill = backup.last_drill ? &*backup.last_drill : nullptr;
  if (verify == nullptr || drill == nullptr) {
    return verify == nullptr ? drill : verify;
  }
  return verify->at < drill->at ? drill : verify;
}

bool is_sound(const BackupGeneration& backup) {
  const auto* check = newest_check(backup);
  return backup.damage.empty() && (check == nullptr || check->passed);
}

/// nullptr: there is none; `problem` says why.
const BackupGeneration* chosen(const std::vector<BackupGeneration>& backups,
                               const planner::RestorePolicy& wanted, const std::string& cluster,
                               std::string& problem) {
  const BackupGeneration* newest = nullptr;
  std::size_t matching = 0;
  for (const auto& backup : backups) {
    if (wanted.generation != planner::restore_steps::kLatest) {
      if (backup.id == wanted.generation) {
        return &backup;
      }
      if (backup.id.starts_with(wanted.generation)) {
        newest = &backup;
        ++matching;
      }
      continue;
    }
    if (backup.cluster == cluster && is_sound(backup) &&
        (newest == nullptr || std::tie(newest->checkpoints_at, newest->id) <
                                  std::tie(backup.checkpoints_at, backup.id))) {
      newest = &backup;
      matching = 1;
    }
  }
  if (matching == 1) {
    return newest;
  }
  problem = wanted.generation == planner::restore_steps::kLatest
                ? fmt::format("repository {} has no undamaged backup of cluster {}",
                              wanted.repository, cluster)
            : matching == 0 ? fmt::format("repository {} has no backup {}", wanted.repository,
                                          wanted.generation)
                            : fmt::format("{} backups in {} begin with {}", matching,
                                          wanted.repository, wanted.generation);
  return nullptr;
}

std::string time_text(Ticks at) { return at.value() <= 0 ? std::string() : format_ticks(at); }

RestoreGeneration facts_of(const BackupGeneration& backup) {
  const auto passed = [](const std::optional<BackupCheckSummary>& check) {
    return check && check->passed ? time_text(check->at) : std::string();
  };
  const auto* newest = newest_check(backup);
  return {.id = backup.id,
          .node = backup.node,
          .cluster = backup.cluster,
          .server_version = backup.server_version,
          .taken_at = time_text(backup.checkpoints_at),
          .verified = passed(backup.last_verify),
          .drilled = passed(backup.last_drill),
          .failed_check = newest != nullptr && !newest->passed
                              ? (newest->summary.empty() ? "no details" : newest->summary)
                              : std::string(),
          .end_position = backup.end_position,
          .restored_bytes = backup.restored_bytes};
}

std::vector<std::string> nodes_to_ask(const PreflightContext& context,
                                      const planner::RestorePolicy& wanted) {
  const auto named = planner::listed_names(wanted.nodes);
  const bool all = wanted.scope == planner::RestoreScope::kCluster && named.empty();
  std::vector<std::string> out;
  for (const auto& node : context.cluster.nodes) {
    const bool is_named = std::ranges::find(named, node.name) != named.end();
    if (!node.agent_url.empty() && (all || is_named)) {
      out.push_back(node.name);
    }
  }
  return out;
}

}  // namespace

net::awaitable<planner::Preflight> preflight(PreflightContext context,
                                             std::shared_ptr<const OperationSettings> settings) {
  const auto& wanted = planner::restore_of(context.policy);
  planner::Preflight out;
  if (wanted.task != planner::RestoreTask::kRestore) {
    co_return out;
  }
  std::vector<net::awaitable<AgentAnswer>> questions;
  for (auto& name : nodes_to_ask(context, wanted)) {
    questions.push_back(ask_one(context.peers, std::move(name), wanted.repository));
  }
  auto answers = co_await gather(std::move(questions));
  planner::RestoreFacts facts;
  const BackupGeneration* backup = nullptr;
  bool listed = false;
  for (const auto& answer : answers) {
    if (!answer.node.has_repository || !answer.node.repository_problem.empty() || listed) {
      continue;
    }
    listed = true;
    backup = chosen(answer.backups, wanted, context.cluster.name, facts.generation_problem);
  }
  if (backup != nullptr) {
    facts.generation = facts_of(*backup);
  } else if (!listed) {
    facts.generation_problem =
        fmt::format("no agent could list the backups of repository \"{}\"", wanted.repository);
  }
  for (auto& answer : answers) {
    const auto own = std::ranges::find(answer.backups, facts.generation.id, &BackupGeneration::id);
    if (own != answer.backups.end()) {
      answer.node.has_generation = true;
      answer.node.damage = own->damage;
    }
    answer.node.keeps_former =
        std::ranges::find(answer.kept, facts.generation.id) != answer.kept.end();
    facts.nodes.push_back(answer.node);
  }
  const auto kept = settings->kept_by_runs ? settings->kept_by_runs(context.cluster.name)
                                           : std::vector<std::map<std::string, std::string>>();
  facts.redactions = std::ranges::count_if(
      kept, [](const auto& values) { return values.contains(std::string(kOlderDataNoteValue)); });
  out.facts = planner::to_json(facts);
  co_return out;
}

}  // namespace verger::controller::cluster_restore
