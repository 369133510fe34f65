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

struct ChunkExecutor::Slot {
  std::optional<LimitsReader> reader;     ///< from its first chunk on
  std::unique_ptr<ChunkRewrite> rewrite;  ///< nullptr: idle
  double weight = 0;
  Monotonic started{};
  Result<bool> outcome = false;  ///< of the latest step: whether the new file is complete
};

ChunkExecutor::ChunkExecutor(RunContext& context, ParallelRunner& runner,
                             std::optional<std::int32_t> done_chunk)
    : context_(context), runner_(runner), files_(context) {
  const auto size = std::int64_t{context.parts.log.chunk_size()};
  next_ = LogPosition(done_chunk ? (std::int64_t{*done_chunk} + 1) * size : 0);
  last_end_ = done_chunk.value_or(-1);
  written_ = done_chunk;
  for (std::size_t n = 0; n < files_.most(); ++n) {
    slots_.push_back(std::make_unique<Slot>());
  }
  context_.progress.total = static_cast<std::uint64_t>(context_.point.position.value());
}

ChunkExecutor::~ChunkExecutor() = default;

Result<void> ChunkExecutor::give_limits(Slot& slot) {
  if (limits_ == nullptr) {
    VERGER_TRY(limits_,
               SharedLimits::load(context_.state, [this] { return context_.check_stop(); }));
  }
  if (!slot.reader) {
    slot.reader.emplace(*limits_, context_.options.limits_cache / slots_.size());
  }
  return {};
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
  VERGER_RETURN_IF_ERROR(fill_slots());
  std::vector<std::function<void()>> pieces;
  for (auto& slot : slots_) {
    if (slot->rewrite != nullptr && !*slot->outcome) {
      pieces.emplace_back(
          [&slot, budget] { slot->outcome = slot->rewrite->step(budget.units, *slot->reader); });
    }
  }
  if (pieces.empty()) {
    VERGER_TRY(const bool ignored, write_checkpoint());
    static_cast<void>(ignored);
    return StepOutcome{StepOutcome::Kind::kDone, {}};
  }
  runner_.run(pieces);
  VERGER_RETURN_IF_ERROR(finish_slots());
  VERGER_TRY(const bool grown, write_checkpoint());
  if (grown && context_.options.threads == 1) {
    if (const auto rest = context_.throttle.rest_due(); rest.count() > 0) {
      return StepOutcome{StepOutcome::Kind::kRest, rest};
    }
  }
  return StepOutcome{};
}

Result<void> ChunkExecutor::fill_slots() {
  auto busy = static_cast<std::size_t>(
      std::ranges::count_if(slots_, [](const auto& slot) { return slot->rewrite != nullptr; }));
  for (auto& slot : slots_) {
    if (slot->rewrite == nullptr && next_ < context_.point.position && files_.allows(busy)) {
      VERGER_RETURN_IF_ERROR(fill(*slot));
      ++busy;
    }
  }
  return {};
}

Result<void> ChunkExecutor::finish_slots() {
  for (const auto& slot : slots_) {
    if (slot->rewrite != nullptr && !slot->outcome) {
      const auto& error = slot->outcome.error();
      const auto file = slot->rewrite->source().path().string();
      return error.message.starts_with(file) ? error : error.within(file);
    }
  }
  for (;;) {
    Slot* first = nullptr;
    for (const auto& slot : slots_) {
      if (slot->rewrite != nullptr && (first == nullptr || slot->rewrite->source().start() <
                                                               first->rewrite->source().start())) {
        first = slot.get();
      }
    }
    if (first == nullptr || !*first->outcome) {
      return {};
    }
    VERGER_RETURN_IF_ERROR(finish(*first));
  }
}

Result<void> ChunkExecutor::fill(Slot& slot) {
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
      VERGER_RETURN_IF_ERROR(give_limits(slot));
      const ChunkRewrite::Names names{
          .temporary = context_.parts.random.uuid().to_string() + ".scavenge.tmp",
          .chunk_id = context_.parts.random.uuid()};
      slot.weight = weight;
      slot.started = context_.parts.clock.monotonic();
      const bool unchecked = context_.is_unchecked(*chunk);
      VERGER_TRY(slot.rewrite,
                 ChunkRewrite::start(context_.parts.files, context_.parts.log, std::move(chunk),
                                     names, context_.rules(), context_.parts.out, files_.hasher()));
      slot.outcome = false;
      if (unchecked) {
        slot.rewrite->compare_checksum(context_.options.hash_in_background);
      }
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

Result<void> ChunkExecutor::finish(Slot& slot) {
  const auto rewrite = std::move(slot.rewrite);
  const auto& source = rewrite->source();
  const auto& finished = rewrite->finished();
  ChunkExecuted event;
  event.start = source.start().value();
  event.end = source.end().value();
  event.records_kept = rewrite->kept();
  event.records_discarded = rewrite->discarded();
  event.weight = slot.weight;
  event.space_saved =
      static_cast<std::int64_t>(source.file_size()) - static_cast<std::int64_t>(finished.file_size);
  VERGER_TRY(const auto chunk, context_.parts.log.switch_in_chunk(finished.path));
  context_.note_own(*chunk);
  VERGER_FAILPOINT("scavenge.execute.after-switch");
  VERGER_RETURN_IF_ERROR(context_.state.reset_weights(event.start, event.end));
  VERGER_FAILPOINT("scavenge.execute.after-weight-reset");
  event.time_taken = (context_.parts.clock.monotonic() - slot.started).count() / 100;
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
  for (const auto& slot : slots_) {
    if (slot->rewrite != nullptr) {
      done = std::min(done, slot->rewrite->source().start().value() - 1);
    }
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
