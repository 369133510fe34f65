#include <array>
#include <fmt/format.h>
#include <memory>
#include <ostream>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/confirmation.h"
#include "controller/cli/json_text.h"
#include "controller/cli/operations/backup_catalogue.h"
#include "controller/cli/operations/backup_policies.h"
#include "controller/cli/plan_request.h"
#include "controller/cli/plan_text.h"
#include "planner/operations.h"

// create, verify, drill and delete, below `verger backup`: each is a plan of one task, and its run.
namespace verger::cli {
namespace {

using nlohmann::json;

struct TaskOptions {
  PlanOptions plan{};
  std::vector<std::string> backups{};  ///< as the operator gave them
  bool plan_only = false;
  bool yes = false;
  ApplyOptions apply{};
};

const planner::Operation& backup_operation() {
  static const auto& kOperation = *planner::find_operation("backup");
  return kOperation;
}

/// What tells the tasks apart.
struct Task {
  const char* name;
  const char* summary;
  const char* example;
  /// Of the operation's parameters, besides those of every plan.
  bool (*has_option)(std::string_view parameter);
  /// Why the operator is asked first; empty: none is.
  std::string (*question)(TaskOptions& options);
  const char* backups;  ///< help of the argument that names some; null: there is none
};

bool is_rule(std::string_view parameter) { return parameter.starts_with("keep_"); }

/// Which backups a task is about are arguments, and which task is the command.
bool is_argument(std::string_view parameter) {
  return parameter == "task" || parameter == "generations";
}

bool of_create(std::string_view parameter) { return !is_argument(parameter); }

bool of_check(std::string_view parameter) {
  return parameter == "repository" || parameter == "nodes" || parameter == "throttle_percent" ||
         parameter == "bytes_per_second";
}

bool of_delete(std::string_view parameter) {
  return parameter == "repository" || parameter == "nodes" || is_rule(parameter);
}

std::string no_question(TaskOptions& /*options*/) { return {}; }

std::string create_question(TaskOptions& options) {
  return parameter_of(options.plan, "mode") == "offline"
             ? fmt::format("stop a node of {} for its backup?", options.plan.cluster)
             : std::string();
}

std::string delete_question(TaskOptions& options) {
  return fmt::format("delete these backups of {}?", options.plan.cluster);
}

constexpr std::array<Task, 4> kTasks{{
    {"create", "Make a backup of one node's database, and verify it",
     "verger backup create orders --repository main --wait", of_create, create_question, nullptr},
    {"verify", "Read a backup in its repository: every byte, and its structure",
     "verger backup verify orders latest --wait", of_check, no_question,
     "Ids, or digits that only they have (the latest of each node)"},
    {"drill", "Restore a backup to a scratch directory, start a node on it, read everything",
     "verger backup drill orders --repository main --wait", of_check, no_question,
     "Ids, or digits that only they have (the latest of each node)"},
    {"delete", "Delete backups, by name or by rules; a node's newest stays",
     "verger backup delete orders --repository main --keep-daily 7 --keep-weekly 5 --wait",
     of_delete, delete_question,
     "Ids, or digits that only they have; none: what the rules do not keep"},
}};

/// Replaces what the operator gave by ids, and names their repository where that was left open.
/// Gives the exit code.
int find_backups(const CliContext& context, TaskOptions& options) {
  auto& repository = parameter_of(options.plan, "repository");
  const auto list = request_backups(
      context, {.cluster = options.plan.cluster, .repository = repository, .all = true});
  if (!list) {
    return context.fail(list.error());
  }
  for (auto& text : options.backups) {
    const auto backup = find_backup(*list, text);
    if (!backup) {
      return context.fail(backup.error());
    }
    text = text_of(*backup, "id");
    const auto place = text_of(*backup, "repository");
    if (repository.empty()) {
      repository = place;
    } else if (repository != place && repository != text_of(*backup, "repository_id")) {
      context.err << fmt::format(
          "verger: backup {} is in the repository {}, and not in {}; one plan is about one "
          "repository\n",
          text, place, repository);
      return kUsage;
    }
  }
  return kDone;
}

/// Where the operator named no repository, and there is one alone, it is meant.
void choose_repository(const CliContext& context, TaskOptions& options) {
  auto& repository = parameter_of(options.plan, "repository");
  if (!repository.empty() || !options.plan.policy.empty()) {
    return;
  }
  const auto answer = context.api.get(
      fmt::format("/clusters/{}/backup-repositories", http::percent_encode(options.plan.cluster)));
  std::set<std::string> names;
  if (answer) {
    for (const auto& each : list_of(*answer, "repositories")) {
      names.insert(text_of(each, "name"));
    }
    // One that cannot be reached now is meant all the same: the plan is refused with the reason.
    for (const auto& each : list_of(*answer, "problems")) {
      names.insert(text_of(each, "repository"));
    }
  }
  names.erase("");
  if (names.size() == 1) {
    repository = *names.begin();
  }
}

int run_task(const CliContext& context, const Task& task, TaskOptions options) {
  if (!options.backups.empty()) {
    if (const int status = find_backups(context, options); status != kDone) {
      return status;
    }
  }
  choose_repository(context, options);
  parameter_of(options.plan, "task") = task.name;
  parameter_of(options.plan, "generations") = fmt::format("{}", fmt::join(options.backups, ","));
  const auto plan = request_plan(context, backup_operation(), options.plan);
  if (!plan) {
    return context.fail(plan.error());
  }
  print_plan(context, *plan);
  if (options.plan_only) {
    print_next(context, *plan);
    return kDone;
  }
  const auto question = task.question(options);
  if (!question.empty() && !options.yes &&
      !confirmed(context, question + " [y/N] ", {"y", "Y", "yes"})) {
    return kRefused;
  }
  options.apply.hash = text_of(*plan, "hash");
  return apply_plan(context, options.apply);
}

void add_task(CLI::App& backup, const Task& task, Command& chosen) {
  auto options = std::make_shared<TaskOptions>();
  auto* command = backup.add_subcommand(task.name, task.summary);
  command->footer(fmt::format("Example: {}", task.example));
  add_plan_options(*command, backup_operation(), options->plan, task.has_option);
  if (task.backups != nullptr) {
    command->add_option("BACKUP", options->backups, task.backups);
  }
  command->add_flag("--plan", options->plan_only, "Make the plan alone, and do nothing");
  command->add_flag("--yes", options->yes, "Do not ask before the plan is carried out");
  add_wait_options(*command, options->apply);
  command->callback([options, &task, &chosen] {
    chosen = [options, &task](const CliContext& context) {
      return run_task(context, task, *options);
    };
  });
}

}  // namespace

void add_backup_commands(CLI::App& app, Command& chosen) {
  auto* backup = app.add_subcommand(
      "backup", "Backups of a cluster's nodes: list, make, verify, drill, delete");
  backup->require_subcommand(1);
  add_backup_lists(*backup, chosen);
  add_backup_policies(*backup, chosen);
  for (const auto& task : kTasks) {
    add_task(*backup, task, chosen);
  }
}

}  // namespace verger::cli
