#include "engine/streams/detail/readable_digest.h"

#include <algorithm>

#include "engine/base/byte_writer.h"
#include "engine/streams/metadata.h"
#include "engine/streams/stream_names.h"

namespace verger::streams::detail {

namespace {

constexpr std::size_t kNamesKept = std::size_t{1} << 16U;
/// A name is in one of so many places.
constexpr std::size_t kPlaces = 4;
/// How long before an event is added its partition's memory is fetched.
constexpr std::size_t kAhead = 6;

/// What the digest of an event is the SHA-256 of; its size.
std::size_t append_message(const log::Prepare& prepare, EventNumber number, Bytes& out) {
  const auto stream = as_bytes(prepare.stream);
  const auto type = as_bytes(prepare.type);
  const auto data = prepare.has(log::prepare_flags::kIsRedacted) ? ByteView{} : prepare.data;
  const auto& id = prepare.event_id.bytes;
  const auto size = 4 * sizeof(std::uint32_t) + 2 * sizeof(std::int64_t) + 1 + stream.size() +
                    id.size() + type.size() + data.size() + prepare.metadata.size();
  const auto begin = out.size();
  out.resize(begin + size);
  ByteWriter fields(out.data() + begin);
  fields.blob(stream);
  fields.integer(number.value());
  fields.bytes(id);
  fields.blob(type);
  fields.integer(static_cast<std::uint8_t>(prepare.has(log::prepare_flags::kIsJson) ? 1 : 0));
  fields.integer(prepare.timestamp.value());
  fields.blob(data);
  fields.blob(prepare.metadata);
  return size;
}

}  // namespace

ReadableDigest::ReadableDigest(const DigestOptions& options, Ticks now, Locator locate)
    : now_(now),
      locate_(std::move(locate)),
      spill_(options),
      hashes_(kNamesKept),
      names_(kNamesKept) {}

const StreamKey& ReadableDigest::key_of(std::string_view name) {
  const auto hash = std::hash<std::string_view>{}(name);
  const auto first = hash % (kNamesKept / kPlaces) * kPlaces;
  for (auto place = first; place < first + kPlaces; ++place) {
    if (hashes_[place] == hash && names_[place].name == name && !name.empty()) {
      return names_[place].key;
    }
  }
  const auto place = first + hash / kNamesKept % kPlaces;
  hashes_[place] = hash;
  auto& kept = names_[place];
  kept.name = name;
  const auto whole = sha256(as_bytes(name));
  std::copy_n(whole.begin(), kept.key.size(), kept.key.begin());
  return kept.key;
}

DescribedEvent ReadableDigest::describe(const log::Prepare& prepare, EventNumber number,
                                        Bytes& messages) {
  DescribedEvent event{.message_size = append_message(prepare, number, messages),
                       .partition = 0,
                       .kept = {.stream = key_of(prepare.stream),
                                .number = number,
                                .timestamp = prepare.timestamp,
                                .position = prepare.position}};
  auto& kept = event.kept;
  // A stream, its metastream, and that one's, share a part: what one says decides on the other.
  auto root = kept.stream;
  for (auto name = prepare.stream; is_metastream(name);) {
    name = original_of(name);
    root = key_of(name);
    kept.originals.push_back(root);
  }
  if (!kept.originals.empty() && prepare.has(log::prepare_flags::kIsJson) &&
      !prepare.data.empty()) {
    const auto metadata = parse_metadata(prepare.data, prepare.version);
    kept.limits = {.max_count = metadata.max_count.value_or(0),
                   .truncate_before = metadata.truncate_before.value_or(0),
                   .max_age_seconds = metadata.max_age_seconds.value_or(0)};
  }
  event.partition = load_le<std::uint64_t>(root.data()) % EventSpill::kPartitions;
  return event;
}

Result<void> ReadableDigest::add(std::span<const DescribedEvent> events) {
  for (std::size_t n = 0; n < events.size(); ++n) {
    if (n + kAhead < events.size()) {
      spill_.expect(events[n + kAhead].partition);
    }
    VERGER_RETURN_IF_ERROR(spill_.add(events[n].partition, events[n].kept));
  }
  return {};
}

Result<bool> ReadableDigest::settle() {
  if (partition_ == EventSpill::kPartitions) {
    return true;
  }
  if (segment_ < spill_.segments(partition_)) {
    VERGER_RETURN_IF_ERROR(spill_.read(partition_, segment_, events_));
    for (const auto& event : events_) {
      if (summing_) {
        VERGER_RETURN_IF_ERROR(sum(event));
      } else {
        learn(event);
      }
    }
    ++segment_;
    return false;
  }
  segment_ = 0;
  if (summing_) {
    spill_.drop(partition_);
    streams_.clear();
    ++partition_;
  }
  summing_ = !summing_;
  return partition_ == EventSpill::kPartitions;
}

void ReadableDigest::learn(const SpilledEvent& event) {
  auto& own = streams_[event.stream];
  own.last = std::max(own.last, event.number);
  if (event.originals.empty()) {
    return;
  }
  auto& original = streams_[event.originals.front()];
  if (event.number <= original.metadata_number) {
    return;  // of repeated numbers the first one counts
  }
  original.metadata_number = event.number;
  original.limits = event.limits;
}

bool ReadableDigest::visible(const SpilledEvent& event, const Stream& own) const {
  if (own.last == kDeletedStream) {
    return false;
  }
  if (!event.originals.empty()) {
    for (const auto& original : event.originals) {
      const auto found = streams_.find(original);
      if (found != streams_.end() && found->second.last == kDeletedStream) {
        return false;
      }
    }
    return event.number == own.last;
  }
  const auto& limits = own.limits;
  if (limits.truncate_before == kDeletedStream.value() ||
      event.number.value() < limits.truncate_before) {
    return false;
  }
  if (limits.max_count > 0 && event.number.value() <= own.last.value() - limits.max_count) {
    return false;
  }
  return limits.max_age_seconds == 0 || limits.max_age_seconds > now_.value() / kTicksPerSecond ||
         event.timestamp.value() >= now_.value() - limits.max_age_seconds * kTicksPerSecond;
}

Result<void> ReadableDigest::sum(const SpilledEvent& event) {
  auto& own = streams_[event.stream];
  if (!visible(event, own)) {
    return {};
  }
  if (event.number <= own.last_added) {
    VERGER_TRY(const auto position, locate_(event.position, event.number));
    if (position != event.position) {
      return {};
    }
  } else {
    own.last_added = event.number;
  }
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < sum_.size(); ++i) {
    const auto word = load_le<std::uint64_t>(event.digest.data() + i * 8);
    const auto partial = sum_[i] + carry;
    carry = partial < carry ? 1 : 0;
    sum_[i] = partial + word;
    carry += sum_[i] < word ? 1 : 0;
  }
  ++count_;
  return {};
}

Sha256Digest ReadableDigest::value() const {
  Sha256Digest value;
  for (std::size_t i = 0; i < sum_.size(); ++i) {
    store_le(value.data() + i * 8, sum_[i]);
  }
  return value;
}

}  // namespace verger::streams::detail
