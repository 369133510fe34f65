#pragma once

#include <string_view>

#include "engine/base/result.h"

namespace verger::controller {

/// Names of clusters and nodes become parts of URLs, of the journal's streams and of agents'
/// identities. `what` says in the message whose name it is. Error: kInvalidArgument.
Result<void> check_name(std::string_view what, std::string_view name);

}  // namespace verger::controller
