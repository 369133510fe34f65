#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "engine/base/file_system.h"
#include "engine/base/result.h"

namespace verger::external {

/// The order that a server stays stopped. It is in a file, so that it outlives the agent. One
/// thread.
class StopOrder {
 public:
  /// Of the server, when the order is given.
  enum class Server : std::uint8_t { kStopped, kMayRun };

  /// With an empty path it is kept in memory alone.
  StopOrder(FileSystem& files, Path file) : files_(&files), file_(std::move(file)) {}

  /// Replaces another one. `by`: not empty, one line. Error: the file cannot be written; then
  /// nothing is changed.
  Result<void> give(std::string_view by, Server server);
  /// The server that may run has stopped. Error: the file cannot be written.
  Result<void> note_stopped();
  Result<void> lift();
  /// There is an order, and its server has stopped: one that runs was started after that.
  [[nodiscard]] bool is_of_stopped_server() const;
  /// Who gave it; empty: there is none. Where the file cannot be read there is one: "(FILE: why)".
  [[nodiscard]] std::string given_by() const;

 private:
  struct Order {
    std::string by;
    Server server = Server::kStopped;
  };
  /// nullopt: there is no order.
  [[nodiscard]] std::optional<Order> read() const;

  FileSystem* files_;
  Path file_;
  std::string in_memory_;
};

}  // namespace verger::external
