#include "engine/streams/detail/record_feed.h"

#include "engine/streams/stream_names.h"
#include "engine/streams/transaction_reader.h"

namespace verger::streams::detail {

std::optional<LogPosition> RecordFeed::open_since() const {
  return open_ ? std::optional(open_->begin) : std::nullopt;
}

void RecordFeed::finish() {
  if (open_) {
    auto write = std::move(*open_);
    open_.reset();
    sink_(std::move(write));
  }
}

void RecordFeed::add(const log::Prepare& prepare, EventNumber number, LogPosition next) {
  if (open_ && open_->stream != prepare.stream) {
    finish();
  }
  if (!open_) {
    open_.emplace();
    open_->stream = prepare.stream;
    open_->begin = prepare.position;
  }
  open_->events.push_back({number, prepare.event_id, prepare.position, next});
  open_->end = next;
  open_->commit = prepare.position;
  if (is_metastream(prepare.stream)) {
    open_->metadata = RawMetadata{number, prepare.version, prepare.has(log::prepare_flags::kIsJson),
                                  Bytes(prepare.data.begin(), prepare.data.end())};
  }
}

Result<void> RecordFeed::push(const log::Record& record, LogPosition next) {
  if (const auto* prepare = std::get_if<log::Prepare>(&record)) {
    if (!prepare->has(log::prepare_flags::kIsCommitted)) {
      return {};
    }
    if (open_ && open_transaction_ != prepare->transaction_position) {
      finish();
    }
    open_transaction_ = prepare->transaction_position;
    if (carries_event(*prepare)) {
      add(*prepare, prepare->event_number(), next);
    }
    if (prepare->has(log::prepare_flags::kTransactionEnd)) {
      finish();
    }
    return {};
  }
  if (const auto* commit = std::get_if<log::Commit>(&record)) {
    finish();
    VERGER_RETURN_IF_ERROR(visit_transaction(log_, *commit, [&](const log::Prepare& prepare) {
      const auto size = static_cast<std::int64_t>(log::record_size(log::Record(prepare)));
      add(prepare, number_by_commit(*commit, prepare), prepare.position + size + log::kFramingSize);
      return true;
    }));
    if (open_) {
      open_->begin = commit->position;
      open_->end = next;
      open_->commit = commit->position;
    }
    finish();
  }
  return {};
}

}  // namespace verger::streams::detail
