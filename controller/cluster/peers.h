#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "controller/cluster/observer.h"
#include "nodeagent/api/agent_backups.h"
#include "nodeagent/api/agent_certificates.h"
#include "nodeagent/api/agent_facts.h"
#include "nodeagent/api/node.h"
#include "nodeagent/api/server_config.h"
#include "nodeagent/client/agent_client.h"
#include "nodeagent/client/node_client.h"

namespace verger::controller {

/// Of a scavenge that the controller requests of a node; all of them are always sent.
struct ScavengeParameters {
  std::int32_t threads = 1;
  std::int32_t threshold = 0;
  std::int32_t throttle_percent = 100;
  bool sync_only = true;
};

/// Talks to the nodes and agents of one cluster with its credentials: thin calls over the typed
/// clients. Errors are theirs: kUnavailable (not sent), kUnknownOutcome (may have acted), kRefused
/// and kConflict (said no), kNotFound, kUnauthorized, kUnsupported (no such route there).
class Peers {
 public:
  /// Reads the credentials at once; without them only public routes answer.
  Peers(Network network, ClusterConfig cluster);

  /// That vergerd itself trusts for the cluster's nodes; empty: not known.
  [[nodiscard]] std::vector<http::CertificateInfo> trusted_roots() const;

  net::awaitable<Result<api::Gossip>> gossip(std::string node);
  net::awaitable<Result<api::NodeInfo>> info(std::string node);
  /// Under which names ("host:port") it may sign its entries in $scavenges; client::is_named().
  net::awaitable<Result<std::vector<std::string>>> own_names(std::string node);
  net::awaitable<Result<api::CurrentScavenge>> current_scavenge(std::string node);
  /// The id the node gave.
  net::awaitable<Result<std::string>> start_scavenge(std::string node,
                                                     ScavengeParameters parameters);
  /// kNotFound: nothing runs.
  net::awaitable<Result<void>> stop_scavenge(std::string node, std::string id);
  /// The log of one scavenge, newest first.
  net::awaitable<Result<std::vector<api::ScavengeEvent>>> scavenge_log(std::string node,
                                                                       std::string id);
  /// The newest entries of $scavenges, of all nodes.
  net::awaitable<Result<std::vector<api::ScavengeEvent>>> recent_scavenges(std::string node);
  /// Number of the newest scavenge point that the node's own log shows; -1: none. kUnsupported: it
  /// does not let this user read the points (AtomPub is off, or the user is not in $admins).
  net::awaitable<Result<std::int64_t>> newest_scavenge_point(std::string node);
  /// Reads the newest events of a stream that the node has or not: that it serves reads is what
  /// counts.
  net::awaitable<Result<void>> read_a_stream(std::string node);
  /// Its options, as far as an agent has to know the same.
  net::awaitable<Result<client::NodeSettings>> settings(std::string node);
  /// What the node remembers of its last scavenge, since it was started. kUnsupported before 24.10.
  net::awaitable<Result<client::LastScavenge>> last_scavenge(std::string node, std::string version);
  net::awaitable<Result<void>> resign(std::string node);
  net::awaitable<Result<void>> set_priority(std::string node, std::int32_t priority);
  net::awaitable<Result<planner::AutoScavenge>> auto_scavenge(std::string node);
  /// For the whole cluster: the node passes it to its leader. kUnknownOutcome also while a scavenge
  /// is still being stopped.
  net::awaitable<Result<void>> pause_auto_scavenge(std::string node);
  net::awaitable<Result<void>> resume_auto_scavenge(std::string node);
  /// Of the cluster; a follower hands the question on to the leader. kUnsupported: not offered;
  /// kUnauthorized: the user may not read them; kUnavailable, kUnknownOutcome: try again.
  net::awaitable<Result<std::vector<client::ServerWork>>> projections(std::string node);
  net::awaitable<Result<std::vector<client::ServerWork>>> subscriptions(std::string node);
  net::awaitable<Result<void>> enable_projection(std::string node, std::string name);
  net::awaitable<Result<void>> restart_projections(std::string node);
  net::awaitable<Result<void>> restart_subscriptions(std::string node);
  /// The chain that the node shows to a new TLS connection now, PEM, leaf first; trusted or not.
  /// Errors: kUnavailable; kUnsupported: its URL is no https, or certificates are not looked at.
  net::awaitable<Result<std::string>> served_chain(std::string node);
  /// "Idle", "Merging"; empty where the node's metrics do not tell.
  net::awaitable<Result<std::string>> index_status(std::string node);

  /// With `chunks_below` also bytes_below, of agents that can tell.
  net::awaitable<Result<api::AgentFacts>> facts(std::string node, std::int64_t chunks_below = -1);
  /// kConflict: the agent knows a newer controller.
  net::awaitable<Result<void>> permit(std::string node, api::Permit permit);
  net::awaitable<Result<api::OperationStatus>> start_operation(std::string node,
                                                               api::OperationRequest request);
  net::awaitable<Result<api::OperationStatus>> operation(std::string node, std::string id);
  /// With `keep`, what its job has read is kept for the next operation of its kind.
  net::awaitable<Result<void>> cancel_operation(std::string node, std::string id,
                                                bool keep = false);
  /// From now on. kConflict: its kind cannot be throttled while it runs.
  net::awaitable<Result<void>> throttle_operation(std::string node, std::string id,
                                                  api::Throttle throttle);
  /// Stores a file with the node's agent, under the SHA-256 of its content; an operation names it
  /// by that. Errors also: kRefused (another controller has taken over), kUnavailable (no room).
  net::awaitable<Result<api::StoredFile>> put_file(std::string node, std::string content,
                                                   std::int64_t controller_epoch);
  /// kNotFound: the agent has no such file.
  net::awaitable<Result<api::StoredFile>> find_file(std::string node, std::string sha256);
  /// Nothing happens where there is none. kConflict: an operation refers to it.
  net::awaitable<Result<void>> delete_file(std::string node, std::string sha256,
                                           std::int64_t controller_epoch);

  /// Of the node's own certificates, at its agent. kNotFound: an agent of an older version, or
  /// none.
  net::awaitable<Result<api::NodeCertificates>> certificates(std::string node);
  /// New ones, as the agent finds them. kInvalidArgument: there is no such set or path.
  net::awaitable<Result<api::CertificateFiles>> certificate_candidate(
      std::string node, api::CertificateSource source);
  /// The request for a certificate, PEM, of a key that the agent makes and keeps.
  net::awaitable<Result<std::string>> certificate_request(std::string node,
                                                          api::CertificateKeyRequest wanted);
  /// New connections of the agent to other nodes.
  net::awaitable<Result<std::vector<api::PeerHandshake>>> certificate_handshakes(
      std::string node, api::HandshakesRequest request);

  /// The configuration file of the node's server, at its agent. kNotFound: an agent of an older
  /// version.
  net::awaitable<Result<api::ServerConfig>> server_config(std::string node);
  /// What a scavenge with this threshold would remove, counted by its agent until it is `enough`.
  /// kUnavailable: it is not known; kNotFound: an agent of an older version.
  net::awaitable<Result<api::ScavengeEstimate>> scavenge_estimate(std::string node,
                                                                  std::int32_t threshold,
                                                                  std::int64_t enough);

  /// The backup repositories that the node's agent has. kNotFound: an agent of an older version.
  net::awaitable<Result<std::vector<api::BackupRepository>>> backup_repositories(std::string node);
  /// What is in one of them, as the agent calls it; by time.
  net::awaitable<Result<std::vector<api::BackupGeneration>>> backups(std::string node,
                                                                     std::string repository);

  [[nodiscard]] const ClusterConfig& cluster() const { return cluster_; }
  [[nodiscard]] bool has_agent(std::string_view node) const;

 private:
  /// Error: kNotFound. Checked before anything is sent.
  Result<client::NodeClient> node_client(std::string_view node) const;
  Result<client::NodeClient> auto_scavenge_client(const std::string& node) const;
  Result<client::AgentClient> agent_client(std::string_view node) const;

  ClusterClients clients_;
  std::optional<Error> no_client_;
  std::chrono::milliseconds deadline_;
  ClusterConfig cluster_;
  std::function<net::awaitable<Result<std::string>>(http::Endpoint)> served_chain_;
  std::function<std::vector<http::CertificateInfo>(const std::string&)> roots_of_;
  std::optional<Credentials> credentials_;
  std::string credentials_problem_;
};

}  // namespace verger::controller
