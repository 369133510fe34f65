#include <algorithm>
#include <fmt/format.h>
#include <memory>

#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api_parts.h"
#include "controller/api/routes.h"
#include "controller/cluster/backup_catalogue.h"

// /clusters/{name}/backups and /backup-repositories: what the agents of a cluster say of theirs.
namespace verger::controller {
namespace {

using nlohmann::json;

json optional_text(const std::string& text) { return text.empty() ? json() : json(text); }

json time_or_null(Ticks time) { return time == Ticks() ? json() : json(format_ticks(time)); }

json number_or_null(std::int64_t number) { return number < 0 ? json() : json(number); }

json view_of(const KnownRepository& repository) {
  auto agents = json::array();
  for (const auto& [node, seen] : repository.at) {
    agents.push_back({{"node", node},
                      {"name", seen.name},
                      {"location", seen.location},
                      {"free_bytes", number_or_null(seen.free_bytes)},
                      {"drills", seen.drills},
                      {"drill_problem", optional_text(seen.drill_problem)},
                      {"snapshots", seen.snapshots},
                      {"snapshot_problem", optional_text(seen.snapshot_problem)}});
  }
  const auto& first = repository.at.front().seen;
  return {{"id", optional_text(repository.id)},
          {"name", first.name},
          {"encrypted", first.encrypted},
          {"compression", first.compression},
          {"backups", number_or_null(first.generations)},
          {"agents", std::move(agents)}};
}

std::int64_t seconds_between(Ticks begin, Ticks end) {
  return std::max<std::int64_t>((end.value() - begin.value()) / kTicksPerSecond, 0);
}

json view_of(const std::optional<api::BackupCheckSummary>& check, Ticks now) {
  if (!check) {
    return {};
  }
  return {{"at", format_ticks(check->at)},
          {"age_seconds", seconds_between(check->at, now)},
          {"passed", check->passed},
          {"summary", check->summary},
          {"duration_ms", number_or_null(check->duration_ms)}};
}

json view_of(const KnownBackup& backup, Ticks now) {
  const auto& generation = backup.generation;
  return {{"id", generation.id},
          {"repository", backup.repository},
          {"repository_id", backup.repository_id},
          {"parent", optional_text(generation.parent)},
          {"full", generation.parent.empty()},
          {"node", generation.node},
          {"cluster", generation.cluster},
          {"host", generation.host},
          {"server_version", generation.server_version},
          {"state", generation.state},
          {"started_at", time_or_null(generation.started_at)},
          {"checkpoints_at", time_or_null(generation.checkpoints_at)},
          {"finished_at", time_or_null(generation.finished_at)},
          {"age_seconds", generation.finished_at == Ticks()
                              ? json()
                              : json(seconds_between(generation.finished_at, now))},
          {"end_position", number_or_null(generation.end_position)},
          {"writer_position", number_or_null(generation.writer_position)},
          {"epoch_number", number_or_null(generation.epoch_number)},
          {"chunk_size", number_or_null(generation.chunk_size)},
          {"stored_bytes", generation.stored_bytes},
          {"restored_bytes", generation.restored_bytes},
          {"reused_bytes", generation.reused_bytes},
          {"files", generation.files},
          {"logical_digest", optional_text(generation.logical_digest)},
          {"readable_digest", optional_text(generation.readable_digest)},
          {"warnings", generation.warnings},
          {"damage", optional_text(generation.damage)},
          {"last_verify", view_of(generation.last_verify, now)},
          {"last_drill", view_of(generation.last_drill, now)}};
}

json views_of(const std::vector<CatalogueGap>& gaps) {
  auto out = json::array();
  for (const auto& gap : gaps) {
    out.push_back({{"node", gap.node},
                   {"repository", optional_text(gap.repository)},
                   {"reason", gap.reason}});
  }
  return out;
}

net::awaitable<Result<http::Response>> get_repositories(const ApiParts& parts, Call call) {
  VERGER_CO_TRY(const auto config, parts.registry.find(call.named("name")));
  const auto known = co_await known_repositories(std::make_shared<Peers>(parts.network, config));
  auto repositories = json::array();
  for (const auto& repository : known.repositories) {
    repositories.push_back(view_of(repository));
  }
  co_return json_answer(200, {{"cluster", config.name},
                              {"taken_at", format_ticks(parts.clock.now())},
                              {"repositories", std::move(repositories)},
                              {"conflicts", known.conflicts()},
                              {"problems", views_of(known.gaps)}});
}

/// Which of the backups a request is about.
struct Wanted {
  std::string cluster;
  std::string repository;
  std::string node;
  bool of_all_clusters = false;

  [[nodiscard]] bool is_of_cluster(const KnownBackup& backup) const {
    // One made beside the node, by hand, may not say.
    const auto& of = backup.generation.cluster;
    return of_all_clusters || of.empty() || of == cluster;
  }
};

/// Of a repository that no agent has, though all of them answered.
http::Response no_such_repository(const Wanted& wanted, const KnownRepositories& known) {
  std::string names;
  for (const auto& each : known.repositories) {
    names += (names.empty() ? "" : ", ") + each.name();
  }
  return problem(
      404, "not_found",
      fmt::format("no agent of {} has a repository {}; {}", wanted.cluster, wanted.repository,
                  names.empty() ? "they have none: name a directory of repository files "
                                  "with the agents' option --backup-repositories"
                                : "they have: " + names));
}

net::awaitable<Result<http::Response>> get_backups(const ApiParts& parts, Call call) {
  VERGER_CO_TRY(const auto config, parts.registry.find(call.named("name")));
  const auto parameter = [&call](const char* name) {
    return std::string(call.target.parameter(name).value_or(""));
  };
  const Wanted wanted{.cluster = config.name,
                      .repository = parameter("repository"),
                      .node = parameter("node"),
                      .of_all_clusters = parameter("all") == "true"};
  auto known =
      co_await known_backups(std::make_shared<Peers>(parts.network, config), wanted.repository);
  auto repositories = json::array();
  for (const auto& repository : known.where.repositories) {
    if (!wanted.repository.empty() && !repository.is_called(wanted.repository)) {
      continue;
    }
    auto view = view_of(repository);
    const auto by = known.listed_by.find(repository.id);
    view["listed_by"] = by == known.listed_by.end() ? json() : json(by->second);
    repositories.push_back(std::move(view));
  }
  if (!wanted.repository.empty() && repositories.empty() && known.gaps.empty()) {
    co_return no_such_repository(wanted, known.where);
  }
  const auto all = known.backups.size();
  std::erase_if(known.backups,
                [&](const KnownBackup& each) { return !wanted.is_of_cluster(each); });
  const auto of_others = all - known.backups.size();
  std::erase_if(known.backups, [&](const KnownBackup& each) {
    return !wanted.node.empty() && each.generation.node != wanted.node;
  });
  std::vector<std::string> keys;
  keys.reserve(known.backups.size());
  for (const auto& backup : known.backups) {
    keys.push_back(backup.repository_id + "/" + backup.generation.id);
  }
  const auto now = parts.clock.now();
  co_return paged_answer(
      "backups", keys, call.target,
      [&](std::size_t i) -> Result<json> { return view_of(known.backups[i], now); },
      {{"cluster", config.name},
       {"taken_at", format_ticks(now)},
       {"repositories", std::move(repositories)},
       {"of_other_clusters", of_others},
       {"conflicts", known.where.conflicts()},
       {"problems", views_of(known.gaps)}});
}

}  // namespace

std::span<const Route> backup_routes() {
  using enum ApiRole;
  static constexpr Route kRoutes[] = {
      {"GET", "/clusters/{name}/backup-repositories", kViewer, "getBackupRepositories",
       "The backup repositories that the agents of a cluster have", 200, "", "BackupRepositories",
       "", get_repositories},
      {"GET", "/clusters/{name}/backups", kViewer, "listBackups",
       "The backups of a cluster, newest first, with their last verification and drill", 200, "",
       "Backups", "repository node all limit cursor", get_backups},
  };
  return kRoutes;
}

}  // namespace verger::controller
