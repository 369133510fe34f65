#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <variant>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/result.h"
#include "engine/log/chunk.h"
#include "engine/log/epoch.h"

/// What goes over the replication link, one message per frame (docs/formats/replication.md).
namespace verger::node::replication {

inline constexpr std::uint32_t kProtocolVersion = 2;
/// Piece of a batch or of a raw chunk in one frame.
inline constexpr std::size_t kPieceSize = 1U << 20U;

/// Where the records before a place end: the place itself, or, where a completed chunk ends there,
/// the end of its data. Positions between the two belong to no record.
struct RecordEnd {
  LogPosition place{0};
  LogPosition data_end{0};
  /// The chunk before is scavenged: what it holds is committed, and data_end is unknown (= place).
  bool scavenged = false;
  friend bool operator==(const RecordEnd&, const RecordEnd&) = default;
};

struct EpochClaim {
  log::Epoch epoch;
  RecordEnd before;  ///< the end of what lies before the epoch's record
};

// --- follower -> leader ---

/// "Send me what comes after this." Also the answer to Truncate, once it is done.
struct Subscribe {
  std::uint32_t version = kProtocolVersion;
  std::string node;  ///< "host:port" of its HTTP endpoint: its name among the members
  Uuid instance;
  bool read_only = false;
  std::int32_t cluster_size = 1;
  std::int32_t chunk_size = 0;
  EpochNumber term{-1};            ///< whose leader it wants
  std::vector<EpochClaim> epochs;  ///< newest last
  RecordEnd writer;
  LogPosition committed{0};
};
/// Everything below is on this node's disk.
struct Ack {
  LogPosition durable;
  std::uint64_t round = 0;  ///< of the last Progress
};

// --- leader -> follower ---

struct Accepted {
  EpochNumber term{-1};
  LogPosition start;
};
struct Truncate {
  LogPosition position;
};
struct Refused {
  std::string reason;
};
/// A piece of whole framed records; `last` ends them, never inside a write.
struct Batch {
  LogPosition position;  ///< of the first record
  bool last = true;
  Bytes bytes;
};
/// The leader completed the chunk here.
struct CompleteChunk {
  LogPosition end;  ///< append position before completion
};
struct NewChunk {
  log::ChunkHeader header;
};
/// A scavenged chunk's file as it is, in pieces; replaces all that the follower has from `start`
/// on.
struct RawChunk {
  ChunkNumber start;
  ChunkNumber end;
  std::uint64_t offset = 0;
  std::uint64_t total = 0;
  Bytes bytes;
};
/// Sent when something changed, and as a heartbeat.
struct Progress {
  LogPosition commit;
  LogPosition writer;
  bool caught_up = false;
  bool in_quorum = false;
  /// The acknowledgement repeats it: so the leader knows that it led when the follower got this.
  std::uint64_t round = 0;
};

using Message = std::variant<Subscribe, Ack, Accepted, Truncate, Refused, Batch, CompleteChunk,
                             NewChunk, RawChunk, Progress>;

Bytes encode(const Message& message);
/// Errors: kCorruption; never crashes on arbitrary bytes.
Result<Message> decode(ByteView frame);

}  // namespace verger::node::replication
