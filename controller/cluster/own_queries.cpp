#include "controller/cluster/own_queries.h"

#include <fmt/format.h>
#include <utility>

#include "controller/cluster/backup_catalogue.h"
#include "controller/cluster/gather.h"
#include "controller/cluster/prometheus.h"
#include "engine/base/number_from_text.h"

namespace verger::controller {
namespace {

using planner::QueryBlocker;
using planner::QueryResult;

/// Its newest check, of whichever kind, has passed.
bool is_proven(const api::BackupGeneration& backup) {
  const auto& verified = backup.last_verify;
  const auto& drilled = backup.last_drill;
  const auto& newest = !drilled || (verified && verified->at >= drilled->at) ? verified : drilled;
  return backup.damage.empty() && newest && newest->passed;
}

std::string limit_of(const QueryBlocker& query) {
  return query.at_least.empty()  ? fmt::format("at most {} h", query.at_most)
         : query.at_most.empty() ? fmt::format("at least {} h", query.at_least)
                                 : fmt::format("{} to {} h", query.at_least, query.at_most);
}

/// A bound that is no number is kept by nothing.
bool keeps_to(double value, const QueryBlocker& query) {
  const auto least = number_from_text<double>(query.at_least);
  const auto most = number_from_text<double>(query.at_most);
  return (query.at_least.empty() || (least && value >= *least)) &&
         (query.at_most.empty() || (most && value <= *most));
}

}  // namespace

bool is_own_query(std::string_view query) { return query == kVerifiedBackupAge; }
std::string own_queries_text() { return std::string(kVerifiedBackupAge); }

OwnQueries::NewestBackup OwnQueries::newest_of(const Peers& peers, const KnownBackups& known) {
  NewestBackup out;
  for (const auto& each : known.backups) {
    const auto& backup = each.generation;
    if (backup.cluster == peers.cluster().name && is_proven(backup) &&
        (out.id.empty() || out.at < backup.checkpoints_at)) {
      out.id = backup.id;
      out.node = backup.node;
      out.at = backup.checkpoints_at;
    }
  }
  for (const auto& gap : known.gaps) {
    out.problem += fmt::format("{}{}: {}", out.problem.empty() ? "" : "; ", gap.node, gap.reason);
  }
  return out;
}

net::awaitable<QueryResult> OwnQueries::answer(std::shared_ptr<OwnQueries> self, Network network,
                                               std::shared_ptr<Peers> peers, QueryBlocker query,
                                               std::chrono::milliseconds max_age) {
  QueryResult out;
  out.name = query.name;
  out.limit = limit_of(query);
  if (!is_own_query(query.query)) {
    out.problem = fmt::format("vergerd answers no query \"{}\"; it knows: {}", query.query,
                              own_queries_text());
    co_return out;
  }
  const auto& cluster = peers->cluster().name;
  const auto known = self->backups_.find(cluster);
  if (known == self->backups_.end() || network.clock.monotonic() - known->second.asked >= max_age) {
    const auto found = co_await known_backups(peers, "");
    auto newest = newest_of(*peers, found);
    newest.asked = network.clock.monotonic();
    self->backups_.insert_or_assign(cluster, std::move(newest));
  }
  const auto& newest = self->backups_.at(cluster);
  if (newest.id.empty()) {
    out.problem = fmt::format(
        "no backup of the cluster is known that was verified{}{}: make one (verger backup create "
        "{}), or verify one that is there (verger backup verify {})",
        newest.problem.empty() ? "" : "; not all is known: ", newest.problem, cluster, cluster);
    co_return out;
  }
  const auto hours = static_cast<double>(network.clock.now().value() - newest.at.value()) /
                     static_cast<double>(kTicksPerSecond) / 3'600;
  out.holds = keeps_to(hours, query);
  out.value = fmt::format("{:.1f} h (backup {} of {}, as of {})", hours, newest.id, newest.node,
                          format_ticks(newest.at));
  if (!out.holds && !newest.problem.empty()) {
    out.value += fmt::format("; not all is known: {}", newest.problem);
  }
  co_return out;
}

net::awaitable<std::vector<QueryResult>> answer_queries(Network network,
                                                        std::shared_ptr<OwnQueries> own,
                                                        std::shared_ptr<Peers> peers,
                                                        std::vector<QueryBlocker> queries,
                                                        std::chrono::milliseconds max_age) {
  std::vector<QueryBlocker> others;
  for (const auto& query : queries) {
    if (query.url != kOwnQueries) {
      others.push_back(query);
    }
  }
  auto answers = co_await ask_queries(network, std::move(others));
  std::vector<QueryResult> out;
  out.reserve(queries.size());
  std::size_t next = 0;
  for (const auto& query : queries) {
    if (query.url == kOwnQueries) {
      out.push_back(co_await OwnQueries::answer(own, network, peers, query, max_age));
    } else {
      out.push_back(std::move(answers.at(next++)));
    }
  }
  co_return out;
}

}  // namespace verger::controller
