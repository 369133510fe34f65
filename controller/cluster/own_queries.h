#pragma once

#include <chrono>
#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "controller/cluster/peers.h"
#include "planner/policy.h"
#include "planner/snapshot.h"

/// Queries of a policy (gates.queries) that vergerd answers itself: their url is kOwnQueries.
namespace verger::controller {

struct KnownBackups;

inline constexpr std::string_view kOwnQueries = "vergerd";
/// Hours since the point in time of the newest backup of the cluster that was verified, or drilled,
/// and found whole: what would be lost if all its nodes were.
inline constexpr std::string_view kVerifiedBackupAge = "verified_backup_age_hours";

/// Of a query with the url kOwnQueries.
[[nodiscard]] bool is_own_query(std::string_view query);
/// For people: what they are called.
std::string own_queries_text();

/// What agents find in their repositories is remembered for a while: a step that waits asks each
/// second. One executor.
class OwnQueries {
 public:
  /// Answers older than `max_age` are not used.
  static net::awaitable<planner::QueryResult> answer(std::shared_ptr<OwnQueries> self,
                                                     Network network, std::shared_ptr<Peers> peers,
                                                     planner::QueryBlocker query,
                                                     std::chrono::milliseconds max_age);

 private:
  /// By cluster.
  struct NewestBackup {
    std::string id{};  ///< empty: none is known
    std::string node{};
    Ticks at{};
    std::string problem{};  ///< what was not said, and by whom; empty: nothing
    Monotonic asked{};
  };
  static NewestBackup newest_of(const Peers& peers, const KnownBackups& known);

  std::map<std::string, NewestBackup> backups_;
};

/// All of them, in their order: those of kOwnQueries by `own`, the others by ask_queries().
net::awaitable<std::vector<planner::QueryResult>> answer_queries(
    Network network, std::shared_ptr<OwnQueries> own, std::shared_ptr<Peers> peers,
    std::vector<planner::QueryBlocker> queries, std::chrono::milliseconds max_age);

}  // namespace verger::controller
