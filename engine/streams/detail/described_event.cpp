#include "engine/streams/detail/described_event.h"

#include "engine/base/byte_reader.h"
#include "engine/base/byte_writer.h"
#include "engine/streams/metadata.h"
#include "engine/streams/stream_names.h"

namespace verger::streams::detail {
namespace {

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

SpilledLimits limits_in(const log::Prepare& prepare) {
  const auto metadata = parse_metadata(prepare.data, prepare.version);
  return {.max_count = metadata.max_count.value_or(0),
          .truncate_before = metadata.truncate_before.value_or(0),
          .max_age_seconds = metadata.max_age_seconds.value_or(0)};
}

}  // namespace

DescribedEvent describe(const log::Prepare& prepare, EventNumber number, Bytes& messages) {
  DescribedEvent event{
      .message_size = append_message(prepare, number, messages),
      .kept = {.number = number, .timestamp = prepare.timestamp, .position = prepare.position}};
  if (is_metastream(prepare.stream) && prepare.has(log::prepare_flags::kIsJson) &&
      !prepare.data.empty()) {
    event.kept.limits = limits_in(prepare);
  }
  return event;
}

std::string_view stream_in(ByteView message) { return as_text(ByteReader(message).blob()); }

}  // namespace verger::streams::detail
