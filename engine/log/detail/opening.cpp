#include "engine/log/detail/opening.h"

#include <algorithm>
#include <fmt/format.h>
#include <ranges>

#include "engine/log/detail/chunk_state.h"
#include "engine/log/detail/limits.h"

namespace verger::log::detail {
namespace {

constexpr std::size_t kEpochCacheSize = 1000;
constexpr std::string_view kRestore = "restore it from a backup or another node";

std::string file_in(const Path& directory, std::string_view name) {
  return (directory / name).string();
}

Error bad_writer(const Path& directory, const Checkpoints& checkpoints, std::string_view what) {
  return {Errc::kCorruption,
          fmt::format("{}: says that the log ends at {}, but {}; nothing was changed: restore "
                      "writer.chk (and the chunks) from the same backup",
                      file_in(directory, "writer.chk"), checkpoints.writer, what)};
}

Result<void> check_checkpoints(const Path& directory, const Snapshot& snapshot) {
  const auto values = snapshot.checkpoints.values();
  const auto writer_size = snapshot.checkpoints.file_size(Checkpoint::kWriter);
  if (!snapshot.listing.chunks.empty() && writer_size.value_or(0) < 8) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: {} although there are chunk files; without it the log has no "
                             "end: {}",
                             file_in(directory, "writer.chk"),
                             writer_size ? fmt::format("has {} bytes instead of 8", *writer_size)
                                         : "is missing",
                             kRestore)};
  }
  if (values.writer.value() < 0) {
    return bad_writer(directory, values, "a position cannot be negative");
  }
  if (values.chaser.value() < 0 || values.chaser > values.writer) {
    return Error{
        Errc::kCorruption,
        fmt::format("{}: {} is not between 0 and the end of the log in writer.chk, {}; one "
                    "of the two is wrong or out of date: {}",
                    file_in(directory, "chaser.chk"), values.chaser, values.writer, kRestore)};
  }
  if (values.epoch.value() < -1 || values.epoch > values.writer) {
    return Error{
        Errc::kCorruption,
        fmt::format("{}: {} is not between -1 and the end of the log in writer.chk, {}; "
                    "one of the two is wrong or out of date: {}",
                    file_in(directory, "epoch.chk"), values.epoch, values.writer, kRestore)};
  }
  return {};
}

Result<void> check_header(const Path& directory, const Chunk& chunk, ChunkNumber end,
                          std::int32_t chunk_size) {
  if (chunk.header().chunk_size != chunk_size) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: was written with chunk size {}, the database is opened with {}; "
                             "give the chunk size it was written with",
                             chunk.path().string(), chunk.header().chunk_size, chunk_size)};
  }
  if (chunk.end() != end) {
    return Error{
        Errc::kCorruption,
        fmt::format("{}: its header says that it reaches to chunk {}, but a file of version "
                    "0 covers one chunk; it was renamed or damaged: {}",
                    file_in(directory, chunk.path().filename().string()), chunk.end(), kRestore)};
  }
  return {};
}

/// True when the records of an unfinished chunk fill it to the last byte.
Result<bool> fills_its_chunk(const std::shared_ptr<Chunk>& chunk) {
  VERGER_TRY(auto scanner, ChunkScanner::open(chunk, chunk->start_position()));
  for (;;) {
    auto record = scanner.next();
    if (!record && record.error().code == Errc::kCorruption) {
      return false;
    }
    if (!record) {
      return std::move(record).error();
    }
    if (!*record) {
      return true;
    }
  }
}

class Judge {
 public:
  Judge(FileSystem& files, const Path& directory, const Snapshot& snapshot,
        const LogOptions& options)
      : files_(files), directory_(directory), snapshot_(snapshot), options_(options) {}

  Result<Judgement> run() {
    VERGER_RETURN_IF_ERROR(check_checkpoints(directory_, snapshot_));
    out_.checkpoints = snapshot_.checkpoints.values();
    VERGER_TRY(out_.chunk_size, chunk_size_of(files_, directory_, snapshot_.listing, options_));
    const auto writer = out_.checkpoints.writer.value();
    if (writer / out_.chunk_size >= kMaxChunkCount) {
      return bad_writer(directory_, out_.checkpoints, "no database has that many chunks");
    }
    last_ = ChunkNumber(static_cast<std::int32_t>(writer / out_.chunk_size));
    on_boundary_ = writer % out_.chunk_size == 0;
    VERGER_TRY(live_, find_live_files(files_, directory_, snapshot_.listing.chunks));
    VERGER_RETURN_IF_ERROR(check_coverage());
    for (const auto& live : live_.latest) {
      VERGER_RETURN_IF_ERROR(take(live));
    }
    for (const auto& old : live_.old) {
      if (old.start > last_) {
        return extraneous(old);
      }
      out_.to_remove.push_back(old.name);
    }
    out_.temporary = snapshot_.listing.temporary;
    if (out_.checkpoints.epoch.value() >= 0) {
      auto epochs = follow_epochs(out_.chunks, out_.checkpoints.epoch);
      if (epochs) {
        out_.epochs = *std::move(epochs);
      } else if (options_.access == Access::kWrite) {
        return epochs.error().within(file_in(directory_, "epoch.chk"));
      }
    }
    return std::move(out_);
  }

 private:
  [[nodiscard]] bool starts_a_file(ChunkNumber number) const {
    return std::ranges::any_of(live_.latest,
                               [&](const auto& live) { return live.file.start == number; });
  }

  Error extraneous(const ChunkFile& file) const {
    return bad_writer(directory_, out_.checkpoints, fmt::format("{} lies behind that", file.name));
  }

  Result<void> check_coverage() const {
    for (const ChunkNumber missing : live_.missing) {
      if (missing < last_) {
        return missing_chunk(directory_, missing, out_.chunk_size);
      }
    }
    const auto covered = live_.latest.empty() ? -1 : live_.latest.back().end.value();
    if (covered + 1 < last_.value()) {
      return missing_chunk(directory_, ChunkNumber(covered + 1), out_.chunk_size);
    }
    if (covered < last_.value() && !on_boundary_) {
      return missing_chunk(directory_, last_, out_.chunk_size);
    }
    return {};
  }

  Result<void> take(const LiveFiles::Live& live) {
    if (live.file.start < last_) {
      return take_completed(live);
    }
    if (live.file.start == last_ && !writer_moved_) {
      return take_last(live);
    }
    return take_excess(live);
  }

  Result<void> take_completed(const LiveFiles::Live& live) {
    VERGER_TRY(const bool received, replaces_the_end(live));
    if (received) {
      return take_received(live);
    }
    if (live.end >= last_) {
      return bad_writer(directory_, out_.checkpoints,
                        fmt::format("the merged chunk {} reaches beyond that", live.file.name));
    }
    if (live.end.value() + 1 == last_.value() && live.file.start == live.end && on_boundary_ &&
        !starts_a_file(last_)) {
      VERGER_TRY(const bool taken, take_full(live));
      if (taken) {
        return {};
      }
    }
    VERGER_TRY(auto chunk, open_live_chunk(files_, directory_, live, out_.chunk_size));
    out_.chunks.push_back(std::move(chunk));
    return {};
  }

  /// The last record may end exactly at the chunk's end; the chunk is then completed by the write
  /// that follows. Whether it did is seen from the records, never believed: the server declares
  /// all bytes data, and reading them ends in zeros.
  Result<bool> take_full(const LiveFiles::Live& live) {
    const Path path = directory_ / live.file.name;
    auto completed = Chunk::open_completed(files_, path);
    if (completed || completed.error().code != Errc::kCorruption) {
      return false;
    }
    auto chunk = Chunk::open_active(files_, path, out_.chunk_size);
    if (!chunk) {
      return false;  // then the first error says more
    }
    VERGER_RETURN_IF_ERROR(check_header(directory_, **chunk, live.end, out_.chunk_size));
    VERGER_TRY(const bool full, fills_its_chunk(*chunk));
    if (!full) {
      return bad_writer(directory_, out_.checkpoints,
                        fmt::format("{} is neither completed nor full", live.file.name));
    }
    out_.active = *chunk;
    out_.chunks.push_back(*std::move(chunk));
    return true;
  }

  /// The chunk that writer.chk points into or to the start of.
  Result<void> take_last(const LiveFiles::Live& live) {
    const Path path = directory_ / live.file.name;
    VERGER_TRY(const auto header, read_chunk_header(files_, path));
    if (header.scavenged) {
      VERGER_TRY(const bool replaces, replaces_the_end(live));
      if (!on_boundary_ && !replaces) {
        return bad_writer(
            directory_, out_.checkpoints,
            fmt::format("that is in the middle of the scavenged chunk {}", live.file.name));
      }
      return take_received(live);
    }
    const auto local =
        out_.checkpoints.writer.value() - std::int64_t{last_.value()} * out_.chunk_size;
    VERGER_TRY(auto chunk, Chunk::open_active(files_, path, local));
    VERGER_RETURN_IF_ERROR(check_header(directory_, *chunk, live.file.start, out_.chunk_size));
    Bytes buffer;
    if (auto before = chunk->read_before(out_.checkpoints.writer, buffer); !before) {
      if (before.error().code == Errc::kIo) {
        return std::move(before).error();
      }
      return bad_writer(directory_, out_.checkpoints,
                        fmt::format("no record ends there ({})", before.error().message));
    }
    out_.active = chunk;
    out_.chunks.push_back(std::move(chunk));
    return {};
  }

  /// True when writer.chk lies inside the scavenged chunk, and the file whose records end there is
  /// still present: a node received the chunk in place of what it had of it.
  [[nodiscard]] Result<bool> replaces_the_end(const LiveFiles::Live& live) const {
    const auto before = out_.checkpoints.writer.value() - 1;
    const ChunkNumber number(static_cast<std::int32_t>(before / out_.chunk_size));
    if (before < 0 || writer_moved_ || live.end < last_ || live.file.start > number) {
      return false;
    }
    VERGER_TRY(const auto header, read_chunk_header(files_, directory_ / live.file.name));
    if (!header.scavenged) {
      return false;
    }
    for (const auto& old : live_.old) {
      auto end = old.start;
      if (old.version > 0) {
        VERGER_TRY(const auto replaced, read_chunk_header(files_, directory_ / old.name));
        end = std::max(end, replaced.end);
      }
      if (old.start <= number && number <= end) {
        return true;
      }
    }
    return false;
  }

  /// A node received a scavenged chunk, renamed it, and stopped before writer.chk went behind it.
  Result<void> take_received(const LiveFiles::Live& live) {
    VERGER_TRY(auto chunk, open_live_chunk(files_, directory_, live, out_.chunk_size));
    out_.checkpoints.writer = chunk->end_position();
    last_ = ChunkNumber(chunk->end().value() + 1);
    writer_moved_ = true;
    out_.chunks.push_back(std::move(chunk));
    return {};
  }

  /// A chunk file is made before writer.chk says that the log continues there; it is empty then.
  Result<void> take_excess(const LiveFiles::Live& live) {
    const auto next = writer_moved_ ? last_.value() : last_.value() + 1;
    if (live.file.start.value() != next || live.file.version != 0) {
      return extraneous(live.file);
    }
    if (options_.access == Access::kReadOnly) {
      return {};  // of a log that is being written: what it holds is not flushed
    }
    const Path path = directory_ / live.file.name;
    VERGER_TRY(const auto chunk, Chunk::open_active(files_, path, 0));
    VERGER_RETURN_IF_ERROR(check_header(directory_, *chunk, live.file.start, out_.chunk_size));
    std::array<std::byte, 4> length{};
    VERGER_RETURN_IF_ERROR(chunk->read_raw(kChunkHeaderSize, length));
    if (load_le<std::int32_t>(length.data()) != 0) {
      return bad_writer(directory_, out_.checkpoints,
                        fmt::format("{} lies behind that and holds records", live.file.name));
    }
    out_.to_remove.push_back(live.file.name);
    return {};
  }

  FileSystem& files_;
  const Path& directory_;
  const Snapshot& snapshot_;
  const LogOptions& options_;
  Judgement out_;
  LiveFiles live_;
  ChunkNumber last_;  ///< the chunk that writer.chk lies in, or at the start of
  bool on_boundary_ = false;
  bool writer_moved_ = false;
};

}  // namespace

Result<Snapshot> take_snapshot(FileSystem& files, const Path& directory, bool may_be_empty) {
  VERGER_TRY(auto checkpoints, CheckpointFiles::load(files, directory));
  VERGER_TRY(auto listing, list_chunk_files(files, directory));
  if (!may_be_empty && listing.chunks.empty() && !checkpoints.file_size(Checkpoint::kWriter)) {
    return Error{Errc::kNotFound,
                 fmt::format("{}: holds neither chunk files nor writer.chk; give the database "
                             "directory itself",
                             directory.string())};
  }
  return Snapshot{std::move(checkpoints), std::move(listing)};
}

Result<Judgement> judge(FileSystem& files, const Path& directory, const Snapshot& snapshot,
                        const LogOptions& options) {
  return Judge(files, directory, snapshot, options).run();
}

Result<std::int32_t> chunk_size_of(FileSystem& files, const Path& directory,
                                   const DirectoryListing& listing, const LogOptions& options) {
  if (options.chunk_size < 0) {
    return Error{Errc::kInvalidArgument, fmt::format("{} is not a chunk size", options.chunk_size)};
  }
  if (options.chunk_size > 0 || listing.chunks.empty()) {
    return options.chunk_size > 0 ? options.chunk_size : kDefaultChunkSize;
  }
  VERGER_TRY(const auto header, read_chunk_header(files, directory / listing.chunks.front().name));
  return header.chunk_size;
}

Result<std::shared_ptr<Chunk>> open_live_chunk(FileSystem& files, const Path& directory,
                                               const LiveFiles::Live& live,
                                               std::int32_t chunk_size) {
  // A wrong chunk size comes first: everything else would follow from it.
  const Path path = directory / live.file.name;
  auto chunk = Chunk::open_completed(files, path);
  if (!chunk) {
    const auto header = read_chunk_header(files, path);
    if (header && header->chunk_size != chunk_size) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("{}: was written with chunk size {}, the database is opened with {}",
                               path.string(), header->chunk_size, chunk_size)};
    }
    return chunk;
  }
  VERGER_RETURN_IF_ERROR(check_header(directory, **chunk, live.end, chunk_size));
  return chunk;
}

Error missing_chunk(const Path& directory, ChunkNumber number, std::int32_t chunk_size) {
  const auto start = std::int64_t{number.value()} * chunk_size;
  return {Errc::kNotFound,
          fmt::format("{}: chunk {} is missing: no file covers log positions {} to {}; {}",
                      file_in(directory, chunk_file_name(number, 0)), number, start,
                      start + chunk_size - 1, kRestore)};
}

Result<EpochHistory> follow_epochs(const std::vector<std::shared_ptr<const Chunk>>& chunks,
                                   LogPosition newest) {
  std::vector<Epoch> found;
  Bytes buffer;
  for (LogPosition at = newest; at.value() >= 0 && found.size() < kEpochCacheSize;) {
    const auto chunk = std::ranges::find_if(chunks, [&](const auto& one) {
      return one->start_position() <= at && at < one->end_position();
    });
    const auto no_epoch = [&](std::string_view why) {
      return Error{Errc::kCorruption,
                   fmt::format("there should be an epoch record at log position {}{}: {}; restore "
                               "epoch.chk from the same backup as the chunks, or write -1 (eight "
                               "bytes ff) there to have it found again",
                               at, found.empty() ? "" : ", as the one after it says", why)};
    };
    if (chunk == chunks.end()) {
      return no_epoch("no chunk covers it");
    }
    auto record = (*chunk)->read(at, buffer);
    if (!record) {
      return record.error().code == Errc::kIo ? std::move(record).error()
                                              : no_epoch(record.error().message);
    }
    const auto* system = std::get_if<SystemRecord>(&record->record);
    if (system == nullptr) {
      return no_epoch("another record is there");
    }
    VERGER_TRY(auto epoch, decode_epoch_json(system->json));
    if (epoch.position != at || (!found.empty() && epoch.number >= found.back().number)) {
      return no_epoch(fmt::format("it says position {}, number {}", epoch.position, epoch.number));
    }
    at = epoch.previous;
    found.push_back(epoch);
  }
  EpochHistory history;
  for (const auto& epoch : std::views::reverse(found)) {
    history.add(epoch);
  }
  return history;
}

}  // namespace verger::log::detail
