#include "nodeagent/operations/redaction/restored_redaction_job.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/base/failpoint.h"
#include "engine/log/chunk.h"
#include "engine/redaction/found_in_events.h"
#include "nodeagent/operations/redaction/redaction_look.h"

namespace verger::agent {

RestoredRedactionJob::RestoredRedactionJob(external::OfflineServer& server,
                                           std::vector<redaction::ListedRedaction> list,
                                           std::shared_ptr<NotedTextStore> store)
    : place_(server.place()),
      machine_(server.machine()),
      list_(std::move(list)),
      texts_(std::move(store), list_, machine_.random, machine_.log) {}

JobProgress RestoredRedactionJob::progress() const {
  if (!planned_) {
    return {.phase = "finding the events"};
  }
  if (search_ != nullptr) {
    const auto done = static_cast<std::int64_t>(search_->bytes_done());
    return {.phase = "searching for what is left",
            .done = done,
            .total = static_cast<std::int64_t>(search_->bytes_total()),
            .unit = "bytes",
            .bytes = done};
  }
  return {.phase = "redacting",
          .done = static_cast<std::int64_t>(next_),
          .total = static_cast<std::int64_t>(copies_.size()),
          .unit = "chunk files"};
}

Result<StepOutcome> RestoredRedactionJob::step(Budget budget) {
  if (!planned_) {
    VERGER_RETURN_IF_ERROR(make_plan());
    planned_ = true;
    return StepOutcome{.kind = StepOutcome::Kind::kMore};
  }
  return next_ < copies_.size() ? copy(budget) : search(budget);
}

Result<StepOutcome> RestoredRedactionJob::copy(Budget budget) {
  if (copying_ == nullptr) {
    copying_ = std::make_unique<redaction::RedactedCopyJob>(machine_.files, machine_.random,
                                                            copies_[next_]);
  }
  VERGER_TRY(const auto outcome, copying_->step(budget));
  if (outcome.kind == StepOutcome::Kind::kDone) {
    VERGER_RETURN_IF_ERROR(end_copy());
    ++next_;
  }
  return StepOutcome{.kind = StepOutcome::Kind::kMore};
}

/// No server runs: nothing writes to the files meanwhile.
Result<StepOutcome> RestoredRedactionJob::search(Budget budget) {
  // Also those that an attempt which was killed has blanked.
  result_.blanked = result_.records - result_.already - active_;
  if (!texts_.can_search()) {
    VERGER_RETURN_IF_ERROR(check_all({}));
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }
  if (search_ == nullptr) {
    search_ = std::make_unique<redaction::PlaintextSearchJob>(
        machine_.files, texts_.digests(),
        std::vector<Path>{place_.database, place_.index_directory()});
  }
  VERGER_TRY(const auto outcome, search_->step(budget));
  if (outcome.kind == StepOutcome::Kind::kDone) {
    result_.searched_bytes = search_->bytes_done();
    VERGER_RETURN_IF_ERROR(check_all(search_->take_files()));
  }
  return outcome;
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
  for (const auto& each : plan.refused) {
    result_.found.push_back(fmt::format("not redacted again: {}", each));
  }
  VERGER_RETURN_IF_ERROR(take_copies(database->transaction_log(), plan));
  VERGER_RETURN_IF_ERROR(texts_.note(database->transaction_log(), plan, result_));
  VERGER_FAILPOINT("agent.restored-redaction.noted");
  return {};
}

Result<void> RestoredRedactionJob::take_copies(const log::TransactionLog& log,
                                               const redaction::RedactionPlan& plan) {
  Bytes buffer;
  for (const auto& chunk : plan.chunks) {
    redaction::CopyRequest copy{
        .directory = place_.database, .chunk_file = chunk.file, .records = {}};
    for (const auto index : chunk.records) {
      const auto& record = plan.records[index];
      if (chunk.active) {
        result_.found.push_back(
            fmt::format("not redacted again: {} is in {}, which is still written to: scavenge the "
                        "cluster, which completes it, and redact the event again",
                        redaction::name_of(record.stream, record.number), chunk.file));
        ++active_;
        continue;
      }
      VERGER_TRY(const auto read, log.read(record.position, buffer));
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
  result_.chunks.push_back({.from = former,
                            .to = next,
                            .records = copy.blanked,
                            .md5_before = copy.md5_before,
                            .md5_after = copy.md5_after,
                            .digest_before = copy.digest_before,
                            .digest_after = copy.digest_after});
  VERGER_FAILPOINT("agent.restored-redaction.switched");
  return {};
}

/// What a reader of the server would find at each of the list's positions, and in which events the
/// search has found something.
Result<void> RestoredRedactionJob::check_all(std::vector<redaction::SearchedFile> searched) {
  VERGER_TRY(const auto database, open_for_reading(place_, machine_));
  VERGER_TRY(const auto now,
             redaction::plan_redaction(machine_.files, *database, {.listed = list_}));
  std::size_t to_do = 0;
  for (const auto& chunk : now.chunks) {
    to_do += chunk.active ? 0 : chunk.records.size();
  }
  if (to_do > 0) {
    return Error{Errc::kCorruption, fmt::format("{}: {} events do not read as redacted",
                                                place_.database.string(), to_do)};
  }
  result_.read_blank = now.records.size() - now.to_do();
  texts_.complete_chunks(database->transaction_log(), result_);
  result_.searched_files = searched.size();
  VERGER_RETURN_IF_ERROR(redaction::name_events(database->transaction_log(), searched));
  keep_found(searched, result_);
  return {};
}

}  // namespace verger::agent
