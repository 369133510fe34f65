#include "nodeagent/daemon/agent_options.h"

#include <fmt/format.h>

#include <CLI/CLI.hpp>

#include "nodeagent/http/client.h"
#include "nodeagent/http/loopback.h"

namespace verger::agent {
namespace {

using std::chrono::milliseconds;

/// "127.0.0.1:2111,127.0.0.1:2112"
Result<std::vector<http::Endpoint>> parse_seeds(std::string_view text) {
  std::vector<http::Endpoint> seeds;
  while (!text.empty()) {
    const auto comma = text.find(',');
    const auto seed = text.substr(0, comma);
    auto endpoint = http::parse_endpoint("http://" + std::string(seed));
    if (!endpoint) {
      return endpoint.error().within(fmt::format("--gossip-seed {}", seed));
    }
    seeds.push_back(*std::move(endpoint));
    text = comma == std::string_view::npos ? std::string_view() : text.substr(comma + 1);
  }
  return seeds;
}

Result<void> check(const ProgramOptions& options) {
  if (!http::is_loopback(options.host)) {
    return Error{
        Errc::kInvalidArgument,
        fmt::format("--host {}: until TLS and authentication are there verger-agent listens "
                    "on loopback only",
                    options.host)};
  }
  for (const auto& seed : options.node.gossip_seeds) {
    if (!http::is_loopback(seed.host)) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("--gossip-seed {}: until TLS and authentication are there "
                               "verger-agent talks to loopback only",
                               seed.url())};
    }
  }
  if (options.role != Role::kAgent) {
    if (options.node.database.empty()) {
      return Error{Errc::kInvalidArgument, "--db is missing: the database directory of the node"};
    }
    if (options.node.cluster_size > 1 && options.node.gossip_seeds.empty()) {
      return Error{Errc::kInvalidArgument,
                   "--cluster-size above 1 needs --gossip-seed: host:port of the other nodes, "
                   "separated by commas"};
    }
    if (options.node.cluster_size == 1 && options.node.gossip_seeds.size() > 1) {
      return Error{Errc::kInvalidArgument, "several gossip seeds with --cluster-size 1"};
    }
    if (options.node.read_only_replica && options.node.cluster_size == 1) {
      return Error{Errc::kInvalidArgument, "--read-only-replica needs --cluster-size above 1"};
    }
    if (options.node.database == options.node.index) {
      return Error{Errc::kInvalidArgument, "--db and --index must be different directories"};
    }
  }
  if (options.role != Role::kNode && options.state_directory.empty()) {
    return Error{Errc::kInvalidArgument, "--state is missing: a directory for the agent's journal"};
  }
  if (options.role == Role::kAgent && options.node_url.empty()) {
    return Error{Errc::kInvalidArgument,
                 "--node is missing: the URL of the node beside this agent"};
  }
  return {};
}

}  // namespace

OptionParser::OptionParser(CLI::App& app) {
  auto& o = options_;
  app.add_option("--role", role_, "node, agent or both")
      ->check(CLI::IsMember({"node", "agent", "both"}))
      ->envname("VERGER_ROLE")
      ->capture_default_str();
  app.add_option("--db", database_, "Database directory of the node")->envname("VERGER_NODE_DB");
  app.add_option("--index", index_, "Index directory (default: DB/index)")
      ->envname("VERGER_NODE_INDEX");
  app.add_option("--state", o.state_directory, "Directory of the agent's journal")
      ->envname("VERGER_STATE");
  app.add_option("--host", o.host, "Address of all listeners; loopback only")
      ->envname("VERGER_HOST")
      ->capture_default_str();
  app.add_option("--node-port", o.node_port, "Port of the node interface")
      ->envname("VERGER_NODE_NODE_PORT")
      ->capture_default_str();
  app.add_option("--replication-port", o.replication_port, "Port of the replication link")
      ->envname("VERGER_NODE_REPLICATION_PORT")
      ->capture_default_str();
  app.add_option("--agent-port", o.agent_port, "Port of the agent interface")
      ->envname("VERGER_AGENT_PORT")
      ->capture_default_str();
  app.add_option("--node", o.node_url, "Role agent: URL of the node beside it")
      ->envname("VERGER_NODE");
  app.add_option("--cluster-size", o.node.cluster_size, "Number of voting nodes")
      ->envname("VERGER_NODE_CLUSTER_SIZE")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--gossip-seed", seeds_, "host:port of the other nodes, separated by commas")
      ->envname("VERGER_NODE_GOSSIP_SEED");
  app.add_flag("--read-only-replica", o.node.read_only_replica, "A copy that does not vote")
      ->envname("VERGER_NODE_READ_ONLY_REPLICA");
  app.add_option("--node-priority", o.node.node_priority, "Preference among equal candidates")
      ->envname("VERGER_NODE_NODE_PRIORITY")
      ->capture_default_str();
  app.add_option("--chunk-size", o.node.chunk_size,
                 "Bytes of a chunk; 0: as the database has it, 256 MiB for a new one")
      ->envname("VERGER_NODE_CHUNK_SIZE")
      ->capture_default_str();
  app.add_option("--max-mem-table-size", o.node.max_mem_table_size,
                 "Index entries in memory before they are written to a table")
      ->envname("VERGER_NODE_MAX_MEM_TABLE_SIZE")
      ->check(CLI::PositiveNumber)
      ->capture_default_str();
  app.add_option("--stream-existence-filter-size", o.node.stream_existence_filter_size,
                 "Bytes of the stream existence filter; 0: off")
      ->envname("VERGER_NODE_STREAM_EXISTENCE_FILTER_SIZE")
      ->capture_default_str();
  app.add_flag("--enable-atom-pub-over-http", o.node.enable_atom_pub,
               "Serve /streams/... for reading and writing")
      ->envname("VERGER_NODE_ENABLE_ATOM_PUB_OVER_HTTP");
  app.add_flag("--disable-scavenge-merging", o.node.disable_scavenge_merging,
               "Leave small scavenged chunks as they are")
      ->envname("VERGER_NODE_DISABLE_SCAVENGE_MERGING");
  app.add_flag("--unsafe-ignore-hard-delete", o.node.unsafe_ignore_hard_delete,
               "A scavenge removes tombstones too: dangerous")
      ->envname("VERGER_NODE_UNSAFE_IGNORE_HARD_DELETE");
  app.add_option("--scavenge-history-max-age", o.node.scavenge_history_max_age_days,
                 "Days that the log of a scavenge is kept")
      ->envname("VERGER_NODE_SCAVENGE_HISTORY_MAX_AGE")
      ->capture_default_str();
  app.add_flag("--assume-stopped", o.node.assume_stopped,
               "Do not look for a server that has the files open")
      ->envname("VERGER_NODE_ASSUME_STOPPED");
  app.add_option("--agent-poll-interval-ms", o.agent_poll_interval_ms,
                 "Between two looks of the agent at its node")
      ->envname("VERGER_AGENT_POLL_INTERVAL_MS")
      ->capture_default_str();
  app.add_flag("--fast-timings", o.fast_timings,
               "Gossip, elections and settling within 300 ms, for tests and demos on one machine");
  app.add_option("--end-after-seconds", o.end_after_seconds,
                 "End by itself after this long (for tests and demos; 0 = never)");
  app.add_flag("--json-log", o.json_log, "Log lines as JSON")->envname("VERGER_JSON_LOG");
  app.footer(
      "Example: verger-agent --db /var/lib/verger/db --state /var/lib/verger/agent \\\n"
      "           --cluster-size 3 --gossip-seed 127.0.0.1:2112,127.0.0.1:2113");
}

Result<ProgramOptions> OptionParser::finish() {
  auto options = options_;
  options.role = role_ == "node" ? Role::kNode : role_ == "agent" ? Role::kAgent : Role::kBoth;
  options.node.database = database_;
  options.node.index = index_;
  VERGER_TRY(options.node.gossip_seeds, parse_seeds(seeds_));
  if (options.fast_timings) {
    options.node.timings = node::NodeTimings::fast();
  }
  VERGER_CHECK(check(options));
  return options;
}

}  // namespace verger::agent
