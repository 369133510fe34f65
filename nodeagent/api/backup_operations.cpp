#include "nodeagent/api/backup_operations.h"

#include "nodeagent/api/detail/field_table.h"

namespace verger::api {
namespace {

template <class... Rows>
constexpr auto with_target(Rows... rows) {
  using T = BackupTarget;
  return std::tuple{
      needed_row("repository", &T::repository), row("repositoryId", &T::repository_id), rows...,
      row("throttlePercent", &T::throttle_percent), row("bytesPerSecond", &T::bytes_per_second)};
}

}  // namespace

static constexpr auto rows_of(const BackupParameters* /*type*/) {
  using T = BackupParameters;
  return with_target(row("node", &T::node), row("cluster", &T::cluster), row("full", &T::full),
                     row("threads", &T::threads), row("digests", &T::digests),
                     row("serviceDeadlineMs", &T::service_deadline_ms));
}

static constexpr auto rows_of(const BackupCheckParameters* /*type*/) {
  using T = BackupCheckParameters;
  return with_target(needed_row("generation", &T::generation), row("by", &T::by));
}

static constexpr auto rows_of(const BackupRetainParameters* /*type*/) {
  using T = BackupRetainParameters;
  return with_target(
      row("node", &T::node), row("keepLast", &T::keep_last), row("keepDaily", &T::keep_daily),
      row("keepWeekly", &T::keep_weekly), row("keepMonthly", &T::keep_monthly),
      row("keepWithinDays", &T::keep_within_days), row("generations", &T::generations));
}

static constexpr auto rows_of(const RestoreParameters* /*type*/) {
  using T = RestoreParameters;
  return with_target(needed_row("generation", &T::generation), row("keepOld", &T::keep_old),
                     row("threads", &T::threads), row("otherNode", &T::other_node));
}

static constexpr auto rows_of(const RestoredGeneration* /*type*/) {
  return std::tuple{needed_row("generation", &RestoredGeneration::generation)};
}

static constexpr auto rows_of(const DamagedFile* /*type*/) {
  return std::tuple{needed_row("path", &DamagedFile::path), row("text", &DamagedFile::text)};
}

static constexpr auto rows_of(const BackupVerified* /*type*/) {
  using T = BackupVerified;
  return std::tuple{needed_row("generation", &T::generation), needed_row("passed", &T::passed),
                    row("bytes", &T::bytes), row("damage", &T::damage),
                    row("durationMs", &T::duration_ms)};
}

static constexpr auto rows_of(const BackupRetained* /*type*/) {
  using T = BackupRetained;
  return std::tuple{needed_row("deleted", &T::deleted), row("blobs", &T::blobs),
                    row("bytes", &T::bytes), row("postponed", &T::postponed)};
}

static constexpr auto rows_of(const BackupDrilled* /*type*/) {
  using T = BackupDrilled;
  return std::tuple{needed_row("generation", &T::generation),
                    needed_row("passed", &T::passed),
                    row("restoreMs", &T::restore_ms),
                    row("startMs", &T::start_ms),
                    row("readMs", &T::read_ms),
                    row("endPosition", &T::end_position),
                    row("ageMs", &T::age_ms),
                    row("streams", &T::streams),
                    row("events", &T::events),
                    row("logicalEqual", &T::logical_equal),
                    row("readableEqual", &T::readable_equal),
                    row("summary", &T::summary)};
}

static constexpr auto rows_of(const Restored* /*type*/) {
  using T = Restored;
  return std::tuple{needed_row("bytes", &T::bytes), row("durationMs", &T::duration_ms),
                    row("endPosition", &T::end_position), row("oldFiles", &T::old_files)};
}

std::string to_text(const BackupParameters& parameters) { return text_of_rows(parameters); }
std::string to_text(const BackupCheckParameters& parameters) { return text_of_rows(parameters); }
std::string to_text(const BackupRetainParameters& parameters) { return text_of_rows(parameters); }
std::string to_text(const RestoreParameters& parameters) { return text_of_rows(parameters); }
std::string to_text(const RestoredGeneration& parameters) { return text_of_rows(parameters); }
std::string to_text(const BackupVerified& result) { return text_of_rows(result); }
std::string to_text(const BackupRetained& result) { return text_of_rows(result); }
std::string to_text(const BackupDrilled& result) { return text_of_rows(result); }
std::string to_text(const Restored& result) { return text_of_rows(result); }

template <class Parameters>
Result<Parameters> parse_backup_parameters(std::string_view parameters_json) {
  return parse_rows<Parameters>(parameters_json, "parameters", Errc::kInvalidArgument);
}
template <class Outcome>
Result<Outcome> parse_backup_result(std::string_view result_json) {
  return parse_rows<Outcome>(result_json, "result", Errc::kCorruption);
}
template <class Parameters>
std::vector<std::string_view> backup_parameter_names() {
  return member_names_of<Parameters>();
}

template Result<BackupParameters> parse_backup_parameters(std::string_view);
template Result<BackupCheckParameters> parse_backup_parameters(std::string_view);
template Result<BackupRetainParameters> parse_backup_parameters(std::string_view);
template Result<RestoreParameters> parse_backup_parameters(std::string_view);
template Result<RestoredGeneration> parse_backup_parameters(std::string_view);
template Result<BackupVerified> parse_backup_result(std::string_view);
template Result<BackupRetained> parse_backup_result(std::string_view);
template Result<BackupDrilled> parse_backup_result(std::string_view);
template Result<Restored> parse_backup_result(std::string_view);
template std::vector<std::string_view> backup_parameter_names<BackupParameters>();
template std::vector<std::string_view> backup_parameter_names<BackupCheckParameters>();
template std::vector<std::string_view> backup_parameter_names<BackupRetainParameters>();
template std::vector<std::string_view> backup_parameter_names<RestoreParameters>();
template std::vector<std::string_view> backup_parameter_names<RestoredGeneration>();

}  // namespace verger::api
