#include "nodeagent/api/agent_backups.h"

#include "nodeagent/api/detail/field_table.h"

namespace verger::api {
namespace {

constexpr std::string_view kRepositories = "repositories";
constexpr std::string_view kGenerations = "generations";

template <class T>
std::string list_text(std::string_view name, const std::vector<T>& values) {
  JsonWriter out(4'096);
  out.begin_object().name(name);
  write_row_value(out, values);
  return out.end_object().take();
}

template <class T>
Result<std::vector<T>> parse_list(std::string_view body, std::string_view name) {
  const std::string what = "backups";
  VERGER_TRY(const auto document, JsonDocument::parse(body, what));
  std::vector<T> out;
  Fields fields(document.root(), what);
  fields.require(name);
  read_row(fields, name, what, out);
  VERGER_RETURN_IF_ERROR(fields.result());
  return out;
}

}  // namespace

static constexpr auto rows_of(const BackupRepository* /*type*/) {
  using T = BackupRepository;
  return std::tuple{needed_row("name", &T::name),
                    row("location", &T::location),
                    row("id", &T::id),
                    row("error", &T::error),
                    row("encrypted", &T::encrypted),
                    row("compression", &T::compression),
                    row("freeBytes", &T::free_bytes),
                    row("generations", &T::generations),
                    row("drills", &T::drills),
                    row("drillProblem", &T::drill_problem),
                    row("snapshots", &T::snapshots),
                    row("snapshotProblem", &T::snapshot_problem)};
}

static constexpr auto rows_of(const BackupCheckSummary* /*type*/) {
  using T = BackupCheckSummary;
  return std::tuple{needed_row("at", &T::at), needed_row("passed", &T::passed),
                    row("summary", &T::summary), row("durationMs", &T::duration_ms)};
}

static constexpr auto rows_of(const BackupGeneration* /*type*/) {
  using T = BackupGeneration;
  return std::tuple{needed_row("id", &T::id),
                    row("parent", &T::parent),
                    row("node", &T::node),
                    row("cluster", &T::cluster),
                    row("host", &T::host),
                    row("serverVersion", &T::server_version),
                    row("state", &T::state),
                    row("startedAt", &T::started_at),
                    row("checkpointsAt", &T::checkpoints_at),
                    row("finishedAt", &T::finished_at),
                    row("endPosition", &T::end_position),
                    row("writerPosition", &T::writer_position),
                    row("epochNumber", &T::epoch_number),
                    row("epochId", &T::epoch_id),
                    row("chunkSize", &T::chunk_size),
                    row("storedBytes", &T::stored_bytes),
                    row("restoredBytes", &T::restored_bytes),
                    row("reusedBytes", &T::reused_bytes),
                    row("files", &T::files),
                    row("logicalDigest", &T::logical_digest),
                    row("readableDigest", &T::readable_digest),
                    row("warnings", &T::warnings),
                    row("damage", &T::damage),
                    row("lastVerify", &T::last_verify),
                    row("lastDrill", &T::last_drill)};
}

std::string to_text(const BackupGeneration& generation) { return text_of_rows(generation); }

std::string to_text(const std::vector<BackupRepository>& repositories) {
  return list_text(kRepositories, repositories);
}

std::string to_text(const std::vector<BackupGeneration>& generations) {
  return list_text(kGenerations, generations);
}

Result<BackupGeneration> parse_backup_generation(std::string_view body) {
  return parse_rows<BackupGeneration>(body, "backup", Errc::kCorruption);
}

Result<std::vector<BackupRepository>> parse_backup_repositories(std::string_view body) {
  return parse_list<BackupRepository>(body, kRepositories);
}

Result<std::vector<BackupGeneration>> parse_backup_generations(std::string_view body) {
  return parse_list<BackupGeneration>(body, kGenerations);
}

}  // namespace verger::api
