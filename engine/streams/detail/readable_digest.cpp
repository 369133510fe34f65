#include "engine/streams/detail/readable_digest.h"

#include "engine/streams/metadata.h"
#include "engine/streams/stream_names.h"

namespace verger::streams::detail {

namespace {

void append_sized(Bytes& out, ByteView bytes) {
  append_le(out, static_cast<std::uint32_t>(bytes.size()));
  append_bytes(out, bytes);
}

Sha256Digest digest_of(const log::Prepare& prepare, EventNumber number) {
  Bytes bytes;
  bytes.reserve(prepare.data.size() + prepare.metadata.size() + prepare.stream.size() + 96);
  append_sized(bytes, as_bytes(prepare.stream));
  append_le(bytes, number.value());
  append_bytes(bytes, prepare.event_id.bytes);
  append_sized(bytes, as_bytes(prepare.type));
  append_le(bytes, static_cast<std::uint8_t>(prepare.has(log::prepare_flags::kIsJson) ? 1 : 0));
  append_le(bytes, prepare.timestamp.value());
  append_sized(bytes, prepare.has(log::prepare_flags::kIsRedacted) ? ByteView{} : prepare.data);
  append_sized(bytes, prepare.metadata);
  return sha256(bytes);
}

}  // namespace

ReadableDigest::Stream& ReadableDigest::stream(std::string_view name) {
  const auto found = streams_.find(name);
  return found != streams_.end() ? found->second : streams_[std::string(name)];
}

void ReadableDigest::learn(const log::Prepare& prepare, EventNumber number) {
  auto& own = stream(prepare.stream);
  own.last = std::max(own.last, number);
  if (!is_metastream(prepare.stream)) {
    return;
  }
  auto& original = stream(original_of(prepare.stream));
  if (number <= original.metadata_number) {
    return;  // of repeated numbers the first one counts
  }
  StreamMetadata metadata;
  if (prepare.has(log::prepare_flags::kIsJson) && !prepare.data.empty()) {
    metadata = parse_metadata(prepare.data, prepare.version);
  }
  original.metadata_number = number;
  original.max_count = metadata.max_count.value_or(0);
  original.truncate_before = metadata.truncate_before.value_or(0);
  original.max_age_seconds = metadata.max_age_seconds.value_or(0);
}

bool ReadableDigest::visible(std::string_view name, const Stream& stream,
                             const log::Prepare& prepare, EventNumber number) const {
  if (stream.last == kDeletedStream) {
    return false;
  }
  if (is_metastream(name)) {
    for (auto original = name; is_metastream(original);) {
      original = original_of(original);
      const auto found = streams_.find(original);
      if (found != streams_.end() && found->second.last == kDeletedStream) {
        return false;
      }
    }
    return number == stream.last;
  }
  if (stream.truncate_before == kDeletedStream.value() || number.value() < stream.truncate_before) {
    return false;
  }
  if (stream.max_count > 0 && number.value() <= stream.last.value() - stream.max_count) {
    return false;
  }
  return stream.max_age_seconds == 0 || stream.max_age_seconds > now_.value() / kTicksPerSecond ||
         prepare.timestamp.value() >= now_.value() - stream.max_age_seconds * kTicksPerSecond;
}

Result<void> ReadableDigest::add(const log::Prepare& prepare, EventNumber number) {
  auto& own = stream(prepare.stream);
  if (!visible(prepare.stream, own, prepare, number)) {
    return {};
  }
  if (number <= own.last_added) {
    VERGER_TRY(const auto position, locate_(prepare.stream, number));
    if (position != prepare.position) {
      return {};
    }
  } else {
    own.last_added = number;
  }
  const auto digest = digest_of(prepare, number);
  std::uint64_t carry = 0;
  for (std::size_t i = 0; i < sum_.size(); ++i) {
    const auto word = load_le<std::uint64_t>(digest.data() + i * 8);
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
