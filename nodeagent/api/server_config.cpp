#include "nodeagent/api/server_config.h"

#include <algorithm>

#include "nodeagent/api/detail/field_table.h"

namespace verger::api {
namespace {

/// It becomes a part of file names.
void check_change_name(Fields& fields, std::string_view change) {
  if (change.empty() || change.size() > 128 || !std::ranges::all_of(change, [](char c) {
        return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
               c == '-';
      })) {
    fields.wrong("change", "1 to 128 letters, digits or - were expected");
  }
}

void check_seeds(Fields& fields, std::string_view name, const std::vector<std::string>& seeds) {
  for (const auto& each : seeds) {
    if (each.empty() || each.find_first_of("\"'\\[]{},# \t\r\n") != std::string::npos ||
        !each.contains(':')) {
      fields.wrong(name, "host:port was expected");
    }
  }
}

void check_service_deadline(Fields& fields, std::int64_t deadline) {
  if (deadline < 0) {
    fields.wrong("serviceDeadlineMs", "1 or more was expected");
  }
}

}  // namespace

static constexpr auto rows_of(const ServerConfig* /*type*/) {
  using T = ServerConfig;
  return std::tuple{row("path", &T::path),
                    row("problem", &T::problem),
                    row("clusterSize", &T::cluster_size),
                    row("reported", &T::reported),
                    row("seeds", &T::seeds),
                    row("seedsFrom", &T::seeds_from)};
}

static constexpr auto rows_of(const ServerSize* /*type*/) {
  using T = ServerSize;
  return std::tuple{needed_row("change", &T::change),
                    needed_row("from", &T::from),
                    needed_row("to", &T::to),
                    row("addSeeds", &T::add_seeds),
                    row("removeSeeds", &T::remove_seeds),
                    row("serviceDeadlineMs", &T::service_deadline_ms)};
}
static void check_rows(Fields& fields, const ServerSize& parameters) {
  check_change_name(fields, parameters.change);
  check_seeds(fields, "addSeeds", parameters.add_seeds);
  check_seeds(fields, "removeSeeds", parameters.remove_seeds);
  check_service_deadline(fields, parameters.service_deadline_ms);
  if (parameters.from < 1 || parameters.to < 1 || parameters.from == parameters.to) {
    fields.wrong("to", "two sizes that differ were expected");
  }
}

static constexpr auto rows_of(const ServerSizeRestore* /*type*/) {
  using T = ServerSizeRestore;
  return std::tuple{needed_row("change", &T::change),
                    row("serviceDeadlineMs", &T::service_deadline_ms)};
}
static void check_rows(Fields& fields, const ServerSizeRestore& parameters) {
  check_change_name(fields, parameters.change);
  check_service_deadline(fields, parameters.service_deadline_ms);
}

static constexpr auto rows_of(const ServerSizeChanged* /*type*/) {
  using T = ServerSizeChanged;
  return std::tuple{needed_row("size", &T::size), row("instance", &T::instance),
                    row("seeds", &T::seeds), row("restarted", &T::restarted)};
}

std::string to_text(const ServerConfig& config) { return text_of_rows(config); }
std::string to_text(const ServerSize& parameters) { return text_of_rows(parameters); }
std::string to_text(const ServerSizeRestore& parameters) { return text_of_rows(parameters); }
std::string to_text(const ServerSizeChanged& result) { return text_of_rows(result); }

Result<ServerConfig> parse_server_config(std::string_view body) {
  return parse_rows<ServerConfig>(body, "server configuration", Errc::kCorruption);
}
Result<ServerSize> parse_server_size(std::string_view parameters_json) {
  return parse_rows<ServerSize>(parameters_json, "parameters", Errc::kInvalidArgument);
}
Result<ServerSizeRestore> parse_server_size_restore(std::string_view parameters_json) {
  return parse_rows<ServerSizeRestore>(parameters_json, "parameters", Errc::kInvalidArgument);
}
Result<ServerSizeChanged> parse_server_size_changed(std::string_view result_json) {
  return parse_rows<ServerSizeChanged>(result_json, "result", Errc::kCorruption);
}
std::vector<std::string_view> server_size_parameters() { return member_names_of<ServerSize>(); }
std::vector<std::string_view> server_size_restore_parameters() {
  return member_names_of<ServerSizeRestore>();
}

}  // namespace verger::api
