#pragma once

#include <memory>

#include "engine/base/file_system.h"
#include "engine/base/random.h"
#include "engine/base/result.h"
#include "engine/log/chunk.h"
#include "engine/log/detail/chunk_output.h"

namespace verger::log::detail {

/// The writing side of the active chunk. Records are buffered; readers see what the log publishes
/// through the Chunk. One thread.
class ActiveChunk {
 public:
  /// Opens an existing one for appending behind chunk->data_size(). A chunk of format 2 becomes one
  /// of format 3, as the server has it. What was written before is hashed at the first append.
  /// `hash_in_background`: a thread of its own hashes what is written.
  static Result<ActiveChunk> open(FileSystem& files, std::shared_ptr<Chunk> chunk,
                                  bool hash_in_background);
  /// Creates "chunk-NNNNNN.000000", preallocated and durable. `header` describes one chunk.
  static Result<ActiveChunk> create(FileSystem& files, const Path& directory,
                                    const ChunkHeader& header, Random& random,
                                    bool hash_in_background);

  [[nodiscard]] const std::shared_ptr<Chunk>& chunk() const { return chunk_; }
  /// Bytes of records, the buffered ones included.
  [[nodiscard]] std::int64_t data_size() const;
  /// Whether so many further bytes fit.
  [[nodiscard]] bool fits(std::int64_t bytes) const;
  Result<void> append(ByteView framed);
  /// Everything appended is in the file when this returns, and on the disk once that is synced.
  Result<std::shared_ptr<File>> written_file();
  /// Cuts the file behind the records, adds padding and footer, syncs. Only destruction is allowed
  /// afterwards. The result is the same chunk, completed.
  Result<std::shared_ptr<Chunk>> complete();

 private:
  ActiveChunk(FileSystem& files, std::shared_ptr<Chunk> chunk, std::shared_ptr<File> file,
              bool hash_in_background);
  Result<void> hash_what_is_there();

  FileSystem* files_;
  std::shared_ptr<Chunk> chunk_;
  std::shared_ptr<File> file_;
  ChunkOutput output_;
  bool hashed_ = false;
};

}  // namespace verger::log::detail
