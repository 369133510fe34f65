#pragma once

#include <functional>
#include <memory>
#include <string>

#include <boost/asio/any_io_executor.hpp>

#include "engine/base/log.h"
#include "nodeagent/api/agent_facts.h"
#include "nodeagent/client/node_client.h"
#include "nodeagent/external/database_look.h"
#include "nodeagent/external/directory_proof.h"
#include "nodeagent/external/node_certificate.h"
#include "nodeagent/http/timers.h"
#include "nodeagent/node/inspection.h"
#include "nodeagent/node/job_runner.h"

namespace verger::external {

struct ExternalOptions {
  DatabasePlace place;
  /// The server's own paths of these directories (ConfiguredDirectories); empty: the same.
  std::string server_database{};
  std::string server_index{};
  http::Endpoint node;
  client::SharedCredentials credentials;  ///< null: none are sent
  /// The server's own files; empty: not looked at.
  std::string certificate_file;
  std::string trusted_roots;
  std::chrono::milliseconds poll_interval{1000};
  std::chrono::milliseconds request_deadline{15'000};
};

/// What comes from outside; it outlives the node's coroutines.
struct ExternalEnvironment {
  net::any_io_executor executor;  ///< of one thread; everything runs there
  FileSystem& files;
  Clock& clock;
  Random& random;
  http::Timers& timers;
  http::Client& client;
  node::JobRunner& jobs;
  /// For what takes milliseconds and must not wait behind a long job; may be `jobs`.
  node::JobRunner& looks;
  Log& log;
  /// Empty: external::prove_directories.
  std::function<Result<void>(const ConfiguredDirectories&, const NodeDirectories&)> prove{};
};

/// A server in another process: its routes are queried at intervals, its files read by jobs.
/// The questions of NodeInspection are answered from what was last seen; refresh() looks at the
/// files at once. Changes nothing of the server.
///
/// Each time another process answers, it is proved that the directories are its own; until that is
/// done, nothing of them is shown. It is proved again before each operation (prove_directories()).
class ExternalNode {
 public:
  ExternalNode(ExternalOptions options, ExternalEnvironment environment);
  /// Ends the looking; a coroutine under way ends by itself.
  ~ExternalNode();

  void start();
  /// nullptr while the server does not answer.
  node::NodeInspection* inspection();
  /// Adds to the agent's facts (agent-interface.md, "Facts"): version, certificates on
  /// disk and as served, and, while the server is stopped, what its files tell.
  void complete(api::AgentFacts& facts) const;
  /// Of the server, as it answered last; empty: it does not answer.
  [[nodiscard]] std::string version() const;

  /// As NodeCertificate has them.
  net::awaitable<Result<std::string>> served_serial() const;
  [[nodiscard]] Result<std::string> serial_on_disk() const;

 private:
  class Impl;
  std::shared_ptr<Impl> impl_;
};

}  // namespace verger::external
