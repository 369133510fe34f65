#include "engine/scavenge/preview.h"

#include <fmt/format.h>

#include "engine/base/free_memory.h"
#include "engine/base/sqlite_copy.h"

namespace verger::scavenge {
namespace {

void remove_tree(FileSystem& files, const Path& directory) {
  const auto entries = files.list(directory);
  if (!entries) {
    return;
  }
  for (const auto& entry : *entries) {
    if (entry.is_directory) {
      remove_tree(files, directory / entry.name);
    } else {
      static_cast<void>(files.remove(directory / entry.name).has_value());
    }
  }
  // What cannot be removed only costs space in a directory for temporary files.
  static_cast<void>(files.remove(directory).has_value());
}

}  // namespace

Preview::Preview(const ScavengeParts& parts, FileSystem& scratch_files, Path directory,
                 ScavengeOptions options)
    : parts_(parts),
      scratch_files_(scratch_files),
      directory_(std::move(directory)),
      options_(options) {}

Preview::~Preview() {
  job_.reset();
  state_.reset();
  remove_tree(scratch_files_, directory_);
}

Result<std::unique_ptr<Preview>> Preview::open(const ScavengeParts& parts, Scratch scratch,
                                               ScavengeOptions options) {
  auto directory = scratch.directory / ("verger-preview-" + parts.random.uuid().to_string());
  auto preview =
      std::unique_ptr<Preview>(new Preview(parts, scratch.files, std::move(directory), options));
  const auto source = ScavengeState::path_in(parts.index.directory());
  const auto target = ScavengeState::path_in(preview->directory_);
  VERGER_RETURN_IF_ERROR(scratch.files.make_directories(target.parent_path()));
  VERGER_TRY(const bool there, parts.files.exists(source));
  if (there) {
    auto& page_size = preview->options_.state.page_size;
    VERGER_TRY(page_size, stored_page_size(parts.files, source, page_size));
    VERGER_RETURN_IF_ERROR(sqlite::copy_database(parts.files, source, scratch.files, target));
  }
  VERGER_RETURN_IF_ERROR(preview->open_state());
  VERGER_TRY(preview->checkpoint_, preview->state_->checkpoint());
  return preview;
}

Result<void> Preview::open_state() {
  VERGER_TRY(state_, ScavengeState::open(scratch_files_, directory_, parts_.index.options().hash,
                                         options_.state));
  return {};
}

void Preview::assume(EventNumber number, Ticks now, std::int32_t threshold) {
  // No record starts at the last byte of the log: everything in it lies before the point, and no
  // chunk has to exist behind it.
  const auto end = parts_.log.end();
  point_ = {.position = LogPosition(std::max<std::int64_t>(end.value() - 1, 0)),
            .number = number,
            .effective_now = now,
            .threshold = threshold};
  options_.assumed_point = true;
}

Result<std::uint64_t> Preview::state_bytes() const {
  const auto path = ScavengeState::path_in(directory_);
  VERGER_TRY(auto bytes, scratch_files_.file_size(path));
  if (const auto wal = scratch_files_.file_size(path.string() + "-wal"); wal) {
    bytes += *wal;
  }
  return bytes;
}

Stage Preview::stage() const {
  const bool unfinished = checkpoint_ && checkpoint_->stage != Stage::kDone;
  return unfinished ? std::max(checkpoint_->stage, Stage::kExecutingChunks)
                    : Stage::kExecutingChunks;
}

Result<void> Preview::start_job(Stage last) {
  last_stage_ = last;
  auto options = options_;
  options.stop_after = StopAfter{.stage = last, .nth = 0};
  options.throttle_percent = 100;
  options.compare_checksums = false;  // nothing is changed by what is found
  job_ = std::make_unique<ScavengeJob>(parts_, std::move(state_), point_, options, events_);
  return {};
}

Result<StepOutcome> Preview::step(Budget budget) {
  if (done_) {
    return StepOutcome{StepOutcome::Kind::kDone, {}};
  }
  if (job_ == nullptr) {
    const bool later = checkpoint_ && checkpoint_->stage != Stage::kDone &&
                       checkpoint_->stage > Stage::kCalculating;
    if (later) {
      point_ = checkpoint_->point;
      progress_.stage = checkpoint_->stage;
      done_ = true;
      return StepOutcome{StepOutcome::Kind::kDone, {}};
    }
    VERGER_RETURN_IF_ERROR(
        start_job(options_.assumed_point ? Stage::kAccumulating : Stage::kCalculating));
  }
  if (stop_) {
    job_->request_stop();
  }
  const auto outcome = job_->step(budget);
  progress_ = job_->progress();
  if (outcome) {
    return StepOutcome{};
  }
  const bool finished = outcome.error().code == Errc::kCancelled && !stop_;
  if (!finished) {
    return outcome.error();
  }
  point_ = job_->point();
  job_.reset();
  return_free_memory();  // of the state that it had open, for what follows
  VERGER_RETURN_IF_ERROR(open_state());
  if (last_stage_ == Stage::kAccumulating) {
    VERGER_RETURN_IF_ERROR(widen_last_range());
    VERGER_RETURN_IF_ERROR(start_job(Stage::kCalculating));
    return StepOutcome{};
  }
  done_ = true;
  return StepOutcome{StepOutcome::Kind::kDone, {}};
}

/// The point's own record would be in the chunk's range, too.
Result<void> Preview::widen_last_range() {
  const auto chunk = parts_.log.chunk_of(point_.position).value();
  VERGER_TRY(auto range, state_->time_range(chunk));
  if (!range) {
    range = TimeRange{point_.effective_now, point_.effective_now};
  }
  range->min = std::min(range->min, point_.effective_now);
  range->max = std::max(range->max, point_.effective_now);
  VERGER_RETURN_IF_ERROR(state_->begin());
  VERGER_RETURN_IF_ERROR(state_->set_time_range(chunk, *range));
  return state_->commit();
}

bool Preview::reaches(const log::Chunk& chunk) const {
  if (stage() != Stage::kExecutingChunks || chunk.start_position() >= point_.position) {
    return false;
  }
  const bool resumed = checkpoint_ && checkpoint_->stage == Stage::kExecutingChunks;
  return !resumed || !checkpoint_->done_chunk || chunk.end().value() > *checkpoint_->done_chunk;
}

Result<bool> Preview::executes(const log::Chunk& chunk, double& weight) {
  VERGER_TRY(weight, state_->weight(chunk.start().value(), chunk.end().value()));
  return reaches(chunk) && (weight > point_.threshold || options_.unsafe_ignore_hard_delete);
}

}  // namespace verger::scavenge
