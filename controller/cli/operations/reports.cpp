#include "controller/cli/operations/reports.h"

#include <algorithm>
#include <chrono>
#include <fmt/format.h>
#include <ostream>
#include <string_view>
#include <utility>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/times.h"

namespace verger::cli {
namespace {

using Print = void (*)(const CliContext& context, const nlohmann::json& report);
// One line for each operation that prints more than timeline and notes.
constexpr std::pair<std::string_view, Print> kReports[] = {
    {"backup", print_backup_report},  //
    {"certificates", print_certificates_report},
    {"growth", print_growth_report},
    {"heal", print_heal_report},
    {"redaction", print_redaction_report},
    {"resize", print_resize_report},
    {"restore", print_restore_report},
    {"scavenge", print_scavenge_report},
    {"verify", print_verify_report},
};

}  // namespace

void print_report(const CliContext& context, const nlohmann::json& run) {
  const auto report = run.value("report", nlohmann::json());
  if (!report.is_object()) {
    return;
  }
  const auto* found = std::ranges::find(kReports, text_of(run, "operation"),
                                        &std::pair<std::string_view, Print>::first);
  if (found != std::end(kReports)) {
    found->second(context, report);
    return;
  }
  print_report_timeline(context, report);
  print_report_notes(context, report);
}

void print_report_timeline(const CliContext& context, const nlohmann::json& report,
                           std::string_view work) {
  const auto timeline = report.value("timeline", nlohmann::json());
  if (!timeline.is_object()) {
    return;
  }
  const auto part = [&timeline](const char* name) {
    return fine_length_text(std::chrono::duration<double>(timeline.value(name, 0.0)));
  };
  context.out << fmt::format(
      "took {}: {} {}, other steps {}, waiting for gates {}, preparing {}, paused {}\n",
      part("total_seconds"), work, part("work_seconds"), part("other_steps_seconds"),
      part("waiting_seconds"), part("preparing_seconds"), part("paused_seconds"));
}

void print_report_notes(const CliContext& context, const nlohmann::json& report) {
  for (const auto& note : list_of(report, "notes")) {
    if (note.is_string()) {
      context.out << "note: " << note.get<std::string>() << '\n';
    }
  }
}

}  // namespace verger::cli
