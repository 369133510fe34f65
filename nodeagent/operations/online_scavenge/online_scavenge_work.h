#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "engine/base/failpoint.h"
#include "nodeagent/external/online_access.h"
#include "nodeagent/operations/operation.h"
#include "nodeagent/operations/scavenge/server_settings.h"

/// The scavenge of chunks beside a running server (engine/online), with what only the agent can do:
/// the server's chunk lock, its switches, its own phases.
namespace verger::agent {

struct OnlineParameters {
  std::int64_t point = -1;
  std::int32_t threads = 1;
};
/// Of a request. Error: kInvalidArgument.
Result<OnlineParameters> parse_online_parameters(const std::string& parameters_json);

/// How it ended.
struct OnlineEnd {
  bool done = false;
  std::string code{};  ///< of a failure
  std::string text{};  ///< of a failure; else the result as JSON
};

/// Why chunks of this server cannot be scavenged beside it up to the point; empty: they can.
std::string online_problem(const external::OnlineLook& look, const node::NodeInspection& inspection,
                           const ScavengeSettings& settings, std::int64_t point);

/// All of it, from wherever the files show that an earlier agent has left it. `memory`: what must
/// not be forgotten (memory_json). nullopt: the agent ends meanwhile; the next one continues.
/// `node.online` is not null.
net::awaitable<std::optional<OnlineEnd>> scavenge_online(LocalNode node, QuerySettings settings,
                                                         OnlineParameters parameters,
                                                         nlohmann::json memory);

}  // namespace verger::agent
