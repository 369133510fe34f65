#include "nodeagent/operations/scavenge/estimate_job.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/directories.h"
#include "engine/scavenge/scavenge_state.h"

namespace verger::agent {
namespace {

using std::chrono::milliseconds;

/// A plan waits for it, and a person for the plan.
constexpr std::chrono::seconds kLongest{25};
/// A copy of more would take a good part of that, in one piece.
constexpr std::uint64_t kLargestState = std::uint64_t{512} << 20U;

/// A directory of temporary files, and all in it.
void clear_tree(FileSystem& files, const Path& directory) {
  const auto entries = files.list(directory);
  if (!entries) {
    return;
  }
  for (const auto& entry : *entries) {
    if (entry.is_directory) {
      clear_tree(files, directory / entry.name);
    }
    // What cannot be removed only costs space.
    static_cast<void>(files.remove(directory / entry.name).has_value());
  }
}

}  // namespace

EstimateRunningJob::EstimateRunningJob(external::DatabaseReading reading, Path scratch,
                                       Wanted wanted)
    : reading_(std::move(reading)), scratch_(std::move(scratch)), wanted_(wanted) {}
EstimateRunningJob::~EstimateRunningJob() = default;

Result<StepOutcome> EstimateRunningJob::step(Budget budget) {
  const auto before = reading_.clock.monotonic();
  if (!began_) {
    began_ = before;
  }
  if (before - *began_ > kLongest) {
    return Error{Errc::kTimeout,
                 fmt::format("to count what would go takes longer than {} s", kLongest.count())};
  }
  VERGER_TRY(const bool is_done, work(budget));
  const auto after = reading_.clock.monotonic();
  if (is_done) {
    seconds_ = std::chrono::ceil<std::chrono::seconds>(after - *began_).count();
    count_.reset();
    preview_.reset();
    database_.reset();
    return StepOutcome{.kind = StepOutcome::Kind::kDone};
  }
  // As long as it has worked: the server has the disk half of the time at least.
  const auto rest = std::chrono::ceil<milliseconds>(after - before);
  return rest.count() == 0 ? StepOutcome{}
                           : StepOutcome{.kind = StepOutcome::Kind::kRest, .rest = rest};
}

Result<bool> EstimateRunningJob::work(Budget budget) {
  if (preview_ == nullptr) {
    VERGER_RETURN_IF_ERROR(open());
    return false;
  }
  if (count_ == nullptr) {
    VERGER_TRY(const auto outcome, preview_->step(budget));
    if (outcome.kind == StepOutcome::Kind::kDone) {
      count_ = std::make_unique<scavenge::EstimateJob>(*preview_, /*top=*/1);
    }
    return false;
  }
  VERGER_TRY(const auto outcome, count_->step(budget));
  const bool is_done = outcome.kind == StepOutcome::Kind::kDone;
  removed_ = count_->removed_so_far();
  at_least_ = !is_done && removed_.bytes >= static_cast<std::uint64_t>(wanted_.enough);
  return is_done || at_least_;
}

Result<void> EstimateRunningJob::open() {
  auto& files = reading_.files;
  const auto state =
      files.file_size(scavenge::ScavengeState::path_in(reading_.place.index_directory()));
  if (state && *state > kLargestState) {
    return Error{Errc::kUnavailable,
                 fmt::format("its scavenge state has {} bytes, too many for a copy", *state)};
  }
  clear_tree(files, scratch_);
  VERGER_RETURN_IF_ERROR(make_directories_durably(files, scratch_));
  VERGER_TRY(database_, reading_.open());
  VERGER_TRY(preview_,
             scavenge::Preview::open({database_->transaction_log(), database_->stream_index(),
                                      files, reading_.clock, reading_.random, reading_.log},
                                     {files, scratch_}, {}));
  const auto& checkpoint = preview_->checkpoint();
  if (checkpoint && checkpoint->stage != scavenge::Stage::kDone) {
    return Error{Errc::kUnavailable, "a scavenge of it is unfinished"};
  }
  VERGER_TRY(const auto points, streams::scavenge_points(*database_));
  preview_->assume(EventNumber(points.empty() ? 0 : points.back().number.value() + 1),
                   reading_.clock.now(), wanted_.threshold);
  return {};
}

}  // namespace verger::agent
