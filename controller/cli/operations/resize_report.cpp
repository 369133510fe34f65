#include <fmt/format.h>
#include <fmt/ranges.h>
#include <ostream>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/operations/reports.h"

// The report of another number of voters, for people.
namespace verger::cli {
namespace {

using nlohmann::json;

std::string listed(const json& report, const char* name) {
  std::vector<std::string> out;
  for (const auto& each : list_of(report, name)) {
    if (each.is_string()) {
      out.push_back(each.get<std::string>());
    }
  }
  return fmt::format("{}", fmt::join(out, " and "));
}

std::string resize_outcome_text(const json& report) {
  const auto outcome = text_of(report, "outcome");
  const auto from = report.value("from", 0);
  const auto to = report.value("to", 0);
  const auto joined = listed(report, "joined");
  const auto left = listed(report, "left");
  const auto who = joined.empty() ? fmt::format("{} left", left) : fmt::format("{} joined", joined);
  if (outcome == "resized") {
    return fmt::format("the cluster has {} voters instead of {}: {}; {} leads", to, from, who,
                       text_of(report, "leader"));
  }
  if (outcome == "not-registered") {
    return fmt::format("NOT REGISTERED: all is done but the registration: {} ({})",
                       "verger cluster update", who);
  }
  if (outcome == "undone") {
    return fmt::format("undone: the cluster has {} voters, as it had", from);
  }
  return outcome == "unchanged" ? std::string("nothing was done")
                                : std::string("NOT UNDONE: not all is as it was");
}

}  // namespace

void print_resize_report(const CliContext& context, const json& report) {
  context.out << resize_outcome_text(report) << '\n';
  for (const auto& restart : list_of(report, "restarts")) {
    context.out << fmt::format("{}: ClusterSize {}; gossip seeds: {}\n", text_of(restart, "node"),
                               restart.value("size", 0), text_of(restart, "seeds"));
  }
  if (const auto reason = text_of(report, "reason"); !reason.empty()) {
    context.out << reason << '\n';
  }
  for (const auto& command : list_of(report, "commands")) {
    if (command.is_string()) {
      context.out << "by hand: " << command.get<std::string>() << '\n';
    }
  }
  print_report_timeline(context, report, "restoring and restarting");
  print_report_notes(context, report);
}

}  // namespace verger::cli
