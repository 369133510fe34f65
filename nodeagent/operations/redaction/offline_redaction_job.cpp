#include "nodeagent/operations/redaction/offline_redaction_job.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

#include "engine/base/failpoint.h"
#include "engine/log/pending_truncation.h"
#include "engine/redaction/found_in_events.h"
#include "nodeagent/operations/redaction/held_files.h"
#include "nodeagent/operations/redaction/redaction_look.h"

namespace verger::agent {
namespace {

/// What is missing was scavenged away here; superseded and temporary files would go with the start
/// of the server that follows.
constexpr redaction::RedactionConsent kConsent{.skip_missing = true, .remove_leftovers = true};

}  // namespace

OfflineRedactionJob::OfflineRedactionJob(external::OfflineServer& server,
                                         std::vector<redaction::ListedRedaction> list,
                                         std::shared_ptr<NotedTextStore> store)
    : server_(server),
      machine_(server.machine()),
      list_(std::move(list)),
      texts_(std::move(store), list_, machine_.random, machine_.log) {}

Result<StepOutcome> OfflineRedactionJob::step(Budget budget) {
  switch (phase_) {
    case Phase::kPlanning:
      VERGER_RETURN_IF_ERROR(make_plan());
      break;
    case Phase::kBlanking: {
      VERGER_TRY(const auto outcome, blanking_->step(budget));
      if (outcome.kind == StepOutcome::Kind::kDone) {
        VERGER_RETURN_IF_ERROR(end_blanking());
      }
      break;
    }
    case Phase::kSearching: {
      VERGER_TRY(const auto outcome, search_->step(budget));
      if (outcome.kind == StepOutcome::Kind::kDone) {
        VERGER_RETURN_IF_ERROR(end_searching());
      }
      break;
    }
    case Phase::kDone:
      break;
  }
  return StepOutcome{.kind = phase_ == Phase::kDone ? StepOutcome::Kind::kDone
                                                    : StepOutcome::Kind::kMore};
}

JobProgress OfflineRedactionJob::progress() const {
  JobProgress out{.phase = "finding the events"};
  if (phase_ == Phase::kBlanking) {
    out.phase = "redacting";
    out.done = static_cast<std::int64_t>(blanking_->progress().bytes_done);
    out.total = static_cast<std::int64_t>(blanking_->progress().bytes_total);
  } else if (phase_ == Phase::kSearching) {
    out.phase = "searching for what is left";
    out.done = static_cast<std::int64_t>(search_->bytes_done());
    out.total = static_cast<std::int64_t>(search_->bytes_total());
  } else {
    return out;
  }
  out.unit = "bytes";
  out.bytes = out.done;
  return out;
}

Result<void> OfflineRedactionJob::make_plan() {
  VERGER_TRY(const auto pending, log::pending_truncation(machine_.files, server_.place().database));
  if (pending.value() >= 0) {
    return Error{Errc::kRefused,
                 fmt::format("{}: the log is to be cut to {} at the server's next start; nothing "
                             "was changed: repeat the redaction after that",
                             (server_.place().database / "truncate.chk").string(), pending)};
  }
  {
    VERGER_TRY(const auto database, open_for_reading(server_.place(), machine_));
    VERGER_TRY(plan_, redaction::plan_redaction(machine_.files, *database, {.listed = list_}));
    VERGER_RETURN_IF_ERROR(redaction::check_plan(plan_, kConsent));
    VERGER_RETURN_IF_ERROR(texts_.note(database->transaction_log(), plan_, result_));
    VERGER_FAILPOINT("agent.redaction.noted");
  }
  for (const auto& leftover : plan_.leftovers) {
    result_.removed.push_back(leftover.name);
  }
  if (plan_.to_do() > 0 || !plan_.leftovers.empty()) {
    return begin_blanking();
  }
  // An earlier job may have ended between the removal of a file and its sync.
  VERGER_RETURN_IF_ERROR(machine_.files.sync_directory(server_.place().database));
  begin_searching();
  return {};
}

Result<void> OfflineRedactionJob::begin_blanking() {
  log::LogOptions options;
  options.access = log::Access::kWrite;
  VERGER_TRY(log_, log::TransactionLog::open(machine_.files, server_.place().database, options,
                                             machine_.clock, machine_.random, machine_.log));
  blanking_ = std::make_unique<redaction::RedactionJob>(machine_.files, *log_, plan_, kConsent,
                                                        machine_.random, machine_.log);
  phase_ = Phase::kBlanking;
  return {};
}

Result<void> OfflineRedactionJob::end_blanking() {
  result_.chunks = blanking_->chunks();
  // Closed before the search: nothing of ours holds a former file open.
  blanking_.reset();
  log_.reset();
  VERGER_FAILPOINT("agent.redaction.blanked");
  begin_searching();
  return {};
}

void OfflineRedactionJob::begin_searching() {
  // Also those that an attempt which was killed has blanked.
  result_.blanked = result_.records - result_.already;
  if (!texts_.can_search()) {
    phase_ = Phase::kDone;
    return;
  }
  const auto& place = server_.place();
  search_ = std::make_unique<redaction::PlaintextSearchJob>(
      machine_.files, texts_.digests(), std::vector<Path>{place.database, place.index_directory()});
  phase_ = Phase::kSearching;
}

Result<void> OfflineRedactionJob::end_searching() {
  auto files = search_->take_files();
  result_.searched_files = files.size();
  result_.searched_bytes = search_->bytes_done();
  {
    VERGER_TRY(const auto database, open_for_reading(server_.place(), machine_));
    VERGER_RETURN_IF_ERROR(redaction::name_events(database->transaction_log(), files));
    VERGER_TRY(const auto now,
               redaction::plan_redaction(machine_.files, *database, {.listed = list_}));
    if (now.to_do() > 0 || now.records.size() != plan_.records.size()) {
      return Error{Errc::kCorruption, fmt::format("{}: {} of {} events do not read as redacted",
                                                  server_.place().database.string(), now.to_do(),
                                                  plan_.records.size())};
    }
    result_.read_blank = now.records.size();
    texts_.complete_chunks(database->transaction_log(), result_);
  }
  keep_found(files, result_);
  for (const auto& directory : {server_.place().database, server_.place().index_directory()}) {
    for (auto& name : removed_and_held(directory)) {
      if (std::ranges::find(result_.held, name) == result_.held.end()) {
        result_.held.push_back(std::move(name));
      }
    }
  }
  search_.reset();
  phase_ = Phase::kDone;
  return {};
}

}  // namespace verger::agent
