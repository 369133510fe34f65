#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "nodeagent/api/agent_jobs.h"

/// The agent interface, /agent/v1 (docs/formats/agent-interface.md):
///   GET  /agent/v1/facts                     NodeFacts
///   POST /agent/v1/permits                   Permit -> 204, or 409 when a newer epoch is known
///   POST /agent/v1/operations                OperationRequest -> 202 OperationStatus;
///                                            200 where the id is known already
///   GET  /agent/v1/operations/{id}           OperationStatus, 404 where the id never arrived
///   POST /agent/v1/operations/{id}/cancel    stops what it does, where that can be stopped (also:
///                                            keep)
///   POST /agent/v1/operations/{id}/throttle  Throttle: from now on, where it can be throttled
///   PUT  /agent/v1/files/{sha256}            stores a file (also: controllerEpoch); GET, HEAD: is
///                                            it there; DELETE; GET /agent/v1/files: all of them
///   GET  /agent/v1/digest?point=N            202 while it is computed, 200 Digest; begins it, or
///                                            resumes it (also: readable, throttlePercent)
///   POST /agent/v1/digest/stop?point=N       stops computing it (also: keep)
/// Errors are RFC 9457 problem details with a stable "code".
namespace verger::api {

/// Values are what the log says (docs/formats/scavenge.md); times are ISO-8601 UTC.
struct ScavengePoint {
  std::int64_t number = 0;    ///< counts from 0
  std::int64_t position = 0;  ///< in the log: everything below it is scavenged
  std::string effective_now{};
  std::int32_t threshold = 0;
  friend bool operator==(const ScavengePoint&, const ScavengePoint&) = default;
};

/// A scavenge that was begun and has not reached its point, running or not.
struct UnfinishedScavenge {
  ScavengePoint point{};
  std::string stage{};  ///< "Accumulating" ... "Cleaning", as scavenging.db has it
};

/// A scavenge that runs, as far as its node or its log tell.
struct RunningScavenge {
  std::string id{};
  std::string phase{};  ///< as in /metrics, for example "Chunk execution Phase"
  std::int64_t chunks_done = 0;
  std::int64_t chunks_total = 0;
  std::int64_t bytes_saved = 0;
};

/// accepted -> acting -> done, failed or cancelled (stopped on request); unknown while it is not
/// clear what became of it.
enum class OperationState : std::uint8_t {
  kAccepted,
  kActing,
  kUnknown,
  kDone,
  kFailed,
  kCancelled,
};
std::string_view to_string(OperationState state);
Result<OperationState> parse_operation_state(std::string_view text);
/// done, failed or cancelled.
bool has_ended(OperationState state);

/// What an agent says of one operation. `result` is JSON text whose shape depends on the kind.
struct OperationStatus {
  std::string id{};
  std::string kind{};
  OperationState state = OperationState::kAccepted;
  std::string error_code{};  ///< of a failed or cancelled one; stable
  std::string error{};
  std::string result_json = "{}";
  std::string accepted_at{};
  std::string finished_at{};                    ///< empty while it runs
  std::optional<OperationProgress> progress{};  ///< while it acts, where that is known
  std::optional<Throttle> throttle{};           ///< while it acts, where it can be changed
};

/// What an agent knows of its node without changing anything.
struct NodeFacts {
  std::string agent_version{};
  std::string files_problem{};  ///< why it cannot read the node's log, state or index
  /// Why the node does not answer; while it does: why it does not let the agent operate it.
  std::string node_problem{};
  /// Empty while the node does not answer.
  std::string node_instance_id{};
  bool node_running = false;
  std::string node_version{};
  std::string node_state{};
  /// What stays with the database for ever and differs from any other cluster's: the id of its
  /// first epoch. The same on all nodes. Empty where it cannot be read.
  std::string database_id{};
  std::int64_t writer_checkpoint = -1;
  std::int32_t epoch_number = -1;
  std::int64_t disk_total_bytes = 0;
  std::int64_t disk_free_bytes = 0;
  std::int64_t database_bytes = 0;
  std::int64_t event_count = -1;  ///< events the index holds; -1: not known
  std::int64_t chunk_file_count = 0;
  std::int64_t largest_chunk_bytes = 0;
  std::int64_t chunk_size = 0;
  /// Number of the newest logical chunk, the one that is being written; -1: not known.
  std::int64_t newest_chunk = -1;
  /// Of the chunk files below the newest chunk: what a scavenge can make smaller. -1: not known.
  std::int64_t complete_chunk_bytes = -1;
  /// Of the chunk files below the requested chunk (facts?chunksBelow=N); -1: not requested,
  /// or not known.
  std::int64_t bytes_below = -1;
  /// The first chunk with which a file begins, not below the chunk that was asked for, nor in what
  /// the last finished scavenge went through: what was merged meanwhile lies on one side of it. -1:
  /// not asked for, or not known, as are the next two then.
  std::int64_t compared_chunk = -1;
  std::int64_t compared_bytes = -1;  ///< of the chunk files below it
  /// What the chunks from the one that was asked for to that one had as files when they were
  /// completed. Such as end without a point count as full.
  std::int64_t completed_bytes = -1;
  /// Of the file system that holds the index, which may be another than the database's; 0: not
  /// known.
  std::int64_t index_disk_total_bytes = 0;
  std::int64_t index_disk_free_bytes = 0;
  std::int64_t largest_table_bytes = -1;  ///< of the index's PTables; -1: not known
  std::int64_t largest_merge_bytes = -1;  ///< PTables that the next merge puts together; 0: none
  /// Scavenge points in the committed log, oldest first (the newest 20).
  std::vector<ScavengePoint> points{};
  std::optional<ScavengePoint> last_finished_point{};
  std::optional<UnfinishedScavenge> unfinished{};
  std::optional<RunningScavenge> running{};
  std::vector<OperationStatus> operations{};  ///< those not ended, and the newest ended ones
  std::int64_t highest_controller_epoch = 0;
  std::string taken_at{};
};

/// From now on the agent refuses older controllers. It runs out `valid_for_ms` after arrival, on
/// the agent's own monotonic clock; with 0 the permit of this step is revoked at once.
struct Permit {
  std::int64_t controller_epoch = 0;
  std::string run{};
  std::string step{};
  std::int64_t valid_for_ms = 60'000;
};

/// Orders an operation of an agent, once. The same id again answers with the status of the first.
struct OperationRequest {
  std::string id{};
  std::string run{};
  std::string step{};
  std::int64_t controller_epoch = 0;
  std::string kind{};                  ///< "scavenge", "resign", "set_priority"
  std::string parameters_json = "{}";  ///< depends on the kind (docs/formats/agent-interface.md)
  /// The node the controller means; refused when the node's instance id is another.
  std::string expected_instance_id{};
};

/// The digests of the log up to a scavenge point, equal on nodes that hold the same
/// (docs/formats/agent-interface.md, "Digest").
struct Digest {
  std::int64_t point_number = 0;
  std::int64_t point_position = 0;
  std::string logical{};              ///< hex SHA-256
  std::string readable{};             ///< hex SHA-256; empty: it was not requested
  std::vector<std::string> chunks{};  ///< hex SHA-256 of each logical chunk's live records
  std::int64_t records = 0;
  std::int64_t readable_events = 0;  ///< -1: not requested
};

/// What an agent answers to a request for a digest.
struct DigestAnswer {
  std::optional<Digest> digest{};  ///< nullopt: it is being computed
  std::int64_t bytes_done = 0;     ///< of the log's, while it is being computed
  std::int64_t bytes_total = 0;    ///< 0: not known yet
};

// JSON, as the interface has it. Readers' error: kCorruption, saying where the text is not of that
// shape; of requests kInvalidArgument.
std::string to_text(const NodeFacts& facts);
std::string to_text(const OperationStatus& status);
std::string to_text(const OperationRequest& request);
std::string to_text(const Permit& permit);
std::string to_text(const Digest& digest);
/// {"state": "computing", "bytesDone", "bytesTotal"} where there is no digest yet.
std::string to_text(const DigestAnswer& answer);
Result<NodeFacts> parse_node_facts(std::string_view body);
Result<OperationStatus> parse_operation_status(std::string_view body);
Result<OperationRequest> parse_operation_request(std::string_view body);
Result<Permit> parse_permit(std::string_view body);
Result<Digest> parse_digest(std::string_view body);

}  // namespace verger::api
