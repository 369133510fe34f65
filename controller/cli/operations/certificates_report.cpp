#include <fmt/format.h>
#include <ostream>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/operations/reports.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"

// The report of a change of certificates, for people.
namespace verger::cli {
namespace {

using nlohmann::json;

std::string outcome_text(const std::string& outcome) {
  if (outcome == "changed") {
    return "all nodes show their new certificates";
  }
  if (outcome == "unchanged") {
    return "no node was touched";
  }
  if (outcome == "undone") {
    return "undone: all nodes have their former certificates again, and that is proven";
  }
  return "NOT RESTORED: not every node is proven to have its former certificates again";
}

bool flag(const json& object, const char* name) {
  const auto found = object.find(name);
  return found != object.end() && found->is_boolean() && found->get<bool>();
}

void print_certificates_of_nodes(const CliContext& context, const json& nodes) {
  Table table({{"node"},
               {"serial before", Table::Align::kId},
               {"serial after", Table::Align::kId},
               {"valid until"},
               {"state"}});
  for (const auto& node : nodes) {
    table.add({text_of(node, "name"), text_of(node, "serial_before"), text_of(node, "serial_after"),
               text_of(node, "not_after"),
               flag(node, "switched")            ? "new"
               : flag(node, "undone")            ? "restored"
               : text_of(node, "reason").empty() ? "as before"
                                                 : "NOT RESTORED"});
  }
  context.print(table);
}

}  // namespace

void print_certificates_report(const CliContext& context, const json& report) {
  context.out << outcome_text(text_of(report, "outcome")) << '\n';
  const auto nodes = list_of(report, "nodes");
  if (!nodes.empty()) {
    print_certificates_of_nodes(context, nodes);
  }
  if (const auto seconds = report.value("seconds_to_proof", json()); seconds.is_number()) {
    context.out << fmt::format(
        "{} from the first switch to the proof by handshakes; the window is {:.0f} s\n",
        fine_length_text(std::chrono::duration<double>(seconds.get<double>())),
        report.value("window_seconds", 0.0));
  }
  if (const auto seconds = report.value("watched_seconds", json()); seconds.is_number()) {
    context.out << fmt::format(
        "watched for {} s after that: at its end all nodes were there, and kept up\n",
        seconds.get<std::int64_t>());
  }
  for (const auto& proof : list_of(report, "proofs")) {
    const auto handshakes = proof.value("handshakes", json());
    context.out << fmt::format(
        "proven ({}){}\n", text_of(proof, "phase"),
        handshakes.is_number() ? fmt::format(": {} handshakes", handshakes.get<int>()) : "");
  }
  for (const auto& node : nodes) {
    for (const auto& command : list_of(node, "commands")) {
      if (command.is_string()) {
        context.out << "by hand: " << command.get<std::string>() << '\n';
      }
    }
  }
  print_report_timeline(context, report, "certificates");
  print_report_notes(context, report);
}

}  // namespace verger::cli
