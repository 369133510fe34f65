#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "controller/journal/journal.h"
#include "engine/base/result.h"

namespace verger::controller {

/// One registered node.
struct ClusterNode {
  std::string name;       ///< unique in the cluster; "host:port" of the URL unless given
  std::string url;        ///< node interface, "http://127.0.0.1:2113"
  std::string agent_url;  ///< agent interface; empty: no agent
  friend bool operator==(const ClusterNode&, const ClusterNode&) = default;
};

/// A node that a run is adding: looked at and operated like the registered ones, and counted
/// nowhere.
struct JoiningMember {
  ClusterNode node;
  bool read_only_replica = false;  ///< as long as it does not say so itself
  friend bool operator==(const JoiningMember&, const JoiningMember&) = default;
};

/// An epoch of the cluster's log: number and id of its record. Numbers only grow.
struct EpochMark {
  std::int32_t number = -1;  ///< -1: not known
  std::string id{};
  friend bool operator==(const EpochMark&, const EpochMark&) = default;
};

/// What `cluster add` registers. Instance ids change at every restart, so a node is recognised by
/// what is stable: its database's first epoch (where an agent sends it), its endpoint in the other
/// members' gossip, and the size of the cluster.
struct ClusterConfig {
  std::string name;
  std::vector<ClusterNode> nodes;
  std::string
      credentials;  ///< name of a file in vergerd's credentials directory; never its content
  /// Of its nodes' and agents' certificates: a file or directory on vergerd's machine, relative to
  /// the directory trusted-roots in vergerd's data directory. Empty: vergerd's own setting.
  std::string trusted_roots{};
  /// Identity of the database, learned from the first full observation; empty: not yet known.
  std::string identity;
  /// The newest epoch that a majority was seen in, of a cluster whose identity cannot be learned
  /// since a node has no agent: a leader with an older one leads another log.
  EpochMark epoch{};
  /// What policies select clusters by, such as tier: gold.
  std::map<std::string, std::string> labels = {};
  /// While paused (`cluster pause`) nothing new starts.
  bool paused = false;
  std::string pause_reason = {};
  std::optional<Ticks> pause_until = {};  ///< nullopt: until an operator resumes it
  /// Never registered: of the run, or the plan, that this copy is for.
  std::vector<JoiningMember> joining = {};
  friend bool operator==(const ClusterConfig&, const ClusterConfig&) = default;

  /// One that is registered, or joins.
  [[nodiscard]] const ClusterNode* find(std::string_view node) const;
};

/// JSON of the journal and of `cluster add FILE`.
std::string to_json_text(const ClusterConfig& config);
Result<ClusterConfig> parse_cluster_config(std::string_view json);

/// For a controller that shares its journal with another one: the agents are all that keeps the
/// older of two from acting, so each node needs one. Error: kUnsupported, with what to do.
Result<void> check_fencing(const ClusterConfig& config);

/// The clusters this controller looks after: journaled in the streams "cluster/<name>".
/// One thread. The journal must outlive it.
class Registry {
 public:
  Registry(Journal& journal, ControllerEpoch epoch) : journal_(journal), epoch_(epoch) {}
  /// Replays the journal. Call once, before anything else.
  Result<void> load();

  /// What add() would register: URLs in their short form, missing node names filled in. Errors:
  /// kExists (a cluster of that name), kInvalidArgument (names, URLs, the same node twice, an agent
  /// without node), kConflict (a node of another cluster).
  [[nodiscard]] Result<ClusterConfig> check(ClusterConfig config) const;
  /// The same of a change to a cluster that is registered. Errors: kNotFound.
  [[nodiscard]] Result<ClusterConfig> check_update(ClusterConfig config) const;
  /// Errors: those of check(), and the journal's.
  Result<void> add(ClusterConfig config);
  /// Nodes, credentials, roots and labels; its identity and pause stay. Errors: those of
  /// check_update(), and the journal's.
  Result<void> update(ClusterConfig config);
  /// The nodes `left` go, and those of `joined` that are not there come, in one event; nothing
  /// happens where all is so already. Errors: those of update().
  Result<void> change_members(std::string_view name, const std::vector<ClusterNode>& joined,
                              const std::vector<std::string>& left);
  /// Errors: kNotFound.
  Result<void> remove(std::string_view name);
  Result<void> set_paused(std::string_view name, bool paused, std::string reason,
                          std::optional<Ticks> until = std::nullopt);
  Result<void> set_identity(std::string_view name, std::string identity);
  Result<void> set_epoch(std::string_view name, EpochMark epoch);

  [[nodiscard]] std::vector<ClusterConfig> list() const;
  /// Errors: kNotFound, naming the clusters there are.
  [[nodiscard]] Result<ClusterConfig> find(std::string_view name) const;

 private:
  struct Entry {
    std::optional<ClusterConfig> config;  ///< nullopt: removed
    Revision revision;
  };
  /// Names, URLs, and that no node belongs to another cluster.
  [[nodiscard]] Result<ClusterConfig> check_members(ClusterConfig config) const;
  Result<void> append(std::string_view name, NewEvent event);
  Result<void> apply(const JournalEvent& event);

  Journal& journal_;
  ControllerEpoch epoch_;
  std::map<std::string, Entry, std::less<>> entries_;
};

}  // namespace verger::controller
