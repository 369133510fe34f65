#include "engine/redaction/leftovers.h"

#include <algorithm>

#include "engine/base/uuid.h"

namespace verger::redaction {
namespace {

/// A redacted copy keeps the ChunkId of what it replaces; the results of scavenges and merges have
/// new ones.
bool was_replaced_by_redaction(FileSystem& files, const Path& path, ChunkNumber start,
                               const std::vector<std::shared_ptr<const log::Chunk>>& live) {
  const auto by = std::ranges::find(live, start, [](const auto& chunk) { return chunk->start(); });
  if (by == live.end()) {
    return false;
  }
  const auto old = log::Chunk::open_completed(files, path);
  return old && (*old)->header().chunk_id == (*by)->header().chunk_id &&
         (*old)->end() == (*by)->end();
}

/// "chunk-000004.000000.<guid>.tmp": a chunk file is made under such a name, with nothing but its
/// header in it. "writer.chk.tmp" has eight bytes.
bool holds_no_record(std::string_view name) {
  constexpr std::size_t kChunkName = 19;  // chunk-NNNNNN.VVVVVV
  constexpr std::size_t kSuffix = 4;
  if (name.ends_with(".chk.tmp")) {
    return true;
  }
  return name.size() > kChunkName + 1 + kSuffix && name[kChunkName] == '.' &&
         log::parse_chunk_file_name(name.substr(0, kChunkName)) &&
         Uuid::parse(name.substr(kChunkName + 1, name.size() - kChunkName - 1 - kSuffix));
}

}  // namespace

Result<std::vector<Leftover>> find_leftovers(FileSystem& files, const log::TransactionLog& log) {
  VERGER_TRY(const auto entries, files.list(log.directory()));
  const auto live = log.chunks();
  std::vector<Leftover> found;
  for (const auto& entry : entries) {
    if (entry.is_directory) {
      continue;
    }
    if (entry.name.ends_with(".tmp")) {
      found.push_back(
          {.name = entry.name,
           .kind = Leftover::Kind::kTemporary,
           .size = entry.size,
           .of_redaction = entry.name.ends_with(kTemporarySuffix) || holds_no_record(entry.name)});
      continue;
    }
    const auto name = log::parse_chunk_file_name(entry.name);
    const bool is_live = std::ranges::any_of(
        live, [&](const auto& chunk) { return chunk->path().filename() == entry.name; });
    // What lies behind the last chunk is an empty one that a server was about to use.
    if (!name || is_live || live.empty() || name->start > live.back()->end()) {
      continue;
    }
    const auto path = log.directory() / entry.name;
    found.push_back({.name = entry.name,
                     .kind = Leftover::Kind::kSuperseded,
                     .size = entry.size,
                     .of_redaction = was_replaced_by_redaction(files, path, name->start, live)});
  }
  return found;
}

}  // namespace verger::redaction
