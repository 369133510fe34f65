#include "engine/online/native_run.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/failpoint.h"
#include "engine/online/detail/shadow_files.h"
#include "engine/online/installation.h"
#include "engine/scavenge/scavenge_job.h"

namespace verger::online_scavenge {
namespace {

using scavenge::ScavengeJob;
using scavenge::ScavengeState;
using scavenge::Stage;

/// Notes what was executed.
struct Executed final : scavenge::ScavengeEvents {
  std::map<std::int32_t, scavenge::ChunkExecuted> by_start;
  void chunk_executed(const scavenge::ChunkExecuted& chunk) override {
    by_start[chunk.start] = chunk;
  }
};

std::set<Path> completed_files(FileSystem& files, const Path& shadow,
                               const log::TransactionLog& log) {
  std::set<Path> linked;
  for (const auto& chunk : log.chunks()) {
    if (chunk->completed()) {
      linked.insert(chunk->path());
    }
  }
  const auto index = shadow / "index";
  if (const auto entries = files.list(index)) {
    for (const auto& entry : *entries) {
      if (!entry.is_directory && entry.name != "indexmap") {
        linked.insert(index / entry.name);
      }
    }
  }
  return linked;
}

}  // namespace

struct NativeRunJob::State {
  Machine machine;
  DatabasePlace place;
  streams::ScavengePoint point;
  NativeRunOptions options;
  std::unique_ptr<scavenge::ParallelRunner> runner;

  State(const Machine& with, DatabasePlace where, const streams::ScavengePoint& to,
        const NativeRunOptions& how, std::unique_ptr<scavenge::ParallelRunner> in)
      : machine(with), place(std::move(where)), point(to), options(how), runner(std::move(in)) {}

  std::unique_ptr<detail::ShadowFiles> files;
  std::unique_ptr<log::TransactionLog> log;
  std::unique_ptr<index::Index> index;
  std::vector<ChunkFile> sources;
  Executed executed;
  std::unique_ptr<ScavengeJob> job;
  bool calculated = false;
  bool stop = false;
  Preparation preparation;
  Stage stage = Stage::kAccumulating;

  [[nodiscard]] Path shadow() const { return shadow_directory(place.database); }
  [[nodiscard]] Result<std::unique_ptr<ScavengeState>> open_state() const {
    return open_shadow_state(machine.files, place.database, options.hash, options.state);
  }

  Result<void> open();
  /// True: there is nothing to do here.
  Result<bool> begin();
  Result<void> start(Stage last);
  Result<void> keep_weights();
  Result<void> finish();
};

Result<void> NativeRunJob::State::open() {
  // Read-only at first: that changes nothing, and tells what is linked.
  VERGER_TRY(const auto looked,
             log::TransactionLog::open(machine.files, shadow(), {}, machine.clock, machine.random,
                                       machine.log));
  for (const auto& chunk : looked->chunks()) {
    if (chunk->completed()) {
      VERGER_TRY(auto described, describe_chunk(machine.files, chunk->path()));
      sources.push_back(std::move(described));
    }
  }
  files = std::make_unique<detail::ShadowFiles>(machine.files,
                                                completed_files(machine.files, shadow(), *looked));
  VERGER_TRY(log, log::TransactionLog::open(*files, shadow(),
                                            {.access = log::Access::kWrite, .assume_stopped = true},
                                            machine.clock, machine.random, machine.log));
  // Nothing of the index changes here: what is not in its tables yet is held in memory.
  VERGER_TRY(index, index::Index::open(*files, shadow_index(place.database), *log,
                                       {.read_only = true,
                                        .max_mem_table_size = options.max_mem_table_size,
                                        .stream_existence_filter_size = 0,
                                        .hash = options.hash},
                                       machine.clock, machine.random, machine.log));
  return {};
}

Result<bool> NativeRunJob::State::begin() {
  preparation.point = point;
  VERGER_TRY(const auto state, open_state());
  VERGER_TRY(const auto checkpoint, state->checkpoint());
  if (checkpoint) {
    preparation.checkpoint_before = scavenge::encode_checkpoint(*checkpoint);
    stage = checkpoint->stage;
    if (stage != Stage::kDone) {
      preparation.point = checkpoint->point;
    } else if (checkpoint->point.position >= point.position) {
      return true;
    } else {
      stage = Stage::kAccumulating;
    }
  }
  return stage > Stage::kExecutingChunks;
}

Result<void> NativeRunJob::State::start(Stage last) {
  VERGER_TRY(auto state, open_state());
  scavenge::ScavengeOptions with;
  with.threads = options.threads;
  with.state = options.state;
  with.last_stage = last;
  with.hash_in_background = options.hash_in_background;
  job = std::make_unique<ScavengeJob>(
      scavenge::ScavengeParts{*log, *index, *files, machine.clock, machine.random, machine.log},
      std::move(state), preparation.point, with, executed,
      runner ? *runner : scavenge::inline_runner());
  if (stop) {
    job->request_stop();
  }
  return {};
}

Result<void> NativeRunJob::State::keep_weights() {
  VERGER_TRY(const auto state, open_state());
  const auto last = log->chunk_of(preparation.point.position).value();
  for (std::int32_t chunk = 0; chunk <= last; ++chunk) {
    VERGER_TRY(const auto weight, state->weight(chunk, chunk));
    if (weight != 0) {
      preparation.weights[chunk] = weight;
    }
  }
  return {};
}

Result<void> NativeRunJob::State::finish() {
  for (const auto& [start, chunk] : executed.by_start) {
    const auto source = std::ranges::find_if(sources, [&](const ChunkFile& file) {
      return log::parse_chunk_file_name(file.name)->start.value() == start;
    });
    const auto made = log->chunk_at(LogPosition(std::int64_t{start} * log->chunk_size()));
    if (source == sources.end() || made == nullptr || made->end().value() != chunk.end) {
      return Error{Errc::kConflict,
                   fmt::format("{}: the chunk that was scavenged from {} on is not there",
                               shadow().string(), start)};
    }
    VERGER_TRY(auto described, describe_chunk(machine.files, made->path()));
    preparation.chunks.push_back({.start = start,
                                  .end = chunk.end,
                                  .source = *source,
                                  .made = std::move(described),
                                  .records_kept = chunk.records_kept,
                                  .records_removed = chunk.records_discarded});
  }
  index.reset();
  log.reset();
  VERGER_FAILPOINT("online.native.before-prepared");
  return store_preparation(machine.files, place.database, preparation);
}

NativeRunJob::NativeRunJob(const Machine& machine, DatabasePlace place,
                           const streams::ScavengePoint& point, NativeRunOptions options,
                           std::unique_ptr<scavenge::ParallelRunner> runner)
    : state_(
          std::make_unique<State>(machine, std::move(place), point, options, std::move(runner))) {}

NativeRunJob::~NativeRunJob() = default;

Result<StepOutcome> NativeRunJob::step(Budget budget) {
  auto& s = *state_;
  const StepOutcome done{StepOutcome::Kind::kDone, {}};
  if (s.stop) {
    return Error{Errc::kCancelled, "the scavenge was stopped"};
  }
  if (s.log == nullptr) {
    VERGER_RETURN_IF_ERROR(s.open());
    return StepOutcome{};
  }
  if (s.job == nullptr) {
    VERGER_TRY(const bool nothing, s.begin());
    if (nothing) {
      VERGER_RETURN_IF_ERROR(s.finish());
      return done;
    }
    VERGER_RETURN_IF_ERROR(s.start(Stage::kCalculating));
    return StepOutcome{};
  }
  VERGER_TRY(const auto outcome, s.job->step(budget));
  s.stage = s.job->progress().stage;
  if (outcome.kind != StepOutcome::Kind::kDone) {
    return outcome;
  }
  s.job.reset();
  if (!s.calculated) {
    s.calculated = true;
    VERGER_RETURN_IF_ERROR(s.keep_weights());
    VERGER_RETURN_IF_ERROR(s.start(Stage::kExecutingChunks));
    return StepOutcome{};
  }
  VERGER_RETURN_IF_ERROR(s.finish());
  return done;
}

void NativeRunJob::request_stop() {
  state_->stop = true;
  if (state_->job) {
    state_->job->request_stop();
  }
}

WorkProgress NativeRunJob::progress() const {
  if (state_->job == nullptr) {
    return {};
  }
  const auto& seen = state_->job->progress();
  const bool executes = seen.stage == Stage::kExecutingChunks;
  return {.done = seen.done,
          .total = seen.total,
          .unit = executes                             ? "bytes"
                  : seen.stage == Stage::kAccumulating ? "chunks"
                  : seen.stage == Stage::kCalculating  ? "streams"
                                                       : "",
          .bytes = executes ? seen.done : 0};
}

const Preparation& NativeRunJob::preparation() const { return state_->preparation; }
scavenge::Stage NativeRunJob::stage() const { return state_->stage; }

}  // namespace verger::online_scavenge
