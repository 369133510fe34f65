#include <fmt/format.h>

#include "engine/log/detail/log_state.h"

namespace verger::log {

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

Result<void> TransactionLog::append_replicated(ByteView framed_records) {
  State& s = *state_;
  VERGER_RETURN_IF_ERROR(s.check_writable());
  if (framed_records.empty()) {
    return {};
  }
  // All of them are checked before the first is written.
  std::vector<Epoch> found;
  std::int64_t at = s.append_position;
  for (ByteView rest = framed_records; !rest.empty();) {
    VERGER_TRY(const auto record, canonical_record(rest, at, s.scratch));
    if (position_of(record).value() != at) {
      return Error{at == s.append_position ? Errc::kConflict : Errc::kCorruption,
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
    at += static_cast<std::int64_t>(s.scratch.size());
    rest = rest.subspan(s.scratch.size());
  }
  if (!s.active || s.active->chunk()->end_position().value() == s.append_position) {
    return Error{Errc::kConflict,
                 fmt::format("log position {} is the start of a chunk that the leader has not "
                             "described yet",
                             s.append_position)};
  }
  if (!s.active->fits(static_cast<std::int64_t>(framed_records.size()))) {
    return Error{Errc::kCorruption,
                 fmt::format("{} replicated bytes at log position {} reach beyond their chunk",
                             framed_records.size(), s.append_position)};
  }
  if (!found.empty()) {
    VERGER_RETURN_IF_ERROR(s.find_epochs());
  }
  VERGER_RETURN_IF_ERROR(s.guarded(s.append_bytes_at_end(framed_records)));
  s.unflushed_epochs.insert(s.unflushed_epochs.end(), found.begin(), found.end());
  return {};
}

Result<void> TransactionLog::complete_replicated_chunk() {
  State& s = *state_;
  VERGER_RETURN_IF_ERROR(s.check_writable());
  if (!s.active || s.active->data_size() == 0) {
    return Error{Errc::kConflict,
                 fmt::format("there is no chunk with records to complete at log position {}",
                             s.append_position)};
  }
  return s.guarded(s.roll(RollOrder::kWriterFirst, false));
}

Result<void> TransactionLog::State::complete_filled_chunk() {
  if (active && active->data_size() > 0 &&
      active->chunk()->end_position().value() == append_position) {
    return roll(RollOrder::kWriterFirst, false);
  }
  return {};
}

Result<void> TransactionLog::start_replicated_chunk(const ChunkHeader& header) {
  State& s = *state_;
  VERGER_RETURN_IF_ERROR(s.check_writable());
  if (header.scavenged || header.start != header.end || header.chunk_size != s.chunk_size) {
    return Error{Errc::kCorruption,
                 fmt::format("the leader's chunk {} to {} with chunk size {} cannot be written "
                             "record by record (chunk size here: {})",
                             header.start, header.end, header.chunk_size, s.chunk_size)};
  }
  VERGER_RETURN_IF_ERROR(s.guarded(s.complete_filled_chunk()));
  if (header.start_position().value() != s.append_position ||
      (s.active && s.active->data_size() > 0)) {
    return Error{
        Errc::kConflict,
        fmt::format("the leader's chunk {} starts at log position {}, this log continues at "
                    "{}{}",
                    header.start, header.start_position(), s.append_position,
                    s.active ? " in a chunk not completed yet" : "")};
  }
  if (s.active && encode_chunk_header(s.active->chunk()->header()) == encode_chunk_header(header)) {
    return {};
  }
  // An empty chunk of our own making gives way: the rename replaces it.
  const std::lock_guard structure(s.structure_mutex);
  s.active.reset();
  return s.guarded(s.start_chunk(header));
}

}  // namespace verger::log
