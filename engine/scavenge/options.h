#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <optional>

#include "engine/scavenge/scavenge_state.h"
#include "engine/scavenge/types.h"

namespace verger::scavenge {

/// For tests: ends the run with kCancelled after the nth chunk (accumulate, execute), stream
/// (calculate), group (merge), table (index), as a stop requested at that moment; nth = 0: after
/// the whole stage.
struct StopAfter {
  Stage stage = Stage::kDone;
  std::uint64_t nth = 0;
};

struct ScavengeOptions {
  int threads = 1;             ///< 1 to 4; of executing chunks and merging them
  int throttle_percent = 100;  ///< 1 to 100; 100 with more than one thread
  bool merge_chunks = true;
  /// Removes tombstones, too. Unsafe where a node that still lacks one may come back.
  bool unsafe_ignore_hard_delete = false;
  StateOptions state;
  /// Streams, and a quarter as many records about them, that accumulating stores together at most,
  /// in the order of their hashes; fewer at the end of a chunk.
  std::size_t accumulation_batch = std::size_t{1} << 19U;
  /// Streams per transaction of the calculation, as the server's.
  std::uint64_t calculation_batch = 32'768;
  /// Limits of streams that each thread remembers while it executes chunks.
  std::size_t limits_cache = 65'536;
  std::optional<StopAfter> stop_after;
  /// The run is done once this stage is finished and the checkpoint of the next one is durable; a
  /// later run, of whichever program, continues there.
  std::optional<Stage> last_stage = {};
  /// Chunks and index tables are compared with their checksums before anything is decided by what
  /// they hold, or copied from them; each file once a run.
  bool compare_checksums = true;
  /// Threads of their own hash what is read and written; without a throttle also what is about to
  /// be read, up to 4 GiB ahead.
  bool hash_in_background = false;
  /// The point need not be in the log: for a preview, which ends before anything is changed, and
  /// for a point that lies behind the log's end, whose last chunk is then complete.
  bool assumed_point = false;

  /// May chunks be read before they are needed, by threads beside the stepping one?
  [[nodiscard]] bool works_ahead() const { return hash_in_background && throttle_percent == 100; }
  /// Chunks that are read side by side; 1: by the stepping thread.
  [[nodiscard]] std::size_t chunks_read_at_once() const {
    return works_ahead() ? static_cast<std::size_t>(std::max(threads, 2)) : 1;
  }
};

}  // namespace verger::scavenge
