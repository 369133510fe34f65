#pragma once

#include <chrono>

#include <nlohmann/json_fwd.hpp>

#include "engine/base/types.h"

namespace verger::agent {

/// Whether an effect has been awaited for longer than `patience`. `memory` is the operation's own:
/// its member "since" is when waiting began, by the wall clock, since it has to outlive the agent.
/// A clock that was set back begins the wait anew, instead of one that nobody sees the end of.
bool waited_longer_than(std::chrono::seconds patience, Ticks now, nlohmann::json& memory);

}  // namespace verger::agent
