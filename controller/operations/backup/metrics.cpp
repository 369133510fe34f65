#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "controller/executor/step_support.h"
#include "controller/operations/backup/backup_module.h"
#include "controller/operations/backup/kept_values.h"
#include "engine/base/clock.h"

namespace verger::controller::backups {
namespace {

struct NewestBackup {
  Ticks at;
  double bytes = 0;
};

double seconds_of(Ticks at) {
  return static_cast<double>(at.value() - kUnixEpoch.value()) /
         static_cast<double>(kTicksPerSecond);
}

/// nullopt: the run kept none of that name.
std::optional<NewestBackup> kept(const RunSummary& run, std::string_view name) {
  const auto found = run.kept.find(std::string(name));
  if (found == run.kept.end()) {
    return std::nullopt;
  }
  const auto value = steps::parsed_or_empty(found->second);
  const auto at = parse_ticks(value.value("at", std::string()));
  if (!at) {
    return std::nullopt;
  }
  return NewestBackup{.at = *at, .bytes = value.value("bytes", 0.0)};
}

}  // namespace

std::vector<OperationMetric> metrics(std::span<const std::shared_ptr<const RunSummary>> runs) {
  std::map<std::string, NewestBackup> made;
  std::map<std::string, NewestBackup> drilled;
  const auto take = [](std::map<std::string, NewestBackup>& into, const RunSummary& run,
                       std::string_view name) {
    if (const auto found = kept(run, name)) {
      auto& newest = into[run.cluster];
      newest = newest.at < found->at ? *found : newest;
    }
  };
  for (const auto& run : runs) {
    if (run->status == RunStatus::kDone) {
      take(made, *run, kResultValue);
    }
    // A drill proves its backup however the rest of the run ended.
    if (has_ended(run->status)) {
      take(drilled, *run, kDrillKept);
    }
  }
  std::vector<OperationMetric> out;
  const auto add = [&out](std::string_view name, std::string_view help, const std::string& cluster,
                          double value) {
    out.push_back({.name = name, .help = help, .labels = {{"cluster", cluster}}, .value = value});
  };
  for (const auto& [cluster, newest] : made) {
    add("verger_backup_last_success_timestamp_seconds",
        "Point in time of the newest backup whose run was done", cluster, seconds_of(newest.at));
    add("verger_backup_bytes", "Size of that backup in its repository", cluster, newest.bytes);
  }
  for (const auto& [cluster, newest] : drilled) {
    add("verger_backup_last_drill_timestamp_seconds", "When a drill of a backup last passed",
        cluster, seconds_of(newest.at));
  }
  return out;
}

}  // namespace verger::controller::backups
