#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "controller/cluster/peers.h"
#include "nodeagent/api/agent_backups.h"

/// What the agents of a cluster say of their backup repositories and what is in them.
namespace verger::controller {

/// A repository as the agent of one node has it; its own name for it may differ from the others'.
struct RepositoryAtNode {
  std::string node{};
  api::BackupRepository seen{};
};

/// What an agent did not say, and why.
struct CatalogueGap {
  std::string node{};
  std::string repository{};  ///< the agent's name for it; empty: none of its repositories is known
  std::string reason{};
};

/// What agents know under one id is one repository. Those without an id, as before the first
/// backup, are one where they have one name.
struct KnownRepository {
  std::string id{};                    ///< empty: nothing was stored there yet
  std::vector<RepositoryAtNode> at{};  ///< in the order of the cluster's nodes; not empty
  /// That of the first node.
  [[nodiscard]] const std::string& name() const { return at.front().seen.name; }
  /// By its id, or by the name that any of the agents has for it.
  [[nodiscard]] bool is_called(std::string_view name_or_id) const;
};

struct KnownRepositories {
  std::vector<KnownRepository> repositories{};  ///< by name, then id
  std::vector<CatalogueGap> gaps{};
  /// Names that stand for different repositories at different nodes, and at which.
  [[nodiscard]] std::vector<std::string> conflicts() const;
};

/// All agents are asked side by side. A node without agent knows none, and is no gap.
net::awaitable<KnownRepositories> known_repositories(std::shared_ptr<Peers> peers);

struct KnownBackup {
  std::string repository_id{};
  std::string repository{};  ///< name
  api::BackupGeneration generation{};
};

struct KnownBackups {
  KnownRepositories where{};
  std::map<std::string, std::string>
      listed_by{};                     ///< by id of the repository: whose agent answered
  std::vector<KnownBackup> backups{};  ///< newest first
  std::vector<CatalogueGap> gaps{};    ///< those of `where`, and of the lists
};

/// The backups in all repositories, or in those called `repository`, by name or id. Of each one
/// agent is asked after the other, until one answers.
net::awaitable<KnownBackups> known_backups(std::shared_ptr<Peers> peers, std::string repository);

}  // namespace verger::controller
