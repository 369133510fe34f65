#pragma once

#include <chrono>

#include <nlohmann/json_fwd.hpp>

#include "nodeagent/operations/operation.h"

namespace verger::agent {

/// How long a server that was stopped may take to answer again, where the request names nothing
/// else.
inline constexpr std::chrono::milliseconds kServiceDeadline{3'600'000};

/// Notes in an operation's memory that the server was started just now.
void note_server_start(LocalNode node, nlohmann::json& memory);

/// One look at a server that does not answer: how long it has been on its way down, or up; started
/// again, with growing pauses, where no process has its files open. What has to outlive the agent
/// is in `memory`, member "down". kFailed with the code "no_answer" after `deadline`.
net::awaitable<Observation> await_server(LocalNode node, nlohmann::json& memory,
                                         std::chrono::milliseconds deadline);

}  // namespace verger::agent
