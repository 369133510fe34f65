#include "controller/cli/plan_request.h"

#include <algorithm>
#include <fmt/format.h>
#include <ostream>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/json_text.h"
#include "controller/cli/run_watch.h"
#include "controller/cli/size_option.h"
#include "controller/cli/times.h"
#include "engine/base/assert.h"
#include "engine/base/number_from_text.h"

namespace verger::cli {

using nlohmann::json;

namespace {

/// "throttle_percent" -> "--throttle-percent"
std::string option_name(const planner::Field& field) {
  auto out = "--" + planner::api_name(field);
  std::ranges::replace(out, '_', '-');
  return out;
}

}  // namespace

void add_plan_options(CLI::App& command, const planner::Operation& operation, PlanOptions& options,
                      const OptionChoice& chosen) {
  command.add_option("CLUSTER", options.cluster)->required();
  command.add_option("--policy", options.policy,
                     "As this policy would plan it: its parameters, gates, deadlines, windows");
  for (const auto* field : planner::fields_of(operation)) {
    if (field->request != planner::Field::Request::kAccepted) {
      continue;
    }
    auto& text = options.parameters[field];
    if (chosen && !chosen(planner::api_name(*field))) {
      continue;
    }
    auto* option = command.add_option(option_name(*field), text, std::string(field->help));
    switch (field->type) {
      case planner::Field::Type::kChoice:
        option->check(
            CLI::IsMember(std::vector<std::string>(field->choices.begin(), field->choices.end())));
        break;
      case planner::Field::Type::kText:
      case planner::Field::Type::kQueries:
        break;
      case planner::Field::Type::kBoolean:
        option->check(CLI::IsMember(std::vector<std::string>{"true", "false"}));
        break;
      case planner::Field::Type::kInteger:
        option->check(CLI::Range(field->low, field->high))->type_name("INT");
        break;
      case planner::Field::Type::kBytes:
        take_size(*option);
        break;
      case planner::Field::Type::kMilliseconds:
        take_milliseconds(*option);
        break;
    }
  }
}

std::string& parameter_of(PlanOptions& options, std::string_view name) {
  const auto found = std::ranges::find_if(options.parameters, [name](const auto& each) {
    return planner::api_name(*each.first) == name;
  });
  VERGER_ASSERT(found != options.parameters.end());
  return found->second;
}

std::expected<json, CallFailure> request_plan(const CliContext& context,
                                              const planner::Operation& operation,
                                              const PlanOptions& options) {
  auto parameters = json::object();
  for (const auto& [field, text] : options.parameters) {
    if (text.empty()) {
      continue;
    }
    auto& value = parameters[planner::api_name(*field)];
    if (field->type == planner::Field::Type::kChoice ||
        field->type == planner::Field::Type::kText) {
      value = text;
    } else if (field->type == planner::Field::Type::kBoolean) {
      value = text == "true";
    } else {
      value = number_from_text<std::int64_t>(text).value_or(0);  // CLI11 has looked at it
    }
  }
  json body{{"operation", operation.name}, {"parameters", std::move(parameters)}};
  if (!options.policy.empty()) {
    body["policy"] = options.policy;
  }
  return context.api.post("/clusters/" + http::percent_encode(options.cluster) + "/plans", body);
}

void print_next(const CliContext& context, const json& plan) {
  if (context.json) {
    return;
  }
  const auto pause = plan.value("cluster_pause", json());
  const auto cluster = text_of(plan, "cluster");
  if (pause.is_object()) {
    const auto until = text_of(pause, "until");
    const auto reason = text_of(pause, "reason");
    context.out << fmt::format(
        "nothing has been touched; cluster {0} is paused {1}{2}, and no run starts on it before. "
        "End the pause with: verger cluster resume {0}\n",
        cluster, until.empty() ? "until it is resumed" : "until " + to_the_second(until),
        reason.empty() ? "" : fmt::format(" ({})", reason));
    return;
  }
  context.out << fmt::format(
      "nothing has been touched; carry it out with: verger apply {} --wait\n",
      text_of(plan, "hash").substr(0, 12));
}

void add_wait_options(CLI::App& command, ApplyOptions& options) {
  command.add_flag("--wait", options.wait, "Follow the run until it ends");
  command.add_option("--wait-seconds", options.wait_seconds, "Stop following after this long");
}

int apply_plan(const CliContext& context, const ApplyOptions& options) {
  const auto run =
      context.api.post("/plans/" + http::percent_encode(options.hash) + "/apply", json::object());
  if (!run) {
    return context.fail(run.error());
  }
  const auto id = text_of(*run, "id");
  if (options.wait) {
    return watch_run(context, id, std::chrono::seconds(options.wait_seconds));
  }
  if (context.json) {
    context.out << run->dump() << '\n';
  } else {
    context.out << fmt::format("run {} has started; follow it with: verger run watch {}\n", id,
                               id.substr(0, 12));
  }
  return kDone;
}

}  // namespace verger::cli
