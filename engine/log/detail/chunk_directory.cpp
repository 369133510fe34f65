#include "engine/log/detail/chunk_directory.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::log::detail {

Result<DirectoryListing> list_chunk_files(FileSystem& files, const Path& directory) {
  VERGER_TRY(const auto entries, files.list(directory));
  DirectoryListing listing;
  for (const auto& entry : entries) {
    if (entry.is_directory) {
      continue;
    }
    if (const auto name = parse_chunk_file_name(entry.name)) {
      listing.chunks.push_back({entry.name, name->start, name->version, entry.size});
    } else if (entry.name.ends_with(".tmp")) {
      listing.temporary.push_back(entry.name);
    }
  }
  // The names sort like start and version do: all numbers have six digits.
  std::ranges::sort(listing.chunks, {}, &ChunkFile::name);
  return listing;
}

Result<ChunkHeader> read_chunk_header(FileSystem& files, const Path& path) {
  VERGER_TRY(const auto file, files.open(path, OpenMode::kRead));
  std::array<std::byte, kChunkHeaderSize> bytes{};
  VERGER_TRY(const auto got, file->read_at(0, bytes));
  auto header = decode_chunk_header(ByteView(bytes).first(got));
  if (!header) {
    return header.error().within(path.string());
  }
  return *header;
}

Result<LiveFiles> find_live_files(FileSystem& files, const Path& directory,
                                  const std::vector<ChunkFile>& chunks) {
  LiveFiles found;
  std::int32_t expected = 0;
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    const ChunkFile& file = chunks[i];
    if (file.start.value() < expected ||
        (i + 1 < chunks.size() && chunks[i + 1].start == file.start)) {
      found.old.push_back(file);
      continue;
    }
    for (; expected < file.start.value(); ++expected) {
      found.missing.emplace_back(expected);
    }
    ChunkNumber end = file.start;
    if (file.version > 0) {
      VERGER_TRY(const auto header, read_chunk_header(files, directory / file.name));
      end = std::max(header.end, file.start);
    }
    found.latest.push_back({file, end});
    expected = end.value() + 1;
  }
  return found;
}

Result<int> next_version(FileSystem& files, const Path& directory, ChunkNumber start) {
  VERGER_TRY(const auto listing, list_chunk_files(files, directory));
  int version = 0;
  for (const auto& file : listing.chunks) {
    if (file.start == start) {
      version = std::max(version, file.version);
    }
  }
  if (version >= 999'999) {
    return Error{Errc::kUnsupported, fmt::format("{}: chunk {} has used up its version numbers",
                                                 directory.string(), start)};
  }
  return version + 1;
}

}  // namespace verger::log::detail
