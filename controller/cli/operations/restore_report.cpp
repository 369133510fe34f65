#include <fmt/format.h>
#include <ostream>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/operations/reports.h"
#include "controller/cli/table.h"
#include "engine/base/quantities.h"

// The report of a restore, for people.
namespace verger::cli {
namespace {

using nlohmann::json;

std::string restore_outcome_text(const json& report) {
  const auto outcome = text_of(report, "outcome");
  const auto generation = text_of(report, "generation");
  if (outcome == "restored") {
    return fmt::format("restored from backup {}; {} leads", generation, text_of(report, "leader"));
  }
  if (outcome == "started") {
    return fmt::format(
        "NOT SEEN WHOLE: backup {} was restored and its servers started, but the run did not see "
        "the end",
        generation);
  }
  if (outcome == "undone") {
    return "undone: every node has its former files, and its server is as it was before";
  }
  if (outcome == "unchanged") {
    return "no server was stopped";
  }
  if (outcome == "discarded") {
    return fmt::format("what the restore of {} kept is removed", generation);
  }
  return "NOT UNDONE: not every node has its former files and runs";
}

std::string bytes_or_dash(const json& node, const char* name) {
  const auto value = node.value(name, json());
  return value.is_number() ? human_bytes(value.get<std::int64_t>()) : "-";
}

void print_restored_nodes(const CliContext& context, const json& nodes) {
  Table table({{"node"},
               {"state"},
               {"restored", Table::Align::kRight},
               {"lost", Table::Align::kRight},
               {"removed", Table::Align::kRight},
               {"former files", Table::Align::kWrap}});
  for (const auto& node : nodes) {
    const auto old = text_of(node, "old_files");
    const bool removed = node.value("discarded_bytes", json()).is_number();
    table.add({text_of(node, "name"), text_of(node, "state"), bytes_or_dash(node, "bytes"),
               bytes_or_dash(node, "lost_bytes"), bytes_or_dash(node, "discarded_bytes"),
               old.empty() || removed ? "-" : old});
  }
  context.print(table);
}

}  // namespace

void print_restore_report(const CliContext& context, const json& report) {
  context.out << restore_outcome_text(report) << '\n';
  const auto nodes = list_of(report, "nodes");
  if (!nodes.empty()) {
    print_restored_nodes(context, nodes);
  }
  for (const auto& node : nodes) {
    if (const auto reason = text_of(node, "reason"); !reason.empty()) {
      context.out << fmt::format("{}: {}\n", text_of(node, "name"), reason);
    }
    for (const auto& command : list_of(node, "commands")) {
      if (command.is_string()) {
        context.out << "by hand: " << command.get<std::string>() << '\n';
      }
    }
  }
  print_report_timeline(context, report, "restoring");
  print_report_notes(context, report);
}

}  // namespace verger::cli
