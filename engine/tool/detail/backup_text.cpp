#include "engine/tool/detail/backup_text.h"

#include <algorithm>
#include <array>
#include <fmt/format.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "engine/base/clock.h"
#include "engine/repositories/open_store.h"
#include "engine/tool/stop_signals.h"

namespace verger::tool {
namespace {

std::string age_text(Ticks at, Ticks now) {
  constexpr std::int64_t kMinute = 60 * kTicksPerSecond;
  constexpr std::int64_t kHour = 60 * kMinute;
  constexpr std::int64_t kDay = 24 * kHour;
  // Another machine's clock may be ahead of this one's.
  const auto age = std::max<std::int64_t>(now.value() - at.value(), 0);
  return age >= 2 * kDay    ? fmt::format("{} d ago", age / kDay)
         : age >= 2 * kHour ? fmt::format("{} h ago", age / kHour)
                            : fmt::format("{} min ago", age / kMinute);
}

}  // namespace

std::string host_name() {
  std::array<char, 256> name{};
  return ::gethostname(name.data(), name.size() - 1) == 0 ? name.data() : "unknown";
}

std::string text_of_check(const std::optional<backup::BackupCheck>& check, Ticks now) {
  return !check          ? "never"
         : check->passed ? age_text(check->at, now)
                         : "FAILED " + age_text(check->at, now);
}

nlohmann::ordered_json describe_check(const std::optional<backup::BackupCheck>& check) {
  if (!check) {
    return nullptr;
  }
  nlohmann::ordered_json object = {
      {"at", format_ticks(check->at)},    {"by", check->by},
      {"passed", check->passed},          {"summary", check->summary},
      {"durationMs", check->duration_ms}, {"position", check->position.value()}};
  for (const auto& [name, figure] : check->figures) {
    object["figures"][name] = figure;
  }
  return object;
}

Result<std::unique_ptr<backup::BlobStore>> open_repository_store(ToolContext& tool,
                                                                 const std::string& given) {
  VERGER_TRY(const auto config, backup::repository_config_of(tool.files, given));
  return backup::open_store(tool.files, config, tool.clock, tool.random, tool.log,
                            &StopSignals::requested);
}

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
