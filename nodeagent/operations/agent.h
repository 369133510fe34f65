#pragma once

#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "engine/base/file_system.h"
#include "engine/base/random.h"
#include "nodeagent/api/agent_facts.h"
#include "nodeagent/client/node_client.h"
#include "nodeagent/http/client.h"
#include "nodeagent/node/inspection.h"
#include "nodeagent/node/job_runner.h"
#include "nodeagent/operations/operation.h"
#include "nodeagent/operations/secret_file.h"

namespace verger::agent {

struct BackupAccess;
struct CertificateAccess;
struct DrillSettings;
struct ServerConfigAccess;

/// What an agent is configured with.
struct AgentOptions {
  /// The agent's SQLite file; files that controllers bring are in "files" beside it.
  Path journal;
  http::Endpoint node;                      ///< of the node interface
  client::SharedCredentials credentials{};  ///< of the node; null: none are sent
  std::chrono::milliseconds request_deadline{15'000};
  std::chrono::milliseconds poll_interval{500};
  /// How long stop() waits for an operation that has its server stopped.
  std::chrono::milliseconds stop_limit{300'000};
  /// How often the streams are counted that the node's existence filter lacks; 0: never.
  std::chrono::milliseconds lost_streams_period{0};
};

/// What comes from outside: real in verger-agent, virtual in the simulation. The references and
/// `offline` and `online` go only when `executor` runs no more; the functions are no longer called
/// once the agent is destroyed.
struct AgentEnvironment {
  net::any_io_executor executor;  ///< single-threaded
  FileSystem& files;
  Clock& clock;
  http::Timers& timers;
  http::Client& client;
  node::JobRunner& jobs;
  Log& log;
  /// The embedded node of this process; nullptr while it is stopped.
  std::function<node::NodeInspection*()> inspection;
  /// Of a node in another process: adds to the facts before they are sent, and shows the serials of
  /// its certificate (LocalNode).
  std::function<void(api::AgentFacts& facts)> complete_facts{};
  std::function<net::awaitable<Result<std::string>>()> served_serial{};
  std::function<Result<std::string>()> serial_on_disk{};
  external::OfflineServer* offline = nullptr;
  /// nullptr: no work on the files of the running server.
  external::OnlineAccess* online = nullptr;
  MakePrivate make_private{};
  /// Empty: SQLite in AgentOptions::journal.
  std::function<Result<std::unique_ptr<OperationJournal>>()> open_journal{};
  /// Of the node's certificates (certificates/certificate_access.h); null: the agent does not know
  /// them.
  std::shared_ptr<const CertificateAccess> certificates{};
  /// Its repositories of backups (backup/backup_access.h); null: it has none.
  std::shared_ptr<const BackupAccess> backups{};
  /// How drills are made (drill/drill_settings.h); null: none are.
  std::shared_ptr<const DrillSettings> drills{};
  /// The configuration file of its server (resize/server_config_access.h); null: it does not know
  /// it.
  std::shared_ptr<const ServerConfigAccess> server_config{};
};

/// The agent: facts, permits, operations by id, digests. Destroying it at any moment is a crash as
/// far as it is concerned, and safe; the next one on the same journal finds out what happened
/// before it says anything of an operation.
class Agent {
 public:
  /// Opens the journal. Errors: its own.
  static Result<std::unique_ptr<Agent>> open(AgentOptions options, AgentEnvironment environment);
  ~Agent();

  /// Resumes observing the operations that have not ended.
  void start();
  /// Stops observing; nothing more is acted on. Operations continue at the next start. An offline
  /// scavenge is interrupted first, and its server started: that is waited for, at most
  /// AgentOptions::stop_limit.
  net::awaitable<void> stop();
  /// Answers /agent/v1. Answers 503 once the agent is gone.
  http::Handler handler();

 private:
  class Impl;
  explicit Agent(std::shared_ptr<Impl> impl);
  std::shared_ptr<Impl> impl_;
};

}  // namespace verger::agent
