#include <fmt/format.h>
#include <ostream>

#include <CLI/CLI.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "controller/cli/json_text.h"
#include "engine/base/quantities.h"

// admin: what the journal takes, and its compaction.
namespace verger::cli {
namespace {

using nlohmann::json;

std::string size_text(const json& size) {
  return fmt::format(
      "{} events, {} on disk, {} of it in use", with_separators(number_of(size, "events")),
      human_bytes(number_of(size, "bytes")), human_bytes(number_of(size, "bytes_in_use")));
}

int show_journal(const CliContext& context) {
  const auto answer = context.api.get("/admin/journal");
  if (!answer) {
    return context.fail(answer.error());
  }
  if (context.json) {
    context.out << answer->dump() << '\n';
    return kDone;
  }
  const auto at = text_of(*answer, "compacted_at");
  context.out << fmt::format("{}\nlast compaction: {}; {} events removed since vergerd started\n",
                             size_text(*answer), at.empty() ? "none yet" : at,
                             with_separators(number_of(*answer, "removed")));
  return kDone;
}

int compact_journal(const CliContext& context) {
  const auto answer = context.api.post("/admin/compact", json::object());
  if (!answer) {
    return context.fail(answer.error());
  }
  if (context.json) {
    context.out << answer->dump() << '\n';
    return kDone;
  }
  const auto removed = answer->value("removed", json::object());
  context.out << fmt::format("{} events removed", with_separators(number_of(removed, "events")));
  const char* before = ": ";
  for (const auto& [name, what] :
       {std::pair("progress", "progress"), std::pair("run_details", "details of ended runs"),
        std::pair("runs", "whole runs"), std::pair("plans", "plans"),
        std::pair("schedules", "due times"), std::pair("answers", "kept answers"),
        std::pair("audit", "audit"), std::pair("notifications", "notifications"),
        std::pair("seals", "seals of snapshots"), std::pair("records", "records of compactions")}) {
    if (const auto count = number_of(removed, name); count > 0) {
      context.out << before << with_separators(count) << ' ' << what;
      before = ", ";
    }
  }
  context.out << fmt::format("\nbefore: {}\nnow:    {}\n",
                             size_text(answer->value("before", json::object())),
                             size_text(answer->value("after", json::object())));
  for (const auto& file : answer->value("archived", json::array())) {
    context.out << fmt::format("archived: {} (in DATA/archive of vergerd)\n",
                               file.get<std::string>());
  }
  return kDone;
}

}  // namespace

void add_journal_commands(CLI::App& app, Command& chosen) {
  auto* admin = app.add_subcommand("admin", "The journal's size and compaction");
  admin->require_subcommand(1);
  admin->add_subcommand("journal", "What the journal takes")->callback([&chosen] {
    chosen = show_journal;
  });
  admin
      ->add_subcommand(
          "compact", "Remove what the journal does not keep any longer, as vergerd does each hour")
      ->callback([&chosen] { chosen = compact_journal; });
}

}  // namespace verger::cli
