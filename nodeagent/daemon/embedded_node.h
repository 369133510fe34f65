#pragma once

#include <functional>
#include <memory>

#include <boost/asio/any_io_executor.hpp>

#include "engine/base/log.h"
#include "nodeagent/daemon/agent_options.h"
#include "nodeagent/daemon/tls_set.h"
#include "nodeagent/http/client.h"
#include "nodeagent/node/inspection.h"
#include "nodeagent/node/job_runner.h"

namespace verger::agent {

/// An embedded node with its two listeners, on the real disk and network. The process that holds it
/// outlives it: after POST /admin/shutdown the node is gone, an agent beside it still answers.
class EmbeddedNode {
 public:
  /// Opens the database and listens; then the node joins its cluster. Errors: those of the
  /// database, kConflict (a port is in use).
  /// `tls`: null: plain HTTP; it outlives the node. `on_reload`: what POST /admin/reloadconfig
  /// begins; without TLS it is not used.
  static Result<std::unique_ptr<EmbeddedNode>> start(const ProgramOptions& options,
                                                     net::any_io_executor executor,
                                                     http::Client& client, node::JobRunner& jobs,
                                                     const NodeTls* tls,
                                                     std::function<void()> on_reload, Log& log);
  ~EmbeddedNode();

  /// nullptr once the node has stopped.
  node::NodeInspection* inspection();
  /// True when the node was ordered to shut down, or its disk failed: call stop().
  [[nodiscard]] bool wants_to_stop() const;
  /// Whether it was the disk.
  [[nodiscard]] bool failed() const;
  net::awaitable<void> stop();

 private:
  struct State;
  explicit EmbeddedNode(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace verger::agent
