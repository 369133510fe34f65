#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "engine/base/result.h"
#include "nodeagent/http/timers.h"

namespace verger::external {

/// How the server beside an agent is started and stopped: as a systemd unit, by commands, or as a
/// part of this process.
struct ServiceOptions {
  std::string unit{};  ///< "eventstore.service"; then the commands are not used
  /// For /bin/sh; each returns once the server starts or has stopped. What they print goes where
  /// the agent prints.
  std::string start_command{};
  std::string stop_command{};
  std::chrono::milliseconds limit{120'000};  ///< for each command
  /// A server in this process, in place of all of these.
  struct OwnServer {
    std::function<net::awaitable<Result<void>>()> start;
    std::function<net::awaitable<Result<void>>()> stop;
    std::function<bool()> runs;
  };
  std::optional<OwnServer> own{};
  [[nodiscard]] bool configured() const {
    return own || !unit.empty() || (!start_command.empty() && !stop_command.empty());
  }
};

/// Runs the commands, each to its end. Children do not inherit our connections, and outlive us.
class ServiceControl {
 public:
  ServiceControl(ServiceOptions options, http::Timers& timers)
      : options_(std::move(options)), timers_(timers) {}
  [[nodiscard]] bool configured() const { return options_.configured(); }
  /// What start() runs, as a person types it; empty: not configured, or a server in this process.
  [[nodiscard]] std::string start_text() const;
  /// Errors: kUnsupported (not configured), kIo (it cannot be run, or ended with a status other
  /// than 0), kTimeout (it continues by itself).
  net::awaitable<Result<void>> start() const;
  net::awaitable<Result<void>> stop() const;
  /// Waits for commands that ended after their limit, so that no zombie stays; at once. Each
  /// command does the same first.
  static void reap_late_commands();

 private:
  static net::awaitable<Result<void>> run(std::vector<std::string> command,
                                          std::chrono::milliseconds limit, http::Timers* timers);
  net::awaitable<Result<void>> act(std::string verb, std::string command) const;
  ServiceOptions options_;
  http::Timers& timers_;
};

}  // namespace verger::external
