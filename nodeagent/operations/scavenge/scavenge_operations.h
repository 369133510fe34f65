#pragma once

#include <memory>
#include <vector>

#include "nodeagent/operations/operation.h"
#include "nodeagent/operations/scavenge/server_settings.h"

/// What an agent does for a scavenge of its node.
namespace verger::agent {

/// scavenge {"threads", "threshold", "throttlePercent", "syncOnly"}: starts one on the node and
/// observes it to its end. Result: {"scavengeId", "point" or null, "spaceSaved", "bytesBefore",
/// "bytesAfter"}. Codes: "scavenge_running", "refused", "stopped", "interrupted" (by a
/// restart), "errored".
std::unique_ptr<Operation> make_scavenge_operation();
/// offline_scavenge {"point", "threads", "serviceDeadlineMs"}: stops the server, scavenges its
/// files up to a point that is in its log, starts it, waits until it has caught up. Refused on a
/// leader. Result: {"point", "spaceSaved", "recordsRemoved"
/// (both null where the agent died meanwhile), "bytesBefore", "bytesAfter"}. Codes:
/// "interrupted", "no_answer" (the server did not come back within the deadline). It can be
/// stopped: then the code is "stopped".
std::unique_ptr<Operation> make_offline_scavenge_operation();
/// online_scavenge {"point", "threads"}: scavenges the chunks beside the running server up to a
/// point that is in its log, has the server switch them in, and do the rest of the scavenge.
/// Result: {"point", "scavengeId", "spaceSaved", "recordsRemoved", "bytesBefore", "bytesAfter",
/// "chunksSwitched", "chunksLeft"}. Codes: "not_supported", "lock_held", "refused" (in the server's
/// words), "no_space", "stopped": chunks that were switched stay.
std::unique_ptr<Operation> make_online_scavenge_operation(QuerySettings settings);
/// scavenge_point {"threshold"}: starts a scavenge that writes a point and stops it as soon as the
/// point is in the node's scavenge state. Result: {"point"}. Code: "no_point".
std::unique_ptr<Operation> make_scavenge_point_operation();

/// All of these.
std::vector<std::unique_ptr<Operation>> scavenge_operations(QuerySettings settings);

}  // namespace verger::agent
