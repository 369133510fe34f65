#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/backup/repository.h"
#include "engine/tool/backup_command.h"
#include "engine/tool/detail/backup_text.h"
#include "engine/tool/table.h"

namespace verger::tool {
namespace {

struct ListBackupsArguments {
  std::string repository;
  std::string node;
  bool files = false;
  std::string id;
};

void print_files(ToolContext& tool, const backup::Manifest& manifest) {
  if (tool.json) {
    for (const auto& file : manifest.files) {
      tool.out << nlohmann::ordered_json{{"path", file.path},
                                         {"kind", to_string(file.kind)},
                                         {"size", file.size},
                                         {"restoredSize", file.restored_size},
                                         {"sha256", to_hex(file.sha256)}}
                      .dump()
               << '\n';
    }
    return;
  }
  Table table({{"FILE"}, {"KIND"}, {"SIZE", Table::Align::kRight}, {"SHA-256"}});
  for (const auto& file : manifest.files) {
    table.add({file.path, std::string(to_string(file.kind)), human_bytes(file.size),
               to_hex(file.sha256).substr(0, 16)});
  }
  table.print(tool.out);
}

Result<int> list_backups(ToolContext& tool, const ListBackupsArguments& arguments) {
  VERGER_TRY(const auto store, open_repository_store(tool, arguments.repository));
  VERGER_TRY(const auto repository,
             backup::Repository::open(*store, backup::Repository::Create::kNo));
  if (!arguments.id.empty()) {
    VERGER_TRY(const auto manifest, repository.load(arguments.id, arguments.node));
    print_files(tool, manifest);
    return kExitDone;
  }
  VERGER_TRY(const auto all, repository.generations());
  VERGER_TRY(auto checks, repository.latest_checks());
  const auto now = tool.clock.now();
  Table table({{"BACKUP"},
               {"KIND"},
               {"SIZE", Table::Align::kRight},
               {"LOG UP TO", Table::Align::kRight},
               {"VERIFIED"},
               {"DRILLED"},
               {"NODE"}});
  bool damaged = false;
  for (const auto& entry : all) {
    if (!entry.manifest) {
      damaged = true;
      tool.err << "verger-db: " << printable(entry.damage) << '\n';
      continue;
    }
    if (!arguments.node.empty() && entry.manifest->source.node != arguments.node) {
      continue;
    }
    if (tool.json) {
      auto object = describe_backup(*entry.manifest);
      object["lastVerify"] = describe_check(checks[entry.id].verify);
      object["lastDrill"] = describe_check(checks[entry.id].drill);
      tool.out << object.dump() << '\n';
    } else {
      table.add({entry.id, std::string(kind_of_backup(*entry.manifest)),
                 human_bytes(entry.manifest->stored_bytes()),
                 fmt::to_string(entry.manifest->positions.end),
                 text_of_check(checks[entry.id].verify, now),
                 text_of_check(checks[entry.id].drill, now),
                 printable(entry.manifest->source.node, 40)});
    }
  }
  if (!tool.json) {
    table.print(tool.out);
  }
  return damaged ? kExitFailed : kExitDone;
}

}  // namespace

void add_backup_list_command(CLI::App& backup, Action& chosen) {
  auto arguments = std::make_shared<ListBackupsArguments>();
  auto* command = backup.add_subcommand("list", "Show the backups of a repository");
  command->add_option("REPOSITORY", arguments->repository, std::string(kRepositoryText))
      ->required();
  command->add_option("--node", arguments->node, "Only those of this node");
  command->add_option("--files", arguments->id, "The files of this backup (an id, or \"latest\")")
      ->type_name("ID");
  command->footer("Example:\n  verger-db backup list /backup/orders");
  command->callback([arguments, &chosen] {
    chosen = [arguments](ToolContext& tool) { return list_backups(tool, *arguments); };
  });
}

}  // namespace verger::tool
