#include <fmt/format.h>
#include <ostream>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/operations/reports.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"

// The report of a scavenge, for people.
namespace verger::cli {
namespace {

using nlohmann::json;

std::string point_text(const json& point) {
  return point.is_object() && point.contains("number")
             ? fmt::format("{} @ {}", number_of(point, "number"),
                           with_separators(number_of(point, "position")))
             : "not seen";
}

void print_nodes(const CliContext& context, const json& nodes) {
  Table table({{"node"},
               {"bytes before", Table::Align::kRight, true},
               {"bytes after", Table::Align::kRight, true},
               {"freed", Table::Align::kRight, true},
               {"records removed", Table::Align::kRight, true},
               {"point", Table::Align::kRight},
               {"logical digest", Table::Align::kId, true},
               {"readable digest", Table::Align::kId, true}});
  for (const auto& node : nodes) {
    table.add({text_of(node, "name"), optional_bytes(node, "bytes_before"),
               optional_bytes(node, "bytes_after"), optional_bytes(node, "space_saved"),
               optional_number(node, "records_removed"), point_text(node.value("point", json())),
               text_of(node, "logical_digest"), text_of(node, "readable_digest")});
  }
  context.print(table);
  for (const auto& node : nodes) {
    const auto way = text_of(node, "way");
    // Without a count the node needed nothing, or was not reached.
    if (way == "online" && node.value("chunks_switched", json()).is_number()) {
      context.out << fmt::format("{}: {} chunks switched into its running server\n",
                                 text_of(node, "name"), optional_number(node, "chunks_switched"));
    } else if (way == "offline") {
      context.out << fmt::format("{}: by its agent, while it was stopped\n", text_of(node, "name"));
    }
  }
}

}  // namespace

void print_scavenge_report(const CliContext& context, const json& report) {
  if (const auto point = report.value("point", json()); point.is_object()) {
    context.out << fmt::format("scavenge point {} at position {}\n", number_of(point, "number"),
                               with_separators(number_of(point, "position")));
  }
  if (const auto nodes = list_of(report, "nodes"); !nodes.empty()) {
    print_nodes(context, nodes);
  } else {
    context.out << "no node's scavenge was seen to end\n";
  }
  print_report_timeline(context, report, "scavenges");
  context.out << fmt::format("leader moves: {} planned, {} unplanned\n",
                             number_of(report, "planned_leader_moves"),
                             number_of(report, "unplanned_leader_moves"));
  context.out << "logical digests of the nodes: "
              << verdict(report, "digests_equal", "equal", "DIFFERENT", "not compared") << '\n';
  context.out << "what clients can read: "
              << verdict(report, "readable_unchanged", "unchanged", "CHANGED", "not compared")
              << ", "
              << verdict(report, "readable_equal", "equal on the nodes", "DIFFERENT on the nodes",
                         "not compared between the nodes")
              << '\n';
  const auto differences = list_of(report, "differences");
  for (const auto& difference : differences) {
    if (difference.is_string()) {
      context.out << "difference: " << difference.get<std::string>() << '\n';
    }
  }
  if (!differences.empty()) {
    context.out << "this is no success; what to do about it: docs/operations/digests.md\n";
  }
  print_report_notes(context, report);
}

}  // namespace verger::cli
