#include <fmt/format.h>
#include <ostream>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/operations/reports.h"
#include "engine/base/quantities.h"

// The report of a verification, for people.
namespace verger::cli {
namespace {

using nlohmann::json;

void print_verified_node(const CliContext& context, const json& node) {
  const auto name = text_of(node, "node");
  const auto state = text_of(node, "state");
  if (state == "not-looked-at") {
    const auto reason = text_of(node, "reason");
    context.out << fmt::format("{}: NOT LOOKED AT{}{}\n", name, reason.empty() ? "" : ": ", reason);
    return;
  }
  context.out << fmt::format(
      "{}: {}; {} chunk files ({}), {} records, {} tables, {} index entries\n", name,
      state == "sound" ? std::string("sound")
                       : fmt::format("DAMAGED, {} findings", number_of(node, "damaged")),
      number_of(node, "chunk_files"), human_bytes(number_of(node, "chunk_bytes")),
      with_separators(number_of(node, "records")), number_of(node, "tables"),
      with_separators(number_of(node, "entries")));
  for (const auto& each : list_of(node, "damage")) {
    const auto offset = each.value("offset", json());
    context.out << fmt::format(
        "  {}{}: {}\n", text_of(each, "file"),
        offset.is_number() ? fmt::format(" at {}", offset.get<std::int64_t>()) : std::string(),
        text_of(each, "text"));
  }
  for (const auto& each : list_of(node, "remedies")) {
    if (each.is_string()) {
      context.out << "  remedy: " << each.get<std::string>() << '\n';
    }
  }
  for (const auto& each : list_of(node, "notes")) {
    if (each.is_string()) {
      context.out << "  note: " << each.get<std::string>() << '\n';
    }
  }
}

}  // namespace

void print_verify_report(const CliContext& context, const json& report) {
  for (const auto& node : list_of(report, "nodes")) {
    print_verified_node(context, node);
  }
  print_report_timeline(context, report, "verifying");
  print_report_notes(context, report);
}

}  // namespace verger::cli
