#include <fmt/format.h>
#include <ostream>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/operations/reports.h"
#include "engine/base/quantities.h"

// The report of a growth, for people.
namespace verger::cli {
namespace {

using nlohmann::json;

std::string growth_outcome_text(const json& report) {
  const auto outcome = text_of(report, "outcome");
  const auto node = text_of(report, "node");
  const auto replaces = text_of(report, "replaces");
  if (outcome == "joined") {
    return fmt::format("{} is a {} of the cluster{}; {} leads", node, text_of(report, "role"),
                       replaces.empty() ? "" : fmt::format(", in the place of {}", replaces),
                       text_of(report, "leader"));
  }
  if (outcome == "not-registered") {
    return fmt::format("NOT REGISTERED: {} runs and follows, and was left so", node);
  }
  if (outcome == "undone") {
    return fmt::format(
        "undone: {} is stopped and has its former files; the registration is as it "
        "was",
        node);
  }
  if (outcome == "unchanged") {
    return fmt::format("nothing was done to {}", node);
  }
  return fmt::format("NOT UNDONE: {} is not as it was", node);
}

}  // namespace

void print_growth_report(const CliContext& context, const json& report) {
  context.out << growth_outcome_text(report) << '\n';
  if (const auto bytes = report.value("bytes", json()); bytes.is_number()) {
    context.out << fmt::format(
        "restored {} of backup {} in {:.1f} s\n", human_bytes(bytes.get<std::int64_t>()),
        text_of(report, "generation"), report.value("restore_seconds", json(0.0)).get<double>());
  }
  if (const auto reason = text_of(report, "reason"); !reason.empty()) {
    context.out << reason << '\n';
  }
  for (const auto& command : list_of(report, "commands")) {
    if (command.is_string()) {
      context.out << "by hand: " << command.get<std::string>() << '\n';
    }
  }
  print_report_timeline(context, report, "restoring");
  print_report_notes(context, report);
}

}  // namespace verger::cli
