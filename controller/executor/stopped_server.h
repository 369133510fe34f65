#pragma once

#include <string>

#include <boost/asio/awaitable.hpp>
#include <nlohmann/json.hpp>

#include "controller/executor/step_support.h"

/// Of steps whose agent stops its server, works on the files and starts it again. Undone by the
/// start.
namespace verger::controller::steps {

/// Notes in the memo the command that starts the server: for an operator who has to, since then its
/// agent may be silent.
net::awaitable<void> note_start_command(const StepContext& context, nlohmann::json& memo);
/// As an operator types it, from what was noted.
std::string start_server_command(const StepContext& context);
net::awaitable<ActAnswer> start_server(const StepContext& context);
/// kDone once the node answers; kNotHappened where the agent never got it, or failed.
net::awaitable<Verdict> observe_start(const StepContext& context);

}  // namespace verger::controller::steps
