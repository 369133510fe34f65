#pragma once

#include <memory>
#include <string>

#include <boost/asio/awaitable.hpp>

#include "nodeagent/api/server_config.h"
#include "nodeagent/client/node_client.h"
#include "nodeagent/external/config_text.h"
#include "nodeagent/operations/resize/server_config_access.h"

namespace verger::agent {

/// The configuration file of the agent's server: looked at, changed, and as before again. One
/// thread.
///
/// A change is two files in the directory "server-config" of the agent's state: the former bytes
/// (CHANGE.before) and the new ones (CHANGE.after), durable before the server's file changes. That
/// is replaced by a rename, with its owner and mode, so that by its bytes alone it can be seen how
/// far a change is.
class ServerConfigFile {
 public:
  ServerConfigFile(std::shared_ptr<const ServerConfigAccess> access, FileSystem& files,
                   const Path& state)
      : access_(std::move(access)), files_(files), directory_(state / "server-config") {}

  /// ClusterSize in it; 0: it is not there. Errors: kUnsupported, kIo.
  [[nodiscard]] Result<std::int32_t> size() const;
  /// The file and the running server.
  static net::awaitable<api::ServerConfig> look(std::shared_ptr<const ServerConfigFile> self,
                                                client::NodeClient node);
  /// Keeps the bytes that the file has and those that it is to have. Once it was done for a change,
  /// nothing happens. Errors: those of change_cluster_lines(); kConflict: the file is neither of a
  /// change that was kept; kIo, kNoSpace.
  Result<void> keep(const api::ServerSize& change);
  enum class Side : std::uint8_t {
    kUnknown,  ///< no such change was kept
    kBefore,
    kAfter,
    kForeign,  ///< someone else has changed the file
  };
  /// Error: kIo.
  [[nodiscard]] Result<Side> side(const std::string& change) const;
  /// Nothing happens where it is that already. Errors: kConflict: it is neither of both; kRefused,
  /// kNoSpace, kIo: the file is as it was.
  Result<void> put(const std::string& change, bool after);

 private:
  [[nodiscard]] Result<std::string> text() const;
  Result<void> store(const Path& path, const std::string& content);
  [[nodiscard]] Path kept(const std::string& change, bool after) const {
    return directory_ / (change + (after ? ".after" : ".before"));
  }
  [[nodiscard]] Result<std::string> kept_text(const std::string& change, bool after) const;

  std::shared_ptr<const ServerConfigAccess> access_;
  FileSystem& files_;
  Path directory_;
};

}  // namespace verger::agent
