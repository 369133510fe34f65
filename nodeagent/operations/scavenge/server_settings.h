#pragma once

#include <chrono>
#include <functional>
#include <string_view>

#include "nodeagent/client/node_client.h"

namespace verger::agent {

/// Of GET /info/options, what a scavenge of the server's depends on.
struct ScavengeSettings {
  int page_size = 0;                  ///< ScavengeBackendPageSize in bytes; 0: it did not tell
  bool ignores_hard_deletes = false;  ///< UnsafeIgnoreHardDelete
};
/// Errors: kCorruption: not the options.
Result<ScavengeSettings> parse_scavenge_settings(std::string_view body);

/// Queries the node. Errors: kUnavailable, kUnauthorized (users in $ops or $admins may read them).
using QuerySettings = std::function<net::awaitable<Result<ScavengeSettings>>()>;
/// `client` outlives the calls.
QuerySettings query_settings_of(http::Client& client, http::Endpoint node,
                                client::SharedCredentials credentials,
                                std::chrono::milliseconds deadline);

}  // namespace verger::agent
