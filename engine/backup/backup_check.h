#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/bytes.h"
#include "engine/base/result.h"
#include "engine/base/types.h"

namespace verger::backup {

/// What was found when a generation was checked: its bytes and structure, or a restore of it that
/// was started and read.
struct BackupCheck {
  enum class Kind : std::uint8_t { kVerify, kDrill };
  Kind kind = Kind::kVerify;
  Ticks at{};        ///< when it ended
  std::string by{};  ///< program and host, or the run that asked for it
  bool passed = false;
  std::string summary{};  ///< one line for a person
  std::int64_t duration_ms = 0;
  LogPosition position{};  ///< where the log that was checked ends
  /// What was measured, by a name that holds the unit: "restoreMs", "events".
  std::map<std::string, std::int64_t> figures{};
  friend bool operator==(const BackupCheck&, const BackupCheck&) = default;
};

/// "verify" or "drill".
std::string_view to_string(BackupCheck::Kind kind);

/// The newest of each kind; nullopt: none was made.
struct LatestChecks {
  std::optional<BackupCheck> verify;
  std::optional<BackupCheck> drill;
};

/// A document that holds its own SHA-256 (docs/operations/backup.md, "Repository").
std::string encode_check(const BackupCheck& check);
/// Errors: kCorruption (any byte differs from what was written), kUnsupported (a newer version).
Result<BackupCheck> decode_check(ByteView bytes);

/// Under which it is stored: generation, kind, time, and digits of the content, so that names sort
/// by time within a kind and two checks never overwrite each other.
std::string check_name(std::string_view generation, const BackupCheck& check);
/// The part of a check's name before its time: those of one generation and kind.
std::string check_prefix(std::string_view generation, BackupCheck::Kind kind);

}  // namespace verger::backup
