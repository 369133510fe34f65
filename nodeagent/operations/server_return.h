#pragma once

#include <chrono>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "nodeagent/operations/operation.h"

namespace verger::agent {

/// How long a server that was stopped may take to answer again, where the request names nothing
/// else.
inline constexpr std::chrono::milliseconds kServiceDeadline{3'600'000};
/// The parameter that names it.
inline constexpr std::string_view kServiceDeadlineParameter = "serviceDeadlineMs";
/// Of an operation's parameters. Error: kInvalidArgument.
Result<std::chrono::milliseconds> service_deadline(const OperationRecord& record);

/// Error: kUnsupported: this agent cannot stop and start its server.
Result<void> needs_service_control(const LocalNode& node);

/// Starts the server, and notes that in an operation's memory. The note is journaled before the
/// start, so that the next agent does not start it a second time if this one dies meanwhile; where
/// the server does not start, the note goes. Errors: those of OfflineServer::start().
net::awaitable<Result<void>> start_server(LocalNode node, nlohmann::json& memory);

/// One look at a server that does not answer: how long it has been on its way down, or up. It is
/// started again where no process has its files open: soon after one that had them open has ended,
/// as a server does that cuts its log, else with growing pauses. What has to outlive the agent is
/// in `memory`, member "down". kFailed with the code "no_answer" after `deadline`.
net::awaitable<Observation> await_server(LocalNode node, nlohmann::json& memory,
                                         std::chrono::milliseconds deadline);

}  // namespace verger::agent
