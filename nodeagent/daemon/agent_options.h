#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/settings/settings.h"
#include "nodeagent/daemon/detours.h"
#include "nodeagent/external/service_control.h"
#include "nodeagent/http/tls.h"
#include "nodeagent/node/options.h"

namespace verger::agent {

enum class Role : std::uint8_t {
  kNode,   ///< the embedded node alone
  kAgent,  ///< the agent alone, beside a node that runs by itself
  kBoth,
};

/// All options of verger-agent. Environment: the node's options begin with VERGER_NODE_,
/// the agent's with VERGER_AGENT_, common ones with VERGER_.
struct ProgramOptions {
  Role role = Role::kBoth;
  node::NodeOptions node;
  bool init = false;           ///< a database that is not there is made
  std::string node_ip;         ///< the node's HTTP listener
  std::string replication_ip;  ///< the node's replication listener
  std::string agent_ip;
  std::uint16_t node_port = 2113;
  std::uint16_t replication_port = 1112;
  std::uint16_t agent_port = 2114;
  std::string advertised_host;  ///< empty: node_ip
  std::string advertised_replication_host;
  /// Of the node: shown to clients and to other nodes. No certificate: no TLS.
  http::TlsFiles node_tls;
  /// Of the agent interface; its roots say whose certificates controllers must have, and are never
  /// the node's by default: the holder of a node's certificate could act as the controller.
  http::TlsFiles agent_tls;
  /// The agent has enrolled: `agent_tls` is its identity (identity.h).
  bool agent_enrolled = false;
  /// Files with certificates of users, or directories with such files: the agent reports their
  /// ends.
  std::vector<std::string> user_certificates;
  /// Over https, of the controller's certificate: all others are refused.
  std::string controller_name;
  /// Without TLS: what the controller signs its requests with.
  std::string controller_token_file;
  std::chrono::milliseconds connection_lifetime{std::chrono::minutes(10)};

  std::string state_directory;  ///< of the agent's journal
  /// Each NAME.json in it is the repository of backups NAME; empty: the agent has none.
  std::string backup_repositories;
  std::string backup_scratch;  ///< for drills; empty: none are made
  std::string node_url;        ///< role agent: the node beside it
  /// Role agent: the server's own paths of its directories, where it sees other ones than the agent
  /// (in a container); empty: the same.
  std::string server_database;
  std::string server_index;
  /// Role agent: two lines, user and password of the node beside it. Empty: none are sent.
  std::string credentials_file;
  external::ServiceOptions service;  ///< role agent: how its server is started and stopped
  std::string server_config;         ///< the server's own configuration file; empty: not known
  std::string snapshot_command;      ///< program that makes disk snapshots; empty: none are made
  std::int64_t snapshot_timeout_ms = 600'000;
  std::string drill_command;  ///< starts the server of a drill; empty: an embedded node
  std::int64_t keep_alive_interval_ms = 10'000;  ///< of connections of HTTP/2
  std::int64_t keep_alive_timeout_ms = 10'000;
  std::int64_t agent_poll_interval_ms = 500;
  std::int64_t end_after_seconds = 0;
  bool fast_timings = false;
  /// For tests, of the embedded node: by which places it reaches others, and the file that says how
  /// long a sync may take (detail/slow_disk.h); empty: as long as it takes.
  Detours detours;
  std::string slow_disk;
  bool unix_socket = false;  ///< the node also serves at eventstore.sock in its database directory
  std::string url_file;      ///< gets the node's URL once it listens; empty: none
  bool json_log = false;
  std::string log_level = "info";
  /// What the log should say at the start.
  std::vector<std::string> warnings;

  [[nodiscard]] bool node_has_tls() const { return !node_tls.certificate.empty(); }
  [[nodiscard]] bool agent_has_tls() const { return !agent_tls.certificate.empty(); }
};

/// Declares the options and reads them.
class OptionParser {
 public:
  OptionParser();
  OptionParser(const OptionParser&) = delete;
  OptionParser& operator=(const OptionParser&) = delete;

  /// kRun: finish() gives the options. Errors: those of Settings::parse.
  Result<settings::Settings::Action> parse(int argc, const char* const* argv) {
    return settings_.parse(argc, argv);
  }
  Result<settings::Settings::Action> parse(const std::vector<std::string>& arguments,
                                           const std::map<std::string, std::string>& environment) {
    return settings_.parse(arguments, environment);
  }
  [[nodiscard]] std::string help() const { return settings_.help(); }
  [[nodiscard]] settings::Settings& settings() { return settings_; }
  /// What was parsed. Errors: kInvalidArgument, naming the option and what it takes.
  Result<ProgramOptions> finish();

 private:
  void declare_node();
  void declare_cluster();
  void declare_certificates();
  void declare_database();
  void declare_grpc();
  void declare_agent();
  /// From the files that hold them. Errors: those of read_password_file(); kInvalidArgument: one is
  /// given in two ways.
  Result<void> read_key_passwords(ProgramOptions& options) const;
  void settle_node_tls(ProgramOptions& options) const;
  void settle_timings(ProgramOptions& options) const;
  /// What GET /info/options of the node shows.
  void list_effective(ProgramOptions& options) const;

  settings::Settings settings_;
  ProgramOptions options_;
  std::string role_ = "both";
  std::string host_ = "127.0.0.1";
  std::string database_;
  std::string index_;
  std::string seeds_;
  std::string detours_;
  std::string user_certificates_;
  std::string node_key_password_file_;
  std::string agent_key_password_file_;
  bool insecure_ = false;
  std::int64_t connection_lifetime_ms_ = 600'000;
  std::int64_t service_timeout_ms_ = 120'000;
  struct Timings {
    std::int64_t gossip_interval = 2000;
    std::int64_t gossip_timeout = 2500;
    std::int64_t election_timeout = 1000;
    std::int64_t write_timeout = 2000;
    std::int64_t dead_member_removal_seconds = 1800;
  } timings_;
  /// Options of the server that have no effect here.
  std::map<std::string, std::string> ignored_;
  std::map<std::string, bool> ignored_flags_;
};

}  // namespace verger::agent
