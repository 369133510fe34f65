#pragma once

#include <csignal>
#include <filesystem>
#include <optional>
#include <string>

#include "tests/support/processes/openssl_authority.h"
#include "tests/support/processes/ports.h"
#include "tests/support/processes/process.h"
#include "tests/support/temp_directory.h"

namespace verger::test {

/// An etcd server, real and alone, on leased ports of 127.0.0.1 with its data in a directory of its
/// own. `./dev test` fetches the program.
class EtcdServer {
 public:
  /// Throws when there is no etcd, or it does not answer in time.
  EtcdServer() : EtcdServer(nullptr) {}
  /// https, for clients with a certificate of `authority`; nullptr: plain http.
  explicit EtcdServer(const OpensslAuthority* authority);
  /// SIGKILL; what it acknowledged stays on disk.
  void kill();
  /// Again, on the same data and port.
  void start();
  /// It takes connections and answers nothing, until it is thawed.
  void freeze() { process_->signal(SIGSTOP); }
  void thaw() { process_->signal(SIGCONT); }
  [[nodiscard]] std::string url() const;
  [[nodiscard]] std::string log() const;

 private:
  TempDirectory directory_;
  PortLease ports_;
  std::filesystem::path trusted_;  ///< empty: plain http
  std::optional<Process> process_;
};

}  // namespace verger::test
