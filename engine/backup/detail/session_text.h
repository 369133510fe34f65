#pragma once

#include <string>

#include "engine/backup/repository.h"

namespace verger::backup::detail {

/// A manifest's text, with what a backup in progress knows.
std::string encode_session(const BackupSession& session);
/// Errors: kCorruption, kUnsupported.
Result<BackupSession> decode_session(ByteView bytes);

}  // namespace verger::backup::detail
