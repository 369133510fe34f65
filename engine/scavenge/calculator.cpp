#include "engine/scavenge/calculator.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "engine/base/failpoint.h"

namespace verger::scavenge {
namespace {

constexpr std::int64_t kSliceSize = 8192;
constexpr std::uint64_t kInfosBetweenRests = 1024;
constexpr std::size_t kPageSize = 1024;
/// Number of a tombstone in the index of old databases.
constexpr EventNumber kOldTombstone{std::numeric_limits<std::int32_t>::max()};

}  // namespace

Calculator::Calculator(RunContext& context, std::optional<StreamHandle> done)
    : context_(context),
      index_(context.parts.index, context.parts.log, context.point.position),
      done_(std::move(done)) {}

Result<StepOutcome> Calculator::step(Budget budget) {
  std::uint64_t units = 0;
  while (units < budget.units) {
    if (!in_stream_) {
      VERGER_TRY(const bool more, next_row());
      if (!more) {
        if (in_batch_) {
          VERGER_CHECK(finish_batch());
        }
        VERGER_CHECK(context_.check_stop());
        return StepOutcome{StepOutcome::Kind::kDone, {}};
      }
      VERGER_CHECK(start_stream());
    }
    VERGER_TRY(const bool finished, walk_slice());
    units += infos_.size() + 1;
    if (finished) {
      VERGER_CHECK(finish_stream());
    }
    infos_since_rest_ += infos_.size() + 1;
    if (infos_since_rest_ >= kInfosBetweenRests) {
      infos_since_rest_ = 0;
      VERGER_CHECK(context_.check_stop());
      if (const auto rest = context_.throttle.rest_due(); rest.count() > 0) {
        return StepOutcome{StepOutcome::Kind::kRest, rest};
      }
    }
  }
  return StepOutcome{};
}

Result<bool> Calculator::next_row() {
  if (row_ < rows_.size()) {
    return true;
  }
  VERGER_TRY(rows_, context_.state.active_streams(done_ ? &*done_ : nullptr, kPageSize));
  row_ = 0;
  return !rows_.empty();
}

Result<void> Calculator::start_stream() {
  if (!in_batch_) {
    VERGER_CHECK(context_.state.begin());
    in_batch_ = true;
    batch_size_ = 0;
    weights_.clear();
  }
  const auto& row = rows_[row_];
  VERGER_TRY(last_, index_.last_number(row.handle));
  cutoff_.reset();
  if (row.data.max_age_seconds) {
    cutoff_ = cutoff_of(context_.point.effective_now, *row.data.max_age_seconds);
  }
  slice_ = 0;
  walk_ = {};
  in_stream_ = true;
  return {};
}

Result<bool> Calculator::walk_slice() {
  const auto& row = rows_[row_];
  VERGER_CHECK(index_.forward(row.handle, slice_, kSliceSize, infos_));
  const auto end = slice_ > std::numeric_limits<std::int64_t>::max() - kSliceSize
                       ? std::numeric_limits<std::int64_t>::max()
                       : slice_ + kSliceSize - 1;
  if (infos_.empty()) {
    VERGER_TRY(const auto next, index_.next(row.handle, EventNumber(end)));
    if (!next) {
      return true;
    }
    slice_ = next->value();
    return false;
  }
  for (const auto& info : infos_) {
    VERGER_TRY(const auto decision, decide(info));
    if (const int weight = walk_.add(info.number, decision); weight != 0) {
      weights_[context_.chunk_of(info.position)] += weight;
    }
    if (walk_.stopped()) {
      return true;
    }
  }
  if (end == std::numeric_limits<std::int64_t>::max()) {
    return true;
  }
  slice_ = end + 1;
  return false;
}

Result<EventDecision> Calculator::decide(const index::IndexEntry& entry) {
  const auto& stream = rows_[row_].data;
  if (entry.number >= last_) {
    return EventDecision::kKeep;  // the last event always stays
  }
  if (stream.tombstoned) {
    if (entry.number == kOldTombstone) {
      VERGER_TRY(const bool tombstone, index_.is_tombstone(entry.position));
      if (tombstone) {
        return EventDecision::kKeep;
      }
    }
    return EventDecision::kDiscard;
  }
  if (discarded_by_number(stream, entry.number, last_)) {
    return EventDecision::kDiscard;
  }
  if (!cutoff_) {
    return EventDecision::kKeep;
  }
  VERGER_TRY(const auto* range, range_of(context_.chunk_of(entry.position)));
  return decide_by_age(*range, *cutoff_);
}

Result<const std::optional<TimeRange>*> Calculator::range_of(std::int32_t chunk) {
  auto found = ranges_.find(chunk);
  if (found == ranges_.end()) {
    VERGER_TRY(auto range, context_.state.time_range(chunk));
    found = ranges_.emplace(chunk, range).first;
  }
  return &found->second;
}

Result<void> Calculator::finish_stream() {
  const auto& row = rows_[row_];
  if (walk_.started() && !walk_.stopped()) {
    return Error{Errc::kCorruption,
                 fmt::format("the index has no entry for the last event ({}) of the stream with "
                             "hash {:016x}: rebuild the index",
                             last_, row.handle.hash.value())};
  }
  const auto status = status_after_calculation(row.data, last_);
  const auto discard = either(walk_.discard(), row.data.discard);
  const auto maybe = either(walk_.maybe(), row.data.maybe);
  if (status != row.data.status || discard != row.data.discard || maybe != row.data.maybe) {
    VERGER_CHECK(context_.state.set_calculated(row.handle, status, discard, maybe));
  }
  done_ = row.handle;
  ++row_;
  in_stream_ = false;
  ++batch_size_;
  context_.progress.done = ++streams_;
  ++context_.progress.streams_calculated;
  VERGER_CHECK(context_.unit_finished(Stage::kCalculating, streams_));
  return batch_size_ == context_.options.calculation_batch ? finish_batch() : Result<void>{};
}

Result<void> Calculator::finish_batch() {
  for (const auto& [chunk, weight] : weights_) {
    VERGER_CHECK(context_.state.add_weight(chunk, weight));
  }
  VERGER_CHECK(context_.state.set_checkpoint({.point = context_.point,
                                              .stage = Stage::kCalculating,
                                              .done_chunk = {},
                                              .done_stream = done_}));
  VERGER_FAILPOINT("scavenge.calculate.before-commit");
  VERGER_CHECK(context_.state.commit());
  in_batch_ = false;
  return {};
}

}  // namespace verger::scavenge
