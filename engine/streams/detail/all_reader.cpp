#include "engine/streams/detail/all_reader.h"

#include <algorithm>

#include "engine/streams/detail/stream_reader.h"
#include "engine/streams/stream_names.h"
#include "engine/streams/transaction_reader.h"

namespace verger::streams::detail {

namespace {

AllPosition position_of(const Event& event) {
  return {event.commit_position, event.prepare_position};
}

/// The events that a record makes visible in $all: its own, or those of the transaction that it
/// commits. In log order.
Result<std::vector<Event>> events_of(const log::TransactionLog& log, const log::LogRecord& record) {
  std::vector<Event> events;
  if (const auto* prepare = record.prepare()) {
    if (prepare->has(log::prepare_flags::kIsCommitted) && carries_event(*prepare) &&
        !hidden_in_all(prepare->stream)) {
      events.push_back(make_event(*prepare, prepare->event_number(), prepare->position));
    }
    return events;
  }
  if (const auto* commit = std::get_if<log::Commit>(&record.record)) {
    VERGER_RETURN_IF_ERROR(visit_transaction(log, *commit, [&](const log::Prepare& prepare) {
      if (!hidden_in_all(prepare.stream)) {
        events.push_back(make_event(prepare, number_by_commit(*commit, prepare), commit->position));
      }
      return true;
    }));
  }
  return events;
}

Error bad_page(AllPosition from, std::size_t count) {
  return Error{Errc::kInvalidArgument,
               fmt::format("reading $all from {}/{}: {} events make no page", from.commit,
                           from.prepare, count)};
}

}  // namespace

Result<AllSlice> read_all_forward(const log::TransactionLog& log, LogPosition end, AllPosition from,
                                  std::size_t count) {
  if (from.commit.value() < 0 || count == 0) {
    return bad_page(from, count);
  }
  AllSlice slice;
  log::LogCursor cursor(log, from.commit, end);
  for (;;) {
    VERGER_TRY(const auto record, cursor.next());
    if (!record) {
      slice.end = true;
      slice.next = std::max(from, AllPosition{end, LogPosition(0)});
      return slice;
    }
    VERGER_TRY(auto events, events_of(log, *record));
    for (auto& event : events) {
      if (position_of(event) < from) {
        continue;
      }
      slice.events.push_back(std::move(event));
      if (slice.events.size() == count) {
        const auto& last = slice.events.back();
        slice.next = {last.commit_position, last.prepare_position + 1};
        return slice;
      }
    }
  }
}

Result<AllSlice> read_all_backward(const log::TransactionLog& log, LogPosition end,
                                   AllPosition from, std::size_t count) {
  if (from.commit.value() < 0 || count == 0) {
    return bad_page(from, count);
  }
  AllSlice slice;
  Bytes buffer;
  std::optional<log::LogRecord> record;
  auto at = std::min(from.commit, end);
  if (from.commit < end) {
    // The record that starts there may hold events before `from`: those of a commit.
    VERGER_TRY(const bool there, log.has_record_at(at));
    if (there) {
      VERGER_TRY(record, log.read(at, buffer));
    }
  }
  for (;;) {
    if (record) {
      at = record->position();
      VERGER_TRY(auto events, events_of(log, *record));
      std::ranges::reverse(events);
      for (auto& event : events) {
        if (position_of(event) >= from) {
          continue;
        }
        slice.events.push_back(std::move(event));
        if (slice.events.size() == count) {
          slice.next = position_of(slice.events.back());
          return slice;
        }
      }
    }
    VERGER_TRY(record, log::read_before(log, at, buffer));
    if (!record) {
      slice.end = true;
      slice.next = {LogPosition(0), LogPosition(0)};
      return slice;
    }
  }
}

}  // namespace verger::streams::detail
