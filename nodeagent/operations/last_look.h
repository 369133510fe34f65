#pragma once

#include <string>
#include <string_view>
#include <vector>

#include <boost/asio/awaitable.hpp>

#include "nodeagent/operations/operation.h"

namespace verger::agent {

/// The agent's own look at the gates in an operation's parameters, right before it acts: with its
/// node's gossip and its own disk. The controller looked as well, but some time ago and from
/// elsewhere. Empty: all that can be seen from here is open; else what is closed. Known are
///   voters-alive   limit: voters that must be up and settled, this one included
///   quorum-margin  limit: voters that must be up without this one
///   one-leader, not-leader
///   no-scavenge-running and no-scavenge-on-node, or nobody-scavenges and idle, as a controller of
///                  version 0.1 calls them: of this node
///   lag-below      limit: bytes that any live member may lack; where gossip is too old for it, of
///                  what the leader had at the first look, some seconds later
///   disk           limit: bytes to keep free beyond the largest rewrite
/// Other names are the controller's business alone.
net::awaitable<std::string> closed_gates(LocalNode node, FileSystem& files,
                                         std::string parameters_json);

/// The names of the gates above, in the order in which they are checked.
std::vector<std::string_view> checked_gates();

}  // namespace verger::agent
