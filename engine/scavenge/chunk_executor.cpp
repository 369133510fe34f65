#include "engine/scavenge/chunk_executor.h"

#include <algorithm>
#include <cmath>
#include <fmt/format.h>
#include <utility>

#include "engine/base/failpoint.h"
#include "engine/streams/stream_names.h"

namespace verger::scavenge {
namespace {

/// As the server writes it: no decimals, thousands separators.
std::string weight_text(double weight) {
  auto digits = fmt::format("{:.0f}", std::abs(weight));
  for (auto at = static_cast<int>(digits.size()) - 3; at > 0; at -= 3) {
    digits.insert(static_cast<std::size_t>(at), ",");
  }
  return (weight < 0 ? "-" : "") + digits;
}

}  // namespace

/// A chunk on its way into its new file.
struct ChunkExecutor::Work {
  std::unique_ptr<ChunkRewrite> rewrite;
  std::unique_ptr<LimitsReader> reader;
  double weight = 0;
  Monotonic started{};

  Result<bool> copy(std::uint32_t records) const { return rewrite->step(records, *reader); }
  Result<void> finish() const { return rewrite->finish(); }
  [[nodiscard]] std::int32_t start() const { return rewrite->source().start().value(); }
  [[nodiscard]] Error with_path(const Error& error) const {
    const auto path = rewrite->source().path().string();
    return error.message.starts_with(path) ? error : error.within(path);
  }
};

ChunkExecutor::ChunkExecutor(RunContext& context, ParallelRunner& runner,
                             std::optional<std::int32_t> done_chunk)
    : context_(context), files_(context, runner) {
  const auto size = std::int64_t{context_.parts.log.chunk_size()};
  next_ = LogPosition(done_chunk ? (std::int64_t{*done_chunk} + 1) * size : 0);
  last_end_ = done_chunk.value_or(-1);
  written_ = done_chunk;
  context_.progress.total = static_cast<std::uint64_t>(context_.point.position.value());
}

ChunkExecutor::~ChunkExecutor() = default;

Result<std::unique_ptr<LimitsReader>> ChunkExecutor::take_reader() {
  if (limits_ == nullptr) {
    VERGER_TRY(limits_,
               SharedLimits::load(context_.state, [this] { return context_.check_stop(); }));
  }
  if (readers_.empty()) {
    return std::make_unique<LimitsReader>(*limits_,
                                          context_.options.limits_cache / files_.at_once().most());
  }
  auto reader = std::move(readers_.back());
  readers_.pop_back();
  return reader;
}

Result<void> ChunkExecutor::check_numbers() {
  for (const auto& record : std::exchange(context_.without_number, {})) {
    const auto chunk = context_.parts.log.chunk_at(record.position);
    if (chunk == nullptr) {
      continue;
    }
    VERGER_TRY(const auto weight,
               context_.state.weight(chunk->start().value(), chunk->end().value()));
    if (!executes(weight)) {
      continue;
    }
    VERGER_TRY(const auto limits, context_.state.limits_of(record.stream));
    log::Prepare prepare;
    prepare.position = record.position;
    prepare.flags = log::prepare_flags::kIsCommitted;
    if (asks_for_number(prepare, streams::is_metastream(record.stream),
                        limits.value_or(StreamLimits{}), context_.rules())) {
      return without_number(record.stream, record.position, record.number)
          .within(chunk->path().string());
    }
  }
  return {};
}

bool ChunkExecutor::executes(double weight) const {
  return weight > context_.point.threshold || context_.options.unsafe_ignore_hard_delete;
}

Result<StepOutcome> ChunkExecutor::step(Budget budget) {
  VERGER_RETURN_IF_ERROR(context_.check_stop());
  VERGER_RETURN_IF_ERROR(check_numbers());
  VERGER_RETURN_IF_ERROR(begin_chunks());
  const bool last = under_way_.empty();
  files_.copy(budget.units, [this](Work& work) { readers_.push_back(std::move(work.reader)); });
  VERGER_RETURN_IF_ERROR(switch_in_finished());
  VERGER_TRY(const bool grown, write_checkpoint());
  if (last) {
    return StepOutcome{StepOutcome::Kind::kDone, {}};
  }
  if (grown && context_.options.threads == 1) {
    if (const auto rest = context_.throttle.rest_due(); rest.count() > 0) {
      return StepOutcome{StepOutcome::Kind::kRest, rest};
    }
  }
  return StepOutcome{};
}

Result<void> ChunkExecutor::begin_chunks() {
  while (next_ < context_.point.position && files_.allows_another(finished_.size())) {
    VERGER_RETURN_IF_ERROR(begin_chunk());
  }
  return {};
}

Result<void> ChunkExecutor::switch_in_finished() {
  for (bool first = true; auto taken = files_.take(/*may_wait=*/first); first = false) {
    auto& work = taken->file;
    if (!taken->outcome) {
      return work->with_path(taken->outcome.error());
    }
    const auto start = work->start();
    finished_.emplace(start, std::move(work));
  }
  while (!finished_.empty() && finished_.begin()->first == *under_way_.begin()) {
    VERGER_RETURN_IF_ERROR(switch_in(*finished_.begin()->second));
    context_.release(std::move(finished_.begin()->second));
    finished_.erase(finished_.begin());
    under_way_.erase(under_way_.begin());
  }
  return {};
}

Result<void> ChunkExecutor::begin_chunk() {
  while (next_ < context_.point.position) {
    auto chunk = context_.parts.log.chunk_at(next_);
    if (chunk == nullptr || !chunk->completed()) {
      return Error{Errc::kCorruption,
                   fmt::format("{}: the chunk at log position {} before the scavenge point is {}",
                               context_.parts.log.directory().string(), next_,
                               chunk == nullptr ? "missing" : "not completed")};
    }
    next_ = chunk->end_position();
    last_end_ = chunk->end().value();
    VERGER_TRY(const auto weight,
               context_.state.weight(chunk->start().value(), chunk->end().value()));
    const auto name = chunk->path().filename().string();
    if (executes(weight)) {
      context_.parts.out.info(
          fmt::format("SCAVENGING: executing {} with weight {}, chunks {}-{}, positions {} to {}",
                      name, weight_text(weight), chunk->start(), chunk->end(),
                      chunk->start_position(), chunk->end_position()));
      const ChunkRewrite::Names names{
          .temporary = context_.parts.random.uuid().to_string() + ".scavenge.tmp",
          .chunk_id = context_.parts.random.uuid()};
      auto work = std::make_unique<Work>();
      work->weight = weight;
      work->started = context_.parts.clock.monotonic();
      VERGER_TRY(work->reader, take_reader());
      const bool unchecked = context_.is_unchecked(*chunk);
      VERGER_TRY(work->rewrite, ChunkRewrite::start(context_.parts.files, context_.parts.log,
                                                    std::move(chunk), names, context_.rules(),
                                                    context_.parts.out, files_.at_once().hasher()));
      if (unchecked) {
        work->rewrite->compare_checksum(context_.options.hash_in_background);
      }
      under_way_.insert(work->start());
      files_.add(std::move(work));
      return {};
    }
    ++context_.progress.chunks_skipped;
    context_.parts.out.info(fmt::format("SCAVENGING: skipped {} with weight {}, threshold {}", name,
                                        weight_text(weight), context_.point.threshold));
    if (context_.options.threads == 1) {
      VERGER_RETURN_IF_ERROR(write_checkpoint());
      VERGER_RETURN_IF_ERROR(context_.check_stop());
    }
  }
  return {};
}

Result<void> ChunkExecutor::switch_in(const Work& work) {
  const auto& source = work.rewrite->source();
  const auto& finished = work.rewrite->finished();
  ChunkExecuted event;
  event.start = source.start().value();
  event.end = source.end().value();
  event.records_kept = work.rewrite->kept();
  event.records_discarded = work.rewrite->discarded();
  event.weight = work.weight;
  event.space_saved =
      static_cast<std::int64_t>(source.file_size()) - static_cast<std::int64_t>(finished.file_size);
  VERGER_TRY(const auto chunk, context_.parts.log.switch_in_chunk(finished.path));
  context_.note_own(*chunk);
  VERGER_FAILPOINT("scavenge.execute.after-switch");
  VERGER_RETURN_IF_ERROR(context_.state.reset_weights(event.start, event.end));
  VERGER_FAILPOINT("scavenge.execute.after-weight-reset");
  event.time_taken = (context_.parts.clock.monotonic() - work.started).count() / 100;
  context_.parts.out.debug(fmt::format(
      "SCAVENGING: executed chunks {}-{}: {} records kept, {} discarded, {} bytes before, {} after",
      event.start, event.end, event.records_kept, event.records_discarded, source.file_size(),
      finished.file_size));
  auto& progress = context_.progress;
  ++progress.chunks_executed;
  progress.records_kept += event.records_kept;
  progress.records_discarded += event.records_discarded;
  progress.space_saved += event.space_saved;
  progress.max_chunk_executed = std::max(progress.max_chunk_executed, event.end);
  context_.events.chunk_executed(event);
  return context_.unit_finished(Stage::kExecutingChunks, ++executed_);
}

Result<bool> ChunkExecutor::write_checkpoint() {
  auto done = last_end_;
  if (!under_way_.empty()) {
    done = std::min(done, *under_way_.begin() - 1);
  }
  if (done < 0 || (written_ && done <= *written_)) {
    return false;
  }
  VERGER_RETURN_IF_ERROR(context_.state.begin());
  VERGER_RETURN_IF_ERROR(context_.state.set_checkpoint({.point = context_.point,
                                                        .stage = Stage::kExecutingChunks,
                                                        .done_chunk = done,
                                                        .done_stream = {}}));
  VERGER_RETURN_IF_ERROR(context_.state.commit());
  written_ = done;
  context_.progress.done = static_cast<std::uint64_t>(done + 1) *
                           static_cast<std::uint64_t>(context_.parts.log.chunk_size());
  return true;
}

}  // namespace verger::scavenge
