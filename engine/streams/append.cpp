// Writing: events, deletes, metadata, as the server does it (docs/formats/node-interface.md §1.11).
#include <algorithm>

#include "engine/base/utf8.h"
#include "engine/streams/detail/database_state.h"
#include "engine/streams/detail/undelete_json.h"
#include "engine/streams/detail/write_errors.h"
#include "engine/streams/stream_names.h"

namespace verger::streams {

namespace {

namespace flags = log::prepare_flags;

constexpr std::uint16_t kSingleWrite = flags::kTransactionBegin | flags::kTransactionEnd;
constexpr std::size_t kMaxEventData = 16'767'216;

std::unexpected<WriteFailure> failure(Error error, EventNumber current = kNoStream) {
  return std::unexpected(WriteFailure{std::move(error), current});
}

Result<void> check_name(std::string_view stream) {
  if (stream.empty() || stream == "$$" || !is_utf8(stream)) {
    return Error{
        Errc::kInvalidArgument,
        fmt::format("'{}' cannot be a stream's name: it must be text and not empty", stream)};
  }
  return {};
}

Result<void> check_events(std::string_view stream, const std::vector<NewEvent>& events) {
  for (const auto& event : events) {
    const auto refuse = [&](std::string_view why) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("event {} for stream '{}': {}", event.id.to_string(), stream, why)};
    };
    if (event.id.is_zero()) {
      return refuse("its id must not be zero");
    }
    if (!is_utf8(event.type)) {
      return refuse("its type is not UTF-8 text");
    }
    if (event.data.size() + event.metadata.size() > kMaxEventData) {
      return refuse(fmt::format("{} bytes of data and metadata, at most {} fit into a record",
                                event.data.size() + event.metadata.size(), kMaxEventData));
    }
  }
  return {};
}

WriteOutcome outcome_of(const detail::Write& write, LogPosition end) {
  WriteOutcome outcome;
  outcome.first = write.events.front().number;
  outcome.last = write.events.back().number;
  outcome.position = write.events.back().position;
  outcome.end = end;
  return outcome;
}

/// A point ends its chunk, so that all nodes scavenge the same chunks to it.
bool is_scavenge_point(std::span<const log::Prepare> prepares) {
  return prepares.size() == 1 && prepares.front().stream == kScavengePointsStream &&
         prepares.front().type == kScavengePointType;
}

}  // namespace

log::Prepare Database::State::event_prepare(std::string_view stream, EventNumber number,
                                            const NewEvent& event, std::uint16_t extra_flags) {
  log::Prepare prepare;
  prepare.flags = static_cast<std::uint16_t>(flags::kIsCommitted | extra_flags |
                                             (event.is_json ? flags::kIsJson : 0));
  prepare.position = kNoPosition;
  prepare.transaction_position = kNoPosition;
  prepare.expected_version = number.value() - 1;
  prepare.stream = stream;
  prepare.event_id = event.id;
  prepare.correlation_id = random.uuid();
  prepare.timestamp = clock.now();
  prepare.type = event.type;
  prepare.data = event.data;
  prepare.metadata = event.metadata;
  return prepare;
}

Result<detail::Write> Database::State::append_prepares(std::span<log::Prepare> prepares) {
  account_for_log();
  auto appended = log->append(prepares);
  if (appended && is_scavenge_point(prepares)) {
    if (auto completed = log->complete_chunk(); !completed) {
      appended = std::move(completed).error();
    }
  }
  if (!appended) {
    if (appended.error().code != Errc::kInvalidArgument) {
      broken = appended.error();
    }
    return appended.error();
  }
  const auto& positions = *appended;
  detail::Write write;
  write.stream = prepares.front().stream;
  write.begin = positions.front();
  for (std::size_t i = 0; i < prepares.size(); ++i) {
    const auto& prepare = prepares[i];
    const auto size =
        static_cast<std::int64_t>(log::record_size(log::Record(prepare))) + log::kFramingSize;
    write.end = positions[i] + size;
    write.commit = positions[i];
    if (prepare.has(flags::kData | flags::kStreamDelete)) {
      write.events.push_back({prepare.event_number(), prepare.event_id, positions[i], write.end});
    }
    if (is_metastream(write.stream) && prepare.has(flags::kData)) {
      write.metadata =
          detail::RawMetadata{prepare.event_number(), prepare.version, prepare.has(flags::kIsJson),
                              Bytes(prepare.data.begin(), prepare.data.end())};
    }
  }
  if (!write.events.empty()) {
    written.put(write.stream, write.events.back().number);
  }
  recent.add(write);
  pending.push(write);
  accounted = log->append_position();
  return write;
}

Result<LogPosition> Database::State::undelete(std::string_view stream, EventNumber first) {
  VERGER_TRY(const auto raw, raw_metadata(stream));
  const auto metadata_number = raw ? raw->number.value() + 1 : 0;
  NewEvent event;
  event.id = random.uuid();
  event.type = kMetadataType;
  event.data = detail::undelete_json(raw ? ByteView(raw->json) : ByteView{}, first);
  const auto metastream = metastream_of(stream);
  auto prepare =
      event_prepare(metastream, EventNumber(metadata_number), event, flags::kData | kSingleWrite);
  VERGER_TRY(const auto write, append_prepares({&prepare, 1}));
  return write.end;
}

Result<void> Database::State::flushed(Result<void> outcome) {
  if (!outcome && !broken) {
    broken = outcome.error();
  }
  account_for_log();
  return outcome;
}

Result<void> Database::State::flush(Flush when) {
  return when == Flush::kLater ? Result<void>() : flushed(log->flush());
}

WriteResult Database::State::append_alone(log::Prepare prepare, EventNumber current, Flush when) {
  auto write = append_prepares({&prepare, 1});
  if (!write) {
    return failure(write.error(), current);
  }
  if (auto done = flush(when); !done) {
    return failure(done.error(), current);
  }
  return outcome_of(*write, write->end);
}

WriteResult Database::append(std::string_view stream, std::int64_t expected_version,
                             std::vector<NewEvent> events, Flush flush) {
  auto& state = *state_;
  for (auto checked :
       {state.check_writable("appending"), check_name(stream), check_events(stream, events)}) {
    if (!checked) {
      return failure(checked.error());
    }
  }
  std::vector<Uuid> ids;
  ids.reserve(events.size());
  for (const auto& event : events) {
    ids.push_back(event.id);
  }
  auto decision = state.decide(stream, expected_version, ids);
  if (!decision) {
    return failure(decision.error());
  }
  const auto current = decision->current;
  if (decision->kind == State::Decision::Kind::kFailed) {
    return failure(std::move(decision->error), current);
  }
  if (decision->kind == State::Decision::Kind::kRepeated) {
    return decision->outcome;
  }

  const auto first = EventNumber(current.value() + 1);
  std::vector<log::Prepare> prepares;
  for (std::size_t i = 0; i < events.size(); ++i) {
    std::uint16_t extra = flags::kData;
    extra |= i == 0 ? flags::kTransactionBegin : 0;
    extra |= i + 1 == events.size() ? flags::kTransactionEnd : 0;
    prepares.push_back(state.event_prepare(
        stream, EventNumber(first.value() + static_cast<std::int64_t>(i)), events[i], extra));
    prepares.back().transaction_offset = static_cast<std::int32_t>(i);
  }
  NewEvent marker;
  if (events.empty()) {
    // A write of nothing still leaves its mark in the log.
    marker.id = state.random.uuid();
    marker.is_json = false;
    prepares.push_back(state.event_prepare(stream, first, marker, kSingleWrite));
    prepares.back().transaction_offset = -1;
  }

  // What the server looks at before it notes the write: a metadata write may be an undelete.
  auto undelete_original = Result<bool>(false);
  if (is_metastream(stream) && !events.empty()) {
    undelete_original = state.soft_deleted(original_of(stream));
    if (!undelete_original) {
      return failure(undelete_original.error());
    }
  }
  auto write = state.append_prepares(prepares);
  if (!write) {
    return failure(write.error(), current);
  }
  auto end = Result<LogPosition>(write->end);
  if (decision->soft_deleted && !events.empty()) {
    end = state.undelete(stream, first);
  } else if (*undelete_original) {
    const auto original = original_of(stream);
    const auto last = state.last_event_number(original);
    end = last ? state.undelete(original, EventNumber(last->value() + 1))
               : Result<LogPosition>(last.error());
  }
  if (!end) {
    // Half of it lies in the log, not flushed: only opening again shows what remains.
    state.broken = end.error();
    return failure(end.error(), current);
  }
  if (auto done = state.flush(flush); !done) {
    return failure(done.error(), current);
  }
  if (events.empty()) {
    return WriteOutcome{first, current, write->begin, *end, false};
  }
  return outcome_of(*write, *end);
}

Result<std::shared_ptr<log::LogFlush>> Database::begin_flush() {
  auto& state = *state_;
  VERGER_RETURN_IF_ERROR(state.check_writable("flushing"));
  auto begun = state.log->begin_flush();
  VERGER_RETURN_IF_ERROR(state.flushed(begun ? Result<void>() : begun.error()));
  return begun;
}

Result<void> Database::finish_flush() { return state_->flushed(state_->log->finish_flush()); }

Result<void> Database::flush() {
  VERGER_RETURN_IF_ERROR(state_->check_writable("flushing"));
  return state_->flush(Flush::kNow);
}

void Database::begin_term() { state_->written.clear(); }

WriteResult Database::set_metadata(std::string_view stream, std::int64_t expected_version,
                                   NewEvent event, Flush flush) {
  if (is_metastream(stream)) {
    return failure(Error{Errc::kInvalidArgument,
                         fmt::format("'{}' is a metastream: its metadata is fixed", stream)});
  }
  event.type = kMetadataType;
  std::vector<NewEvent> events;
  events.push_back(std::move(event));
  return append(metastream_of(stream), expected_version, std::move(events), flush);
}

std::expected<EventNumber, WriteFailure> Database::State::decide_deletion(
    std::string_view stream, std::int64_t expected_version, const Uuid& id) {
  for (const auto& checked : {check_writable("deleting"), check_name(stream)}) {
    if (!checked) {
      return failure(checked.error());
    }
  }
  if (is_metastream(stream)) {
    return failure(Error{Errc::kInvalidArgument,
                         fmt::format("'{}' is a metastream: it goes with its stream", stream)});
  }
  auto decision = decide(stream, expected_version, {&id, 1});
  if (!decision) {
    return failure(decision.error());
  }
  if (decision->kind == Decision::Kind::kFailed) {
    return failure(std::move(decision->error), decision->current);
  }
  return decision->current;
}

WriteResult Database::soft_delete(std::string_view stream, std::int64_t expected_version,
                                  Flush flush) {
  auto& state = *state_;
  NewEvent event;
  event.id = state.random.uuid();
  event.type = kMetadataType;
  const auto json = as_bytes(R"({"$tb":9223372036854775807})");
  event.data.assign(json.begin(), json.end());
  const auto current = state.decide_deletion(stream, expected_version, event.id);
  if (!current) {
    return std::unexpected(current.error());
  }
  const auto metastream = metastream_of(stream);
  auto last_metadata = state.last_event_number(metastream);
  if (!last_metadata) {
    return failure(last_metadata.error());
  }
  if (current->value() < 0 && last_metadata->value() < 0) {
    return failure(detail::wrong_version(stream, kExpectStreamExists, *current), *current);
  }
  auto prepare = state.event_prepare(metastream, EventNumber(last_metadata->value() + 1), event,
                                     flags::kData | kSingleWrite);
  return state.append_alone(prepare, *current, flush);
}

WriteResult Database::hard_delete(std::string_view stream, std::int64_t expected_version,
                                  Flush flush) {
  auto& state = *state_;
  NewEvent event;
  event.id = state.random.uuid();
  event.type = kTombstoneType;
  event.is_json = false;
  const auto current = state.decide_deletion(stream, expected_version, event.id);
  if (!current) {
    return std::unexpected(current.error());
  }
  auto prepare =
      state.event_prepare(stream, kDeletedStream, event, flags::kStreamDelete | kSingleWrite);
  return state.append_alone(prepare, *current, flush);
}

WriteResult Database::append_scavenge_point(std::int64_t expected_version, std::int32_t threshold) {
  NewEvent event;
  event.id = state_->random.uuid();
  event.type = kScavengePointType;
  // The server's serializer leaves a threshold of zero out.
  const auto text =
      threshold == 0 ? std::string("{}") : fmt::format("{{\n  \"threshold\": {}\n}}", threshold);
  const auto json = as_bytes(text);
  event.data.assign(json.begin(), json.end());
  std::vector<NewEvent> events;
  events.push_back(std::move(event));
  return append(kScavengePointsStream, expected_version, std::move(events));
}

}  // namespace verger::streams
