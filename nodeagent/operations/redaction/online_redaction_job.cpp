#include "nodeagent/operations/redaction/online_redaction_job.h"

#include <algorithm>
#include <fmt/format.h>
#include <sys/stat.h>
#include <utility>

#include "engine/base/database_files.h"
#include "engine/base/failpoint.h"
#include "engine/redaction/found_in_events.h"
#include "nodeagent/operations/redaction/redaction_look.h"

namespace verger::agent {
namespace {

constexpr std::size_t kMostSearchRounds = 4;
/// Deeper than any database; a link that leads upwards ends.
constexpr int kMostSearchDepth = 16;

/// What is missing was scavenged away here. Superseded files are the server's to remove, and the
/// search reads them.
constexpr redaction::RedactionConsent kConsentBesideServer{.skip_missing = true,
                                                           .remove_leftovers = true};

std::string stamp_of(const FileSystem& files, const Path& path, std::uint64_t size) {
  struct stat found{};
  if (!is_machine_disk(files) || ::stat(path.c_str(), &found) != 0) {
    return fmt::format("{}", size);
  }
  return fmt::format("{}:{}:{}:{}", found.st_ino, found.st_size, found.st_mtim.tv_sec,
                     found.st_mtim.tv_nsec);
}

Result<void> add_stamps(FileSystem& files, const Path& directory, int depth,
                        std::map<Path, std::string>& into) {
  VERGER_TRY(const auto entries, files.list(directory));
  for (const auto& entry : entries) {
    const auto path = (directory / entry.name).lexically_normal();
    if (!entry.is_directory) {
      into[path] = stamp_of(files, path, entry.size);
      continue;
    }
    // One that is gone meanwhile has no files.
    auto below =
        depth < kMostSearchDepth ? add_stamps(files, path, depth + 1, into) : Result<void>();
    if (!below && below.error().code != Errc::kNotFound) {
      return below;
    }
  }
  return {};
}

}  // namespace

OnlineRedactionJob::OnlineRedactionJob(external::DatabasePlace place,
                                       const external::OfflineMachine& machine,
                                       std::vector<redaction::ListedRedaction> list,
                                       std::shared_ptr<NotedTextStore> store)
    : place_(std::move(place)),
      machine_(machine),
      list_(std::move(list)),
      texts_(std::move(store), list_, machine_.random, machine_.log) {
  result_.online = true;
}

void OnlineRedactionJob::begin_search() {
  phase_ = Phase::kSearch;
  search_.reset();
  searched_.clear();
  in_round_.clear();
  result_.search_rounds = 0;
}

void OnlineRedactionJob::begin_held() {
  phase_ = Phase::kHeld;
  search_.reset();
  result_.held.clear();
  result_.held_searched = 0;
}

Result<StepOutcome> OnlineRedactionJob::step(Budget budget) {
  const auto more = StepOutcome{.kind = StepOutcome::Kind::kMore};
  switch (phase_) {
    case Phase::kLook:
      VERGER_RETURN_IF_ERROR(look());
      phase_ = Phase::kIdle;
      break;
    case Phase::kSearch: {
      if (search_ == nullptr) {
        VERGER_RETURN_IF_ERROR(begin_round());
        return more;
      }
      VERGER_TRY(const auto outcome, search_->step(budget));
      if (outcome.kind == StepOutcome::Kind::kDone) {
        VERGER_RETURN_IF_ERROR(end_round());
      }
      return more;
    }
    case Phase::kReadAgain:
      VERGER_RETURN_IF_ERROR(read_again());
      phase_ = Phase::kIdle;
      break;
    case Phase::kHeld: {
      if (search_ == nullptr) {
        VERGER_RETURN_IF_ERROR(list_held());
        return more;
      }
      VERGER_TRY(const auto outcome, search_->step(budget));
      if (outcome.kind != StepOutcome::Kind::kDone) {
        return more;
      }
      end_held();
      phase_ = Phase::kIdle;
      break;
    }
    case Phase::kIdle:
      break;
  }
  return StepOutcome{.kind = StepOutcome::Kind::kDone};
}

JobProgress OnlineRedactionJob::progress() const {
  if (search_ == nullptr) {
    return {.phase = phase_ == Phase::kSearch || phase_ == Phase::kReadAgain
                         ? "reading the events again"
                         : "finding the events"};
  }
  JobProgress out{.phase = phase_ == Phase::kHeld ? "searching removed files that are held open"
                                                  : "searching for what is left"};
  out.done = static_cast<std::int64_t>(search_->bytes_done());
  out.total = static_cast<std::int64_t>(search_->bytes_total());
  out.unit = "bytes";
  out.bytes = out.done;
  return out;
}

std::vector<redaction::EventName> OnlineRedactionJob::events() const {
  std::vector<redaction::EventName> out;
  for (const auto& record : plan_.records) {
    redaction::EventName event{.stream = record.stream, .number = record.number};
    if (std::ranges::find(out, event) == out.end()) {
      out.push_back(std::move(event));
    }
  }
  return out;
}

std::set<LogPosition> OnlineRedactionJob::positions() const {
  std::set<LogPosition> out;
  for (const auto& record : plan_.records) {
    out.insert(record.position);
  }
  return out;
}

bool OnlineRedactionJob::metadata() const {
  return std::ranges::any_of(list_, &redaction::ListedRedaction::metadata);
}

Result<void> OnlineRedactionJob::look() {
  VERGER_TRY(const auto database, open_for_reading(place_, machine_));
  VERGER_TRY(plan_, redaction::plan_redaction(machine_.files, *database, {.listed = list_}));
  VERGER_RETURN_IF_ERROR(redaction::check_plan(plan_, kConsentBesideServer));
  if (const auto nameless =
          std::ranges::find(plan_.records, EventNumber(-1), &redaction::PlannedRecord::number);
      nameless != plan_.records.end()) {
    return Error{Errc::kRefused,
                 fmt::format("log position {}: of a transaction that was never committed, which "
                             "the server does not name: redact this node while it is stopped",
                             nameless->position)};
  }
  if (std::exchange(noted_, true)) {
    return {};
  }
  VERGER_RETURN_IF_ERROR(texts_.note(database->transaction_log(), plan_, result_));
  VERGER_FAILPOINT("agent.online-redaction.noted");
  return {};
}

std::vector<Path> OnlineRedactionJob::directories() const {
  return {place_.database, place_.index_directory()};
}

Result<OnlineRedactionJob::Stamps> OnlineRedactionJob::stamps() const {
  Stamps out;
  for (const auto& directory : directories()) {
    VERGER_RETURN_IF_ERROR(add_stamps(machine_.files, directory, 0, out));
  }
  return out;
}

/// Stamps are taken before the files are read, so that no write in between is missed.
Result<void> OnlineRedactionJob::begin_round() {
  const bool first = result_.search_rounds == 0;
  if (first) {
    VERGER_TRY(before_, stamps());
  }
  redaction::SearchedPlaces places{.directories = directories()};
  if (!first) {
    places.wanted = [this](const Path& path) { return in_round_.contains(path); };
  }
  search_ = std::make_unique<redaction::PlaintextSearchJob>(machine_.files, texts_.digests(),
                                                            std::move(places));
  return {};
}

Result<void> OnlineRedactionJob::end_round() {
  ++result_.search_rounds;
  result_.searched_bytes += search_->bytes_done();
  for (auto& file : search_->take_files()) {
    auto path = file.path;
    searched_.insert_or_assign(std::move(path), std::move(file));
  }
  search_.reset();
  VERGER_TRY(auto now, stamps());
  // What is gone has no name any longer; where a process has it open, that is looked at afterwards.
  std::erase_if(searched_, [&now](const auto& each) { return !now.contains(each.first); });
  in_round_.clear();
  for (const auto& [path, stamp] : now) {
    const auto known = before_.find(path);
    if (!searched_.contains(path) || known == before_.end() || known->second != stamp) {
      in_round_.insert(path);
    }
  }
  before_ = std::move(now);
  if (in_round_.empty() || result_.search_rounds == kMostSearchRounds) {
    phase_ = Phase::kReadAgain;
  }
  return {};
}

Result<void> OnlineRedactionJob::read_again() {
  result_.found.clear();
  result_.changing.clear();
  for (const auto& path : in_round_) {
    result_.changing.push_back(path.string());
  }
  std::vector<redaction::SearchedFile> files;
  files.reserve(searched_.size());
  for (auto& [path, file] : searched_) {
    files.push_back(std::move(file));
  }
  searched_.clear();
  result_.searched_files = files.size();
  VERGER_TRY(const auto database, open_for_reading(place_, machine_));
  VERGER_RETURN_IF_ERROR(redaction::name_events(database->transaction_log(), files));
  VERGER_TRY(const auto now,
             redaction::plan_redaction(machine_.files, *database, {.listed = list_}));
  // Fewer than before: a scavenge has removed some meanwhile.
  if (now.to_do() > 0) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: {} of {} events do not read as redacted",
                             place_.database.string(), now.to_do(), now.records.size())};
  }
  result_.read_blank = now.records.size();
  texts_.complete_chunks(database->transaction_log(), result_);
  keep_found(files, result_);
  VERGER_FAILPOINT("agent.online-redaction.searched");
  return {};
}

Result<void> OnlineRedactionJob::list_held() {
  holders_.clear();
  if (is_machine_disk(machine_.files)) {
    for (const auto& directory : directories()) {
      for (auto& file : held_files(directory)) {
        const bool known = std::ranges::any_of(holders_, [&file](const HeldFile& other) {
          return other.process == file.process && other.open_as == file.open_as &&
                 other.name.ends_with(file.name);
        });
        if (!known) {
          holders_.push_back(std::move(file));
        }
      }
    }
  }
  redaction::SearchedPlaces places;
  for (const auto& file : holders_) {
    if (!file.open_as.empty()) {
      places.files.push_back(file.open_as);
    }
  }
  search_ = std::make_unique<redaction::PlaintextSearchJob>(machine_.files, texts_.digests(),
                                                            std::move(places));
  return {};
}

void OnlineRedactionJob::end_held() {
  const auto files = search_->take_files();
  for (const auto& holder : holders_) {
    const auto file = std::ranges::find(files, holder.open_as, &redaction::SearchedFile::path);
    const bool is_clean = !holder.open_as.empty() && file != files.end() && file->problem.empty() &&
                          file->found.count == 0;
    if (is_clean) {
      ++result_.held_searched;
    } else {
      result_.held.push_back(holder.text());
    }
  }
  search_.reset();
}

}  // namespace verger::agent
