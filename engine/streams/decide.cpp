// Expected versions and repeated writes, decided over everything that is in the log.
#include "engine/streams/detail/database_state.h"
#include "engine/streams/detail/write_errors.h"
#include "engine/streams/stream_names.h"

namespace verger::streams {

namespace detail {

namespace {

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

}  // namespace

Error wrong_version(std::string_view stream, std::int64_t expected, EventNumber current) {
  return Error{Errc::kConflict, fmt::format("stream '{}': expected {}, but its last event is {}",
                                            stream, name_of_version(expected), current)};
}

Error stream_deleted(std::string_view stream) {
  return Error{Errc::kDeleted, fmt::format("stream '{}' is deleted", stream)};
}

}  // namespace detail

// --- Streams with everything in flight ---

Result<EventNumber> Database::State::last_event_number(std::string_view stream) const {
  if (is_metastream(stream)) {
    // Whether its stream was deleted since is not asked for.
    if (const auto known = written.find(stream)) {
      return *known;
    }
  }
  for (auto original = stream; is_metastream(original);) {
    original = original_of(original);
    const auto in_flight = pending.last(original);
    if (in_flight == kDeletedStream) {
      return kDeletedStream;
    }
  }
  if (const auto in_flight = pending.last(stream)) {
    // Also a metastream's whose stream was deleted before it: the writer has its number.
    return *in_flight;
  }
  if (!is_metastream(stream)) {
    if (const auto known = written.find(stream)) {
      return *known;
    }
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
  VERGER_RETURN_IF_ERROR(look_into_ranges());
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
    decision.outcome = {first.number, last.number, last.position, last.end, true};
    return decision;
  };
  const auto reused_id = [&](const Uuid& id) {
    return Error{Errc::kConflict,
                 fmt::format("stream '{}': some events of this write are there already, but not {}",
                             stream, id.to_string())};
  };

  if (decision.current == kDeletedStream) {
    return fail(detail::stream_deleted(stream));
  }
  VERGER_TRY(decision.soft_deleted, soft_deleted(stream));
  if (expected_version == kExpectStreamExists) {
    if (decision.soft_deleted) {
      return fail(detail::stream_deleted(stream));
    }
    if (current < 0) {
      VERGER_TRY(const auto metadata, last_event_number(metastream_of(stream)));
      if (metadata.value() < 0) {
        return fail(detail::wrong_version(stream, expected_version, decision.current));
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
    return fail(detail::wrong_version(stream, expected_version, decision.current));
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
        return fail(detail::wrong_version(stream, expected_version, decision.current));
      }
      if (!first) {
        first = event;
      }
      last = event;
    }
    return first ? repeated(*first, *last)
                 : fail(detail::wrong_version(stream, expected_version, decision.current));
  }
  return decision;
}

}  // namespace verger::streams
