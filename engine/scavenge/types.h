#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/types.h"
#include "engine/streams/event_store.h"

namespace verger::scavenge {

using streams::ScavengePoint;

/// What a scavenge is doing, in order. The checkpoint names them as the server does.
enum class Stage : std::uint8_t {
  kAccumulating = 1,
  kCalculating = 2,
  kExecutingChunks = 3,
  kMergingChunks = 4,
  kExecutingIndex = 5,
  kCleaning = 6,
  kDone = 7,
};

/// The server's name, for example "ExecutingChunks".
std::string_view to_string(Stage stage);
std::optional<Stage> stage_from_string(std::string_view name);

/// How state is kept for a stream: by its hash, or by its name once another stream is known to have
/// the same hash.
struct StreamHandle {
  StreamHash hash;
  std::string name;  ///< empty: kept by hash
  [[nodiscard]] bool by_name() const { return !name.empty(); }
  friend bool operator==(const StreamHandle&, const StreamHandle&) = default;
};

/// Where a scavenge stands: the single row of the table Checkpoint.
struct Checkpoint {
  ScavengePoint point;
  Stage stage = Stage::kAccumulating;
  /// kAccumulating, kExecutingChunks: the last finished logical chunk.
  std::optional<std::int32_t> done_chunk = {};
  /// kCalculating: the last stream of the last finished batch. Of a handle by name only the name
  /// is stored.
  std::optional<StreamHandle> done_stream = {};
  friend bool operator==(const Checkpoint&, const Checkpoint&) = default;
};

/// Compact JSON, exactly the server's text.
std::string encode_checkpoint(const Checkpoint& checkpoint);
/// nullopt for what the server could not read either: it counts as no checkpoint.
std::optional<Checkpoint> decode_checkpoint(std::string_view json);
/// The stage of a checkpoint that is one but for its stage, which this program does not know: a
/// newer server wrote it. nullopt for all others.
std::optional<std::string> unknown_stage(std::string_view json);
/// kUnsupported: says that, and what to do.
Error unknown_stage_error(std::string_view file, std::string_view stage);

}  // namespace verger::scavenge
