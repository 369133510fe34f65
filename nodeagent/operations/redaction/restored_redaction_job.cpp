#include "nodeagent/operations/redaction/restored_redaction_job.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/base/failpoint.h"
#include "engine/log/chunk.h"
#include "nodeagent/operations/redaction/redaction_look.h"

namespace verger::agent {

RestoredRedactionJob::RestoredRedactionJob(external::OfflineServer& server,
                                           std::vector<redaction::ListedRedaction> list)
    : place_(server.place()), machine_(server.machine()), list_(std::move(list)) {}

JobProgress RestoredRedactionJob::progress() const {
  if (!planned_) {
    return {.phase = "finding the events"};
  }
  return {.phase = "redacting",
          .done = static_cast<std::int64_t>(next_),
          .total = static_cast<std::int64_t>(copies_.size()),
          .unit = "chunk files"};
}

Result<StepOutcome> RestoredRedactionJob::step(Budget budget) {
  const auto more = StepOutcome{.kind = StepOutcome::Kind::kMore};
  if (!planned_) {
    VERGER_RETURN_IF_ERROR(make_plan());
    planned_ = true;
    return more;
  }
  if (next_ == copies_.size()) {
    VERGER_RETURN_IF_ERROR(check_all());
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }
  if (copying_ == nullptr) {
    copying_ = std::make_unique<redaction::RedactedCopyJob>(machine_.files, machine_.random,
                                                            copies_[next_]);
  }
  VERGER_TRY(const auto outcome, copying_->step(budget));
  if (outcome.kind == StepOutcome::Kind::kDone) {
    VERGER_RETURN_IF_ERROR(end_copy());
    ++next_;
  }
  return more;
}

Result<redaction::RedactionPlan> RestoredRedactionJob::find() {
  VERGER_TRY(const auto database, open_for_reading(place_, machine_));
  return redaction::plan_redaction(machine_.files, *database, {.listed = list_});
}

Result<void> RestoredRedactionJob::make_plan() {
  VERGER_TRY(result_.removed, redaction::remove_copies(machine_.files, place_.database));
  VERGER_TRY(const auto database, open_for_reading(place_, machine_));
  VERGER_TRY(const auto plan,
             redaction::plan_redaction(machine_.files, *database, {.listed = list_}));
  // What an interrupted job replaced, and did not remove yet.
  for (const auto& leftover : plan.leftovers) {
    if (leftover.of_redaction) {
      VERGER_RETURN_IF_ERROR(machine_.files.remove(place_.database / leftover.name));
      result_.removed.push_back(leftover.name);
    }
  }
  if (!result_.removed.empty()) {
    VERGER_RETURN_IF_ERROR(machine_.files.sync_directory(place_.database));
  }
  result_.records = plan.records.size();
  result_.already = plan.records.size() - plan.to_do();
  result_.missing = plan.missing;
  result_.found = plan.refused;
  Bytes buffer;
  for (const auto& chunk : plan.chunks) {
    redaction::CopyRequest copy{
        .directory = place_.database, .chunk_file = chunk.file, .records = {}};
    for (const auto index : chunk.records) {
      const auto& record = plan.records[index];
      if (chunk.active) {
        result_.found.push_back(
            fmt::format("{} is in {}, which is still written to: scavenge the cluster, which "
                        "completes it, and redact the event again",
                        redaction::name_of(record.stream, record.number), chunk.file));
        continue;
      }
      VERGER_TRY(const auto read, database->transaction_log().read(record.position, buffer));
      copy.records.push_back({.event = {.stream = record.stream, .number = record.number},
                              .position = record.position,
                              .file_offset = read.file_offset});
      copy.metadata = copy.metadata || record.metadata;
    }
    if (!chunk.active) {
      copies_.push_back(std::move(copy));
    }
  }
  return {};
}

/// The copy is whole and synced. Of two versions of a chunk a server takes the later one and
/// removes the other at its start.
Result<void> RestoredRedactionJob::end_copy() {
  const auto copy = copying_->copy();
  copying_.reset();
  const auto& former = copies_[next_].chunk_file;
  if (copy.name.empty()) {
    return {};
  }
  const auto name = log::parse_chunk_file_name(former);
  if (!name) {
    return Error{Errc::kCorruption, fmt::format("{}: no name of a chunk file", former)};
  }
  const auto next = log::chunk_file_name(name->start, name->version + 1);
  VERGER_FAILPOINT("agent.restored-redaction.copied");
  VERGER_RETURN_IF_ERROR(machine_.files.set_read_only(place_.database / copy.name, true));
  VERGER_RETURN_IF_ERROR(
      machine_.files.rename(place_.database / copy.name, place_.database / next));
  VERGER_RETURN_IF_ERROR(machine_.files.sync_directory(place_.database));
  VERGER_FAILPOINT("agent.restored-redaction.renamed");
  VERGER_RETURN_IF_ERROR(machine_.files.remove(place_.database / former));
  VERGER_RETURN_IF_ERROR(machine_.files.sync_directory(place_.database));
  result_.blanked += copy.blanked;
  result_.chunks.push_back({.from = former,
                            .to = next,
                            .records = copy.blanked,
                            .md5_before = copy.md5_before,
                            .md5_after = copy.md5_after});
  VERGER_FAILPOINT("agent.restored-redaction.switched");
  return {};
}

Result<void> RestoredRedactionJob::check_all() {
  VERGER_TRY(const auto now, find());
  std::size_t to_do = 0;
  for (const auto& chunk : now.chunks) {
    to_do += chunk.active ? 0 : chunk.records.size();
  }
  return to_do == 0 ? Result<void>()
                    : Result<void>(Error{Errc::kCorruption,
                                         fmt::format("{}: {} events do not read as redacted",
                                                     place_.database.string(), to_do)});
}

}  // namespace verger::agent
