#include "controller/cli/plan_text.h"

#include <algorithm>
#include <fmt/format.h>
#include <ostream>
#include <vector>

#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"
#include "engine/base/quantities.h"

namespace verger::cli {
namespace {

using nlohmann::json;
using std::chrono::seconds;

/// "1 h to 3 h"; "-" where the plan has no expectation.
std::string plan_expected_text(const json& object) {
  const auto found = object.is_object() ? object.find("expected_seconds") : object.end();
  return found == object.end() || !found->is_object()
             ? "-"
             : range_text(seconds(number_of(*found, "min")), seconds(number_of(*found, "max")));
}

/// "threads 1, threshold 0, throttle_percent 100, strategy rolling": in the API's own order.
std::string parameters_text(const json& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters.items()) {
    if (value.is_string() && value.get<std::string>().empty()) {
      continue;  // not given
    }
    text += fmt::format("{}{} {}", text.empty() ? "" : ", ", name,
                        value.is_string() ? value.get<std::string>() : value.dump());
  }
  return text;
}

void print_plan_steps(const CliContext& context, const json& plan) {
  Table table({{"stage", Table::Align::kRight},
               {"step"},
               {"node"},
               {"expected", Table::Align::kRight},
               {"cost"},
               {"why", Table::Align::kWrap}});
  std::size_t number = 0;
  std::int64_t conditional = 0;
  std::string atomic;
  for (const auto& stage : list_of(plan, "stages")) {
    if (!text_of(stage, "if_put_off").empty()) {
      ++conditional;
      continue;
    }
    ++number;
    if (stage.value("atomic", false)) {
      atomic += fmt::format("{}{}", atomic.empty() ? "" : ", ", number);
    }
    for (const auto& step : list_of(stage, "steps")) {
      const auto cost = text_of(step, "cost");
      table.add({std::to_string(number), text_of(step, "kind"), text_of(step, "node"),
                 plan_expected_text(step), cost.empty() ? "-" : cost, text_of(step, "reason")});
    }
  }
  context.print(table);
  if (!atomic.empty()) {
    context.out << fmt::format(
        "stage {} is atomic: done on all of its nodes or undone on all; a pause and the end of the "
        "hours take effect before or after it\n",
        atomic);
  }
  if (conditional > 0) {
    context.out << fmt::format(
        "{} hidden: only for a node that leads when its turn comes (all: verger plan show -o "
        "json)\n",
        counted(conditional, "conditional stage"));
  }
}

/// Sizes are a part of what the plan expects: its work rewrites databases.
bool has_sizes(const json& plan) {
  const auto forecast = list_of(plan, "forecast");
  return std::ranges::any_of(forecast, [](const json& node) {
    return node.contains("disk_needed_bytes") && node["disk_needed_bytes"].is_number();
  });
}

/// What the work will meet on each node.
void print_plan_rows(const CliContext& context, const json& plan) {
  for (const auto& node : list_of(plan, "forecast")) {
    if (const auto row = text_of(node, "row"); !row.empty()) {
      context.out << fmt::format("{}: {}\n", text_of(node, "node"), row);
    }
  }
}

/// Free disk and what the run may need of it, for each node whose agent reports it.
void print_plan_disk(const CliContext& context, const json& plan) {
  Table table({{"node"},
               {"database", Table::Align::kRight},
               {"disk free", Table::Align::kRight},
               {"must be free", Table::Align::kRight}});
  for (const auto& node : list_of(plan, "forecast")) {
    if (node.contains("disk_free_bytes") && node["disk_free_bytes"].is_number()) {
      table.add({text_of(node, "node"), optional_bytes(node, "database_bytes"),
                 optional_bytes(node, "disk_free_bytes"),
                 optional_bytes(node, "disk_needed_bytes")});
    }
  }
  if (!table.empty()) {
    context.print(table);
  }
}

/// Nothing estimates it while the servers run; what earlier runs freed on the nodes is known.
void print_bytes_to_free(const CliContext& context, const json& plan) {
  std::int64_t sum = 0;
  std::vector<std::string> nodes;
  for (const auto& each : list_of(plan, "freed_before")) {
    sum += each.value("space_saved", std::int64_t{0});
    nodes.push_back(fmt::format("{} {} (run {} of {})", text_of(each, "node"),
                                optional_bytes(each, "space_saved"),
                                text_of(each, "run").substr(0, 12), time_of(each, "finished_at")));
  }
  std::string text = "bytes to free: ";
  if (!nodes.empty()) {
    text += fmt::format("not estimated; earlier runs freed {}: {}", human_bytes(sum),
                        fmt::join(nodes, ", "));
  } else if (const auto last = plan.value("last_success", json()); last.is_object()) {
    text += fmt::format("unknown; no node reported what run {} of {} freed",
                        text_of(last, "run").substr(0, 12), time_of(last, "finished_at"));
  } else {
    text += "unknown until the first run; verger-db estimate DIR shows it beside a node";
  }
  for (const auto& line : context.width ? wrapped(text, *context.width) : std::vector{text}) {
    context.out << line << '\n';
  }
}

/// Each gate once, in the order in which the steps name them.
void print_plan_gates(const CliContext& context, const json& plan) {
  std::vector<std::string> gates;
  for (const auto& stage : list_of(plan, "stages")) {
    for (const auto& step : list_of(stage, "steps")) {
      for (const auto& gate : list_of(step, "gates")) {
        auto text = gate.is_string() ? gate.get<std::string>() : std::string();
        if (std::ranges::find(gates, text) == gates.end()) {
          gates.push_back(std::move(text));
        }
      }
    }
  }
  const auto text = fmt::format("gates: {}", fmt::join(gates, ", "));
  for (const auto& line : context.width ? wrapped(text, *context.width) : std::vector{text}) {
    context.out << line << '\n';
  }
}

}  // namespace

void print_plan(const CliContext& context, const json& plan) {
  if (context.json) {
    context.out << plan.dump() << '\n';
    return;
  }
  context.out << fmt::format("plan {}\ncluster {}  {}  policy {}\n", text_of(plan, "hash"),
                             text_of(plan, "cluster"), text_of(plan, "operation"),
                             text_of(plan, "policy"));
  context.out << fmt::format("parameters: {}\n",
                             parameters_text(plan.value("parameters", json::object())));
  if (const auto expected = plan_expected_text(plan); expected != "-") {
    context.out << fmt::format(
        "expected time: {}{}\n", expected,
        text_of(plan, "expected_from") == "history" ? ", from this cluster's earlier runs"
        : has_sizes(plan) ? ", from the databases' sizes; no earlier run is known"
                          : ", as usual; no earlier run is known");
  } else {
    context.out << "expected time: not known\n";
  }
  if (has_sizes(plan)) {
    print_bytes_to_free(context, plan);
  }
  print_plan_steps(context, plan);
  if (has_sizes(plan)) {
    print_plan_disk(context, plan);
  } else {
    print_plan_rows(context, plan);
  }
  print_plan_gates(context, plan);
  for (const auto& note : list_of(plan, "notes")) {
    if (note.is_string()) {
      context.out << "note: " << note.get<std::string>() << '\n';
    }
  }
}

}  // namespace verger::cli
