#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/backup/repository.h"
#include "engine/backup/retention.h"
#include "engine/base/quantities.h"
#include "engine/tool/backup_command.h"
#include "engine/tool/detail/backup_text.h"
#include "engine/tool/table.h"

namespace verger::tool {
namespace {

struct DeleteBackupsArguments {
  std::string repository;
  std::vector<std::string> ids;
  std::string node;
  backup::KeepRules keep;
  bool dry_run = false;
  bool undo = false;
  int grace_hours = 24;
  int abandoned_hours = 24;
};

constexpr std::int64_t kTicksPerHour = 3600 * kTicksPerSecond;

Ticks hours_ago(ToolContext& tool, int hours) {
  return Ticks(tool.clock.now().value() - hours * kTicksPerHour);
}

/// What the rules let go, with a line for each backup.
Result<std::vector<std::string>> choose_by_rules(ToolContext& tool,
                                                 const DeleteBackupsArguments& arguments,
                                                 const backup::Repository& repository) {
  VERGER_TRY(const auto all, repository.generations());
  std::vector<backup::Manifest> manifests;
  for (const auto& entry : all) {
    if (entry.manifest &&
        (arguments.node.empty() || entry.manifest->source.node == arguments.node)) {
      manifests.push_back(*entry.manifest);
    }
  }
  std::vector<std::string> chosen;
  for (const auto& decision : decide_retention(manifests, arguments.keep, tool.clock.now())) {
    const bool goes = decision.kept_by.empty();
    if (goes) {
      chosen.push_back(decision.id);
    } else if (!tool.json) {
      tool.out << fmt::format("{} stays ({})\n", decision.id, decision.kept_by);
    }
  }
  return chosen;
}

Result<int> undelete(ToolContext& tool, const DeleteBackupsArguments& arguments,
                     backup::Repository& repository) {
  for (const auto& id : arguments.ids) {
    VERGER_RETURN_IF_ERROR(repository.undelete(id));
    if (!tool.json) {
      tool.out << fmt::format("{} is a backup again\n", id);
    }
  }
  return kExitDone;
}

Result<int> delete_backups(ToolContext& tool, const DeleteBackupsArguments& arguments) {
  VERGER_TRY(const auto store, open_repository_store(tool, arguments.repository));
  VERGER_TRY(auto repository, backup::Repository::open(*store, backup::Repository::Create::kNo));
  if (arguments.undo) {
    return undelete(tool, arguments, repository);
  }
  auto ids = arguments.ids;
  if (ids.empty() && arguments.keep.any()) {
    VERGER_TRY(ids, choose_by_rules(tool, arguments, repository));
  }
  for (const auto& id : ids) {
    if (!arguments.dry_run) {
      VERGER_RETURN_IF_ERROR(repository.mark_deleted(id, tool.clock.now()));
    }
    if (!tool.json) {
      tool.out << fmt::format(
          "{} {}\n", id, arguments.dry_run ? "would be deleted" : "deleted; --undo brings it back");
    }
  }
  backup::Repository::Swept swept;
  if (!arguments.dry_run) {
    VERGER_TRY(swept, repository.sweep(hours_ago(tool, arguments.grace_hours),
                                       hours_ago(tool, arguments.abandoned_hours)));
  }
  if (tool.json) {
    tool.out << nlohmann::ordered_json{{"deleted", ids},
                                       {"dryRun", arguments.dry_run},
                                       {"removedBackups", swept.generations},
                                       {"removedFiles", swept.blobs},
                                       {"freedBytes", swept.bytes}}
                    .dump()
             << '\n';
  } else if (!arguments.dry_run) {
    tool.out << fmt::format(
        "content of {} deleted more than {} h ago removed: {} files, {} freed\n",
        counted(static_cast<std::int64_t>(swept.generations), "backup"), arguments.grace_hours,
        human_count(swept.blobs), human_bytes(swept.bytes));
  }
  return kExitDone;
}

void add_keep_rule(CLI::App& command, const std::string& name, int& rule, const std::string& text,
                   CLI::Option* ids) {
  command.add_option(name, rule, text)->check(check_positive<int>)->excludes(ids);
}

}  // namespace

void add_backup_delete_command(CLI::App& backup, Action& chosen) {
  auto arguments = std::make_shared<DeleteBackupsArguments>();
  auto& keep = arguments->keep;
  auto* command = backup.add_subcommand(
      "delete", "Delete backups: those named, or those that no rule keeps; in two phases");
  command->add_option("REPOSITORY", arguments->repository, std::string(kRepositoryText))
      ->required();
  auto* ids = command->add_option("ID", arguments->ids, "The backups");
  add_keep_rule(*command, "--keep-last", keep.last, "Keep the newest so many of each node", ids);
  add_keep_rule(*command, "--keep-daily", keep.daily,
                "Keep the newest of a day (UTC), for so many days that have one", ids);
  add_keep_rule(*command, "--keep-weekly", keep.weekly, "The same for weeks", ids);
  add_keep_rule(*command, "--keep-monthly", keep.monthly, "The same for months", ids);
  add_keep_rule(*command, "--keep-within", keep.within_days,
                "Keep all that are not older than so many days", ids);
  command->add_option("--node", arguments->node, "Only backups of this node")->type_name("NAME");
  auto* dry_run = command->add_flag("--dry-run", arguments->dry_run, "Only say what would go");
  command
      ->add_option("--grace", arguments->grace_hours,
                   "Content goes so many hours after its backup was deleted; until then --undo "
                   "brings it back")
      ->check(check_not_negative);
  command
      ->add_option("--abandoned-after", arguments->abandoned_hours,
                   "A backup in progress that stored nothing for so many hours was killed")
      ->check(check_positive<int>);
  command->add_flag("--undo", arguments->undo, "Bring the named backups back")
      ->needs(ids)
      ->excludes(dry_run);
  command->footer(
      "A node's newest backup stays, unless it is named. Nothing that another backup needs is "
      "removed.\nExample:\n  verger-db backup delete /backup/orders --keep-daily 7 --keep-weekly "
      "5");
  command->callback([arguments, &chosen] {
    chosen = [arguments](ToolContext& tool) { return delete_backups(tool, *arguments); };
  });
}

}  // namespace verger::tool
