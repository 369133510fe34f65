#include <fmt/format.h>
#include <optional>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/json_text.h"
#include "controller/cli/plan_text.h"
#include "controller/cli/run_watch.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"

namespace verger::cli {
namespace {

using nlohmann::json;

/// What is not given is as the policy says, or the controller.
struct ScavengeOptions {
  std::string cluster;
  std::string policy;
  std::optional<int> threads;
  std::optional<int> threshold;
  std::optional<int> throttle_percent;
  std::string strategy;
};

/// What stands between the plan and its run, or how to start it.
void print_next(const CliContext& context, const json& plan) {
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

int plan_scavenge(const CliContext& context, const ScavengeOptions& options) {
  auto parameters = json::object();
  const auto add = [&parameters](const char* name, const std::optional<int>& value) {
    if (value) {
      parameters[name] = *value;
    }
  };
  add("threads", options.threads);
  add("threshold", options.threshold);
  add("throttle_percent", options.throttle_percent);
  if (!options.strategy.empty()) {
    parameters["strategy"] = options.strategy;
  }
  json body{{"operation", "scavenge"}, {"parameters", std::move(parameters)}};
  if (!options.policy.empty()) {
    body["policy"] = options.policy;
  }
  const auto plan =
      context.api.post("/clusters/" + http::percent_encode(options.cluster) + "/plans", body);
  if (!plan) {
    return context.fail(plan.error());
  }
  if (context.json) {
    context.out << plan->dump() << '\n';
  } else {
    print_plan(context, *plan);
    print_next(context, *plan);
  }
  return kDone;
}

int show_plan(const CliContext& context, const std::string& hash) {
  const auto plan = context.api.get("/plans/" + http::percent_encode(hash));
  if (!plan) {
    return context.fail(plan.error());
  }
  if (context.json) {
    context.out << plan->dump() << '\n';
  } else {
    print_plan(context, *plan);
  }
  return kDone;
}

int list_plans(const CliContext& context, const std::string& cluster) {
  const auto answer =
      context.api.get_all("/clusters/" + http::percent_encode(cluster) + "/plans", "plans");
  if (!answer) {
    return context.fail(answer.error());
  }
  Table table({{"plan", Table::Align::kId},
               {"operation"},
               {"policy"},
               {"made"},
               {"by"},
               {"steps", Table::Align::kRight},
               {"state", Table::Align::kWrap}});
  for (const auto& plan : list_of(*answer, "plans")) {
    if (context.json) {
      context.out << plan.dump() << '\n';
      continue;
    }
    std::size_t steps = 0;
    for (const auto& stage : list_of(plan, "stages")) {
      steps += list_of(stage, "steps").size();
    }
    const auto policy = text_of(plan, "awaits_approval_of");
    table.add({text_of(plan, "hash"), text_of(plan, "operation"), text_of(plan, "policy"),
               time_of(plan, "created_at"), text_of(plan, "created_by"), std::to_string(steps),
               policy.empty()
                   ? "-"
                   : "awaits approval: verger apply " + text_of(plan, "hash").substr(0, 12)});
  }
  if (!context.json) {
    context.print(table);
  }
  return kDone;
}

struct ApplyOptions {
  std::string hash;
  bool wait = false;
  int wait_seconds = 24 * 3600;
};

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

}  // namespace

void add_plan_commands(CLI::App& app, Command& chosen) {
  auto* plan = app.add_subcommand("plan", "Plans: what would be done, in which order, and why");
  plan->require_subcommand(1);

  auto options = std::make_shared<ScavengeOptions>();
  auto* scavenge = plan->add_subcommand("scavenge", "Plan a scavenge of a whole cluster");
  scavenge->footer("Example: verger plan scavenge orders --threads 2");
  scavenge->add_option("CLUSTER", options->cluster)->required();
  scavenge->add_option("--policy", options->policy,
                       "As this policy would plan it: its parameters, gates, deadlines, windows");
  scavenge->add_option("--threads", options->threads, "Threads on each node, 1 to 4")
      ->check(CLI::Range(1, 4));
  scavenge->add_option("--threshold", options->threshold,
                       "Chunks of more weight than this are rewritten (about 2 for each record "
                       "that goes); -1 rewrites all");
  scavenge
      ->add_option("--throttle-percent", options->throttle_percent,
                   "Share of the time spent working; needs --threads 1")
      ->check(CLI::Range(1, 100));
  scavenge->add_option("--strategy", options->strategy)
      ->check(CLI::IsMember({"rolling", "followers-only", "concurrent", "offline"}));
  scavenge->callback([options, &chosen] {
    chosen = [options](const CliContext& context) { return plan_scavenge(context, *options); };
  });

  auto hash = std::make_shared<std::string>();
  auto* show = plan->add_subcommand("show", "One plan");
  show->add_option("HASH", *hash, "The plan's hash, or its first digits")->required();
  show->callback([hash, &chosen] {
    chosen = [hash](const CliContext& context) { return show_plan(context, *hash); };
  });
  auto* list = plan->add_subcommand("list", "The plans made for a cluster");
  list->add_option("CLUSTER", *hash)->required();
  list->callback([hash, &chosen] {
    chosen = [hash](const CliContext& context) { return list_plans(context, *hash); };
  });

  auto applying = std::make_shared<ApplyOptions>();
  auto* apply = app.add_subcommand("apply", "Carry a plan out");
  apply->footer("Example: verger apply 3f2a90cc41d7 --wait");
  apply->add_option("HASH", applying->hash, "The plan's hash, or its first digits")->required();
  apply->add_flag("--wait", applying->wait, "Follow the run until it ends");
  apply->add_option("--wait-seconds", applying->wait_seconds, "Give up following after this long");
  apply->callback([applying, &chosen] {
    chosen = [applying](const CliContext& context) { return apply_plan(context, *applying); };
  });
}

}  // namespace verger::cli
