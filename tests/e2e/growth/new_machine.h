#pragma once

#include <filesystem>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/processes/ports.h"
#include "tests/support/processes/process.h"
#include "tests/support/processes/real_cluster.h"

namespace verger::test {

/// A machine beside a RealCluster (services and backups, without TLS): an agent with the cluster's
/// repository, and a server that was never started, on an empty directory.
class NewMachine {
 public:
  /// `of_agent`: for its first agent. `size_in_file`: size and seeds are in a file that its agent
  /// knows, as of a cluster with Options::config_files; 0: they are flags.
  NewMachine(const RealCluster& cluster, std::string name, bool read_only_replica,
             const Environment& of_agent = {}, int size_in_file = 0);
  ~NewMachine();
  NewMachine(const NewMachine&) = delete;
  NewMachine& operator=(const NewMachine&) = delete;

  const std::string& name() const { return name_; }
  std::string url() const;
  std::string agent_url() const;
  std::filesystem::path database() const { return directory_.path() / "db"; }
  /// Its gossip answers.
  bool server_runs() const;
  /// As those of RealCluster, which are called, too. Its service is enabled, and its agent has been
  /// told to keep it stopped until a run starts it (docs/operations/growing.md).
  void cut_power() const { kill_all_of(directory_.path()); }
  void boot();
  /// Starts the agent again, without failpoints, if it has died.
  void restart_dead();
  /// --node and --agent of `verger cluster grow`.
  std::vector<std::string> as_options() const;
  std::string logs() const;

 private:
  /// In its agent's state.
  std::filesystem::path kept_stopped() const {
    return directory_.path() / "agent" / "server-kept-stopped";
  }
  std::filesystem::path script(const std::string& verb) const;
  void write_scripts(const std::vector<std::string>& server) const;
  void start_agent(const Environment& environment);

  std::string name_;
  std::vector<std::string> agent_command_;
  TempDirectory directory_;
  PortLease ports_{3};
  std::optional<Process> agent_;
};

}  // namespace verger::test
