#include "engine/tool/detail/backup_text.h"

#include <nlohmann/json.hpp>

#include "engine/base/clock.h"

namespace verger::tool {

std::string_view kind_of_backup(const backup::Manifest& manifest) {
  return manifest.parent.empty() ? "full" : "differential";
}

nlohmann::ordered_json describe_backup(const backup::Manifest& manifest) {
  const auto& at = manifest.positions;
  nlohmann::ordered_json object = {{"id", manifest.id},
                                   {"kind", kind_of_backup(manifest)},
                                   {"parent", nullptr},
                                   {"node", manifest.source.node},
                                   {"cluster", manifest.source.cluster},
                                   {"serverVersion", manifest.source.server_version},
                                   {"state", manifest.source.state},
                                   {"startedAt", format_ticks(manifest.started_at)},
                                   {"checkpointsAt", format_ticks(manifest.checkpoints_at)},
                                   {"finishedAt", format_ticks(manifest.finished_at)},
                                   {"end", at.end.value()},
                                   {"writer", at.writer.value()},
                                   {"chaser", at.chaser.value()},
                                   {"epochNumber", at.epoch_number.value()},
                                   {"files", manifest.files.size()},
                                   {"storedBytes", manifest.stored_bytes()},
                                   {"restoredBytes", manifest.restored_bytes()},
                                   {"reusedBytes", manifest.reused_bytes},
                                   {"logicalDigest", nullptr},
                                   {"warnings", manifest.warnings}};
  if (!manifest.parent.empty()) {
    object["parent"] = manifest.parent;
  }
  if (manifest.digests) {
    object["logicalDigest"] = to_hex(manifest.digests->logical);
  }
  return object;
}

}  // namespace verger::tool
