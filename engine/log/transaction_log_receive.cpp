// Scavenged chunks of a leader, received whole (docs/formats/log.md, "Replication").
#include <algorithm>
#include <fmt/format.h>

#include "engine/base/failpoint.h"
#include "engine/log/detail/chunk_state.h"
#include "engine/log/detail/log_state.h"

namespace verger::log {

using detail::Checkpoint;

namespace {

/// The records of `whole`, which a leader has merged otherwise, before chunk `end`: a chunk file of
/// their own under a temporary name, so that what was received can follow it.
Result<Path> write_front(TransactionLog::State& s, const std::shared_ptr<const Chunk>& whole,
                         ChunkNumber end) {
  ChunkHeader header = whole->header();
  header.end = ChunkNumber(end.value() - 1);
  header.chunk_id = s.random.uuid();
  const std::string name = fmt::format("front-{:06}.chunk.tmp", header.start.value());
  static_cast<void>(s.files.remove(s.directory / name));
  VERGER_TRY(auto writer, ChunkWriter::create(s.files, s.directory, name, header));
  VERGER_TRY(auto scanner, ChunkScanner::open(whole, whole->start_position()));
  for (;;) {
    VERGER_TRY(const auto record, scanner.next());
    if (!record || record->position() >= header.end_position()) {
      break;
    }
    VERGER_RETURN_IF_ERROR(writer.append(record->position(), record->framed));
  }
  VERGER_TRY(auto finished, writer.finish());
  return finished.path;
}

/// Puts neighbouring chunks into the table in place of all they overlap, at once; returns those.
std::vector<std::shared_ptr<const Chunk>> put_together(
    TransactionLog::State& s, const std::vector<std::shared_ptr<const Chunk>>& chunks) {
  const std::lock_guard guard(s.table_mutex);
  const auto first = std::ranges::lower_bound(s.table, chunks.front()->start(), {},
                                              [](const auto& one) { return one->end(); });
  std::vector<std::shared_ptr<const Chunk>> replaced(first, s.table.end());
  s.table.erase(first, s.table.end());
  s.table.insert(s.table.end(), chunks.begin(), chunks.end());
  return replaced;
}

/// A chunk file of ours that begins before what was received and reaches into it, and what stays
/// of it: its front part, under a temporary name.
struct SplitChunk {
  std::shared_ptr<const Chunk> whole;
  Path front;
};

/// What was received gets its name, `path`, and takes the place of what it replaces, together with
/// the front part before it. After an error the log must no longer be used.
Result<void> install(TransactionLog::State& s, const Path& temporary, const Path& path,
                     const std::optional<SplitChunk>& split) {
  // Whole and synced before it gets its name, from which on it counts; unless a chunk of ours
  // covers its start: then it counts once that one was replaced by its front part. What it
  // replaces goes only when writer.chk has moved behind it. A crash in between leaves a scavenged
  // chunk that writer.chk points to the start of, or into while the files it replaces are there:
  // opening knows both, sets writer.chk behind it and removes those files.
  VERGER_RETURN_IF_ERROR(s.files.rename(temporary, path));
  VERGER_FAILPOINT("log.receive.after-rename");
  VERGER_RETURN_IF_ERROR(s.files.sync_directory(s.directory));
  static_cast<void>(s.files.set_read_only(path, true));
  std::vector<std::shared_ptr<const Chunk>> installed;
  if (split) {
    VERGER_TRY(const int next, detail::next_version(s.files, s.directory, split->whole->start()));
    const Path front_path = s.directory / chunk_file_name(split->whole->start(), next);
    VERGER_RETURN_IF_ERROR(s.files.rename(split->front, front_path));
    VERGER_RETURN_IF_ERROR(s.files.sync_directory(s.directory));
    static_cast<void>(s.files.set_read_only(front_path, true));
    VERGER_TRY(auto chunk, Chunk::open_completed(s.files, front_path));
    installed.push_back(std::move(chunk));
  }
  VERGER_TRY(std::shared_ptr<const Chunk> chunk, Chunk::open_completed(s.files, path));
  VERGER_RETURN_IF_ERROR(s.stored.store(Checkpoint::kWriter, chunk->end_position().value()));
  VERGER_FAILPOINT("log.receive.before-delete");
  installed.push_back(chunk);
  std::erase_if(s.retired, [](const auto& one) { return one.expired(); });
  for (const auto& old : put_together(s, installed)) {
    ChunkAccess::state(*old).remove_when_unused.store(true);
    s.retired.push_back(old);
  }
  {
    const std::lock_guard guard(s.epoch_mutex);
    s.epochs.truncate(chunk->start_position());
  }
  VERGER_RETURN_IF_ERROR(s.note_epochs_of(chunk));
  s.append_position = chunk->end_position().value();
  s.end.store(s.append_position, std::memory_order_release);
  return {};
}

}  // namespace

Result<void> TransactionLog::receive_chunk(const Path& temporary) {
  State& s = *state_;
  VERGER_RETURN_IF_ERROR(s.check_writable());
  VERGER_TRY(auto received, Chunk::open_completed(s.files, temporary));
  const ChunkHeader header = received->header();
  if (!header.scavenged || header.chunk_size != s.chunk_size) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: only scavenged chunks of chunk size {} are received whole",
                             temporary.string(), s.chunk_size)};
  }
  const auto conflict = [&] {
    return Error{Errc::kConflict,
                 fmt::format("{}: covers log positions {} to {}, this log continues at {}",
                             temporary.string(), header.start_position(), header.end_position(),
                             s.append_position)};
  };
  VERGER_RETURN_IF_ERROR(flush());
  if (header.start_position().value() == s.append_position) {
    VERGER_RETURN_IF_ERROR(s.guarded(s.complete_filled_chunk()));
  }
  const bool behind = header.start_position().value() == s.append_position &&
                      !(s.active && s.active->data_size() > 0);
  if (!behind && (header.start_position().value() >= s.append_position ||
                  header.end_position().value() < s.append_position)) {
    return conflict();
  }
  VERGER_RETURN_IF_ERROR(received->verify_md5());
  VERGER_RETURN_IF_ERROR(s.find_epochs());

  const std::lock_guard structure(s.structure_mutex);
  std::optional<SplitChunk> split;
  if (!behind) {
    const auto covering = s.chunk_at(header.start_position());
    if (!covering) {
      return conflict();
    }
    if (covering->start() < header.start) {
      VERGER_TRY(auto front, write_front(s, covering, header.start));
      split = SplitChunk{covering, std::move(front)};
    }
  }
  VERGER_TRY(const int version, detail::next_version(s.files, s.directory, header.start));
  const Path path = s.directory / chunk_file_name(header.start, version);
  received.reset();
  s.active.reset();
  return s.guarded(install(s, temporary, path, split));
}

}  // namespace verger::log
