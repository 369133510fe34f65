#pragma once

#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "controller/cli/cli_context.h"

/// The reports of runs of the API, for people; the table of those is reports.cpp.
namespace verger::cli {

/// Of a run that has ended, as its operation prints it; else what every report has, its timeline
/// and notes. Nothing where there is no report.
void print_report(const CliContext& context, const nlohmann::json& run);

/// Where the time went.
void print_report_timeline(const CliContext& context, const nlohmann::json& report,
                           std::string_view work = "its work");
void print_report_notes(const CliContext& context, const nlohmann::json& report);

// One for each operation that prints more.
void print_backup_report(const CliContext& context, const nlohmann::json& report);
void print_certificates_report(const CliContext& context, const nlohmann::json& report);
void print_growth_report(const CliContext& context, const nlohmann::json& report);
void print_redaction_report(const CliContext& context, const nlohmann::json& report);
void print_resize_report(const CliContext& context, const nlohmann::json& report);
void print_restore_report(const CliContext& context, const nlohmann::json& report);
void print_scavenge_report(const CliContext& context, const nlohmann::json& report);
void print_verify_report(const CliContext& context, const nlohmann::json& report);
void print_heal_report(const CliContext& context, const nlohmann::json& report);

}  // namespace verger::cli
