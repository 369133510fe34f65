#pragma once

#include <functional>
#include <optional>

#include <boost/asio/awaitable.hpp>

#include "engine/base/file_system.h"
#include "nodeagent/external/file_access.h"
#include "nodeagent/external/start_options.h"
#include "nodeagent/http/timers.h"

namespace verger::agent {

/// By which an agent reaches the configuration file of its server. Everything outlives the agent.
struct ServerConfigAccess {
  Path file;
  external::FileAccess& access;
  /// With what the running server was started; nullopt: it does not run. Error: it may not be seen.
  std::function<net::awaitable<Result<std::optional<external::StartOptions>>>()> started_with;
};

}  // namespace verger::agent
