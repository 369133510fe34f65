#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "nodeagent/api/agent.h"

namespace verger::api {

/// A directory that an agent looks at.
struct DirectoryFacts {
  std::string path{};
  /// The same for all paths that lead to it, and different for all other directories of the
  /// machine; empty: not known.
  std::string identity{};
};

/// Of an agent that does not say whether its server's chunk files can be switched.
inline constexpr std::string_view kOnlineNotTold =
    "its agent does not tell whether chunk files can be switched into the running server: it is "
    "older than that";

/// The facts of an agent: its node's, and what it can do itself.
struct AgentFacts : NodeFacts {
  bool service_control = false;  ///< it can stop and start its server
  /// By which it starts it, as a person types it on its machine; empty: it cannot.
  std::string start_command{};
  /// Why it must not scavenge the stopped server's files all the same; empty: it may.
  std::string offline_problem{};
  /// Why chunk files cannot be switched into the server while it runs (redaction, scavenge); empty:
  /// they can.
  std::string online_problem = std::string(kOnlineNotTold);
  /// Streams of the index that the existence filter does not have: to a server they do not exist
  /// after its next start. -1: not counted yet.
  std::int64_t lost_streams = -1;
  /// Of a server in another process: what the agent looks at. No two agents may look at one.
  DirectoryFacts database_directory{};
  DirectoryFacts index_directory{};
  /// Of a server in another process: when its log was read last, up to its end. Empty: not yet.
  std::string log_as_of{};
  /// Why the agent has given up restarting its server, which does not answer. Empty: it has not.
  std::string stays_down{};
  /// While the server is stopped: what has stopped it and keeps it so ("operation o1"), until
  /// start_service. Empty: nothing does, so that it may just not answer.
  std::string kept_stopped_by{};
  /// Backups whose restore kept the former files beside the database (old-before-ID).
  std::vector<std::string> kept_restores{};
  /// What an operator should correct, although nothing fails by it.
  std::string warning{};
  /// JSON of an object whose members are sent, too: for people, no program of ours reads them.
  std::string more_json = "{}";
};
std::string to_text(const AgentFacts& facts);
Result<AgentFacts> parse_agent_facts(std::string_view body);

/// A condition for acting, in the member "gates" of any operation's parameters
/// (docs/formats/agent-interface.md, "The last look").
struct GateLimit {
  std::string name{};
  std::int64_t limit = 0;
  friend bool operator==(const GateLimit&, const GateLimit&) = default;
};
nlohmann::json to_json(const std::vector<GateLimit>& gates);
/// Of an operation's parameters. Error: kInvalidArgument.
Result<std::vector<GateLimit>> parse_gates(std::string_view parameters_json);

}  // namespace verger::api
