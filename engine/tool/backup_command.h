#pragma once

#include "engine/tool/tool_context.h"

namespace verger::tool {

/// `verger-db backup create|list|verify|delete|key|rekey`
void add_backup_command(CLI::App& program, Action& chosen);

// Its subcommands, one file each.
void add_backup_create_command(CLI::App& backup, Action& chosen);
void add_backup_list_command(CLI::App& backup, Action& chosen);
void add_backup_verify_command(CLI::App& backup, Action& chosen);
void add_backup_delete_command(CLI::App& backup, Action& chosen);
void add_backup_key_command(CLI::App& backup, Action& chosen);
void add_backup_rekey_command(CLI::App& backup, Action& chosen);

}  // namespace verger::tool
