#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "nodeagent/node/options.h"

namespace CLI {
class App;
}  // namespace CLI

namespace verger::agent {

enum class Role : std::uint8_t {
  kNode,   ///< the embedded node alone
  kAgent,  ///< the agent alone, beside a node that runs by itself
  kBoth,
};

/// Everything verger-agent can be told. The node's own options have the environment prefix
/// VERGER_NODE_, the others VERGER_.
struct ProgramOptions {
  Role role = Role::kBoth;
  node::NodeOptions node;
  std::string host = "127.0.0.1";
  std::uint16_t node_port = 2113;
  std::uint16_t replication_port = 1112;
  std::uint16_t agent_port = 2114;
  std::string state_directory;  ///< of the agent's journal
  std::string node_url;         ///< role agent: the node beside it
  std::int64_t agent_poll_interval_ms = 500;
  std::int64_t end_after_seconds = 0;
  bool fast_timings = false;
  bool json_log = false;
};

/// Adds the options to `app`; they are complete after parsing and finish_options().
class OptionParser {
 public:
  explicit OptionParser(CLI::App& app);
  /// What was parsed. Errors: kInvalidArgument, naming the option and what it takes.
  Result<ProgramOptions> finish();

 private:
  ProgramOptions options_;
  std::string role_ = "both";
  std::string database_;
  std::string index_;
  std::string seeds_;
};

}  // namespace verger::agent
