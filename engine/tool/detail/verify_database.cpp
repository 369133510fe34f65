#include "engine/tool/detail/verify_database.h"

#include <optional>

#include <nlohmann/json.hpp>

#include "engine/tool/detail/drive_job.h"
#include "engine/tool/detail/findings_text.h"
#include "engine/tool/progress.h"
#include "engine/tool/table.h"
#include "engine/verify/verify_database_job.h"

namespace verger::tool {
namespace {

using VerifyStage = verify::VerifyProgress::Stage;

/// Each stage as work of its own.
class VerifyStages {
 public:
  explicit VerifyStages(ToolContext& tool) : tool_(tool) {}

  void update(const verify::VerifyProgress& now) {
    if (now.stage == VerifyStage::kDone) {
      progress_.reset();
      return;
    }
    if (!progress_ || now.stage != stage_ || now.total != total_) {
      stage_ = now.stage;
      total_ = now.total;
      progress_.emplace(
          tool_, name(now.stage), now.total,
          now.stage == VerifyStage::kIndex ? Progress::Unit::kEvents : Progress::Unit::kBytes,
          now.done);
    }
    progress_->update(now.done);
  }

 private:
  static std::string name(VerifyStage stage) {
    switch (stage) {
      case VerifyStage::kChunks:
        return "verify chunks";
      case VerifyStage::kTables:
        return "verify tables";
      case VerifyStage::kLog:
        return "verify log";
      case VerifyStage::kIndex:
      case VerifyStage::kDone:
        return "verify index";
    }
    return "verify";
  }

  ToolContext& tool_;
  VerifyStage stage_ = VerifyStage::kDone;
  std::uint64_t total_ = 0;
  std::optional<Progress> progress_;
};

void print_summary(ToolContext& tool, const verify::VerifyTotals& totals, std::size_t damage) {
  if (tool.json) {
    tool.out << nlohmann::ordered_json{{"finding", "summary"},
                                       {"damage", damage},
                                       {"chunkFiles", totals.chunk_files},
                                       {"chunkBytes", totals.chunk_bytes},
                                       {"records", totals.records},
                                       {"events", totals.events},
                                       {"tables", totals.tables},
                                       {"entries", totals.entries},
                                       {"entriesWithoutRecord", totals.entries_without_record},
                                       {"recordsWithoutEntry", totals.records_without_entry}}
                    .dump()
             << '\n';
    return;
  }
  tool.out << fmt::format(
      "{} chunk files ({}), {} records; {} index tables, {} entries, {} events\n",
      totals.chunk_files, human_bytes(totals.chunk_bytes), human_count(totals.records),
      totals.tables, human_count(totals.entries), human_count(totals.events));
  if (totals.entries_without_record + totals.records_without_entry > 0) {
    tool.out << fmt::format(
        "left by scavenges, and normal: {} entries without a record, {} records without an "
        "entry\n",
        human_count(totals.entries_without_record), human_count(totals.records_without_entry));
  }
  tool.out << (damage == 0 ? "no damage found\n"
                           : fmt::format("damage found in {} places\n", human_count(damage)));
}

}  // namespace

Result<int> verify_database(ToolContext& tool, const DatabaseArguments& arguments,
                            const VerifyOptions& how, verify::Findings& findings) {
  const Path directory = arguments.directory;
  VERGER_RETURN_IF_ERROR(check_directory(tool, directory));
  const auto runner = scavenge::make_thread_runner(how.threads);
  verify::VerifyDatabaseJob job(tool.files,
                                {.directory = directory,
                                 .index_directory = arguments.index_directory,
                                 .chunk_size = arguments.chunk_size,
                                 .scratch = how.scratch,
                                 .lanes = static_cast<std::size_t>(how.threads)},
                                tool.clock, tool.random, tool.log, *runner);
  {
    VerifyStages stages(tool);
    DriveOptions drive;
    drive.bytes_per_second = how.bytes_per_second;
    drive.bytes = [&] { return job.progress().bytes; };
    drive.tick = [&] { stages.update(job.progress()); };
    VERGER_RETURN_IF_ERROR(drive_job(tool, job, drive));
  }
  findings.take(job.findings());
  print_findings(tool, findings);
  print_summary(tool, job.totals(), findings.damage_count());
  return findings.damage_count() == 0 ? kExitDone : kExitFailed;
}

}  // namespace verger::tool
