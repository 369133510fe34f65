#include "nodeagent/daemon/detail/option_checks.h"

#include <bit>
#include <fmt/format.h>

#include "nodeagent/http/client.h"
#include "nodeagent/http/loopback.h"

namespace verger::agent {
namespace {

/// Of SQLite, in bytes.
constexpr std::uint32_t kLeastPageSize = 512;
constexpr std::uint32_t kLargestPageSize = 65'536;

Error wrong(std::string text) { return {Errc::kInvalidArgument, std::move(text)}; }

/// Who may act as the controller has to be configured: no default would keep others out.
Result<void> check_controller(const ProgramOptions& options) {
  if (options.role == Role::kNode || options.agent_enrolled) {
    return {};
  }
  if (options.agent_has_tls()) {
    for (const auto& [name, value] :
         {std::pair("--agent-trusted-roots", options.agent_tls.trusted_roots),
          std::pair("--agent-controller-name", options.controller_name)}) {
      if (value.empty()) {
        return wrong(fmt::format(
            "{} is missing: over https an agent obeys only a controller whose certificate chains "
            "to roots of its own and has the expected name. The simple way is to enrol the agent "
            "(verger-agent enrol --help)",
            name));
      }
    }
    return {};
  }
  if (options.controller_token_file.empty()) {
    return wrong(
        "--controller-token-file is missing: without TLS an agent obeys only a controller that "
        "signs with its token. vergerd of this machine makes it: agents-token in its data "
        "directory. Or enrol the agent (verger-agent enrol --help)");
  }
  return {};
}

/// Without TLS no peer can be identified: then only this machine may connect.
Result<void> check_reach(const ProgramOptions& options) {
  if (options.role != Role::kAgent && !options.node_has_tls()) {
    for (const auto& host : {options.node_ip, options.replication_ip}) {
      if (!http::is_loopback(host)) {
        return wrong(
            fmt::format("--node-ip {}: without TLS the node listens on loopback only; give "
                        "--certificate-file, --certificate-private-key-file and "
                        "--trusted-root-certificates-path",
                        host));
      }
    }
    for (const auto& seed : options.node.gossip_seeds) {
      if (!http::is_loopback(seed.host)) {
        return wrong(fmt::format("--gossip-seed {}: without TLS the node talks to loopback only",
                                 seed.url()));
      }
    }
  }
  if (options.role != Role::kNode && !options.agent_has_tls() &&
      !http::is_loopback(options.agent_ip)) {
    return wrong(
        fmt::format("--agent-ip {}: without TLS the agent listens on loopback only; enrol "
                    "it (verger-agent enrol --help), or give --agent-certificate-file and its key",
                    options.agent_ip));
  }
  return {};
}

Result<void> check_node(const ProgramOptions& options) {
  if (options.node.database.empty()) {
    return wrong("--db is missing: the database directory of the node");
  }
  if (options.node.cluster_size < 1) {
    return wrong("--cluster-size counts the voting nodes, so it is at least 1");
  }
  if (options.node.max_mem_table_size < 1) {
    return wrong("--max-mem-table-size must be at least 1");
  }
  if (options.node.max_append_size < 1) {
    return wrong("--max-append-size must be at least 1 byte");
  }
  if (options.keep_alive_interval_ms < 1 || options.keep_alive_timeout_ms < 1) {
    return wrong("--keep-alive-interval and --keep-alive-timeout must be at least 1 ms");
  }
  if (options.node.cluster_size > 1 && options.node.gossip_seeds.empty()) {
    return wrong(
        "--cluster-size above 1 needs --gossip-seed: host:port of the other nodes, separated by "
        "commas");
  }
  if (options.node.cluster_size == 1 && options.node.gossip_seeds.size() > 1) {
    return wrong("several gossip seeds with --cluster-size 1");
  }
  if (options.node.read_only_replica && options.node.cluster_size == 1) {
    return wrong("--read-only-replica needs --cluster-size above 1");
  }
  if (options.node.database == options.node.index) {
    return wrong("--db and --index must be different directories");
  }
  if (options.node.scavenge_history_max_age_days < 1) {
    return wrong(fmt::format("--scavenge-history-max-age {}: whole days, 1 or more",
                             options.node.scavenge_history_max_age_days));
  }
  // A file of a wrong page size would stop every scavenge, also once the option is right again.
  const auto page_size = options.node.scavenge_backend_page_size;
  if (!std::has_single_bit(page_size) || page_size < kLeastPageSize ||
      page_size > kLargestPageSize) {
    return wrong(
        fmt::format("--scavenge-backend-page-size {}: a power of two from 512 to 65536 (bytes), or "
                    "from 1 to 64 (KiB); scavenging.db was made with 16384 unless you chose "
                    "another",
                    page_size));
  }
  return {};
}

Result<void> check_files(const http::TlsFiles& files, std::string_view prefix) {
  if (files.certificate.empty() != files.private_key.empty()) {
    return wrong(
        fmt::format("{0}certificate-file and {0}certificate-private-key-file belong "
                    "together: give both or none",
                    prefix));
  }
  return {};
}

}  // namespace

Result<void> check(const ProgramOptions& options) {
  if (options.role != Role::kAgent) {  // else they are another process's
    VERGER_RETURN_IF_ERROR(check_files(options.node_tls, "--"));
    if (options.node_has_tls() && options.node_tls.trusted_roots.empty()) {
      return wrong("--certificate-file needs --trusted-root-certificates-path: whom to trust");
    }
  }
  VERGER_RETURN_IF_ERROR(check_files(options.agent_tls, "--agent-"));
  VERGER_RETURN_IF_ERROR(check_reach(options));
  if (options.role != Role::kAgent) {
    VERGER_RETURN_IF_ERROR(check_node(options));
  }
  if (options.role != Role::kNode && options.state_directory.empty()) {
    return wrong("--state is missing: a directory for the agent's journal");
  }
  if (options.backup_repositories.empty() && !options.backup_scratch.empty()) {
    return wrong("--backup-scratch needs --backup-repositories: where the backups are");
  }
  VERGER_RETURN_IF_ERROR(check_controller(options));
  if (options.service.start_command.empty() != options.service.stop_command.empty()) {
    return wrong("--start-command and --stop-command belong together: give both or none");
  }
  if (!options.server_config.empty() && options.server_config.front() != '/') {
    return wrong(fmt::format("--server-config {}: an absolute path", options.server_config));
  }
  if (options.role == Role::kAgent) {
    if (options.node_url.empty()) {
      return wrong("--node is missing: the URL of the node beside this agent");
    }
    if (options.node.database.empty()) {
      return wrong("--db is missing: the database directory of the node beside this agent");
    }
    auto node = http::parse_endpoint(options.node_url);
    if (!node) {
      return node.error().within("--node " + options.node_url);
    }
    if (!node->tls && !http::is_loopback(node->host)) {
      return wrong(fmt::format("--node {}: without TLS the agent talks to loopback only; use https",
                               options.node_url));
    }
    if (node->tls && options.node_tls.trusted_roots.empty()) {
      return wrong(
          fmt::format("--node {}: https needs --trusted-root-certificates-path: the roots "
                      "that the node's certificate chains to",
                      options.node_url));
    }
  }
  return {};
}

}  // namespace verger::agent
