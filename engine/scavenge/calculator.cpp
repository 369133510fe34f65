#include "engine/scavenge/calculator.h"

#include "engine/base/failpoint.h"

namespace verger::scavenge {
namespace {

constexpr std::uint64_t kInfosBetweenRests = 1024;
constexpr std::size_t kPageSize = 1024;

}  // namespace

Calculator::Calculator(RunContext& context, std::optional<StreamHandle> done)
    : context_(context),
      walker_(context.parts.index, context.parts.log, context.point, context.state),
      done_(std::move(done)),
      entries_stay_(!done_) {}

Result<StepOutcome> Calculator::step(Budget budget) {
  std::uint64_t units = 0;
  while (units < budget.units) {
    if (!in_stream_) {
      VERGER_TRY(const bool more, next_row());
      if (!more) {
        if (in_batch_) {
          VERGER_RETURN_IF_ERROR(finish_batch());
        }
        VERGER_RETURN_IF_ERROR(context_.check_stop());
        context_.active_entries_stay = entries_stay_;
        return StepOutcome{StepOutcome::Kind::kDone, {}};
      }
      VERGER_RETURN_IF_ERROR(start_stream());
    }
    VERGER_TRY(const bool finished, walker_.step([this](const StreamWalker::Verdict& verdict) {
      if (verdict.weight != 0) {
        weights_[context_.chunk_of(verdict.entry.position)] += verdict.weight;
      }
    }));
    units += walker_.entries_read() + 1;
    if (finished) {
      VERGER_RETURN_IF_ERROR(finish_stream());
    }
    infos_since_rest_ += walker_.entries_read() + 1;
    if (infos_since_rest_ >= kInfosBetweenRests) {
      infos_since_rest_ = 0;
      VERGER_RETURN_IF_ERROR(context_.check_stop());
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
    VERGER_RETURN_IF_ERROR(context_.state.begin());
    in_batch_ = true;
    batch_size_ = 0;
    changed_ = false;
    weights_.clear();
    points_.clear();
  }
  VERGER_RETURN_IF_ERROR(walker_.start(rows_[row_]));
  in_stream_ = true;
  return {};
}

Result<void> Calculator::finish_stream() {
  const auto& row = rows_[row_];
  const auto& walk = walker_.walk();
  const auto status = status_after_calculation(row.data, walker_.last());
  const auto discard = either(walk.discard(), row.data.discard);
  const auto maybe = either(walk.maybe(), row.data.maybe);
  if (entries_stay_ && !row.handle.by_name()) {
    VERGER_TRY(entries_stay_, walker_.keeps_entries_from(discard));
  }
  if (status != row.data.status || discard != row.data.discard || maybe != row.data.maybe) {
    changed_ = true;
    if (status == StreamStatus::kActive && !row.handle.by_name()) {
      points_.push_back({.hash = row.handle.hash, .discard = discard, .maybe = maybe});
    } else {
      VERGER_RETURN_IF_ERROR(context_.state.set_calculated(row.handle, status, discard, maybe));
    }
  }
  done_ = row.handle;
  ++row_;
  in_stream_ = false;
  ++batch_size_;
  context_.progress.done = ++streams_;
  ++context_.progress.streams_calculated;
  VERGER_RETURN_IF_ERROR(context_.unit_finished(Stage::kCalculating, streams_));
  return batch_size_ == context_.options.calculation_batch ? finish_batch() : Result<void>{};
}

Result<void> Calculator::finish_batch() {
  if (changed_ || !weights_.empty()) {
    // Discard points never go back: they must not come from a damaged table.
    VERGER_RETURN_IF_ERROR(context_.check_tables());
  }
  VERGER_RETURN_IF_ERROR(
      context_.state.set_calculated(points_, [this] { return context_.check_stop(); }));
  for (const auto& [chunk, weight] : weights_) {
    VERGER_RETURN_IF_ERROR(context_.state.add_weight(chunk, weight));
  }
  VERGER_RETURN_IF_ERROR(context_.state.set_checkpoint({.point = context_.point,
                                                        .stage = Stage::kCalculating,
                                                        .done_chunk = {},
                                                        .done_stream = done_}));
  VERGER_FAILPOINT("scavenge.calculate.before-commit");
  VERGER_RETURN_IF_ERROR(context_.state.commit());
  in_batch_ = false;
  return {};
}

}  // namespace verger::scavenge
