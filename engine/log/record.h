#pragma once

#include <cstdint>
#include <string_view>
#include <variant>

#include "engine/base/bytes.h"
#include "engine/base/result.h"
#include "engine/base/types.h"
#include "engine/base/uuid.h"

namespace verger::log {

/// Bits of a prepare's flags; others are unknown and kept as they are.
namespace prepare_flags {
inline constexpr std::uint16_t kData = 0x0001;
inline constexpr std::uint16_t kTransactionBegin = 0x0002;
inline constexpr std::uint16_t kTransactionEnd = 0x0004;
inline constexpr std::uint16_t kStreamDelete = 0x0008;
inline constexpr std::uint16_t kIsCommitted = 0x0020;
inline constexpr std::uint16_t kIsJson = 0x0100;
inline constexpr std::uint16_t kIsRedacted = 0x0200;
}  // namespace prepare_flags

/// The largest record, without its framing (docs/formats/log.md).
inline constexpr std::int32_t kMaxRecordSize = 16 * 1024 * 1024;
/// Length prefix and suffix.
inline constexpr std::int32_t kFramingSize = 8;

/// The record that carries an event, a tombstone or a transaction marker. The views point into the
/// bytes it was decoded from, or into the caller's memory when it is to be written.
struct Prepare {
  std::uint8_t version = 1;  ///< 0 or 1; kept when a record is rewritten
  LogPosition position;
  std::uint16_t flags = 0;
  LogPosition transaction_position;
  std::int32_t transaction_offset = 0;
  /// Widened from version 0's 32 bits; -2 is "any".
  std::int64_t expected_version = 0;
  std::string_view stream;
  Uuid event_id;
  Uuid correlation_id;
  Ticks timestamp;
  std::string_view type;
  ByteView data;
  ByteView metadata;

  [[nodiscard]] bool has(std::uint16_t flag) const { return (flags & flag) != 0; }
  /// The number a self-committed prepare carries: expected version + 1.
  [[nodiscard]] EventNumber event_number() const { return EventNumber(expected_version + 1); }
};

struct Commit {
  std::uint8_t version = 1;
  LogPosition position;
  LogPosition transaction_position;
  EventNumber first_event_number;  ///< widened from version 0
  std::int64_t sort_key = 0;
  Uuid correlation_id;
  Ticks timestamp;
};

/// An epoch record; `json` is parsed by epoch.h.
struct SystemRecord {
  LogPosition position;
  Ticks timestamp;
  ByteView json;
};

using Record = std::variant<Prepare, Commit, SystemRecord>;

LogPosition position_of(const Record& record);

/// `payload` is the record without its framing; must be consumed exactly. Errors: kCorruption,
/// kUnsupported (record type or version of another log format). Format: docs/formats/log.md.
Result<Record> decode_record(ByteView payload);
/// The same in place of what `record` held, which is undefined after an error.
Result<void> decode_record(ByteView payload, Record& record);

/// Size of the record without framing.
std::size_t record_size(const Record& record);
/// Appends length prefix, record, length suffix to `out`.
void append_framed(Bytes& out, const Record& record);
/// Would append_framed() give the framed bytes that `record` was decoded from, `framed`?
bool is_canonical(const Record& record, ByteView framed);

}  // namespace verger::log
