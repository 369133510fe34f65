#include "nodeagent/operations/drill/drill_reading.h"

#include <algorithm>
#include <fmt/format.h>
#include <variant>

namespace verger::agent {
namespace {

constexpr std::size_t kDrillPage = 512;
constexpr std::size_t kStreamsInMemory = 200'000;

}  // namespace

DrillReading::DrillReading(Path database, const backup::Manifest& manifest, Scope scope,
                           Environment environment)
    : directory_(std::move(database)),
      end_(manifest.positions.end),
      readable_now_(manifest.digests ? manifest.digests->readable_now : Ticks{}),
      scope_(scope),
      env_(environment) {}

DrillReading::~DrillReading() = default;

Result<void> DrillReading::open() {
  streams::DatabaseOptions options;
  options.log.access = log::Access::kReadOnly;
  options.index.read_only = true;
  VERGER_TRY(database_,
             streams::Database::open(env_.files, directory_, std::move(options),
                                     /*commit_all=*/true, env_.clock, env_.random, env_.log));
  if (readable_now_ == Ticks{}) {
    // As of the last record, as a backup has it.
    Bytes buffer;
    VERGER_TRY(const auto last, log::read_before(database_->transaction_log(), end_, buffer));
    if (last) {
      readable_now_ = std::visit([](const auto& record) { return record.timestamp; }, last->record);
    }
  }
  streams::DigestOptions with;
  with.files = &env_.files;
  with.temporary_directory = directory_.parent_path();
  digest_ = std::make_unique<streams::DigestJob>(*database_, end_, readable_now_, with);
  return {};
}

Result<StepOutcome> DrillReading::step(Budget budget) {
  if (!digest_) {
    VERGER_RETURN_IF_ERROR(open());
    return StepOutcome{};
  }
  return digest_done_ ? read_all(budget) : read_digests(budget);
}

Result<StepOutcome> DrillReading::read_digests(Budget budget) {
  VERGER_TRY(auto outcome, digest_->step(budget));
  if (outcome.kind != StepOutcome::Kind::kDone) {
    return outcome;
  }
  digest_done_ = true;
  findings_.logical = digest_->digest().logical;
  findings_.readable = digest_->digest().readable;
  if (scope_ == Scope::kEverything) {
    outcome.kind = StepOutcome::Kind::kMore;
  }
  return outcome;
}

/// Each stream is read when its last event comes up in $all.
Result<StepOutcome> DrillReading::read_all(Budget budget) {
  for (std::uint32_t done = 0; done < std::max<std::uint32_t>(budget.units, 1);) {
    if (!stream_.empty()) {
      VERGER_RETURN_IF_ERROR(read_stream());
      done += kDrillPage;
      continue;
    }
    if (next_in_page_ == page_.events.size()) {
      if (page_.end || at_.prepare >= end_) {
        return StepOutcome{.kind = StepOutcome::Kind::kDone};
      }
      VERGER_TRY(page_, database_->read_all_forward(at_, kDrillPage));
      at_ = page_.next;
      next_in_page_ = 0;
      done += kDrillPage;
      continue;
    }
    const auto& event = page_.events[next_in_page_++];
    ++done;
    if (event.prepare_position >= end_) {
      return StepOutcome{.kind = StepOutcome::Kind::kDone};
    }
    VERGER_TRY(const auto last, last_event_of(event.stream));
    if (last == event.number && last != kDeletedStream) {
      stream_ = event.stream;
      next_in_stream_ = EventNumber(0);
      ++findings_.streams;
    }
  }
  return StepOutcome{};
}

Result<EventNumber> DrillReading::last_event_of(const std::string& stream) {
  if (const auto known = last_events_.find(stream); known != last_events_.end()) {
    return known->second;
  }
  VERGER_TRY(const auto last, database_->last_event_number(stream));
  if (last_events_.size() >= kStreamsInMemory) {
    last_events_.clear();
  }
  last_events_.emplace(stream, last);
  return last;
}

Result<void> DrillReading::read_stream() {
  VERGER_TRY(const auto slice, database_->read_forward(stream_, next_in_stream_, kDrillPage));
  findings_.events += static_cast<std::int64_t>(slice.events.size());
  if (slice.status != streams::StreamStatus::kSuccess || slice.end_of_stream) {
    stream_.clear();
    return {};
  }
  if (slice.next <= next_in_stream_) {
    return Error{Errc::kCorruption, fmt::format("stream {}: reading does not get beyond event {}",
                                                stream_, next_in_stream_.value())};
  }
  next_in_stream_ = slice.next;
  return {};
}

JobProgress DrillReading::progress() const {
  if (!digest_) {
    return {.phase = "opening the restored database"};
  }
  const bool in_log = !digest_done_;
  const auto done = in_log ? digest_->position() : std::min(at_.prepare, end_);
  return {.phase = in_log ? "reading every record" : "reading every stream",
          .done = std::max<std::int64_t>(done.value(), 0),
          .total = end_.value(),
          .unit = "bytes",
          .bytes = std::max<std::int64_t>(done.value(), 0) + (in_log ? 0 : end_.value())};
}

}  // namespace verger::agent
