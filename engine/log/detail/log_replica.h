#pragma once

#include "engine/log/detail/known_epochs.h"
#include "engine/log/detail/live_chunks.h"
#include "engine/log/detail/log_parts.h"
#include "engine/log/detail/log_writer.h"

namespace verger::log::detail {

/// Continues a log with what a leader sends (docs/formats/log.md, "Replication"): records, the ends
/// and headers of chunks, and scavenged chunks as whole files. The members are as those of
/// TransactionLog. Of the appending thread.
class LogReplica {
 public:
  /// All of them outlive it.
  LogReplica(const LogParts& parts, LiveChunks& chunks, KnownEpochs& epochs, LogWriter& writer)
      : parts_(parts), chunks_(chunks), epochs_(epochs), writer_(writer) {}

  Result<void> append(ByteView framed_records);
  Result<void> complete_chunk();
  Result<void> start_chunk(const ChunkHeader& header);
  Result<void> receive_chunk(const Path& temporary);

 private:
  /// A chunk file of ours that begins before what was received and reaches into it, and what stays
  /// of it: its front part, under a temporary name.
  struct SplitChunk {
    std::shared_ptr<const Chunk> whole;
    Path front;
  };

  /// The records of `whole`, which a leader has merged otherwise, before chunk `end`: a chunk file
  /// of their own under a temporary name, so that what was received can follow it.
  Result<Path> write_front(const std::shared_ptr<const Chunk>& whole, ChunkNumber end);
  /// What was received gets its name, `path`, and takes the place of what it replaces, together
  /// with the front part before it. After an error the log must no longer be used.
  Result<void> install(const Path& temporary, const Path& path,
                       const std::optional<SplitChunk>& split);

  const LogParts& parts_;
  LiveChunks& chunks_;
  KnownEpochs& epochs_;
  LogWriter& writer_;
  Bytes scratch_;
};

}  // namespace verger::log::detail
