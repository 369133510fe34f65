#include "engine/tool/detail/verify_database.h"

#include <nlohmann/json.hpp>

#include "engine/scavenge/scavenge_state.h"
#include "engine/tool/detail/verify_chunks.h"
#include "engine/tool/detail/verify_index.h"
#include "engine/tool/detail/verify_state.h"
#include "engine/tool/table.h"

namespace verger::tool {

Result<int> verify_database(ToolContext& tool, const DatabaseArguments& arguments,
                            const VerifyOptions& how, Findings& findings) {
  const Path directory = arguments.directory;
  VERGER_RETURN_IF_ERROR(check_directory(tool, directory));
  VERGER_TRY(const auto chunks,
             verify_chunks(tool, directory, arguments.chunk_size, how.threads, findings));
  IndexTotals totals;
  auto database = open_database(tool, arguments, log::Access::kReadOnly);
  if (!database) {
    findings.damage(directory, std::nullopt,
                    "index and log are not compared: " + database.error().message);
  } else if (auto compared = verify_index(tool, **database, how, findings); compared) {
    totals = *compared;
  } else {
    findings.damage(directory, std::nullopt,
                    "comparing index and log ended early: " + compared.error().message);
  }
  const auto index =
      arguments.index_directory.empty() ? directory / "index" : Path(arguments.index_directory);
  if (const auto state = verify_state(tool, index, how, findings); !state) {
    findings.damage(scavenge::ScavengeState::path_in(index), std::nullopt,
                    "not looked at: " + state.error().message);
  }
  findings.print(tool);
  const auto damage = findings.damage_count();
  if (tool.json) {
    tool.out << nlohmann::ordered_json{{"finding", "summary"},
                                       {"damage", damage},
                                       {"chunkFiles", chunks.files},
                                       {"chunkBytes", chunks.bytes},
                                       {"records", chunks.records},
                                       {"events", totals.events},
                                       {"tables", totals.tables},
                                       {"entries", totals.entries},
                                       {"entriesWithoutRecord", totals.without_record},
                                       {"recordsWithoutEntry", totals.without_entry}}
                    .dump()
             << '\n';
  } else {
    tool.out << fmt::format(
        "{} chunk files ({}), {} records; {} index tables, {} entries, {} events\n", chunks.files,
        human_bytes(chunks.bytes), human_count(chunks.records), totals.tables,
        human_count(totals.entries), human_count(totals.events));
    if (totals.without_record + totals.without_entry > 0) {
      tool.out << fmt::format(
          "left by scavenges, and normal: {} entries without a record, {} records without an "
          "entry\n",
          human_count(totals.without_record), human_count(totals.without_entry));
    }
    tool.out << (damage == 0 ? "no damage found\n"
                             : fmt::format("damage found in {} places\n", human_count(damage)));
  }
  return damage == 0 ? kExitDone : kExitFailed;
}

}  // namespace verger::tool
