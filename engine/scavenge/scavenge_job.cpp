#include "engine/scavenge/scavenge_job.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/base/failpoint.h"
#include "engine/base/free_memory.h"
#include "engine/scavenge/accumulator.h"
#include "engine/scavenge/calculator.h"
#include "engine/scavenge/chunk_executor.h"
#include "engine/scavenge/chunk_merger.h"
#include "engine/scavenge/cleaner.h"
#include "engine/scavenge/index_executor.h"
#include "engine/streams/stream_names.h"

namespace verger::scavenge {
namespace {

constexpr int kOldestTableVersion = 2;

}  // namespace

Result<void> check_table_versions(const index::Index& index) {
  for (const auto& slot : index.tables()) {
    if (slot.table->version() < kOldestTableVersion) {
      return Error{Errc::kUnsupported,
                   fmt::format("{}: an index table of version {} has 32-bit hashes; rebuild the "
                               "index first",
                               slot.table->path().string(), slot.table->version())};
    }
  }
  return {};
}

ScavengeJob::ScavengeJob(const ScavengeParts& parts, std::unique_ptr<ScavengeState> state,
                         const ScavengePoint& point, ScavengeOptions options,
                         ScavengeEvents& events, ParallelRunner& runner)
    : state_(std::move(state)),
      options_(options),
      runner_(runner),
      throttle_(parts.clock, options_.throttle_percent),
      context_{.parts = parts,
               .options = options_,
               .events = events,
               .state = *state_,
               .throttle = throttle_,
               .stop = stop_,
               .point = point,
               .progress = progress_} {}

ScavengeJob::~ScavengeJob() {
  task_.reset();
  state_->roll_back();
}

Result<StepOutcome> ScavengeJob::step(Budget budget) {
  auto outcome = [&]() -> Result<StepOutcome> {
    if (!started_) {
      VERGER_RETURN_IF_ERROR(start());
      started_ = true;
      if (is_over()) {
        return StepOutcome{StepOutcome::Kind::kDone, {}};
      }
    }
    VERGER_TRY(const auto stepped, task_->step(budget));
    if (stepped.kind != StepOutcome::Kind::kDone) {
      return stepped;
    }
    task_.reset();
    return_free_memory();  // stages need it for different things
    VERGER_RETURN_IF_ERROR(context_.unit_finished(progress_.stage, 0));
    VERGER_RETURN_IF_ERROR(next_stage());
    return StepOutcome{is_over() ? StepOutcome::Kind::kDone : StepOutcome::Kind::kMore, {}};
  }();
  if (!outcome || outcome->kind == StepOutcome::Kind::kDone) {
    task_.reset();
    context_.releases.reset();  // all replaced files are gone
  }
  if (!outcome) {
    state_->roll_back();
  }
  return outcome;
}

bool ScavengeJob::is_over() const {
  return progress_.stage == Stage::kDone ||
         (options_.last_stage && progress_.stage > *options_.last_stage);
}

Result<void> ScavengeJob::start() {
  if (options_.threads < 1 || options_.threads > 4 || options_.throttle_percent < 1 ||
      options_.throttle_percent > 100 ||
      (options_.threads > 1 && options_.throttle_percent != 100)) {
    return Error{Errc::kInvalidArgument,
                 "threads must be 1 to 4 and throttle percent 1 to 100; with more than one thread "
                 "it must be 100"};
  }
  VERGER_RETURN_IF_ERROR(check_table_versions(context_.parts.index));
  report_collisions();
  VERGER_TRY(const auto checkpoint, state_->checkpoint());
  if (!checkpoint) {
    VERGER_RETURN_IF_ERROR(check_point_record());
    return enter(Stage::kAccumulating, std::nullopt, std::nullopt, true);
  }
  if (checkpoint->stage == Stage::kDone) {
    // Not by their numbers: a log that has lost its points begins to count again.
    if (checkpoint->point.position >= context_.point.position) {
      return Error{Errc::kRefused,
                   fmt::format("scavenge point {} at log position {} is reached already: the last "
                               "finished one is {} at {}",
                               context_.point.number, context_.point.position,
                               checkpoint->point.number, checkpoint->point.position)};
    }
    VERGER_RETURN_IF_ERROR(check_point_record());
    return enter(Stage::kAccumulating, context_.chunk_of(checkpoint->point.position), std::nullopt,
                 true);
  }
  if (checkpoint->point.number != context_.point.number ||
      checkpoint->point.position != context_.point.position) {
    return Error{
        Errc::kRefused,
        fmt::format("the scavenge of point {} at log position {} is unfinished (stage {}): "
                    "finish it before point {}",
                    checkpoint->point.number, checkpoint->point.position,
                    to_string(checkpoint->stage), context_.point.number)};
  }
  context_.point = checkpoint->point;
  VERGER_RETURN_IF_ERROR(check_point_record());
  return enter(checkpoint->stage, checkpoint->done_chunk, checkpoint->done_stream, false);
}

Result<void> ScavengeJob::check_point_record() {
  if (options_.assumed_point) {
    return {};
  }
  Bytes buffer;
  const auto& log = context_.parts.log;
  auto record = log.read(context_.point.position, buffer);
  if (record) {
    const auto* prepare = record->prepare();
    if (prepare != nullptr && prepare->stream == streams::kScavengePointsStream) {
      return {};
    }
  } else if (record.error().code != Errc::kNotFound && record.error().code != Errc::kCorruption) {
    return record.error();
  }
  return Error{Errc::kRefused,
               fmt::format("{}: there is no scavenge point at log position {}: the point, or the "
                           "state in index/scavenging, belongs to another database",
                           log.directory().string(), context_.point.position)};
}

Result<void> ScavengeJob::enter(Stage stage, std::optional<std::int32_t> done_chunk,
                                std::optional<StreamHandle> done_stream, bool write_checkpoint) {
  if (write_checkpoint) {
    VERGER_RETURN_IF_ERROR(state_->begin());
    VERGER_RETURN_IF_ERROR(state_->set_checkpoint(
        {.point = context_.point, .stage = stage, .done_chunk = done_chunk}));
    if (stage == Stage::kDone) {
      VERGER_FAILPOINT("scavenge.done.before-commit");
    }
    VERGER_RETURN_IF_ERROR(state_->commit());
    if (stage >= Stage::kExecutingChunks) {
      // From here on chunks and tables change. What that rests on must not be lost to a power cut:
      // a run from an earlier stage would see other time ranges and weights.
      VERGER_RETURN_IF_ERROR(state_->make_durable());
    } else if (options_.last_stage && stage > *options_.last_stage) {
      VERGER_RETURN_IF_ERROR(state_->make_durable());
    }
  }
  progress_.stage = stage;
  progress_.done = 0;
  progress_.total = 0;
  stage_shown_.store(stage, std::memory_order_relaxed);
  if (is_over() && stage != Stage::kDone) {
    return {};
  }
  context_.events.stage_started(stage);
  switch (stage) {
    case Stage::kAccumulating:
      task_ = std::make_unique<Accumulator>(context_, done_chunk);
      break;
    case Stage::kCalculating:
      task_ = std::make_unique<Calculator>(context_, std::move(done_stream));
      break;
    case Stage::kExecutingChunks:
      task_ = std::make_unique<ChunkExecutor>(context_, runner_, done_chunk);
      break;
    case Stage::kMergingChunks:
      task_ = std::make_unique<ChunkMerger>(context_, runner_);
      break;
    case Stage::kExecutingIndex:
      task_ = std::make_unique<IndexExecutor>(context_);
      break;
    case Stage::kCleaning:
      task_ = std::make_unique<Cleaner>(context_);
      break;
    case Stage::kDone:
      break;
  }
  return {};
}

void ScavengeJob::report_collisions() {
  const auto names = state_->collisions();
  context_.parts.out.debug(fmt::format("SCAVENGING: {} streams are known to share their hash{}{}",
                                       names.size(), names.empty() ? "" : ": ",
                                       fmt::join(names, ", ")));
}

Result<void> ScavengeJob::next_stage() {
  const auto next = static_cast<Stage>(static_cast<int>(progress_.stage) + 1);
  if (progress_.stage == Stage::kAccumulating || next == Stage::kDone) {
    report_collisions();
  }
  return enter(next, std::nullopt, std::nullopt, true);
}

}  // namespace verger::scavenge
