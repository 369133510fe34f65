#include "engine/tool/backup_command.h"

#include <CLI/CLI.hpp>

namespace verger::tool {

void add_backup_command(CLI::App& program, Action& chosen) {
  auto* backup = program.add_subcommand("backup", "Make, list, verify, encrypt and delete backups");
  backup->require_subcommand(1);
  backup->fallthrough();
  add_backup_create_command(*backup, chosen);
  add_backup_list_command(*backup, chosen);
  add_backup_verify_command(*backup, chosen);
  add_backup_delete_command(*backup, chosen);
  add_backup_key_command(*backup, chosen);
  add_backup_rekey_command(*backup, chosen);
}

}  // namespace verger::tool
