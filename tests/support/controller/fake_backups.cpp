#include "tests/support/controller/fake_backups.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/api/backup_operations.h"
#include "nodeagent/api/json_answer.h"
#include "tests/support/results.h"

namespace verger::test {

namespace {

constexpr std::string_view kRepositoryId = "repository-1";

FakeBackups::Ended failed(std::string code, std::string text) {
  return {.error_code = std::move(code), .error = std::move(text)};
}

http::Response refused(int status, const std::string& code) {
  return api::json_text_answer(
      status, nlohmann::json{{"status", status}, {"code", code}, {"detail", code}}.dump());
}

}  // namespace

bool FakeBackups::copies(std::string_view kind) {
  return kind == api::kBackupKind || kind == api::kOfflineBackupKind ||
         kind == api::kSnapshotBackupKind;
}
bool FakeBackups::knows(std::string_view kind) {
  return copies(kind) || kind == api::kBackupVerifyKind || kind == api::kBackupDrillKind ||
         kind == api::kBackupRetainKind;
}

const api::BackupGeneration* FakeBackups::find(std::string_view id) const {
  const auto found = std::ranges::find(generations, id, &api::BackupGeneration::id);
  return found == generations.end() ? nullptr : &*found;
}

FakeBackups::Ended FakeBackups::finish(std::string_view kind, const std::string& parameters_json,
                                       const FakeBackupSource& source, Ticks started) {
  if (copies(kind)) {
    return copy(kind, parameters_json, source, started);
  }
  return kind == api::kBackupVerifyKind  ? verify(parameters_json)
         : kind == api::kBackupDrillKind ? drill(parameters_json)
                                         : retain(parameters_json);
}

FakeBackups::Ended FakeBackups::copy(std::string_view kind, const std::string& parameters_json,
                                     const FakeBackupSource& source, Ticks started) {
  const auto wanted = value(api::parse_backup_parameters<api::BackupParameters>(parameters_json));
  if (failures > 0) {
    --failures;
    return failed("io", "/backup: no such device");
  }
  const auto latest = std::ranges::find(generations.rbegin(), generations.rend(), wanted.node,
                                        &api::BackupGeneration::node);
  api::BackupGeneration made;
  made.id = fmt::format("g{}", next_++);
  made.parent = latest == generations.rend() || wanted.full ? "" : latest->id;
  made.node = wanted.node;
  made.cluster = wanted.cluster;
  made.state = kind == api::kSnapshotBackupKind ? "frozen" : "live";
  made.started_at = started;
  made.checkpoints_at = started;
  made.finished_at = time_.now();
  made.end_position = source.writer;
  made.writer_position = source.writer;
  made.epoch_number = source.epoch;
  made.stored_bytes = 1'000'000;
  made.restored_bytes = 1'100'000;
  made.reused_bytes = made.parent.empty() ? 0 : 900'000;
  made.files = 12;
  made.logical_digest = wanted.digests == "none" ? "" : "dd";
  done.push_back(
      fmt::format("backup {} {}{}", made.node, made.id, made.parent.empty() ? " full" : ""));
  if (damages_next) {
    damages_next = false;
    damaged.insert(made.id);
  }
  generations.push_back(made);
  return {.error_code = {}, .error = {}, .result = api::to_text(made)};
}

FakeBackups::Ended FakeBackups::verify(const std::string& parameters_json) {
  const auto wanted =
      value(api::parse_backup_parameters<api::BackupCheckParameters>(parameters_json));
  const auto found = std::ranges::find(generations, wanted.generation, &api::BackupGeneration::id);
  if (found == generations.end()) {
    return failed("not_found", fmt::format("there is no backup {}", wanted.generation));
  }
  done.push_back("verify " + wanted.generation);
  api::BackupVerified out{.generation = wanted.generation,
                          .passed = !damaged.contains(wanted.generation),
                          .bytes = 1'000'000,
                          .duration_ms = takes.count()};
  if (!out.passed) {
    out.damage = damage;
  }
  found->last_verify = api::BackupCheckSummary{.at = time_.now(), .passed = out.passed};
  return {.error_code = {}, .error = {}, .result = api::to_text(out)};
}

FakeBackups::Ended FakeBackups::drill(const std::string& parameters_json) {
  const auto wanted =
      value(api::parse_backup_parameters<api::BackupCheckParameters>(parameters_json));
  const auto found = std::ranges::find(generations, wanted.generation, &api::BackupGeneration::id);
  if (found == generations.end()) {
    return failed("not_found", fmt::format("there is no backup {}", wanted.generation));
  }
  done.push_back("drill " + wanted.generation);
  const api::BackupDrilled out{.generation = wanted.generation,
                               .passed = !fails_drills,
                               .restore_ms = 1'000,
                               .start_ms = 500,
                               .read_ms = 500,
                               .end_position = found->end_position,
                               .age_ms = 60'000,
                               .streams = 3,
                               .events = 30,
                               .logical_equal = !fails_drills,
                               .readable_equal = false,
                               .summary = fails_drills ? "its digest is another" : "30 events"};
  found->last_drill = api::BackupCheckSummary{.at = time_.now(), .passed = out.passed};
  return {.error_code = {}, .error = {}, .result = api::to_text(out)};
}

FakeBackups::Ended FakeBackups::retain(const std::string& parameters_json) {
  const auto wanted =
      value(api::parse_backup_parameters<api::BackupRetainParameters>(parameters_json));
  api::BackupRetained out;
  std::int32_t kept = 0;
  for (auto each = generations.rbegin(); each != generations.rend(); ++each) {
    const bool named = std::ranges::find(wanted.generations, each->id) != wanted.generations.end();
    const bool by_rule = wanted.generations.empty() && each->node == wanted.node &&
                         wanted.keep_last > 0 && ++kept > wanted.keep_last;
    if (named || by_rule) {
      out.deleted.push_back(each->id);
      out.bytes += each->stored_bytes;
    }
  }
  std::erase_if(generations, [&out](const auto& each) {
    return std::ranges::find(out.deleted, each.id) != out.deleted.end();
  });
  done.push_back("retain " + (wanted.generations.empty() ? wanted.node : "named"));
  return {.error_code = {}, .error = {}, .result = api::to_text(out)};
}

std::optional<http::Response> FakeBackups::answer(const std::string& node,
                                                  const http::Request& request) const {
  const auto target = *http::parse_target(request.target);
  if (!target.path.starts_with("/agent/v1/backups")) {
    return std::nullopt;
  }
  const auto access = at.contains(node) ? at.at(node) : FakeRepositoryAccess();
  if (target.path == "/agent/v1/backups/repositories") {
    std::vector<api::BackupRepository> out;
    if (access.configured) {
      const std::string id = !access.other_id.empty() ? access.other_id
                             : generations.empty()    ? std::string()
                                                      : std::string(kRepositoryId);
      out.push_back({.name = "main",
                     .location = "/backup/prod",
                     .id = access.error.empty() ? id : "",
                     .error = access.error,
                     .compression = "none",
                     .free_bytes = std::int64_t{1} << 40U,
                     .generations = std::ssize(generations),
                     .drills = access.drill_problem.empty(),
                     .drill_problem = access.drill_problem,
                     .snapshots = access.snapshot_problem.empty(),
                     .snapshot_problem = access.snapshot_problem});
    }
    return api::json_text_answer(200, api::to_text(out));
  }
  if (!access.configured || target.parameter("repository") != "main") {
    return refused(404, "not_found");
  }
  return api::json_text_answer(
      200,
      api::to_text(access.other_id.empty() ? generations : std::vector<api::BackupGeneration>()));
}

}  // namespace verger::test
