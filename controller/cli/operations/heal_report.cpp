#include <fmt/format.h>
#include <ostream>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/operations/reports.h"

// The report of healing, for people.
namespace verger::cli {

using nlohmann::json;

void print_heal_report(const CliContext& context, const json& report) {
  for (const auto& node : list_of(report, "nodes")) {
    if (text_of(node, "state") == "not-done") {
      context.out << fmt::format("{}: not done\n", text_of(node, "node"));
      continue;
    }
    context.out << fmt::format("{}: had lost {} streams, now {}; {} streams read, {} not found\n",
                               text_of(node, "node"), optional_number(node, "lost_before"),
                               optional_number(node, "lost_after"), number_of(node, "streams_read"),
                               list_of(node, "not_found").size());
  }
  print_report_timeline(context, report, "healing");
  print_report_notes(context, report);
}

}  // namespace verger::cli
