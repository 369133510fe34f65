#include "nodeagent/daemon/agent_options.h"

#include <fmt/format.h>

#include "engine/settings/daemon_call.h"
#include "nodeagent/certificates/authority.h"
#include "nodeagent/daemon/detail/option_checks.h"
#include "nodeagent/daemon/detail/option_values.h"
#include "nodeagent/daemon/detail/password_file.h"
#include "nodeagent/daemon/identity.h"
#include "nodeagent/http/client.h"
#include "nodeagent/http/loopback.h"

namespace verger::agent {
namespace {

using settings::Source;
using settings::Traits;

constexpr const char* kNode = "VERGER_NODE_";
constexpr const char* kAgent = "VERGER_AGENT_";
constexpr const char* kDefaultPassword = "changeit";

/// The well-known passwords count on loopback only.
void settle_default_passwords(ProgramOptions& options) {
  auto& node = options.node;
  const bool known = node.default_admin_password == kDefaultPassword ||
                     node.default_ops_password == kDefaultPassword;
  if (options.role == Role::kAgent || node.insecure || !known) {
    return;
  }
  if (http::is_loopback(options.node_ip)) {
    options.warnings.emplace_back(
        "a new database gets users with the well-known password 'changeit': fit for trying out "
        "on this machine only");
    return;
  }
  // Users that are there already keep theirs.
  for (auto* password : {&node.default_admin_password, &node.default_ops_password}) {
    if (*password == kDefaultPassword) {
      password->clear();
    }
  }
  options.warnings.emplace_back(
      "the default passwords of admin and ops count on loopback only: a new database needs "
      "VERGER_NODE_DEFAULT_ADMIN_PASSWORD and VERGER_NODE_DEFAULT_OPS_PASSWORD");
}

/// What it got by enrolling, or else what the node has.
void settle_agent_tls(ProgramOptions& options) {
  if (const auto identity = IdentityFiles::in(options.state_directory);
      options.role != Role::kNode && !options.state_directory.empty() && identity.there()) {
    if (options.agent_has_tls()) {
      options.warnings.push_back(
          fmt::format("--agent-certificate-file is given, so what this agent got by enrolling is "
                      "not used ({})",
                      identity.certificate.string()));
    } else {
      options.agent_tls = identity.tls();
      options.agent_enrolled = true;
      if (!options.controller_name.empty() || !options.controller_token_file.empty()) {
        options.warnings.emplace_back(
            "the agent has enrolled and obeys the controller it enrolled with: "
            "--agent-controller-name and --controller-token-file are not used");
      }
      options.controller_name = certificates::kControllerCommonName;
    }
  }
  if (options.role == Role::kBoth && !options.agent_has_tls() &&
      options.agent_tls.private_key.empty()) {
    options.agent_tls.certificate = options.node_tls.certificate;
    options.agent_tls.private_key = options.node_tls.private_key;
    options.agent_tls.private_key_password = options.node_tls.private_key_password;
  }
}

std::string source_text(Source source) {
  switch (source) {
    case Source::kDefault:
      return "<DEFAULT>";
    case Source::kFile:
      return "Yaml";
    case Source::kEnvironment:
      return "Environment Variables";
    case Source::kFlag:
      return "Command Line";
  }
  return {};
}

}  // namespace

OptionParser::OptionParser()
    : settings_("verger-agent",
                "works on one node by operation id, and is an embedded node itself") {
  settings_.add("role", role_, "What this process is", {.choices = {"node", "agent", "both"}});
  settings_.add("host", host_, "Address of all listeners that have none of their own");
  settings_.add("json-log", options_.json_log, "Log lines as JSON");
  settings_.add("log-level", options_.log_level, "The least that is logged",
                {.choices = {"debug", "info", "warning", "error"}});
  settings_.add("end-after-seconds", options_.end_after_seconds,
                "End by itself after this long (0: never)", {.hidden = true});
  settings_.add("fast-timings", options_.fast_timings,
                "Gossip, elections and settling within 300 ms, for tests and demos on one machine",
                {.hidden = true});
  settings_.add("detours", detours_,
                "host:port=host:port, separated by commas: where the node connects to in place of "
                "other nodes, for tests",
                {.hidden = true});
  settings_.add("slow-disk", options_.slow_disk,
                "File with the longest time of the node's syncs in ms, for tests",
                {.hidden = true});
  settings_.add("url-file", options_.url_file, "File that gets the node's URL once it listens",
                {.hidden = true});
  declare_node();
  declare_cluster();
  declare_certificates();
  declare_database();
  declare_grpc();
  declare_agent();
  auto commands = settings::daemon_commands();
  commands.push_back({"enrol [--OPTION VALUE] ...",
                      "Obtains this agent's certificate from vergerd (verger-agent enrol --help)"});
  commands.push_back({"epoch [--OPTION VALUE] ...",
                      "Shows or repairs the newest controller epoch of a stopped agent "
                      "(verger-agent epoch --help)"});
  settings_.set_commands(std::move(commands));
  settings_.set_footer(
      "Example: verger-agent --db /var/lib/verger/db --state /var/lib/verger/agent \\\n"
      "           --cluster-size 3 --gossip-seed 127.0.0.1:2112,127.0.0.1:2113\n"
      "Annotated file: examples/verger-agent.yaml");
}

void OptionParser::declare_node() {
  auto& o = options_;
  const auto node = [](std::vector<std::string> aliases = {}) {
    return Traits{.group = "InterfaceOptions", .prefix = kNode, .aliases = std::move(aliases)};
  };
  settings_.add("node-ip", o.node_ip, "Address of the node's HTTP interface (default: --host)",
                node({"ext-ip"}));
  settings_.add("node-port", o.node_port, "Port of the node interface", node({"http-port"}));
  settings_.add("node-host-advertise-as", o.advertised_host,
                "Name or address by which others reach the node", node({"ext-host-advertise-as"}));
  settings_.add("replication-ip", o.replication_ip,
                "Address of the replication link (default: --host)", node({"int-ip"}));
  settings_.add("replication-port", o.replication_port, "Port of the replication link",
                node({"int-tcp-port"}));
  settings_.add("replication-host-advertise-as", o.advertised_replication_host,
                "Name or address by which other nodes reach the replication link",
                node({"int-host-advertise-as"}));
  settings_.add("enable-atom-pub-over-http", o.node.enable_atom_pub,
                "Serve /streams/... for reading and writing", node());
  settings_.add("connection-lifetime-ms", connection_lifetime_ms_,
                "Age at which connections to other nodes are made anew, so that they show and see "
                "reloaded certificates",
                {.group = "InterfaceOptions", .prefix = kNode, .unit = "ms"});
}

void OptionParser::declare_cluster() {
  auto& o = options_.node;
  const auto cluster = [](std::string unit = {}) {
    return Traits{.group = "ClusterOptions", .prefix = kNode, .unit = std::move(unit)};
  };
  settings_.add("cluster-size", o.cluster_size, "Number of voting nodes", cluster());
  settings_.add("gossip-seed", seeds_, "host:port of the other nodes, separated by commas",
                cluster());
  settings_.add("read-only-replica", o.read_only_replica, "A copy that does not vote", cluster());
  settings_.add("node-priority", o.node_priority, "Preference among equal candidates", cluster());
  settings_.add("gossip-interval-ms", timings_.gossip_interval, "Between two rounds of gossip",
                cluster("ms"));
  settings_.add("gossip-timeout-ms", timings_.gossip_timeout, "For an answer to gossip",
                cluster("ms"));
  settings_.add("leader-election-timeout-ms", timings_.election_timeout,
                "A round of an election that takes longer starts over", cluster("ms"));
  settings_.add("dead-member-removal-period-sec", timings_.dead_member_removal_seconds,
                "After this a dead member is forgotten", cluster("s"));
  for (const auto* name : {"discover-via-dns", "cluster-dns", "cluster-gossip-port"}) {
    settings_.add(
        name, ignored_[name], "Finding members by DNS",
        {.group = "ClusterOptions",
         .prefix = kNode,
         .deprecated = "the embedded node finds members by --gossip-seed alone; ignored"});
  }
}

void OptionParser::declare_certificates() {
  auto& tls = options_.node_tls;
  const Traits files{.group = "CertificateFileOptions", .prefix = kNode};
  const Traits rules{.group = "CertificateOptions", .prefix = kNode};
  settings_.add("insecure", insecure_, "No TLS, and every client has all rights (loopback only)",
                {.group = "ApplicationOptions", .prefix = kNode});
  const Traits users{.group = "DefaultUserOptions", .prefix = kNode, .secret = true};
  settings_.add("default-admin-password", options_.node.default_admin_password,
                "Password of the user admin, for a database that has no users yet", users);
  settings_.add("default-ops-password", options_.node.default_ops_password,
                "Password of the user ops, for a database that has no users yet", users);
  settings_.add("allow-anonymous-endpoint-access", options_.node.allow_anonymous_endpoint_access,
                "Statistics and metrics without a user",
                {.group = "ApplicationOptions", .prefix = kNode});
  settings_.add("override-anonymous-endpoint-access-for-gossip",
                options_.node.override_anonymous_endpoint_access_for_gossip,
                "GET /gossip without a user, even with --allow-anonymous-endpoint-access off",
                {.group = "ApplicationOptions", .prefix = kNode});
  settings_.add("allow-anonymous-stream-access", options_.node.allow_anonymous_stream_access,
                "Streams whose access control allows $all, without a user",
                {.group = "ApplicationOptions", .prefix = kNode});
  const Traits interface{.group = "InterfaceOptions", .prefix = kNode};
  settings_.add("disable-admin-ui", options_.node.disable_admin_ui,
                "No /admin routes, nor those of $scavenges: this node cannot be scavenged",
                interface);
  settings_.add("disable-stats-on-http", options_.node.disable_stats_on_http,
                "No /stats and no /metrics", interface);
  settings_.add("enable-unix-socket", options_.unix_socket,
                "Serve at DB/eventstore.sock, too: without credentials, for the owner of that file "
                "alone, and the only way to redact on a running node",
                interface);
  settings_.add("disable-gossip-on-http", options_.node.disable_gossip_on_http, "No GET /gossip",
                interface);
  settings_.add("certificate-file", tls.certificate,
                "PEM or DER: the node's certificate, then its intermediates (role agent: of the "
                "server beside it, as are the next ones)",
                files);
  settings_.add("certificate-private-key-file", tls.private_key, "PEM: the certificate's key",
                files);
  settings_.add("certificate-private-key-password", tls.private_key_password, "Of an encrypted key",
                {.group = "CertificateFileOptions", .prefix = kNode, .secret = true});
  settings_.add("certificate-private-key-password-file", node_key_password_file_,
                "File of mode 0600 whose first line is the password of an encrypted key",
                {.group = "CertificateFileOptions", .prefix = kNode});
  settings_.add("trusted-root-certificates-path", tls.trusted_roots,
                "Directory of trusted roots (.crt .cert .cer .pem .der), or one such file", rules);
  settings_.add("certificate-reserved-node-common-name", tls.reserved_common_name,
                "Common name, or pattern such as *.db.example.com, of the nodes' certificates "
                "(default: that of the own certificate)",
                rules);
}

void OptionParser::declare_database() {
  auto& o = options_.node;
  const auto db = [](std::string unit = {}) {
    return Traits{.group = "DatabaseOptions", .prefix = kNode, .unit = std::move(unit)};
  };
  settings_.add("db", database_,
                "Database directory of the node (role agent: of the server beside it)", db());
  settings_.add("init", options_.init,
                "Begin a new database where --db holds none: not needed for an empty directory",
                db());
  settings_.add("index", index_, "Index directory (default: DB/index)", db());
  settings_.add("chunk-size", o.chunk_size,
                "Bytes of a chunk; 0: as the database has it, 256 MiB for a new one", db());
  settings_.add("max-append-size", o.max_append_size,
                "Bytes of data of all events of one append over gRPC", db());
  settings_.add("max-mem-table-size", o.max_mem_table_size,
                "Index entries in memory before they are written to a table", db());
  settings_.add("stream-existence-filter-size", o.stream_existence_filter_size,
                "Bytes of the stream existence filter; 0: off", db());
  settings_.add("index-cache-depth", o.index_cache_depth, "Depth of the midpoint cache", db());
  settings_.add("max-truncation", o.max_truncation, "Bytes that may at most be cut off the log",
                db());
  settings_.add("disable-scavenge-merging", o.disable_scavenge_merging,
                "Leave small scavenged chunks as they are", db());
  settings_.add("scavenge-history-max-age", o.scavenge_history_max_age_days,
                "How long the log of a scavenge is kept", db("d"));
  settings_.add("scavenge-backend-page-size", o.scavenge_backend_page_size,
                "Page size of scavenging.db in bytes; 1 to 64: in KiB", db());
  settings_.add("scavenge-backend-cache-size", o.scavenge_backend_cache_size,
                "Memory for scavenging.db in bytes", db());
  settings_.add("scavenge-hash-users-cache-capacity", o.scavenge_hash_users_cache_capacity,
                "Stream hashes remembered when looking for collisions", db());
  settings_.add("write-timeout-ms", timings_.write_timeout,
                "A write that no majority has by then is answered as unknown", db("ms"));
  settings_.add("unsafe-ignore-hard-delete", o.unsafe_ignore_hard_delete,
                "A scavenge removes tombstones too: dangerous", db());
  settings_.add("assume-stopped", o.assume_stopped,
                "Do not look for a server that has the files open", db());
  for (const auto* name : {"always-keep-scavenged", "optimize-index-merge"}) {
    settings_.add(name, ignored_flags_[name], "Of the former scavenge",
                  {.group = "DatabaseOptions",
                   .prefix = kNode,
                   .deprecated = "this option is ignored by the scavenge of today"});
  }
  for (const auto* name : {"log", "prepare-timeout-ms", "commit-timeout-ms", "stats-period-sec",
                           "chunk-initial-reader-count"}) {
    settings_.add(name, ignored_[name], "Taken for the sake of a server's file",
                  {.group = "DatabaseOptions",
                   .prefix = kNode,
                   .deprecated = "the embedded node has no use for this option; ignored"});
  }
}

void OptionParser::declare_grpc() {
  const Traits grpc{.group = "GrpcOptions", .prefix = kNode, .unit = "ms"};
  settings_.add("keep-alive-interval", options_.keep_alive_interval_ms,
                "A connection of HTTP/2 on which nothing arrives for this long is pinged", grpc);
  settings_.add("keep-alive-timeout", options_.keep_alive_timeout_ms,
                "It is closed when the answer to that takes longer than this", grpc);
}

void OptionParser::declare_agent() {
  auto& o = options_;
  const Traits agent{.group = "Agent", .prefix = kAgent};
  settings_.add("state", o.state_directory, "Directory of the agent's journal", agent);
  settings_.add("backup-repositories", o.backup_repositories,
                "Directory of repository files: NAME.json is the repository of backups NAME",
                agent);
  settings_.add("backup-scratch", o.backup_scratch,
                "Directory to which drills restore backups; they need room for one (default: no "
                "drills)",
                agent);
  settings_.add("agent-ip", o.agent_ip, "Address of the agent interface (default: --host)", agent);
  settings_.add("agent-port", o.agent_port, "Port of the agent interface", agent);
  settings_.add("agent-certificate-file", o.agent_tls.certificate,
                "Of the agent interface (default: what it got by enrolling; else the node's)",
                agent);
  settings_.add("agent-certificate-private-key-file", o.agent_tls.private_key, "Its key", agent);
  settings_.add(
      "agent-certificate-private-key-password-file", agent_key_password_file_,
      "File of mode 0600 whose first line is the password of that key, if it is encrypted", agent);
  settings_.add("agent-trusted-roots", o.agent_tls.trusted_roots,
                "Roots to which the controller's certificate must chain; there is no default",
                agent);
  settings_.add("agent-controller-name", o.controller_name,
                "Common name, or one of the alternative names, of the controller's certificate: "
                "no other may act",
                agent);
  settings_.add("controller-token-file", o.controller_token_file,
                "Without TLS: file of mode 0600 with the token that the controller signs with "
                "(vergerd makes it: agents-token in its data directory)",
                agent);
  settings_.add("user-certificates", user_certificates_,
                "Files with certificates of users, or directories with such files, separated by "
                "commas: verger cert status shows when they end",
                agent);
  settings_.add("agent-poll-interval-ms", o.agent_poll_interval_ms,
                "Between two looks of the agent at its node",
                {.group = "Agent", .prefix = kAgent, .unit = "ms"});
  settings_.add("node", o.node_url, "Role agent: URL of the node beside it", agent);
  settings_.add("server-db", o.server_database,
                "Role agent: the path that the server itself has for --db, where it runs in a "
                "container (default: the same)",
                agent);
  settings_.add("server-index", o.server_index,
                "Role agent: the path that the server itself has for --index (default: the same)",
                agent);
  settings_.add("credentials-file", o.credentials_file,
                "Role agent: file with the node's user on its first line and the password on its "
                "second",
                agent);
  settings_.add("service-unit", o.service.unit,
                "Role agent: the server's systemd unit, started and stopped for offline work",
                agent);
  settings_.add("start-command", o.service.start_command,
                "Role agent, without a unit: starts the server and returns", agent);
  settings_.add("stop-command", o.service.stop_command,
                "Role agent, without a unit: stops the server and returns", agent);
  settings_.add("service-timeout-ms", service_timeout_ms_, "For each of these",
                {.group = "Agent", .prefix = kAgent, .unit = "ms"});
  settings_.add("server-config", o.server_config,
                "Role agent: the server's own configuration file (YAML), in which the size of the "
                "cluster is changed when it grows",
                agent);
  settings_.add("snapshot-command", o.snapshot_command,
                "Program that makes and deletes disk snapshots for backups, by its absolute path "
                "(default: none are made)",
                agent);
  settings_.add("snapshot-timeout-ms", o.snapshot_timeout_ms, "For each call of it",
                {.group = "Agent", .prefix = kAgent, .unit = "ms"});
  settings_.add("drill-command", o.drill_command,
                "Starts a server on a restored database for drills and stays with it (default: an "
                "embedded node)",
                agent);
}

Result<void> OptionParser::read_key_passwords(ProgramOptions& options) const {
  if (!node_key_password_file_.empty()) {
    if (!options.node_tls.private_key_password.empty()) {
      return Error{Errc::kInvalidArgument,
                   "certificate-private-key-password and --certificate-private-key-password-file: "
                   "give one of them"};
    }
    VERGER_TRY(options.node_tls.private_key_password, read_password_file(node_key_password_file_));
  }
  if (!agent_key_password_file_.empty()) {
    VERGER_TRY(options.agent_tls.private_key_password,
               read_password_file(agent_key_password_file_));
  }
  return {};
}

void OptionParser::settle_node_tls(ProgramOptions& options) const {
  options.node_tls.check_own_chain = true;
  if (insecure_ && options.node_has_tls()) {
    options.node_tls = {};
    options.warnings.emplace_back("--insecure: the certificates are not used");
  }
  // Without TLS only this machine can reach the node, and every user on it is the system account.
  options.node.insecure = !options.node_has_tls();
}

void OptionParser::settle_timings(ProgramOptions& options) const {
  auto& timings = options.node.timings;
  using ms = std::chrono::milliseconds;
  if (options.fast_timings) {
    timings = node::NodeTimings::fast();
  }
  const auto wanted = [&](std::string_view name, std::int64_t value, ms& into) {
    if (!options.fast_timings || settings_.given(name)) {
      into = ms(value);
    }
  };
  wanted("gossip-interval-ms", timings_.gossip_interval, timings.gossip_interval);
  wanted("gossip-timeout-ms", timings_.gossip_timeout, timings.gossip_timeout);
  wanted("leader-election-timeout-ms", timings_.election_timeout, timings.election_timeout);
  wanted("write-timeout-ms", timings_.write_timeout, timings.write_timeout);
  wanted("dead-member-removal-period-sec", timings_.dead_member_removal_seconds * 1000,
         timings.dead_member_removal);
  options.service.limit = ms(service_timeout_ms_);
  options.connection_lifetime = ms(connection_lifetime_ms_);
}

void OptionParser::list_effective(ProgramOptions& options) const {
  for (auto& option : settings_.effective()) {
    if (option.name == "ScavengeBackendPageSize") {
      option.value = std::to_string(options.node.scavenge_backend_page_size);
    }
    if (option.environment.starts_with(kNode)) {
      options.node.effective.push_back({.name = option.name,
                                        .description = option.description,
                                        .group = option.group,
                                        .value = option.value,
                                        .source = source_text(option.source),
                                        .deprecation = option.deprecated,
                                        .type = option.type,
                                        .unit = option.unit});
    }
  }
}

Result<ProgramOptions> OptionParser::finish() {
  auto options = options_;
  options.role = role_ == "node" ? Role::kNode : role_ == "agent" ? Role::kAgent : Role::kBoth;
  options.node.database = database_;
  options.node.index = index_;
  for (auto* address : {&options.node_ip, &options.replication_ip, &options.agent_ip}) {
    if (address->empty()) {
      *address = host_;
    }
  }
  options.warnings = settings_.warnings();
  VERGER_RETURN_IF_ERROR(read_key_passwords(options));
  options.user_certificates = comma_separated(user_certificates_);
  settle_node_tls(options);
  settle_default_passwords(options);
  settle_agent_tls(options);
  settle_timings(options);
  VERGER_TRY(options.node.gossip_seeds, parse_seeds(seeds_, options.node_has_tls()));
  VERGER_TRY(options.detours, parse_detours(detours_, options.node_has_tls()));
  options.node.scavenge_backend_page_size =
      page_size_in_bytes(options.node.scavenge_backend_page_size);
  list_effective(options);
  VERGER_RETURN_IF_ERROR(check(options));
  return options;
}

}  // namespace verger::agent
