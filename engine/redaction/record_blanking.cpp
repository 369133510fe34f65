#include "engine/redaction/record_blanking.h"

#include <algorithm>

#include "engine/base/assert.h"

namespace verger::redaction {
namespace {

constexpr std::uint64_t kLengthPrefix = 4;
/// Of the flags in a prepare: behind type, version and log position.
constexpr std::uint64_t kFlagsOffset = 10;

bool all_blank(ByteView bytes) {
  return std::ranges::all_of(bytes, [](std::byte byte) { return byte == kBlank; });
}

}  // namespace

std::vector<BytePatch> patches_of(const log::LogRecord& record, bool metadata) {
  const auto* prepare = record.prepare();
  VERGER_ASSERT(prepare != nullptr);
  std::vector<BytePatch> patches;
  patches.push_back(
      {.offset = record.file_offset + kLengthPrefix + kFlagsOffset,
       .size = sizeof(std::uint16_t),
       .is_flags = true,
       .flags = static_cast<std::uint16_t>(prepare->flags | log::prepare_flags::kIsRedacted)});
  const auto add = [&](ByteView bytes) {
    if (!bytes.empty()) {
      const auto at = static_cast<std::uint64_t>(bytes.data() - record.framed.data());
      patches.push_back({.offset = record.file_offset + at, .size = bytes.size()});
    }
  };
  add(prepare->data);
  if (metadata) {
    add(prepare->metadata);
  }
  return patches;
}

bool is_blanked(const log::Prepare& prepare, bool metadata) {
  return prepare.has(log::prepare_flags::kIsRedacted) && all_blank(prepare.data) &&
         (!metadata || all_blank(prepare.metadata));
}

Sha256Digest blanked_digest(const log::LogRecord& record, bool metadata) {
  Bytes bytes(record.framed.begin(), record.framed.end());
  for (const auto& patch : patches_of(record, metadata)) {
    auto* const at = bytes.data() + (patch.offset - record.file_offset);
    if (patch.is_flags) {
      store_le(at, patch.flags);
    } else {
      std::fill_n(at, patch.size, kBlank);
    }
  }
  return sha256(ByteView(bytes).subspan(kLengthPrefix, bytes.size() - log::kFramingSize));
}

}  // namespace verger::redaction
