#pragma once

#include <cstdint>
#include <functional>
#include <string>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "engine/base/result.h"
#include "engine/log/chunk.h"

namespace verger::tool {

/// A database to be made up. Every stream gets events / streams events, the first ones one more
/// where that does not divide; the streams take turns, in an order of their own in every round.
/// Settings go to shares of the streams, in percent, chosen by the seed; a stream has at most one.
struct Workload {
  std::uint64_t events = 1'000'000;
  std::uint64_t streams = 1'000;
  std::uint64_t size_min = 160;  ///< bytes of an event's data, evenly from [size_min, size_max]
  std::uint64_t size_max = 160;
  std::int64_t max_count = 0;
  double max_count_percent = 0;
  std::int64_t max_age_seconds = 0;
  double max_age_percent = 0;
  std::int64_t truncate_before = 0;
  double truncate_percent = 0;
  double soft_deleted_percent = 0;
  double deleted_percent = 0;  ///< tombstones, behind all events
  /// Time stamps go evenly from `start` to `start` + `span_seconds`.
  Ticks start{638'396'640'000'000'000};  // 2024-01-01T00:00:00Z
  std::int64_t span_seconds = 30LL * 24 * 3600;
  bool scavenge_point = false;  ///< the last record is a scavenge point, at the end of the span
  std::int32_t threshold = 0;
  std::uint64_t seed = 1;
  std::string prefix = "stream";
  std::string type = "something-happened";

  std::int32_t chunk_size = log::kDefaultChunkSize;
  bool index = true;
  std::uint64_t max_mem_table_size = 1'000'000;
  int cache_depth = 16;
  std::uint64_t existence_filter_size = 256'000'000;
};

struct Generated {
  std::uint64_t records = 0;
  std::uint64_t metadata_records = 0;
  std::uint64_t tombstones = 0;
  std::uint64_t index_entries = 0;  ///< 0 without an index
  LogPosition end;
  std::size_t chunks = 0;
};

/// Writes chunks, checkpoints and index of a new database in the server's formats. The same
/// workload gives the same bytes. Needs eight bytes of memory for each event when an index is
/// written, and some hundred for each stream.
/// `progress` gets the number of events written so far.
/// Errors: kInvalidArgument (the workload), kExists (there are chunks already), kNoSpace, kIo.
Result<Generated> generate_workload(FileSystem& files, const Path& directory,
                                    const Workload& workload, Log& out,
                                    const std::function<void(std::uint64_t)>& progress);

}  // namespace verger::tool
