#include "engine/backup/detail/session_text.h"

#include <algorithm>

namespace verger::backup::detail {

std::string encode_session(const BackupSession& session) {
  Manifest manifest;
  manifest.id = session.id;
  manifest.source.node = session.node;
  manifest.finished_at = session.updated_at;
  manifest.positions.chunk_size = 1;  // not known, and has to be positive
  manifest.files = session.files;
  std::ranges::sort(manifest.files, {}, &BackedUpFile::path);
  return encode_manifest(manifest);
}

Result<BackupSession> decode_session(ByteView bytes) {
  VERGER_TRY(auto manifest, decode_manifest(bytes));
  return BackupSession{.id = std::move(manifest.id),
                       .node = std::move(manifest.source.node),
                       .updated_at = manifest.finished_at,
                       .files = std::move(manifest.files)};
}

}  // namespace verger::backup::detail
