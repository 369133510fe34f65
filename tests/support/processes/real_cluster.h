#pragma once

#include <array>
#include <chrono>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/processes/node_links.h"
#include "tests/support/processes/openssl_authority.h"
#include "tests/support/processes/ports.h"
#include "tests/support/processes/process.h"
#include "tests/support/temp_directory.h"

namespace verger::test {

/// Environment of a process, for example VERGER_FAILPOINT.
using Environment = std::map<std::string, std::string>;

/// Three verger-agents with embedded nodes on databases that a real server wrote, and a vergerd:
/// real processes of the build under test, on leased ports of 127.0.0.1.
class RealCluster {
 public:
  struct Options {
    /// The agents are processes of their own beside the nodes (role "agent"), as beside servers.
    bool separate_agents = false;
    std::string database = "scavenge/server-makes-point/before.tar.zst";
    std::filesystem::path files{};  ///< a directory to copy instead, with its index
    /// Intervals and limits of milliseconds, and small tables; else the programs' own defaults.
    bool fast = true;
    bool atom = true;
    bool with_agents = true;    ///< register the agents with the controller
    std::string role = "both";  ///< of the verger-agents; "node": no agents at all
    /// https everywhere, with certificates of an authority of this cluster's own, and credentials.
    bool tls = false;
    /// The nodes are started and stopped by commands, which their agents know; with
    /// separate_agents and the role "node".
    bool services = false;
    /// With `services`: size and seeds are in a file of each node (config_file()), which its agent
    /// may change.
    bool config_files = false;
    /// The agents have the repository "main", a directory that all of them share, and a scratch
    /// directory each for drills.
    bool backups = false;
    /// URL of an etcd: two vergerds share a journal there, with a lease of four seconds.
    std::string journal_etcd{};
    /// The network between the nodes can be cut (links()), and their disks be slow (slow_disk()).
    bool mishaps = false;
    /// "{node}" in them: the directory of the node.
    std::vector<std::string> agent_arguments{};
    std::chrono::seconds life{300};  ///< every process ends by itself after this
  };
  static constexpr std::size_t kNodes = 3;

  RealCluster();
  explicit RealCluster(Options options);
  ~RealCluster();

  std::filesystem::path config_file(std::size_t index) const;
  /// With Options::services: SIGKILL of a node's process.
  void kill_server(std::size_t index) const;
  void start_node(std::size_t index, const Environment& environment = {});
  /// With Options::separate_agents.
  void start_agent(std::size_t index, const Environment& environment = {});
  void start_controller(const Environment& environment = {});
  /// The other one of a pair.
  void start_second_controller();
  void start_all(const Environment& of_nodes = {});
  /// What is started from now on are the programs in `directory`, as after an upgrade.
  void replace_programs(std::filesystem::path directory) { programs_ = std::move(directory); }
  /// Starts again, without failpoints, what has died. Returns how many processes that were.
  int restart_dead();
  /// With Options::services: the machines of the cluster lose their power (SIGKILL to all processes
  /// at once), and boot: servers, unless their agents keep them stopped (docs/operations/agents.md,
  /// ConditionPathExists), agents, and vergerd. No failpoints.
  void cut_power() const { kill_all_of(directory_.path()); }
  void boot();
  Process& node(std::size_t index) { return *nodes_.at(index); }
  Process& agent(std::size_t index) { return *agents_.at(index); }
  Process& controller() { return *controller_; }
  Process& second_controller() { return *second_; }
  bool node_started(std::size_t index) const { return nodes_.at(index).has_value(); }

  /// Registers the cluster "orders" once it answers; then waits for one leader and two followers
  /// without lag. Throws, with the processes' logs, when that does not happen in time.
  void register_cluster();
  bool settled();
  std::string wait_until_settled();  ///< empty, or why not

  enum class Which : std::uint8_t { kFirst, kSecond };
  /// Which of a pair everything below talks to; first the first.
  void talk_to(Which which) { talks_to_ = which; }
  /// Runs the command line against this controller.
  Finished verger(std::vector<std::string> arguments) const;
  /// A command that plans and starts: again while it is refused, for a minute. On a busy machine
  /// nodes elect another leader before the plan, or between it and its start.
  Finished verger_once_settled(const std::vector<std::string>& arguments) const;
  /// The same with -o json: the last line, parsed; null when it failed.
  nlohmann::json verger_json(std::vector<std::string> arguments) const;
  /// Plans a scavenge, again while the cluster is still settling; the plan's hash.
  std::string plan_scavenge(const std::vector<std::string>& more = {});
  /// The same of any operation.
  std::string plan_operation(const std::string& operation,
                             const std::vector<std::string>& more = {});
  /// Plans a scavenge and applies it without waiting; the run's id.
  std::string start_scavenge_run(const std::vector<std::string>& more = {});
  std::string start_run(const std::string& operation, const std::vector<std::string>& more = {});
  /// Follows a run until it has ended, restarting what dies. The run as JSON; null after
  /// `limit`.
  nlohmann::json wait_for_run(const std::string& id, std::chrono::seconds limit);

  /// With Options::mishaps: between the nodes; who starts and kills them says so here, too.
  NodeLinks& links() { return *links_; }
  /// With Options::mishaps: syncs of this node take up to so long from now on; 0: no longer than
  /// they do. How many have so far.
  void slow_disk(std::size_t index, std::chrono::milliseconds longest_sync);
  int slow_syncs(std::size_t index) const;

  /// With Options::tls: who issues the certificates, and where those of a node are. Agents and
  /// vergerd have files of their own, also of this authority.
  OpensslAuthority& authority() { return *authority_; }
  std::filesystem::path certificates_of(std::size_t index) const;
  /// With Options::tls: vergerd accepts nodes of this authority, too.
  void accept_nodes_of(const OpensslAuthority& other) const;
  /// With Options::tls: vergerd signs nodes' requests as this authority.
  void sign_as(const std::string& name, const OpensslAuthority& authority) const;
  /// A new certificate and key for a node, in place of the former. Its serial.
  std::string issue_for_node(std::size_t index, const OpensslAuthority& by);

  std::string node_url(std::size_t index) const;
  std::string agent_url(std::size_t index) const;
  std::uint16_t node_port(std::size_t index) const { return ports_[index]; }
  std::uint16_t controller_port() const { return port_of(talks_to_); }
  std::string controller_url(Which which) const;
  std::filesystem::path node_directory(std::size_t index) const;
  std::filesystem::path controller_directory(Which which = Which::kFirst) const {
    return directory_.path() / (which == Which::kFirst ? "controller" : "second");
  }
  /// With Options::backups: the directory of the repository "main".
  std::filesystem::path repository() const { return directory_.path() / "repository"; }
  /// With Options::backups: the directory of the agents' repository files.
  std::filesystem::path repository_files() const { return directory_.path() / "repositories"; }
  /// Without Options::tls: the file of the token that the agents accept.
  std::filesystem::path agents_token() const;
  std::string log_of_controller(Which which) const;
  /// The ends of all processes' logs, for the message of a failed test.
  std::string logs() const;

 private:
  std::vector<std::string> node_command(std::size_t index) const;
  std::vector<std::string> agent_command(std::size_t index) const;
  std::filesystem::path agent_certificates(std::size_t index) const;
  std::filesystem::path accepted_roots() const;
  /// With Options::backups: the options of an agent.
  std::vector<std::string> backups_of_agent(std::size_t index) const;
  /// The options by which an agent knows its controller.
  std::vector<std::string> controller_of_agent(std::size_t index) const;
  /// start.sh and stop.sh of a node that is a service.
  std::filesystem::path script(std::size_t index, const std::string& verb) const;
  std::filesystem::path agent_state(std::size_t index) const;
  void write_scripts(std::size_t index) const;
  std::uint16_t port_of(Which which) const {
    return ports_[3 * kNodes + (which == Which::kFirst ? 0 : 1)];
  }
  std::vector<std::string> controller_command(Which which) const;
  std::string program_of(const std::string& name) const;
  std::filesystem::path log_of(const std::string& name) const;
  std::filesystem::path slowness_of(std::size_t index) const;

  Options options_;
  std::filesystem::path programs_;  ///< empty: those of the build
  TempDirectory directory_;
  PortLease ports_;
  std::optional<NodeLinks> links_;
  std::optional<OpensslAuthority> authority_;
  std::array<std::optional<Process>, kNodes> nodes_;
  std::array<std::optional<Process>, kNodes> agents_;
  std::optional<Process> controller_;
  std::optional<Process> second_;
  Which talks_to_ = Which::kFirst;
};

}  // namespace verger::test
