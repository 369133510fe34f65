#pragma once

#include <functional>
#include <string>
#include <vector>

#include "controller/cluster/agent_book.h"
#include "controller/cluster/observer.h"

namespace verger::controller {

/// Makes vergerd's own certificate for agents, with its key in the same file (mode 0600), where
/// there is none, two thirds of it are over, or another authority issued it. True: it is new.
Result<bool> renew_own_certificate(const certificates::Authority& authority, const Path& path,
                                   std::chrono::seconds lifetime, Ticks now);
/// The same of the API's certificate, for these names and addresses: also made anew where it has
/// others. The root is behind it in the file, so that a client that knows the root's fingerprint
/// finds it in a handshake.
Result<bool> renew_api_certificate(const certificates::Authority& authority, const Path& path,
                                   const std::vector<std::string>& hosts,
                                   std::chrono::seconds lifetime, Ticks now);

/// Gives enrolled agents a new certificate when two thirds of theirs are over: asks the agent for a
/// request (its key stays there), issues, journals, delivers. An agent that cannot be reached is
/// tried again at the next look. Everything outlives the coroutine.
struct AgentRenewal {
  AgentBook& book;
  Registry& registry;
  Clock& clock;
  http::Timers& timers;
  Log& log;
  /// The client for one agent that has enrolled.
  std::function<http::Client&(const EnrolledAgent&)> client_of;
  /// Reads, or makes anew, vergerd's own certificate of the agents' authority.
  std::function<Result<void>()> renew_own;
  std::chrono::milliseconds request_deadline{15'000};
  std::chrono::milliseconds look_every = std::chrono::hours(1);

  /// Ends when cancelled.
  static net::awaitable<void> run(AgentRenewal parts);
};

}  // namespace verger::controller
