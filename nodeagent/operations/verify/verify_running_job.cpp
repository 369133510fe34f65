#include "nodeagent/operations/verify/verify_running_job.h"

#include <fmt/format.h>
#include <utility>

#include "engine/log/chunk.h"

namespace verger::agent {
namespace {

/// More are only counted.
constexpr std::size_t kDamageListed = 100;
constexpr std::size_t kNotesListed = 20;
constexpr std::chrono::seconds kBetweenLooksAtRoom{30};
constexpr std::uint64_t kEntryBytes = 24;
/// Of detail/filters.cpp.
constexpr std::string_view kMissingStreams = "stream missing in the existence filter";

std::string shown_below(const Path& file, const Path& directory) {
  const auto below = file.lexically_relative(directory);
  return below.empty() || *below.begin() == ".." ? file.string() : below.string();
}

bool is_below(const Path& file, const Path& directory) {
  const auto below = file.lexically_relative(directory);
  return !below.empty() && *below.begin() != "..";
}

Remedy remedy_for(const Path& file, const Path& index_directory) {
  if (is_below(file, index_directory / "stream-existence")) {
    return Remedy::kFilter;
  }
  if (is_below(file, index_directory / "scavenging")) {
    return Remedy::kScavengeState;
  }
  return is_below(file, index_directory) ? Remedy::kIndex : Remedy::kRefill;
}

}  // namespace

std::string_view to_string(Remedy remedy) {
  switch (remedy) {
    case Remedy::kRefill:
      return "refill";
    case Remedy::kIndex:
      return "index";
    case Remedy::kFilter:
      return "filter";
    case Remedy::kScavengeState:
      return "scavenge-state";
  }
  return "refill";
}

VerifyRunningJob::VerifyRunningJob(FileSystem& files, Place place, Clock& clock, Log& log,
                                   std::uint64_t seed)
    : files_(files), place_(std::move(place)), clock_(clock), log_(log), random_(seed) {}
VerifyRunningJob::~VerifyRunningJob() = default;

Result<StepOutcome> VerifyRunningJob::step(Budget budget) {
  if (!job_) {
    VERGER_RETURN_IF_ERROR(begin());
    return StepOutcome{};
  }
  VERGER_RETURN_IF_ERROR(check_room());
  auto outcome = job_->step(budget);
  if (!outcome) {
    // What was replaced or cut meanwhile is no damage.
    job_.reset();
    VERGER_RETURN_IF_ERROR(running_->still_whole());
    return outcome.error();
  }
  if (outcome->kind == StepOutcome::Kind::kDone) {
    VERGER_RETURN_IF_ERROR(finish());
  }
  return outcome;
}

/// Tables that the server merges away, and chunks that it replaces, keep their space until they are
/// closed here. From time to time: no verification is worth a full disk.
Result<void> VerifyRunningJob::check_room() {
  const auto now = clock_.monotonic();
  if (now < next_look_at_room_) {
    return {};
  }
  next_look_at_room_ = now + kBetweenLooksAtRoom;
  if (auto in_place = running_->chunks_in_place(); !in_place) {
    job_.reset();
    running_.reset();
    return in_place;
  }
  const auto held = running_->held_bytes();
  const auto space = files_.space(place_.index_directory);
  if (held == 0 || !space || held <= space->available) {
    return {};
  }
  job_.reset();
  running_.reset();
  return Error{Errc::kNoSpace,
               fmt::format("{}: {} bytes are free, and index tables of {} bytes that the server no "
                           "longer needs were held open for the verification; it was ended",
                           place_.index_directory.string(), space->available, held)};
}

/// Entries beyond a number that fits into memory are sorted in files, and each merged once.
Result<void> VerifyRunningJob::check_scratch() const {
  const auto in_memory = verify::VerifyDatabaseOptions{}.events_in_memory * kEntryBytes;
  const auto needed = running_->table_bytes() < in_memory ? 0 : running_->table_bytes();
  const auto space = files_.space(place_.scratch);
  if (!space || space->available >= needed) {
    return {};
  }
  return Error{
      Errc::kNoSpace,
      fmt::format("{}: {} bytes are free, and about {} are needed for sorting; nothing was "
                  "looked at. Give the agent's state directory more room",
                  place_.scratch.string(), space->available, needed)};
}

Result<void> VerifyRunningJob::begin() {
  // What an agent that was killed left there.
  VERGER_TRY(const bool there, files_.exists(place_.scratch));
  if (there) {
    VERGER_TRY(const auto left, files_.list(place_.scratch));
    for (const auto& entry : left) {
      VERGER_RETURN_IF_ERROR(files_.remove(place_.scratch / entry.name));
    }
  }
  VERGER_TRY(running_, verify::RunningFiles::open(files_, place_.directory, place_.index_directory,
                                                  place_.scratch, random_));
  VERGER_RETURN_IF_ERROR(check_scratch());
  job_.emplace(*running_,
               verify::VerifyDatabaseOptions{.directory = place_.directory,
                                             .index_directory = place_.index_directory,
                                             .scratch = place_.scratch},
               clock_, random_, log_);
  return {};
}

Result<void> VerifyRunningJob::finish() {
  totals_ = job_->totals();
  const auto& findings = job_->findings();
  damage_count_ = static_cast<std::int64_t>(findings.damage_count());
  for (const auto& kind : findings.kinds()) {
    if (kind.name == kMissingStreams) {
      missing_streams_ = static_cast<std::int64_t>(kind.count);
    }
  }
  for (const auto& finding : findings.all()) {
    const auto shown = shown_below(finding.file, place_.directory);
    if (!finding.damage) {
      if (notes_.size() < kNotesListed) {
        notes_.push_back(fmt::format("{}: {}", shown, finding.text));
      }
    } else if (damage_.size() < kDamageListed) {
      damage_.push_back({.file = shown,
                         .offset = finding.offset,
                         .text = finding.text,
                         .remedy = remedy_for(finding.file, place_.index_directory)});
    }
  }
  job_.reset();
  auto whole = running_->still_whole();
  running_.reset();
  return whole;
}

JobProgress VerifyRunningJob::progress() const {
  if (!job_) {
    return {.phase = "opening the files"};
  }
  using Stage = verify::VerifyProgress::Stage;
  const auto seen = job_->progress();
  JobProgress out{.phase = "",
                  .done = static_cast<std::int64_t>(seen.done),
                  .total = static_cast<std::int64_t>(seen.total),
                  .unit = "bytes",
                  .bytes = static_cast<std::int64_t>(seen.bytes)};
  switch (seen.stage) {
    case Stage::kChunks:
      out.phase = "chunks";
      break;
    case Stage::kTables:
      out.phase = "tables";
      break;
    case Stage::kLog:
      out.phase = "log";
      break;
    case Stage::kIndex:
      out.phase = "index";
      out.unit = "entries";
      break;
    case Stage::kDone:
      out.phase = "scavenge state";
      out.done = -1;
      out.total = -1;
      out.unit.clear();
      break;
  }
  return out;
}

}  // namespace verger::agent
