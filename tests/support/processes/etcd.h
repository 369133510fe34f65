#pragma once

#include <csignal>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <utility>

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
  /// https, for clients with a certificate of `authority`; nullptr: plain http. `quota_bytes`: how
  /// large its database may become; 0: etcd's own limit.
  explicit EtcdServer(const OpensslAuthority* authority, std::int64_t quota_bytes = 0);
  /// SIGKILL; what it acknowledged stays on disk.
  void kill();
  /// Again, on the same data and port.
  void start();
  /// It takes connections and answers nothing, until it is thawed.
  void freeze() { process_->signal(SIGSTOP); }
  void thaw() { process_->signal(SIGCONT); }
  /// Until it takes nothing more (NOSPACE); of one with a quota and plain http.
  void fill();
  /// As an operator does it: deletes what fill() wrote, compacts, defragments, ends the alarm.
  void make_room();
  /// How often it has answered `method` ("Range") with `code` ("OK").
  [[nodiscard]] int answered(const std::string& method, const std::string& code) const;
  [[nodiscard]] std::string url() const;
  [[nodiscard]] std::string log() const;

 private:
  TempDirectory directory_;
  [[nodiscard]] std::string metrics_url() const;
  /// Its JSON gateway's status and answer.
  [[nodiscard]] std::pair<int, std::string> ask(const std::string& route,
                                                const std::string& body) const;

  PortLease ports_;
  std::int64_t quota_bytes_;
  std::filesystem::path trusted_;  ///< empty: plain http
  std::optional<Process> process_;
};

}  // namespace verger::test
