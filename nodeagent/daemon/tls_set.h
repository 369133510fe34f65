#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/base/log.h"
#include "nodeagent/http/tls.h"

namespace verger::agent {

/// The TLS settings of an embedded node: one set of files, three uses. Loaded and reloaded together
/// or not at all. Safe from any thread.
class NodeTls {
 public:
  /// Errors: those of TlsContext.
  static Result<std::unique_ptr<NodeTls>> load(const http::TlsFiles& files, Log& log);

  /// For the node interface: a client certificate is optional, but must chain to our roots.
  [[nodiscard]] const std::shared_ptr<http::TlsContext>& clients() const { return clients_; }
  /// For the replication link: a client certificate is required.
  [[nodiscard]] const std::shared_ptr<http::TlsContext>& nodes() const { return nodes_; }
  /// For calls to other nodes: shows the node's certificate.
  [[nodiscard]] const std::shared_ptr<http::TlsContext>& calls() const { return calls_; }

  /// Reads `files`, checks their chain, and uses them for new connections. After an error, which is
  /// logged, everything is as before.
  Result<void> reload(const http::TlsFiles& files);

 private:
  explicit NodeTls(Log& log) : log_(log) {}
  Result<void> take(const http::TlsFiles& files);
  Log& log_;
  std::string thumbprint_;  ///< of the leaf in use
  std::shared_ptr<http::TlsContext> clients_;
  std::shared_ptr<http::TlsContext> nodes_;
  std::shared_ptr<http::TlsContext> calls_;
};

}  // namespace verger::agent
