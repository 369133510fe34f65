#include "engine/log/record.h"

#include <array>
#include <cstring>
#include <fmt/format.h>
#include <limits>

#include "engine/base/byte_reader.h"
#include "engine/base/byte_writer.h"
#include "engine/log/detail/prepare_weight.h"

namespace verger::log {
namespace {

constexpr std::uint8_t kPrepareType = 0;
constexpr std::uint8_t kCommitType = 1;
constexpr std::uint8_t kSystemType = 2;
constexpr std::uint8_t kLastLogV3Type = 11;
constexpr std::uint8_t kEpochSystemRecord = 1;
constexpr std::uint8_t kJsonSerialisation = 2;
constexpr std::int32_t kInt32Max = std::numeric_limits<std::int32_t>::max();
constexpr std::int64_t kInt64Max = std::numeric_limits<std::int64_t>::max();

/// Version 0 stored numbers in 32 bits: the greatest one (tombstones) and the one below it (what a
/// tombstone expects) stand for their 64-bit counterparts.
std::int64_t widen_expected_version(std::int32_t stored) {
  return stored == kInt32Max - 1 ? kInt64Max - 1 : stored;
}
std::int32_t narrow_expected_version(std::int64_t value) {
  return value == kInt64Max - 1 ? kInt32Max - 1 : static_cast<std::int32_t>(value);
}
std::int64_t widen_event_number(std::int32_t stored) {
  return stored == kInt32Max ? kInt64Max : stored;
}
std::int32_t narrow_event_number(std::int64_t value) {
  return value == kInt64Max ? kInt32Max : static_cast<std::int32_t>(value);
}

std::string_view kind_name(std::uint8_t type) {
  switch (type) {
    case kPrepareType:
      return "prepare";
    case kCommitType:
      return "commit";
    default:
      return "system record";
  }
}

Error bad(std::uint8_t type, LogPosition position, std::string_view what) {
  return {Errc::kCorruption,
          fmt::format("{} at log position {}: {}", kind_name(type), position, what)};
}

Result<void> decode_prepare(ByteReader& in, std::uint8_t version, LogPosition position,
                            Record& record) {
  auto& prepare = record.emplace<Prepare>();
  prepare.version = version;
  prepare.position = position;
  prepare.flags = in.integer<std::uint16_t>();
  prepare.transaction_position = LogPosition(in.integer<std::int64_t>());
  prepare.transaction_offset = in.integer<std::int32_t>();
  prepare.expected_version = version == 0 ? widen_expected_version(in.integer<std::int32_t>())
                                          : in.integer<std::int64_t>();
  prepare.stream = in.string();
  prepare.event_id = in.uuid();
  prepare.correlation_id = in.uuid();
  prepare.timestamp = Ticks(in.integer<std::int64_t>());
  prepare.type = in.string();
  prepare.data = in.blob();
  prepare.metadata = in.blob();
  if (!in.ok()) {
    return bad(kPrepareType, position, "a field reaches beyond the end of the record");
  }
  if (in.left() != 0) {
    return bad(kPrepareType, position, fmt::format("{} bytes follow its last field", in.left()));
  }
  if (prepare.transaction_position.value() < 0 || prepare.transaction_offset < -1 ||
      prepare.expected_version < -2) {
    return bad(
        kPrepareType, position,
        fmt::format("transaction position {}, offset {} or expected version {} is impossible",
                    prepare.transaction_position, prepare.transaction_offset,
                    prepare.expected_version));
  }
  if (prepare.stream.empty()) {
    return bad(kPrepareType, position, "the stream has no name");
  }
  if (prepare.timestamp.value() < 0 || prepare.timestamp > kMaxTicks) {
    return bad(kPrepareType, position, fmt::format("time {} is out of range", prepare.timestamp));
  }
  if (detail::prepare_weight(prepare) > kMaxRecordSize) {
    return bad(kPrepareType, position, "the record is larger than 16 MiB");
  }
  return {};
}

Result<void> decode_commit(ByteReader& in, std::uint8_t version, LogPosition position,
                           Record& record) {
  auto& commit = record.emplace<Commit>();
  commit.version = version;
  commit.position = position;
  commit.transaction_position = LogPosition(in.integer<std::int64_t>());
  commit.first_event_number = EventNumber(
      version == 0 ? widen_event_number(in.integer<std::int32_t>()) : in.integer<std::int64_t>());
  commit.sort_key = in.integer<std::int64_t>();
  commit.correlation_id = in.uuid();
  commit.timestamp = Ticks(in.integer<std::int64_t>());
  if (!in.ok() || in.left() != 0) {
    return bad(kCommitType, position, "its size is not that of a commit");
  }
  if (commit.transaction_position.value() < 0) {
    return bad(kCommitType, position, "its transaction position is negative");
  }
  if (commit.timestamp.value() < 0 || commit.timestamp > kMaxTicks) {
    return bad(kCommitType, position, fmt::format("time {} is out of range", commit.timestamp));
  }
  return {};
}

Result<void> decode_system(ByteReader& in, LogPosition position, Record& out) {
  auto& record = out.emplace<SystemRecord>();
  record.position = position;
  record.timestamp = Ticks(in.integer<std::int64_t>());
  const auto kind = in.integer<std::uint8_t>();
  const auto serialisation = in.integer<std::uint8_t>();
  const auto reserved = in.integer<std::int64_t>();
  record.json = in.blob();
  if (!in.ok() || in.left() != 0) {
    return bad(kSystemType, position, "its data does not end where the record ends");
  }
  if (kind != kEpochSystemRecord || serialisation != kJsonSerialisation || reserved != 0) {
    return bad(
        kSystemType, position,
        fmt::format("kind {}, serialisation {} is not an epoch in JSON", kind, serialisation));
  }
  if (record.timestamp.value() < 0 || record.timestamp > kMaxTicks) {
    return bad(kSystemType, position, fmt::format("time {} is out of range", record.timestamp));
  }
  return {};
}

/// Adds texts, with their length in front of them: seven bits a byte, the lowest ones first.
class Writer : public ByteWriter {
 public:
  using ByteWriter::ByteWriter;
  void string(std::string_view text) {
    auto size = text.size();
    while (size >= 0x80) {
      integer(static_cast<std::uint8_t>(size | 0x80U));
      size >>= 7U;
    }
    integer(static_cast<std::uint8_t>(size));
    bytes(as_bytes(text));
  }
};

std::size_t string_size(std::string_view text) {
  std::size_t prefix = 1;
  for (auto size = text.size(); size >= 0x80; size >>= 7U) {
    ++prefix;
  }
  return prefix + text.size();
}

void write(Writer& out, const Prepare& prepare) {
  out.integer(kPrepareType);
  out.integer(prepare.version);
  out.integer(prepare.position.value());
  out.integer(prepare.flags);
  out.integer(prepare.transaction_position.value());
  out.integer(prepare.transaction_offset);
  if (prepare.version == 0) {
    out.integer(narrow_expected_version(prepare.expected_version));
  } else {
    out.integer(prepare.expected_version);
  }
  out.string(prepare.stream);
  out.bytes(prepare.event_id.bytes);
  out.bytes(prepare.correlation_id.bytes);
  out.integer(prepare.timestamp.value());
  out.string(prepare.type);
  out.blob(prepare.data);
  out.blob(prepare.metadata);
}

void write(Writer& out, const Commit& commit) {
  out.integer(kCommitType);
  out.integer(commit.version);
  out.integer(commit.position.value());
  out.integer(commit.transaction_position.value());
  if (commit.version == 0) {
    out.integer(narrow_event_number(commit.first_event_number.value()));
  } else {
    out.integer(commit.first_event_number.value());
  }
  out.integer(commit.sort_key);
  out.bytes(commit.correlation_id.bytes);
  out.integer(commit.timestamp.value());
}

void write(Writer& out, const SystemRecord& record) {
  out.integer(kSystemType);
  out.integer(std::uint8_t{0});
  out.integer(record.position.value());
  out.integer(record.timestamp.value());
  out.integer(kEpochSystemRecord);
  out.integer(kJsonSerialisation);
  out.integer(std::int64_t{0});
  out.blob(record.json);
}

}  // namespace

namespace detail {

std::int64_t utf16_length(std::string_view utf8) {
  std::int64_t units = 0;
  for (const char c : utf8) {
    const auto byte = static_cast<unsigned char>(c);
    if ((byte & 0xC0U) != 0x80U) {
      units += byte >= 0xF0U ? 2 : 1;
    }
  }
  return units;
}

std::int64_t prepare_weight(const Prepare& prepare) {
  const auto bytes = static_cast<std::int64_t>(prepare.data.size() + prepare.metadata.size());
  const auto names = static_cast<std::int64_t>(prepare.stream.size() + prepare.type.size());
  // A UTF-8 text never has more UTF-16 units than bytes: mostly there is nothing to count.
  if (100 + 2 * names + bytes <= kMaxRecordSize) {
    return 100 + 2 * names + bytes;
  }
  return 100 + 2 * (utf16_length(prepare.stream) + utf16_length(prepare.type)) + bytes;
}

}  // namespace detail

LogPosition position_of(const Record& record) {
  return std::visit([](const auto& one) { return one.position; }, record);
}

Result<Record> decode_record(ByteView payload) {
  Result<Record> record;
  if (auto decoded = decode_record(payload, *record); !decoded) {
    record = std::move(decoded).error();
  }
  return record;
}

Result<void> decode_record(ByteView payload, Record& record) {
  ByteReader in(payload);
  const auto type = in.integer<std::uint8_t>();
  const auto version = in.integer<std::uint8_t>();
  const LogPosition position(in.integer<std::int64_t>());
  if (!in.ok()) {
    return Error{Errc::kCorruption,
                 fmt::format("a record of {} bytes is too short", payload.size())};
  }
  if (type > kLastLogV3Type) {
    return Error{Errc::kCorruption, fmt::format("{} is not a record type", type)};
  }
  if (type > kSystemType || (type == kSystemType && version > 0)) {
    return Error{Errc::kUnsupported,
                 fmt::format("record type {} version {} belongs to the experimental log format V3, "
                             "which Verger does not handle; use a database in log format V2",
                             type, version)};
  }
  if (version > 1) {
    return Error{Errc::kUnsupported,
                 fmt::format("{} version {} is newer than Verger knows (0 and 1)", kind_name(type),
                             version)};
  }
  if (position.value() < 0) {
    return bad(type, position, "the position is negative");
  }
  switch (type) {
    case kPrepareType:
      return decode_prepare(in, version, position, record);
    case kCommitType:
      return decode_commit(in, version, position, record);
    default:
      return decode_system(in, position, record);
  }
}

std::size_t record_size(const Record& record) {
  if (const auto* prepare = std::get_if<Prepare>(&record)) {
    return (prepare->version == 0 ? 76U : 80U) + string_size(prepare->stream) +
           string_size(prepare->type) + prepare->data.size() + prepare->metadata.size();
  }
  if (const auto* commit = std::get_if<Commit>(&record)) {
    return commit->version == 0 ? 54U : 58U;
  }
  return 32U + std::get<SystemRecord>(record).json.size();
}

void append_framed(Bytes& out, const Record& record) {
  const auto size = record_size(record);
  const auto at = out.size();
  out.resize(at + size + kFramingSize);
  Writer writer(out.data() + at);
  writer.integer(static_cast<std::int32_t>(size));
  std::visit([&](const auto& one) { write(writer, one); }, record);
  writer.integer(static_cast<std::int32_t>(size));
}

/// Each field has one encoding, except for the length of a text: all but the shortest are longer.
bool is_canonical(const Record& record, ByteView framed) {
  return record_size(record) + kFramingSize == framed.size();
}

}  // namespace verger::log
