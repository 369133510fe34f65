#pragma once

#include <chrono>
#include <cstdint>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "nodeagent/api/agent_backups.h"
#include "nodeagent/api/agent_certificates.h"
#include "nodeagent/api/agent_facts.h"
#include "nodeagent/api/scavenge_estimate.h"
#include "nodeagent/api/server_config.h"
#include "nodeagent/client/outcome.h"
#include "nodeagent/http/client.h"
#include "nodeagent/http/message.h"

namespace verger::client {

/// Calls the agent interface of one node (docs/formats/agent-interface.md). A value; `client`
/// outlives every call. `refused` carries the agent's problem code ("refused", "conflict",
/// "not_found", ...), or `unreachable`. Permits and operations may be sent again after `unknown`:
/// an id acts at most once.
class AgentClient {
 public:
  AgentClient(http::Client& client, http::Endpoint agent,
              std::chrono::milliseconds deadline = std::chrono::seconds(15));
  [[nodiscard]] const http::Endpoint& agent() const { return agent_; }

  /// With `chunks_below` also the size of the chunk files below that chunk (bytes_below).
  net::awaitable<Outcome<api::AgentFacts>> facts(std::int64_t chunks_below = -1) const;
  net::awaitable<Outcome<Nothing>> permit(api::Permit permit) const;
  /// done: the agent has it; how far it is says the state.
  net::awaitable<Outcome<api::OperationStatus>> start(api::OperationRequest request) const;
  net::awaitable<Outcome<api::OperationStatus>> operation(std::string id) const;
  /// With `keep`, what its job has in memory is kept for the next operation of its kind. An agent
  /// of an older version keeps nothing.
  net::awaitable<Outcome<api::OperationStatus>> cancel(std::string id, bool keep = false) const;
  /// refused, conflict: its kind cannot be throttled while it runs.
  net::awaitable<Outcome<api::OperationStatus>> throttle(std::string id,
                                                         api::Throttle throttle) const;
  /// The request for a new certificate, PEM; of an enrolled agent.
  net::awaitable<Outcome<std::string>> certificate_request() const;
  /// done: the agent shows it from now on.
  net::awaitable<Outcome<Nothing>> install_certificate(std::string pem) const;
  /// Stores a file under the SHA-256 of its content, which the agent checks; done: it is durable
  /// there. It goes some days after it was last stored, unless an operation refers to it. `content`
  /// is in no message and no log.
  net::awaitable<Outcome<api::StoredFile>> put_file(std::string content,
                                                    std::int64_t controller_epoch) const;
  /// refused, not_found: it is not there, or the agent is of an older version.
  net::awaitable<Outcome<api::StoredFile>> find_file(std::string sha256) const;
  net::awaitable<Outcome<std::vector<api::StoredFile>>> files() const;
  /// refused, conflict: an operation refers to it.
  net::awaitable<Outcome<Nothing>> delete_file(std::string sha256,
                                               std::int64_t controller_epoch) const;
  // Of the node's certificates; refused, not_found: the agent is of an older version.

  net::awaitable<Outcome<api::NodeCertificates>> certificates() const;
  /// What a stage of this source would take. refused, not_found: a file of the set is not stored
  /// at the agent; what is wrong with files of its machine is in the answer.
  net::awaitable<Outcome<api::CertificateFiles>> certificate_candidate(
      api::CertificateSource source) const;
  /// A request for a certificate, PEM, of a key that the agent made for this change and keeps.
  /// Larger keys take seconds.
  net::awaitable<Outcome<std::string>> certificate_key_request(
      api::CertificateKeyRequest request) const;
  /// One answer per peer, in the order of the request.
  net::awaitable<Outcome<std::vector<api::PeerHandshake>>> handshakes(
      api::HandshakesRequest request) const;
  net::awaitable<Outcome<api::ServerConfig>> server_config() const;
  /// Counts for half a minute at most. refused, unavailable: it is not known, with the reason.
  net::awaitable<Outcome<api::ScavengeEstimate>> scavenge_estimate(std::int32_t threshold,
                                                                   std::int64_t enough) const;
  // Of backups; refused, not_found: the agent is of an older version, or (of backups()) has no
  // repository of that name. What is wrong with a repository is in the answer, or refused with it.

  net::awaitable<Outcome<std::vector<api::BackupRepository>>> backup_repositories() const;
  /// By time. `node`: only its; empty: all nodes'.
  net::awaitable<Outcome<std::vector<api::BackupGeneration>>> backups(std::string repository,
                                                                      std::string node = {}) const;

 private:
  http::Client* client_;
  http::Endpoint agent_;
  std::chrono::milliseconds deadline_;
};

Outcome<api::AgentFacts> parse_answer_facts(const http::Response& response);
Outcome<Nothing> parse_answer_permit(const http::Response& response);
Outcome<api::OperationStatus> parse_answer_operation(const http::Response& response);
Outcome<api::StoredFile> parse_answer_file(const http::Response& response);
Outcome<std::vector<api::StoredFile>> parse_answer_files(const http::Response& response);
Outcome<api::NodeCertificates> parse_answer_certificates(const http::Response& response);
Outcome<api::CertificateFiles> parse_answer_candidate(const http::Response& response);
Outcome<std::vector<api::PeerHandshake>> parse_answer_handshakes(const http::Response& response);
Outcome<api::ServerConfig> parse_answer_server_config(const http::Response& response);
Outcome<api::ScavengeEstimate> parse_answer_estimate(const http::Response& response);
Outcome<std::vector<api::BackupRepository>> parse_answer_backup_repositories(
    const http::Response& response);
Outcome<std::vector<api::BackupGeneration>> parse_answer_backups(const http::Response& response);
/// {"request": PEM}, of the agent's own certificate or of its node's.
Outcome<std::string> parse_answer_certificate_request(const http::Response& response);

}  // namespace verger::client
