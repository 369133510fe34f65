#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "engine/backup/key_file.h"
#include "engine/base/private_file.h"
#include "engine/tool/backup_command.h"
#include "engine/tool/table.h"

namespace verger::tool {
namespace {

constexpr std::string_view kKeyFileText = "Key file: keyFile of repository files";

void print_key(ToolContext& tool, const std::string& file, const backup::KeyRing& ring,
               std::string_view done) {
  const auto& id = ring.writing().id;
  if (tool.json) {
    tool.out << nlohmann::ordered_json{{"file", file}, {"writing", id}}.dump() << '\n';
  } else {
    tool.out << fmt::format("{}: {} the key \"{}\"\n", printable(file), done, id);
  }
}

Result<int> create_key_file(ToolContext& tool, const std::string& file) {
  const auto ring = backup::KeyRing::make(tool.random);
  auto written = write_private_file(file, ring.to_text(), IfThere::kRefuse);
  if (!written && written.error().code == Errc::kExists) {
    return Error{Errc::kExists,
                 fmt::format("{}: is there already, and is not replaced: what was encrypted with "
                             "its keys could not be read. `verger-db backup key add` adds one",
                             file)};
  }
  VERGER_RETURN_IF_ERROR(written);
  print_key(tool, file, ring, "made, with");
  if (!tool.json) {
    tool.out << "Without this file the backups cannot be read: keep a copy of it apart from "
                "them.\n";
  }
  return kExitDone;
}

Result<int> add_key(ToolContext& tool, const std::string& file) {
  VERGER_TRY(auto ring, backup::read_key_file(tool.files, file));
  ring.add_key(tool.random);
  VERGER_RETURN_IF_ERROR(write_private_file(file, ring.to_text(), IfThere::kReplace));
  print_key(tool, file, ring, "new backups are encrypted with");
  if (!tool.json) {
    tool.out << "Give the file to every other node of the repository before its next backup; "
                "`verger-db backup rekey` then moves what is there to this key.\n";
  }
  return kExitDone;
}

Result<int> list_keys(ToolContext& tool, const std::string& file) {
  VERGER_TRY(const auto ring, backup::read_key_file(tool.files, file));
  for (const auto& key : ring.keys()) {
    const bool writes = key.id == ring.writing().id;
    if (tool.json) {
      tool.out << nlohmann::ordered_json{{"id", key.id}, {"writes", writes}}.dump() << '\n';
    } else {
      tool.out << key.id << (writes ? "  (for writing)\n" : "\n");
    }
  }
  return kExitDone;
}

using KeyAction = Result<int> (*)(ToolContext&, const std::string&);

void add_action(CLI::App& key, Action& chosen, const std::string& name, const std::string& text,
                KeyAction action) {
  auto file = std::make_shared<std::string>();
  auto* command = key.add_subcommand(name, text);
  command->add_option("FILE", *file, std::string(kKeyFileText))->required();
  command->footer("Example:\n  verger-db backup key " + name + " /etc/verger/orders.keys");
  command->callback([file, action, &chosen] {
    chosen = [file, action](ToolContext& tool) { return action(tool, *file); };
  });
}

}  // namespace

void add_backup_key_command(CLI::App& backup, Action& chosen) {
  auto* key = backup.add_subcommand("key", "Make and change key files of encrypted repositories");
  key->require_subcommand(1);
  key->fallthrough();
  add_action(*key, chosen, "create", "Make a key file that only its owner may read",
             &create_key_file);
  add_action(*key, chosen, "add", "Add a new first key, which later backups are encrypted with",
             &add_key);
  add_action(*key, chosen, "list", "Show the ids of the keys", &list_keys);
}

}  // namespace verger::tool
