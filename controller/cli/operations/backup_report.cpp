#include <fmt/format.h>
#include <ostream>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/operations/reports.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"

// The report of a run of backups, for people.
namespace verger::cli {
namespace {

using nlohmann::json;

std::string outcome_of_backups(const std::string& outcome) {
  if (outcome == "done") {
    return "all was done";
  }
  if (outcome == "damaged") {
    return "DAMAGED: do not rely on the backup named below, and make a full one";
  }
  if (outcome == "drill-failed") {
    return "THE DRILL FAILED: do not rely on the backup named below, and make a full one";
  }
  return "not all was done";
}

void print_made(const CliContext& context, const json& backups) {
  Table table({{"node"},
               {"backup", Table::Align::kId},
               {"point in time"},
               {"size", Table::Align::kRight},
               {"reused", Table::Align::kRight},
               {"a second", Table::Align::kRight, true},
               {"time", Table::Align::kRight}});
  for (const auto& each : backups) {
    const auto seconds = std::chrono::duration<double>(each.value("seconds", 0.0));
    table.add({text_of(each, "node"), text_of(each, "generation"), text_of(each, "checkpoints_at"),
               optional_bytes(each, "stored_bytes"), optional_bytes(each, "reused_bytes"),
               optional_bytes(each, "bytes_per_second"), fine_length_text(seconds)});
  }
  context.print(table);
}

void print_checks(const CliContext& context, const json& report) {
  for (const auto& each : list_of(report, "verified")) {
    context.out << fmt::format("{} verified at {}: {}\n", text_of(each, "generation"),
                               text_of(each, "node"),
                               verdict(each, "passed", "no damage", "DAMAGED", "not known"));
    for (const auto& found : list_of(each, "damage")) {
      context.out << fmt::format("  {}: {}\n", text_of(found, "path"), text_of(found, "text"));
    }
  }
  for (const auto& each : list_of(report, "drilled")) {
    const auto took =
        number_of(each, "restore_ms") + number_of(each, "start_ms") + number_of(each, "read_ms");
    context.out << fmt::format(
        "{} drilled at {}: {} in {}; {}\n", text_of(each, "generation"), text_of(each, "node"),
        verdict(each, "passed", "passed", "FAILED", "not known"),
        fine_length_text(std::chrono::milliseconds(took)), text_of(each, "summary"));
  }
}

}  // namespace

void print_backup_report(const CliContext& context, const json& report) {
  context.out << outcome_of_backups(text_of(report, "outcome")) << '\n';
  if (const auto backups = list_of(report, "backups"); !backups.empty()) {
    print_made(context, backups);
  }
  print_checks(context, report);
  if (const auto deleted = list_of(report, "deleted"); !deleted.empty()) {
    std::string names;
    for (const auto& each : deleted) {
      names += (names.empty() ? "" : ", ") + each.get<std::string>();
    }
    context.out << fmt::format("deleted: {} ({} freed)\n", names,
                               optional_bytes(report, "freed_bytes"));
  }
  for (const auto& each : list_of(report, "scavenges")) {
    context.out << fmt::format(
        "scavenge {} of {} was stopped for the copy, {}\n", text_of(each, "scavenge_id"),
        text_of(each, "node"),
        verdict(each, "continued", "and continued", "and does NOT run again", "not known"));
  }
  print_report_timeline(context, report, "backups");
  print_report_notes(context, report);
}

}  // namespace verger::cli
