#include "engine/streams/detail/stream_reader.h"

#include <algorithm>
#include <limits>

#include "engine/streams/stream_names.h"

namespace verger::streams::detail {

namespace {

constexpr std::int64_t kMaxNumber = std::numeric_limits<std::int64_t>::max();
constexpr std::size_t kNoLimit = std::numeric_limits<std::size_t>::max();

Bytes copy(ByteView bytes) { return {bytes.begin(), bytes.end()}; }

Ticks oldest_visible(Ticks now, std::int64_t max_age_seconds) {
  if (max_age_seconds > now.value() / kTicksPerSecond) {
    return Ticks(0);
  }
  return Ticks(now.value() - max_age_seconds * kTicksPerSecond);
}

Error bad_range(std::string_view stream, EventNumber from, std::size_t count) {
  return Error{
      Errc::kInvalidArgument,
      fmt::format("reading stream '{}' from {}: {} events make no page", stream, from, count)};
}

}  // namespace

StreamMetadata RawMetadata::parse() const {
  StreamMetadata metadata;
  if (is_json && !json.empty()) {
    metadata = parse_metadata(json, record_version);
  }
  metadata.number = number;
  return metadata;
}

Event make_event(const log::Prepare& prepare, EventNumber number, LogPosition commit) {
  Event event;
  event.stream = prepare.stream;
  event.number = number;
  event.id = prepare.event_id;
  event.type = prepare.type;
  event.is_json = prepare.has(log::prepare_flags::kIsJson);
  event.is_redacted = prepare.has(log::prepare_flags::kIsRedacted);
  if (!event.is_redacted) {
    event.data = copy(prepare.data);
  }
  event.metadata = copy(prepare.metadata);
  event.timestamp = prepare.timestamp;
  event.commit_position = commit;
  event.prepare_position = prepare.position;
  return event;
}

Result<std::optional<log::Prepare>> StreamReader::prepare_at(LogPosition position,
                                                             Bytes& buffer) const {
  auto record = log_.read(position, buffer);
  if (!record) {
    if (record.error().code == Errc::kNotFound) {
      return std::nullopt;
    }
    return record.error();
  }
  const auto* prepare = record->prepare();
  if (prepare == nullptr) {
    return Error{Errc::kCorruption,
                 fmt::format("index {}: an entry points to log position {}, where no prepare is; "
                             "rebuild it with `verger-db index rebuild`",
                             index_.directory().string(), position)};
  }
  return *prepare;
}

Result<EventNumber> StreamReader::own_last(std::string_view stream) const {
  if (!index_.may_exist(stream)) {
    return kNoStream;
  }
  // The first entry nearly always settles it; only colliding hashes make a longer list needed.
  const auto hash = index_.hash(stream);
  Bytes buffer;
  for (std::size_t limit = 2;; limit *= 8) {
    VERGER_TRY(const auto entries, index_.range(hash, EventNumber(0), kDeletedStream, limit));
    for (std::size_t i = 0; i < entries.size(); ++i) {
      VERGER_TRY(const auto prepare, prepare_at(entries[i].position, buffer));
      if (!prepare && i == 0) {
        return Error{Errc::kCorruption,
                     fmt::format("stream '{}': its highest index entry (number {}) points to log "
                                 "position {}, where no record is",
                                 stream, entries[i].number, entries[i].position)};
      }
      if (prepare && prepare->stream == stream) {
        return entries[i].number;
      }
    }
    if (entries.size() < limit) {
      return kNoStream;
    }
  }
}

Result<EventNumber> StreamReader::last_event_number(std::string_view stream) const {
  for (auto original = stream; is_metastream(original);) {
    original = original_of(original);
    VERGER_TRY(const auto last, own_last(original));
    if (last == kDeletedStream) {
      return kDeletedStream;
    }
  }
  return own_last(stream);
}

Result<std::optional<Event>> StreamReader::find(std::string_view stream, EventNumber number) const {
  VERGER_TRY(auto found, events(stream, number.value(), number.value()));
  if (found.empty()) {
    return std::nullopt;
  }
  return std::move(found.front());
}

Result<std::optional<RawMetadata>> StreamReader::raw_metadata(std::string_view stream) const {
  const auto metastream = metastream_of(stream);
  // Most streams have none, which the index alone says.
  VERGER_TRY(const auto number, own_last(metastream));
  if (number == kNoStream || number == kDeletedStream) {
    return std::nullopt;
  }
  VERGER_TRY(const auto unless_deleted, last_event_number(metastream));
  if (unless_deleted == kDeletedStream) {
    return std::nullopt;
  }
  const auto hash = index_.hash(metastream);
  VERGER_TRY(const auto entries, index_.range_forward(hash, number, number, kNoLimit));
  Bytes buffer;
  for (const auto& entry : entries) {
    VERGER_TRY(const auto prepare, prepare_at(entry.position, buffer));
    if (prepare && prepare->stream == metastream) {
      return RawMetadata{number, prepare->version, prepare->has(log::prepare_flags::kIsJson),
                         copy(prepare->data)};
    }
  }
  return Error{Errc::kCorruption,
               fmt::format("stream '{}': its last event {} cannot be read", metastream, number)};
}

Result<StreamMetadata> StreamReader::metadata(std::string_view stream) const {
  if (is_metastream(stream)) {
    StreamMetadata fixed;
    fixed.max_count = 1;
    return fixed;
  }
  VERGER_TRY(const auto raw, raw_metadata(stream));
  return raw ? raw->parse() : StreamMetadata{};
}

Result<StreamReader::State> StreamReader::state_of(std::string_view stream) const {
  State state;
  VERGER_TRY(state.last, last_event_number(stream));
  if (state.last == kNoStream || state.last == kDeletedStream) {
    state.status = state.last == kNoStream ? StreamStatus::kNoStream : StreamStatus::kDeleted;
    return state;
  }
  VERGER_TRY(const auto metadata, this->metadata(stream));
  if (metadata.soft_deleted()) {
    state.status = StreamStatus::kNoStream;
    return state;
  }
  if (metadata.max_count && *metadata.max_count <= state.last.value()) {
    state.limits.first = state.last.value() - *metadata.max_count + 1;
  }
  state.limits.first = std::max(state.limits.first, metadata.truncate_before.value_or(0));
  if (metadata.max_age_seconds) {
    state.limits.oldest = oldest_visible(clock_.now(), *metadata.max_age_seconds);
  }
  return state;
}

Result<std::vector<Event>> StreamReader::events(std::string_view stream, std::int64_t from,
                                                std::int64_t to) const {
  std::vector<Event> found;
  VERGER_TRY(const auto entries, index_.range_forward(index_.hash(stream), EventNumber(from),
                                                      EventNumber(to), kNoLimit));
  Bytes buffer;
  for (const auto& entry : entries) {
    if (!found.empty() && found.back().number == entry.number) {
      continue;
    }
    VERGER_TRY(const auto prepare, prepare_at(entry.position, buffer));
    if (prepare && prepare->stream == stream) {
      const bool self_committed = prepare->has(log::prepare_flags::kIsCommitted);
      found.push_back(
          make_event(*prepare, entry.number, self_committed ? prepare->position : kNoPosition));
    }
  }
  return found;
}

Result<StreamSlice> StreamReader::read_forward(std::string_view stream, EventNumber from,
                                               std::size_t count) const {
  if (from.value() < 0 || count == 0) {
    return bad_range(stream, from, count);
  }
  VERGER_TRY(const auto state, state_of(stream));
  StreamSlice slice;
  slice.status = state.status;
  slice.last_event_number = state.last;
  slice.next = from;
  if (state.status != StreamStatus::kSuccess) {
    slice.end_of_stream = true;
    return slice;
  }
  const auto last = state.last.value();
  const auto begin = std::min(from.value(), kMaxNumber - 1);
  const auto room = static_cast<std::uint64_t>(kMaxNumber - 1 - begin);
  const auto to = count - 1 >= room ? kMaxNumber - 1 : begin + static_cast<std::int64_t>(count) - 1;
  if (to < state.limits.first) {
    slice.next = EventNumber(state.limits.first);
    return slice;
  }
  VERGER_TRY(slice.events, events(stream, std::max(begin, state.limits.first), std::min(to, last)));
  std::erase_if(slice.events,
                [&](const Event& event) { return event.timestamp < state.limits.oldest; });
  slice.end_of_stream = to >= last;
  slice.next = EventNumber(std::min(to, last) + 1);
  if (slice.events.empty() && !slice.end_of_stream) {
    // A gap: the next page begins where there is something again.
    VERGER_TRY(const auto after,
               index_.range_forward(index_.hash(stream), slice.next, state.last, 1));
    slice.next = after.empty() ? EventNumber(last + 1) : after.front().number;
    slice.end_of_stream = after.empty();
  }
  return slice;
}

Result<StreamSlice> StreamReader::read_backward(std::string_view stream, EventNumber from,
                                                std::size_t count) const {
  if (from.value() < 0 || count == 0) {
    return bad_range(stream, from, count);
  }
  VERGER_TRY(const auto state, state_of(stream));
  StreamSlice slice;
  slice.status = state.status;
  slice.last_event_number = state.last;
  slice.next = EventNumber(-1);
  const auto to = std::min(from, state.last).value();
  if (state.status != StreamStatus::kSuccess || to < state.limits.first) {
    slice.end_of_stream = true;
    return slice;
  }
  const auto reach = static_cast<std::uint64_t>(to - state.limits.first);
  const auto start =
      count - 1 >= reach ? state.limits.first : to - static_cast<std::int64_t>(count) + 1;
  VERGER_TRY(slice.events, events(stream, start, to));
  std::erase_if(slice.events,
                [&](const Event& event) { return event.timestamp < state.limits.oldest; });
  std::ranges::reverse(slice.events);
  slice.end_of_stream = start == state.limits.first;
  if (!slice.end_of_stream) {
    VERGER_TRY(const auto before, index_.range(index_.hash(stream), EventNumber(state.limits.first),
                                               EventNumber(start - 1), 1));
    slice.end_of_stream = before.empty();
    slice.next = before.empty() ? EventNumber(-1) : before.front().number;
  }
  return slice;
}

}  // namespace verger::streams::detail
