// Writing: expected versions, idempotency, deletes, metadata. Rules: docs/formats/scavenge.md,
// "Read-side semantics", and the server's behaviour over HTTP.
#include <algorithm>

#include "engine/streams/detail/database_state.h"
#include "engine/streams/detail/undelete_json.h"
#include "engine/streams/detail/utf8.h"
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
  if (stream.empty() || stream == "$$" || !detail::is_valid_utf8(stream)) {
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
    if (!detail::is_valid_utf8(event.type)) {
      return refuse("its type is not UTF-8 text");
    }
    if (event.data.size() + event.metadata.size() > kMaxEventData) {
      return refuse(fmt::format("{} bytes of data and metadata, at most {} fit into a record",
                                event.data.size() + event.metadata.size(), kMaxEventData));
    }
  }
  return {};
}

std::string name_of_version(std::int64_t version) {
  switch (version) {
    case kExpectAny:
      return "any";
    case kExpectNoStream:
      return "no stream";
    case kExpectStreamExists:
      return "an existing stream";
    default:
      return std::to_string(version);
  }
}

Error wrong_version(std::string_view stream, std::int64_t expected, EventNumber current) {
  return Error{Errc::kConflict, fmt::format("stream '{}': expected {}, but its last event is {}",
                                            stream, name_of_version(expected), current)};
}

Error deleted(std::string_view stream) {
  return Error{Errc::kDeleted, fmt::format("stream '{}' is deleted", stream)};
}

WriteOutcome outcome_of(const detail::Write& write, LogPosition end) {
  WriteOutcome outcome;
  outcome.first = write.events.front().number;
  outcome.last = write.events.back().number;
  outcome.position = write.begin;
  outcome.end = end;
  return outcome;
}

}  // namespace

// --- Streams with everything in flight ---

Result<EventNumber> Database::State::last_event_number(std::string_view stream) const {
  for (auto original = stream; is_metastream(original);) {
    original = original_of(original);
    const auto in_flight = pending.last(original);
    if (in_flight == kDeletedStream) {
      return kDeletedStream;
    }
  }
  if (const auto in_flight = pending.last(stream)) {
    // A metastream's write in flight cannot hide that its stream was deleted before it.
    return *in_flight;
  }
  return reader.last_event_number(stream);
}

Result<std::optional<detail::RawMetadata>> Database::State::raw_metadata(
    std::string_view stream) const {
  if (const auto* in_flight = pending.metadata(stream)) {
    return *in_flight;
  }
  return reader.raw_metadata(stream);
}

Result<bool> Database::State::soft_deleted(std::string_view stream) const {
  if (is_metastream(stream)) {
    return false;
  }
  VERGER_TRY(const auto raw, raw_metadata(stream));
  return raw && raw->parse().soft_deleted();
}

// --- Deciding ---

Result<std::optional<detail::WrittenEvent>> Database::State::find_written(std::string_view stream,
                                                                          EventNumber number,
                                                                          const Uuid& id) {
  if (const auto* entry = recent.find(stream, id); entry && entry->event.number == number) {
    return entry->event;
  }
  if (number.value() < 0) {
    return std::nullopt;
  }
  VERGER_TRY(const auto event, reader.find(stream, number));
  if (!event || event->id != id) {
    return std::nullopt;
  }
  Bytes buffer;
  VERGER_TRY(const auto record, log->read(event->prepare_position, buffer));
  return detail::WrittenEvent{
      number, id, event->prepare_position,
      event->prepare_position + static_cast<std::int64_t>(record.framed.size())};
}

Result<Database::State::Decision> Database::State::decide(std::string_view stream,
                                                          std::int64_t expected_version,
                                                          std::span<const Uuid> ids) {
  using Kind = Decision::Kind;
  VERGER_CHECK(look_into_ranges());
  Decision decision{Kind::kWrite};
  VERGER_TRY(decision.current, last_event_number(stream));
  const auto current = decision.current.value();
  const auto fail = [&](Error error) {
    decision.kind = Kind::kFailed;
    decision.error = std::move(error);
    return decision;
  };
  const auto repeated = [&](const detail::WrittenEvent& first, const detail::WrittenEvent& last) {
    decision.kind = Kind::kRepeated;
    decision.outcome = {first.number, last.number, first.position, last.end, true};
    return decision;
  };
  const auto reused_id = [&](const Uuid& id) {
    return Error{Errc::kConflict,
                 fmt::format("stream '{}': some events of this write are there already, but not {}",
                             stream, id.to_string())};
  };

  if (decision.current == kDeletedStream) {
    return fail(deleted(stream));
  }
  VERGER_TRY(decision.soft_deleted, soft_deleted(stream));
  if (expected_version == kExpectStreamExists) {
    if (decision.soft_deleted) {
      return fail(deleted(stream));
    }
    if (current < 0) {
      VERGER_TRY(const auto metadata, last_event_number(metastream_of(stream)));
      if (metadata.value() < 0) {
        return fail(wrong_version(stream, expected_version, decision.current));
      }
    }
  }
  if (expected_version == kExpectAny || expected_version == kExpectStreamExists) {
    // Only what was written lately is recognised, as by the server.
    std::optional<detail::WrittenEvent> first;
    std::optional<detail::WrittenEvent> last;
    for (const auto& id : ids) {
      const auto* entry = recent.find(stream, id);
      if (entry == nullptr) {
        return first ? fail(reused_id(id)) : decision;
      }
      if (!first) {
        first = entry->event;
      }
      last = entry->event;
    }
    return first ? repeated(*first, *last) : decision;
  }
  if (expected_version > current) {
    return fail(wrong_version(stream, expected_version, decision.current));
  }
  if (expected_version < current) {
    std::optional<detail::WrittenEvent> first;
    std::optional<detail::WrittenEvent> last;
    auto number = expected_version;
    for (const auto& id : ids) {
      VERGER_TRY(const auto event, find_written(stream, EventNumber(++number), id));
      if (!event) {
        if (first) {
          return fail(reused_id(id));
        }
        if (expected_version == kExpectNoStream && decision.soft_deleted) {
          return decision;  // for its readers the stream does not exist
        }
        return fail(wrong_version(stream, expected_version, decision.current));
      }
      if (!first) {
        first = event;
      }
      last = event;
    }
    return first ? repeated(*first, *last)
                 : fail(wrong_version(stream, expected_version, decision.current));
  }
  return decision;
}

// --- Appending ---

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
  VERGER_TRY(const auto positions, log->append(prepares));
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
    if (is_metastream(write.stream)) {
      write.metadata =
          detail::RawMetadata{prepare.event_number(), prepare.version, prepare.has(flags::kIsJson),
                              Bytes(prepare.data.begin(), prepare.data.end())};
    }
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

WriteResult Database::append(std::string_view stream, std::int64_t expected_version,
                             std::vector<NewEvent> events) {
  auto& state = *state_;
  for (auto checked :
       {state.check_writable("appending"), check_name(stream), check_events(stream, events)}) {
    if (!checked) {
      return failure(checked.error());
    }
  }
  std::vector<Uuid> ids;
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
    return failure(end.error(), current);
  }
  if (auto flushed = state.log->flush(); !flushed) {
    return failure(flushed.error(), current);
  }
  state.accounted = state.log->end();
  if (events.empty()) {
    return WriteOutcome{first, current, write->begin, *end, false};
  }
  return outcome_of(*write, *end);
}

WriteResult Database::set_metadata(std::string_view stream, std::int64_t expected_version,
                                   NewEvent event) {
  if (is_metastream(stream)) {
    return failure(Error{Errc::kInvalidArgument,
                         fmt::format("'{}' is a metastream: its metadata is fixed", stream)});
  }
  event.type = kMetadataType;
  std::vector<NewEvent> events;
  events.push_back(std::move(event));
  return append(metastream_of(stream), expected_version, std::move(events));
}

WriteResult Database::soft_delete(std::string_view stream, std::int64_t expected_version) {
  auto& state = *state_;
  for (auto checked : {state.check_writable("deleting"), check_name(stream)}) {
    if (!checked) {
      return failure(checked.error());
    }
  }
  if (is_metastream(stream)) {
    return failure(Error{Errc::kInvalidArgument,
                         fmt::format("'{}' is a metastream: it goes with its stream", stream)});
  }
  NewEvent event;
  event.id = state.random.uuid();
  event.type = kMetadataType;
  const auto json = as_bytes(R"({"$tb":9223372036854775807})");
  event.data.assign(json.begin(), json.end());
  auto decision = state.decide(stream, expected_version, {&event.id, 1});
  if (!decision) {
    return failure(decision.error());
  }
  if (decision->kind == State::Decision::Kind::kFailed) {
    return failure(std::move(decision->error), decision->current);
  }
  const auto metastream = metastream_of(stream);
  auto last_metadata = state.last_event_number(metastream);
  if (!last_metadata) {
    return failure(last_metadata.error());
  }
  if (decision->current.value() < 0 && last_metadata->value() < 0) {
    return failure(wrong_version(stream, kExpectStreamExists, decision->current),
                   decision->current);
  }
  auto prepare = state.event_prepare(metastream, EventNumber(last_metadata->value() + 1), event,
                                     flags::kData | kSingleWrite);
  auto write = state.append_prepares({&prepare, 1});
  if (!write) {
    return failure(write.error(), decision->current);
  }
  if (auto flushed = state.log->flush(); !flushed) {
    return failure(flushed.error(), decision->current);
  }
  state.accounted = state.log->end();
  return outcome_of(*write, write->end);
}

WriteResult Database::hard_delete(std::string_view stream, std::int64_t expected_version) {
  auto& state = *state_;
  for (auto checked : {state.check_writable("deleting"), check_name(stream)}) {
    if (!checked) {
      return failure(checked.error());
    }
  }
  if (is_metastream(stream)) {
    return failure(Error{Errc::kInvalidArgument,
                         fmt::format("'{}' is a metastream: it goes with its stream", stream)});
  }
  NewEvent event;
  event.id = state.random.uuid();
  event.type = kTombstoneType;
  event.is_json = false;
  auto decision = state.decide(stream, expected_version, {&event.id, 1});
  if (!decision) {
    return failure(decision.error());
  }
  if (decision->kind == State::Decision::Kind::kFailed) {
    return failure(std::move(decision->error), decision->current);
  }
  auto prepare =
      state.event_prepare(stream, kDeletedStream, event, flags::kStreamDelete | kSingleWrite);
  auto write = state.append_prepares({&prepare, 1});
  if (!write) {
    return failure(write.error(), decision->current);
  }
  if (auto flushed = state.log->flush(); !flushed) {
    return failure(flushed.error(), decision->current);
  }
  state.accounted = state.log->end();
  return outcome_of(*write, write->end);
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
