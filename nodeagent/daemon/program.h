#pragma once

#include <functional>
#include <memory>

#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>

#include "nodeagent/daemon/agent_options.h"
#include "nodeagent/daemon/credentials_file.h"
#include "nodeagent/daemon/embedded_node.h"
#include "nodeagent/daemon/identity.h"
#include "nodeagent/external/external_node.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/external/online_access.h"
#include "nodeagent/external/truncation_watch.h"
#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/server.h"
#include "nodeagent/http/timers.h"
#include "nodeagent/operations/agent.h"

namespace verger::agent {

/// TLS of everything this process does; null where its options name no certificates or roots.
struct Tls {
  std::unique_ptr<NodeTls> node;
  std::shared_ptr<http::TlsContext> agent;
  std::shared_ptr<http::TlsContext> calls;
};

Result<Tls> load_tls(const ProgramOptions& options, Log& log);

/// The parts of one process; what its role leaves out is null.
struct Program {
  Program(ProgramOptions chosen, Tls loaded)
      : options(std::move(chosen)),
        tls(std::move(loaded)),
        client(context.get_executor(), {.connection_lifetime = options.connection_lifetime,
                                        .tls = tls.calls,
                                        .plain_to_loopback_only = true}) {}
  ProgramOptions options;
  Tls tls;
  net::io_context context{1};
  net::thread_pool pool{1};
  net::thread_pool looks_pool{1};  ///< for looks at /proc and files, beside long jobs in `pool`
  /// For repositories of backups: one that does not answer holds up its own thread.
  net::thread_pool repositories_pool{4};
  http::BeastClient client;
  node::PoolJobRunner jobs{pool.get_executor(), http::system_timers()};
  node::PoolJobRunner looks{looks_pool.get_executor(), http::system_timers()};
  node::PoolJobRunner repository_jobs{repositories_pool.get_executor(), http::system_timers()};
  std::unique_ptr<CredentialsFile> credentials;  ///< null: none are configured
  std::unique_ptr<EmbeddedNode> node;
  std::unique_ptr<external::ExternalNode> external;  ///< role agent: the server beside it
  std::unique_ptr<external::OfflineServer> offline;
  std::unique_ptr<external::OnlineAccess> online;
  std::unique_ptr<external::TruncationWatch> truncation;
  std::unique_ptr<Agent> agent;
  std::unique_ptr<Identity> identity;  ///< of an agent that has enrolled
  [[nodiscard]] node::NodeInspection* inspection() const {
    return node ? node->inspection() : external ? external->inspection() : nullptr;
  }
  std::unique_ptr<http::Server> agent_server;
  /// Reads flags, environment and file again.
  std::function<Result<ProgramOptions>()> read_options;
  bool stopping = false;
  int status = 0;
};

/// The password, certificates and roots again, the latter from where the options say now; the rest
/// of the options needs a restart.
void reload(Program& program, Log& log);

/// The embedded node; in place of one that has stopped.
Result<void> start_node(Program& program, Log& log);

}  // namespace verger::agent
