#include <fmt/format.h>
#include <ostream>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/operations/reports.h"
#include "engine/base/quantities.h"

// The erasure report, for people.
namespace verger::cli {
namespace {

using nlohmann::json;

std::string redaction_outcome_text(const json& report) {
  const auto outcome = text_of(report, "outcome");
  const auto events = list_of(report, "events").size();
  if (outcome == "redacted") {
    return fmt::format("redacted: {} records, on all nodes", events);
  }
  if (outcome == "not-proven") {
    return fmt::format("redacted: {} records, on all nodes; NOT PROVEN on all of them", events);
  }
  if (outcome == "unchanged") {
    return "nothing was redacted";
  }
  return "UNFINISHED: some nodes still have the data; make a new plan";
}

std::string redacted_node_text(const json& node) {
  const auto count = [&node](const char* name) { return node.value(name, std::int64_t{0}); };
  const auto state = text_of(node, "state");
  if (state == "not-done") {
    return "not done";
  }
  if (state == "already") {
    return fmt::format("{} records were redacted before", count("already"));
  }
  auto out = fmt::format("{} records in {} chunk files, {}", count("blanked"),
                         list_of(node, "chunks").size(),
                         node.value("online", false) ? "while it ran" : "while it was stopped");
  if (count("already") > 0) {
    out += fmt::format(", {} were before", count("already"));
  }
  if (const auto missing = list_of(node, "missing").size(); missing > 0) {
    out += fmt::format(", {} it does not have", missing);
  }
  if (count("searched_files") > 0) {
    out += fmt::format("; searched {} files, {}: {}", count("searched_files"),
                       human_bytes(count("searched_bytes")),
                       node.value("proven", false) ? "no text is left" : "NOT PROVEN");
  }
  return out;
}

}  // namespace

void print_redaction_report(const CliContext& context, const json& report) {
  context.out << redaction_outcome_text(report) << '\n';
  context.out << fmt::format("requested by {}: {}\n", text_of(report, "requester"),
                             text_of(report, "reason"));
  for (const auto& node : list_of(report, "nodes")) {
    context.out << fmt::format("{}: {}\n", text_of(node, "node"), redacted_node_text(node));
    for (const auto& left : list_of(node, "left")) {
      if (left.is_string()) {
        context.out << "  left: " << left.get<std::string>() << '\n';
      }
    }
  }
  for (const auto& backup : list_of(report, "backups")) {
    if (backup.value("expired", false)) {
      context.out << fmt::format("backup {} of {} was deleted\n", text_of(backup, "generation"),
                                 text_of(backup, "node"));
      continue;
    }
    context.out << fmt::format("backup {} of {} may hold the data; delete it with: {}\n",
                               text_of(backup, "generation"), text_of(backup, "node"),
                               text_of(backup, "command"));
  }
  for (const auto& problem : list_of(report, "problems")) {
    if (problem.is_string()) {
      context.out << "backups not seen: " << problem.get<std::string>() << '\n';
    }
  }
  for (const auto& each : list_of(report, "out_of_reach")) {
    if (each.is_string()) {
      context.out << "not reached: " << each.get<std::string>() << '\n';
    }
  }
  print_report_timeline(context, report, "redacting");
  print_report_notes(context, report);
}

}  // namespace verger::cli
