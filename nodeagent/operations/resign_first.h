#pragma once

#include <string_view>

#include <boost/asio/awaitable.hpp>

#include "nodeagent/operations/operation.h"

namespace verger::agent {

/// The parameter of operations that do so where it is true.
inline constexpr std::string_view kResignFirstParameter = "resignFirst";

/// Lets a server that leads resign, and waits up to ten seconds until it no longer leads: of a
/// leader that just ends the others notice only after some time. A majority may not agree, so this
/// is no condition of what follows.
net::awaitable<void> resign_first(LocalNode node);

}  // namespace verger::agent
