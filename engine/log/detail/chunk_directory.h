#pragma once

#include <string>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/log/chunk.h"

namespace verger::log::detail {

struct ChunkFile {
  std::string name;
  ChunkNumber start;
  int version = 0;
  std::uint64_t size = 0;
  friend bool operator==(const ChunkFile&, const ChunkFile&) = default;
};

/// What a database directory holds that matters to the log; foreign files are not in it.
struct DirectoryListing {
  std::vector<ChunkFile> chunks;       ///< by start, then version
  std::vector<std::string> temporary;  ///< *.tmp
  friend bool operator==(const DirectoryListing&, const DirectoryListing&) = default;
};

/// Errors: kNotFound (no such directory), kIo.
Result<DirectoryListing> list_chunk_files(FileSystem& files, const Path& directory);

/// Which files count (docs/formats/log.md, "Live files").
struct LiveFiles {
  struct Live {
    ChunkFile file;
    ChunkNumber end;
  };
  std::vector<Live> latest;
  std::vector<ChunkFile> old;
  std::vector<ChunkNumber> missing;  ///< between live files; not behind the last
};

/// Files of version 1 and higher are opened for the chunk number they end with; one of version 0
/// covers one chunk. Errors: kNotFound (a file went meanwhile), kCorruption, kUnsupported, kIo.
Result<LiveFiles> find_live_files(FileSystem& files, const Path& directory,
                                  const std::vector<ChunkFile>& chunks);

/// The header of a chunk file; the rest of it is not checked.
Result<ChunkHeader> read_chunk_header(FileSystem& files, const Path& path);

/// The version a new file gets that replaces one that starts with `start`: above all there are.
Result<int> next_version(FileSystem& files, const Path& directory, ChunkNumber start);

}  // namespace verger::log::detail
