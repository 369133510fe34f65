#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "nodeagent/node/election.h"

namespace verger::node {

/// The form of election messages between nodes (docs/formats/replication.md, "Elections").
nlohmann::json to_json(const ElectionMessage& message);
nlohmann::json to_json(const LogState& log);
/// Errors: kInvalidArgument.
Result<ElectionMessage> parse_election_message(const nlohmann::json& json);

}  // namespace verger::node
