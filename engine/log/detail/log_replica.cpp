#include "engine/log/detail/log_replica.h"

#include <fmt/format.h>

#include "engine/base/failpoint.h"
#include "engine/log/detail/chunk_directory.h"
#include "engine/log/detail/truncation.h"

namespace verger::log::detail {
namespace {

/// One whole frame at the front of `bytes` that is what we would write for the record in it.
Result<Record> canonical_record(ByteView bytes, std::int64_t position, Bytes& scratch) {
  const auto bad = [&](std::string_view what) {
    return Error{Errc::kCorruption,
                 fmt::format("replicated record for log position {}: {}", position, what)};
  };
  if (bytes.size() < kFramingSize) {
    return bad("it is cut off");
  }
  const std::int64_t size = load_le<std::int32_t>(bytes.data());
  if (size <= 0 || size > kMaxRecordSize) {
    return bad(fmt::format("its length {} is impossible", size));
  }
  if (bytes.size() < static_cast<std::size_t>(size + kFramingSize)) {
    return bad("it is cut off");
  }
  auto record = decode_record(bytes.subspan(4, static_cast<std::size_t>(size)));
  if (!record) {
    return record.error().within(fmt::format("replicated record for log position {}", position));
  }
  // Our chunk has to become the leader's byte for byte, so nothing passes that would not.
  scratch.clear();
  append_framed(scratch, *record);
  if (!same_bytes(scratch, bytes.first(static_cast<std::size_t>(size + kFramingSize)))) {
    return bad("its bytes are not in canonical form");
  }
  return record;
}

}  // namespace

Result<void> LogReplica::append(ByteView framed_records) {
  VERGER_RETURN_IF_ERROR(writer_.check_writable());
  if (framed_records.empty()) {
    return {};
  }
  const auto append_position = writer_.append_position().value();
  // All of them are checked before the first is written.
  std::vector<Epoch> found;
  std::int64_t at = append_position;
  for (ByteView rest = framed_records; !rest.empty();) {
    VERGER_TRY(const auto record, canonical_record(rest, at, scratch_));
    if (position_of(record).value() != at) {
      return Error{at == append_position ? Errc::kConflict : Errc::kCorruption,
                   fmt::format("a replicated record has log position {}, this log continues at {}",
                               position_of(record), at)};
    }
    if (const auto* system = std::get_if<SystemRecord>(&record)) {
      VERGER_TRY(auto epoch, decode_epoch_json(system->json));
      if (epoch.position.value() != at) {
        return Error{Errc::kCorruption,
                     fmt::format("the replicated epoch record at log position {} says {}", at,
                                 epoch.position)};
      }
      found.push_back(epoch);
    }
    at += static_cast<std::int64_t>(scratch_.size());
    rest = rest.subspan(scratch_.size());
  }
  const auto* chunk = writer_.chunk();
  if (chunk == nullptr || chunk->end_position() == writer_.append_position()) {
    return Error{Errc::kConflict,
                 fmt::format("log position {} is the start of a chunk that the leader has not "
                             "described yet",
                             append_position)};
  }
  if (!writer_.fits(static_cast<std::int64_t>(framed_records.size()))) {
    return Error{Errc::kCorruption,
                 fmt::format("{} replicated bytes at log position {} reach beyond their chunk",
                             framed_records.size(), append_position)};
  }
  if (!found.empty()) {
    VERGER_RETURN_IF_ERROR(epochs_.find());
  }
  return writer_.append_framed_records(framed_records, found);
}

Result<void> LogReplica::complete_chunk() {
  VERGER_RETURN_IF_ERROR(writer_.check_writable());
  if (!writer_.has_records_in_chunk()) {
    return Error{Errc::kConflict,
                 fmt::format("there is no chunk with records to complete at log position {}",
                             writer_.append_position())};
  }
  return writer_.end_chunk();
}

Result<void> LogReplica::start_chunk(const ChunkHeader& header) {
  VERGER_RETURN_IF_ERROR(writer_.check_writable());
  if (header.scavenged || header.start != header.end || header.chunk_size != parts_.chunk_size) {
    return Error{Errc::kCorruption,
                 fmt::format("the leader's chunk {} to {} with chunk size {} cannot be written "
                             "record by record (chunk size here: {})",
                             header.start, header.end, header.chunk_size, parts_.chunk_size)};
  }
  VERGER_RETURN_IF_ERROR(writer_.complete_filled_chunk());
  if (header.start_position() != writer_.append_position() || writer_.has_records_in_chunk()) {
    return Error{
        Errc::kConflict,
        fmt::format("the leader's chunk {} starts at log position {}, this log continues at "
                    "{}{}",
                    header.start, header.start_position(), writer_.append_position(),
                    writer_.chunk() != nullptr ? " in a chunk not completed yet" : "")};
  }
  if (const auto* own = writer_.chunk();
      own != nullptr && encode_chunk_header(own->header()) == encode_chunk_header(header)) {
    return {};
  }
  return writer_.start_chunk_as(header);
}

Result<Path> LogReplica::write_front(const std::shared_ptr<const Chunk>& whole, ChunkNumber end) {
  ChunkHeader header = whole->header();
  header.end = ChunkNumber(end.value() - 1);
  header.chunk_id = parts_.random.uuid();
  const std::string name = fmt::format("front-{:06}.chunk.tmp", header.start.value());
  static_cast<void>(parts_.files.remove(parts_.directory / name));
  VERGER_TRY(auto writer, ChunkWriter::create(parts_.files, parts_.directory, name, header));
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

Result<void> LogReplica::install(const Path& temporary, const Path& path,
                                 const std::optional<SplitChunk>& split) {
  // Whole and synced before it gets its name, from which on it counts; unless a chunk of ours
  // covers its start: then it counts once that one was replaced by its front part. What it
  // replaces goes only when writer.chk has moved behind it. A crash in between leaves a scavenged
  // chunk that writer.chk points to the start of, or into while the files it replaces are there:
  // opening knows both, sets writer.chk behind it and removes those files.
  VERGER_RETURN_IF_ERROR(parts_.files.rename(temporary, path));
  VERGER_FAILPOINT("log.receive.after-rename");
  VERGER_RETURN_IF_ERROR(parts_.files.sync_directory(parts_.directory));
  static_cast<void>(parts_.files.set_read_only(path, true));
  LiveChunks::Chunks installed;
  if (split) {
    VERGER_TRY(const int next, next_version(parts_.files, parts_.directory, split->whole->start()));
    const Path front_path = parts_.directory / chunk_file_name(split->whole->start(), next);
    VERGER_RETURN_IF_ERROR(parts_.files.rename(split->front, front_path));
    VERGER_RETURN_IF_ERROR(parts_.files.sync_directory(parts_.directory));
    static_cast<void>(parts_.files.set_read_only(front_path, true));
    VERGER_TRY(auto chunk, Chunk::open_completed(parts_.files, front_path));
    installed.push_back(std::move(chunk));
  }
  VERGER_TRY(std::shared_ptr<const Chunk> chunk, Chunk::open_completed(parts_.files, path));
  VERGER_RETURN_IF_ERROR(writer_.store_end(chunk->end_position()));
  VERGER_FAILPOINT("log.receive.before-delete");
  installed.push_back(chunk);
  chunks_.retire(chunks_.put_at_end(installed));
  VERGER_RETURN_IF_ERROR(epochs_.take(chunk));
  writer_.move_to(chunk->end_position());
  return {};
}

Result<void> LogReplica::receive_chunk(const Path& temporary) {
  VERGER_RETURN_IF_ERROR(writer_.check_writable());
  VERGER_TRY(auto received, Chunk::open_completed(parts_.files, temporary));
  const ChunkHeader header = received->header();
  if (!header.scavenged || header.chunk_size != parts_.chunk_size) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: only scavenged chunks of chunk size {} are received whole",
                             temporary.string(), parts_.chunk_size)};
  }
  const auto conflict = [&] {
    return Error{Errc::kConflict,
                 fmt::format("{}: covers log positions {} to {}, this log continues at {}",
                             temporary.string(), header.start_position(), header.end_position(),
                             writer_.append_position())};
  };
  VERGER_RETURN_IF_ERROR(writer_.flush());
  if (header.start_position() == writer_.append_position()) {
    VERGER_RETURN_IF_ERROR(writer_.complete_filled_chunk());
  }
  const bool behind =
      header.start_position() == writer_.append_position() && !writer_.has_records_in_chunk();
  if (!behind && (header.start_position() >= writer_.append_position() ||
                  header.end_position() < writer_.append_position())) {
    return conflict();
  }
  VERGER_RETURN_IF_ERROR(received->verify_md5());
  VERGER_RETURN_IF_ERROR(epochs_.find());

  const std::lock_guard structure(chunks_.structure());
  std::optional<SplitChunk> split;
  if (!behind) {
    const auto covering = chunks_.at(header.start_position());
    if (!covering) {
      return conflict();
    }
    if (covering->start() < header.start) {
      VERGER_TRY(auto front, write_front(covering, header.start));
      split = SplitChunk{covering, std::move(front)};
    }
  }
  VERGER_TRY(const int version, next_version(parts_.files, parts_.directory, header.start));
  const Path path = parts_.directory / chunk_file_name(header.start, version);
  received.reset();
  writer_.drop_chunk();
  return writer_.guarded(install(temporary, path, split));
}

}  // namespace verger::log::detail
