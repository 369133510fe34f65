#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/digest.h"
#include "engine/log/chunk.h"

namespace verger::redaction {

/// What the bytes of data, and of metadata where requested, become.
inline constexpr std::byte kBlank{0xFF};

/// A change of one record in its chunk file: flags, or bytes that become kBlank.
struct BytePatch {
  std::uint64_t offset = 0;  ///< in the file
  std::uint64_t size = 0;
  bool is_flags = false;    ///< then `size` is 2, and `flags` goes there
  std::uint16_t flags = 0;  ///< with kIsRedacted
};

/// The changes that redact a prepare: its flag 0x200, its data, its metadata where `metadata` is
/// set. Ascending; no byte else changes (docs/formats/chunk.md, "Redaction").
std::vector<BytePatch> patches_of(const log::LogRecord& record, bool metadata);

/// The flag is set and all those bytes are kBlank already.
bool is_blanked(const log::Prepare& prepare, bool metadata);

/// SHA-256 of the record without its framing as it is once it is redacted. It says which record it
/// is, and nothing of what it held: it is the same before and after.
Sha256Digest blanked_digest(const log::LogRecord& record, bool metadata);

}  // namespace verger::redaction
