#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/file_system.h"
#include "engine/base/uuid.h"
#include "engine/streams/event_store.h"

namespace verger::online_scavenge {

/// A chunk file as it can be recognised again.
struct ChunkFile {
  std::string name{};  ///< without directory
  Uuid chunk_id{};
  Md5Digest md5{};
  std::uint64_t size = 0;
  friend bool operator==(const ChunkFile&, const ChunkFile&) = default;
};

/// A chunk that was scavenged in the shadow.
struct PreparedChunk {
  std::int32_t start = 0;
  std::int32_t end = 0;
  ChunkFile source{};  ///< of the server, in the database directory
  ChunkFile made{};    ///< in the shadow
  std::uint64_t records_kept = 0;
  std::uint64_t records_removed = 0;
  friend bool operator==(const PreparedChunk&, const PreparedChunk&) = default;
};

/// What a native run in the shadow made, and what it began with: kept in the shadow, so that an
/// agent that is started again continues.
struct Preparation {
  streams::ScavengePoint point{};
  /// The text of the checkpoint in the server's scavenging.db when the shadow was made; empty:
  /// there was none. As long as it is the same, no scavenge has run since.
  std::string checkpoint_before{};
  /// Weights by logical chunk, as they were calculated.
  std::map<std::int32_t, double> weights{};
  std::vector<PreparedChunk> chunks{};
  bool compared = false;
  friend bool operator==(const Preparation&, const Preparation&) = default;
};

std::string encode_preparation(const Preparation& preparation);
/// Error: kCorruption.
Result<Preparation> decode_preparation(std::string_view text);

/// Durably, in the shadow of `database`. What it names is durable before.
Result<void> store_preparation(FileSystem& files, const Path& database,
                               const Preparation& preparation);
/// Errors: kNotFound: the shadow, where there is one, was not finished; kCorruption, kIo.
Result<Preparation> load_preparation(FileSystem& files, const Path& database);

/// The file of a completed chunk. Errors: kNotFound, kCorruption, kUnsupported, kIo.
Result<ChunkFile> describe_chunk(FileSystem& files, const Path& path);
/// The newest file in the database directory of the chunk that starts with `start`. Error:
/// kNotFound.
Result<ChunkFile> live_chunk(FileSystem& files, const Path& database, std::int32_t start);

}  // namespace verger::online_scavenge
