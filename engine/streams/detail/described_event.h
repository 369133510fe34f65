#pragma once

#include <cstddef>
#include <string_view>

#include "engine/base/bytes.h"
#include "engine/log/record.h"
#include "engine/streams/detail/event_spill.h"

namespace verger::streams::detail {

/// An event on its way into the readable digest.
struct DescribedEvent {
  std::size_t message_size = 0;  ///< bytes of its message: what its digest is the SHA-256 of
  std::size_t partition = 0;     ///< by StreamKeys
  SpilledEvent kept{};  ///< stream and originals by StreamKeys; the digest by RecordHashing
};

/// Appends the event's message to `messages`. Hashing it, and finding the key of its stream, come
/// later, for many at once.
DescribedEvent describe(const log::Prepare& prepare, EventNumber number, Bytes& messages);

/// The name of the event's stream, of what describe() has appended.
std::string_view stream_in(ByteView message);

}  // namespace verger::streams::detail
