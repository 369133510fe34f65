#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <string>
#include <string_view>

namespace verger {

/// Reports the state of a daemon to the service manager that started it, by the protocol of
/// sd_notify(3): datagrams of "KEY=VALUE" lines to the socket in NOTIFY_SOCKET. Without that
/// variable nothing is sent. A datagram that cannot be delivered is dropped: the manager's own time
/// limits decide then. Safe from any thread.
class ServiceNotify {
 public:
  /// From NOTIFY_SOCKET, WATCHDOG_USEC and WATCHDOG_PID; `own_pid` is this process's id.
  ServiceNotify(const std::map<std::string, std::string>& environment, long own_pid);
  /// From this process's environment.
  static ServiceNotify of_this_process();

  /// The daemon serves. `status` is shown by `systemctl status`.
  void ready(std::string_view status) const;
  /// It has begun to stop.
  void stopping() const;
  /// It still works: to be repeated after each watchdog_interval().
  void alive() const;
  /// A third of the time after which the manager takes a daemon that was not alive() for hung;
  /// nullopt: it does not watch this process.
  [[nodiscard]] std::optional<std::chrono::milliseconds> watchdog_interval() const {
    return watchdog_interval_;
  }

 private:
  void send(std::string_view message) const;

  std::string socket_;  ///< empty: no manager listens
  std::optional<std::chrono::milliseconds> watchdog_interval_;
};

}  // namespace verger
