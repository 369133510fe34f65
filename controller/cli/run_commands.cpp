#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/json_text.h"
#include "controller/cli/run_gates_text.h"
#include "controller/cli/run_text.h"
#include "controller/cli/run_watch.h"
#include "controller/cli/size_option.h"
#include "controller/cli/table.h"
#include "controller/cli/times.h"

namespace verger::cli {
namespace {

using nlohmann::json;

int list_runs(const CliContext& context, const std::string& cluster) {
  const auto answer = context.api.get_all(
      cluster.empty() ? "/runs" : "/runs?cluster=" + http::percent_encode(cluster), "runs");
  if (!answer) {
    return context.fail(answer.error());
  }
  Table table({{"run", Table::Align::kId},
               {"cluster"},
               {"operation"},
               {"state"},
               {"begun"},
               {"ended"},
               {"why", Table::Align::kWrap}});
  for (const auto& run : list_of(*answer, "runs")) {
    if (context.json) {
      context.out << run.dump() << '\n';
      continue;
    }
    table.add({text_of(run, "id"), text_of(run, "cluster"), text_of(run, "operation"),
               text_of(run, "state"), time_of(run, "started_at"), time_of(run, "finished_at"),
               text_of(run, "reason")});
  }
  if (!context.json) {
    context.print(table);
  }
  return kDone;
}

int show_run(const CliContext& context, const std::string& id, bool gates) {
  const auto run = context.api.get("/runs/" + http::percent_encode(id) + (gates ? "/gates" : ""));
  if (!run) {
    return context.fail(run.error());
  }
  if (context.json) {
    context.out << run->dump() << '\n';
  } else if (gates) {
    print_run_gates(context, *run);
  } else {
    print_run(context, *run);
  }
  return kDone;
}

struct RunOptions {
  std::string id;
  std::string node;
  bool drain = false;
  bool now = false;
  bool force = false;
  bool ignore_hours = false;
  std::optional<std::int32_t> percent;
  std::optional<std::uint64_t> bytes_per_second;
  bool wait = false;
  int wait_seconds = 24 * 3600;
};

/// pause, resume, cancel, throttle, skip: an intent that the controller journals at once.
int send_intent(const CliContext& context, const RunOptions& options, const std::string& intent) {
  auto body = options.node.empty() ? json::object() : json{{"node", options.node}};
  if (options.percent) {
    body["percent"] = *options.percent;
  }
  if (options.bytes_per_second) {
    body["bytes_per_second"] = *options.bytes_per_second;
  }
  if (options.drain || options.now) {
    body["mode"] = options.drain ? "drain" : "now";
  }
  if (options.ignore_hours) {
    if (context.api.reason().empty()) {
      context.err
          << "verger: --ignore-hours needs --reason TEXT: why this run may not wait for its "
             "window, for the audit\n";
      return kUsage;
    }
    body["ignore_hours"] = true;
  }
  if (!context.api.reason().empty()) {
    body["reason"] = context.api.reason();
  }
  if (options.force) {
    if (context.api.reason().empty()) {
      context.err << "verger: --force needs --reason: the audit keeps why the run continues beside "
                     "what may still run there\n";
      return kUsage;
    }
    body["force"] = true;
  }
  const auto run =
      context.api.post("/runs/" + http::percent_encode(options.id) + "/" + intent, body);
  if (!run) {
    return context.fail(run.error());
  }
  if (options.wait) {
    return watch_run(context, text_of(*run, "id"), std::chrono::seconds(options.wait_seconds));
  }
  if (context.json) {
    context.out << run->dump() << '\n';
  } else {
    context.out << intent_text(intent, *run, options.node, options.force) << '\n';
    if (const auto notice = text_of(*run, "notice"); !notice.empty()) {
      context.out << notice << '\n';
    }
  }
  return kDone;
}

void add_run_argument(CLI::App& command, std::string& id) {
  command.add_option("RUN", id, "The run's id, or its first digits")
      ->required()
      ->check(CLI::Validator(
          [](const std::string& given) {
            return given.empty() ? "it is empty; verger run list shows all" : std::string();
          },
          ""));
}

void add_intent(CLI::App& parent, const std::string& name, const std::string& help,
                Command& chosen) {
  auto options = std::make_shared<RunOptions>();
  auto* command = parent.add_subcommand(name, help);
  add_run_argument(*command, options->id);
  if (name == "skip") {
    command->add_option("NODE", options->node, "The node that is left out")->required();
    command->add_flag("--force", options->force,
                      "Continue even though something may still run on it; needs --reason");
  }
  if (name == "pause") {
    auto* drain = command->add_flag("--drain", options->drain, "Let work under way end");
    command->add_flag("--now", options->now, "Stop work under way at once, overriding the policy")
        ->excludes(drain);
  }
  if (name == "throttle") {
    command
        ->add_option("--percent", options->percent, "Share of the time that jobs work; default 100")
        ->check(CLI::Range(1, 100));
    take_size(*command->add_option("--bytes-per-second", options->bytes_per_second,
                                   "Bytes that a job reads a second, such as 20MiB; default 0: no "
                                   "limit"));
  }
  if (name == "resume") {
    command->add_flag("--ignore-hours", options->ignore_hours,
                      "No window holds this run back from now on; needs --reason");
  }
  command->add_flag("--wait", options->wait, "Follow the run until it ends or stands still");
  command->add_option("--wait-seconds", options->wait_seconds, "Stop following after this long");
  command->callback([options, name, &chosen] {
    chosen = [options, name](const CliContext& context) {
      return send_intent(context, *options, name);
    };
  });
}

}  // namespace

void add_run_commands(CLI::App& app, Command& chosen) {
  auto* run = app.add_subcommand("run", "Runs: plans being carried out, and what became of them");
  run->require_subcommand(1);

  auto cluster = std::make_shared<std::string>();
  auto* list = run->add_subcommand("list", "Runs, newest first");
  list->add_option("CLUSTER", *cluster);
  list->callback([cluster, &chosen] {
    chosen = [cluster](const CliContext& context) { return list_runs(context, *cluster); };
  });

  auto id = std::make_shared<std::string>();
  auto* show = run->add_subcommand("show", "One run: its steps, and its report once it has ended");
  add_run_argument(*show, *id);
  auto gates = std::make_shared<bool>(false);
  show->add_flag("--gates", *gates,
                 "All gates of the steps that wait or are under way, open ones too, with value and "
                 "limit");
  show->callback([id, gates, &chosen] {
    chosen = [id, gates](const CliContext& context) { return show_run(context, *id, *gates); };
  });

  auto seconds = std::make_shared<int>(24 * 3600);
  auto* watch = run->add_subcommand("watch", "Follow a run until it ends or stands still");
  add_run_argument(*watch, *id);
  watch->add_option("--wait-seconds", *seconds, "Stop following after this long");
  watch->callback([id, seconds, &chosen] {
    chosen = [id, seconds](const CliContext& context) {
      return watch_run(context, *id, std::chrono::seconds(*seconds));
    };
  });

  add_intent(*run, "pause", "Start no new step; stop or leave work under way, as the policy says",
             chosen);
  add_intent(*run, "resume", "Resume it, after a fresh look at the cluster", chosen);
  add_intent(*run, "cancel", "End the run in a safe state", chosen);
  add_intent(*run, "throttle",
             "Set how gently the agents' jobs of a run work from now on; without options at full "
             "speed",
             chosen);
  add_intent(*run, "skip", "Leave a node out that a step is waiting for", chosen);
}

}  // namespace verger::cli
