// Committing: what makes events visible, and what follows the log of a leader.
#include <algorithm>

#include "engine/streams/detail/database_state.h"

namespace verger::streams {

namespace {

/// Reads [begin, end) of the log and hands its writes on, in order.
Result<void> feed_range(const log::TransactionLog& log, LogPosition begin, LogPosition end,
                        detail::RecordFeed& feed) {
  log::LogCursor cursor(log, begin, end);
  for (;;) {
    VERGER_TRY(const auto record, cursor.next());
    if (!record) {
      return {};
    }
    VERGER_RETURN_IF_ERROR(feed.push(record->record, record->next));
  }
}

}  // namespace

Result<void> Database::State::check_writable(std::string_view what) const {
  if (!writable) {
    return Error{Errc::kRefused, fmt::format("database {}: {} needs it opened for writing",
                                             log->directory().string(), what)};
  }
  if (broken) {
    return broken->within("an earlier write failed, open the database again");
  }
  return {};
}

void Database::State::account_for_log() {
  const auto end = log->end();
  if (accounted < end) {
    pending.push(detail::PendingWrites::Range{accounted, end});
    accounted = end;
    written.clear();  // there may be newer events of these streams in the range
  }
}

void Database::State::forget_pending() {
  // A write that began before the last commit is still open.
  auto begin = committed_position();
  if (!pending.empty()) {
    auto& front = pending.front();
    const auto* write = std::get_if<detail::Write>(&front);
    begin = std::min(begin, write != nullptr ? write->begin
                                             : std::get<detail::PendingWrites::Range>(front).begin);
  }
  pending.clear();
  recent.truncate(committed_position());
  accounted = begin;
}

Result<void> Database::State::look_into_ranges() {
  if (!pending.has_ranges()) {
    return {};
  }
  auto items = pending.take();
  detail::RecordFeed feed(*log, [&](detail::Write write) {
    recent.add(write);
    pending.push(std::move(write));
  });
  for (auto& item : items) {
    if (auto* write = std::get_if<detail::Write>(&item)) {
      feed.finish();
      pending.push(std::move(*write));
    } else {
      const auto range = std::get<detail::PendingWrites::Range>(item);
      VERGER_RETURN_IF_ERROR(feed_range(*log, range.begin, range.end, feed));
    }
  }
  feed.finish();
  return {};
}

Result<void> Database::State::add_to_index(const detail::Write& write) {
  if (write.events.empty()) {
    return {};
  }
  index::IndexedWrite indexed;
  indexed.stream = write.stream;
  indexed.commit = write.commit;
  const auto hash = index->hash(write.stream);
  for (const auto& event : write.events) {
    indexed.entries.push_back({hash, event.number, event.position});
    indexed.prepare = std::max(indexed.prepare, event.position);
  }
  return index->add(indexed);
}

Result<void> Database::State::commit_up_to(LogPosition position) {
  account_for_log();
  position = std::min(position, log->end());
  if (position <= committed_position()) {
    return {};
  }
  while (!pending.empty()) {
    if (const auto* write = std::get_if<detail::Write>(&pending.front())) {
      if (write->end > position) {
        break;
      }
      VERGER_RETURN_IF_ERROR(add_to_index(*write));
      pending.pop_front();
      continue;
    }
    auto& range = std::get<detail::PendingWrites::Range>(pending.front());
    if (range.begin >= position) {
      break;
    }
    std::vector<detail::Write> writes;
    detail::RecordFeed feed(*log, [&](detail::Write write) { writes.push_back(std::move(write)); });
    const auto end = std::min(range.end, position);
    VERGER_RETURN_IF_ERROR(feed_range(*log, range.begin, end, feed));
    // A write that continues behind `end` waits for the next commit.
    const auto rest = end < range.end ? feed.open_since().value_or(end) : end;
    if (end == range.end) {
      feed.finish();
    }
    for (const auto& write : writes) {
      VERGER_RETURN_IF_ERROR(add_to_index(write));
      recent.add(write);
    }
    if (rest < range.end) {
      range.begin = rest;
      break;
    }
    pending.pop_front();
  }
  committed.store(position.value());
  log->set_chaser(position);
  if (index->memory_entry_count() >= index->options().max_mem_table_size) {
    // The server throws an index away that reaches beyond chaser.chk: that one goes first. The
    // entries stay in memory when the disk refuses; the next commit tries again.
    auto saved = log->flush_checkpoints();
    if (saved) {
      saved = index->maintain();
    }
    if (!saved) {
      out.error("index entries stay in memory", {{"reason", saved.error().message}});
    }
  }
  return {};
}

Result<void> Database::State::remember_recent() {
  // Enough for retries that cross a restart; reading backward costs two reads a record.
  constexpr int kRecords = 2048;
  Bytes buffer;
  auto begin = committed_position();
  for (int i = 0; i < kRecords; ++i) {
    VERGER_TRY(const auto record, log::read_before(*log, begin, buffer));
    if (!record) {
      break;
    }
    begin = record->position();
  }
  detail::RecordFeed feed(*log, [&](const detail::Write& write) { recent.add(write); });
  VERGER_RETURN_IF_ERROR(feed_range(*log, begin, committed_position(), feed));
  feed.finish();
  return {};
}

Result<void> Database::commit_up_to(LogPosition position) { return state_->commit_up_to(position); }

Result<void> Database::append_replicated(ByteView framed_records, Flush flush) {
  auto& state = *state_;
  VERGER_RETURN_IF_ERROR(state.check_writable("replication"));
  state.account_for_log();
  VERGER_RETURN_IF_ERROR(state.log->append_replicated(framed_records));
  // A range, not writes, once it is flushed: most of the time it is committed before versions are
  // requested.
  return state.flush(flush);
}

Result<void> Database::receive_chunk(const Path& temporary) {
  auto& state = *state_;
  VERGER_RETURN_IF_ERROR(state.check_writable("replication"));
  state.account_for_log();
  const auto end = state.log->end();
  VERGER_RETURN_IF_ERROR(state.log->receive_chunk(temporary));
  if (const auto chunk = state.log->chunk_at(LogPosition(state.log->end().value() - 1));
      chunk != nullptr && chunk->start_position() < end) {
    // What is not committed is no longer cached: records of it may have gone, or others
    // have come. What is committed stays so, with fewer records, as after a scavenge.
    state.forget_pending();
  }
  state.account_for_log();
  return {};
}

Result<void> Database::truncate(LogPosition position, bool even_committed) {
  auto& state = *state_;
  VERGER_RETURN_IF_ERROR(state.check_writable("truncating"));
  auto cut = position;
  const auto chunk = state.log->chunk_at(position);
  if (chunk != nullptr && chunk->header().scavenged) {
    cut = chunk->start_position();
  }
  if (cut < state.committed_position() && !even_committed) {
    return Error{Errc::kRefused,
                 fmt::format("database {}: truncating to {} would remove committed records (below "
                             "{})",
                             state.log->directory().string(), cut, state.committed_position())};
  }
  VERGER_RETURN_IF_ERROR(state.log->truncate(position));
  // A crash from here on leaves an index that reaches beyond chaser.chk: the next opening rebuilds.
  const auto end = state.log->end();
  state.pending.clear();
  state.recent.truncate(end);
  state.written.clear();
  const auto committed = std::min(state.committed_position(), end);
  state.committed.store(committed.value());
  state.log->set_chaser(committed);
  state.accounted = committed;
  state.account_for_log();
  auto shortened = state.index->truncate(end);
  VERGER_RETURN_IF_ERROR(
      state.log->flush_checkpoints());  // before an index that reaches further is made
  if (!shortened && shortened.error().code == Errc::kConflict) {
    shortened = state.index->rebuild(*state.log, committed);
  }
  return shortened;
}

}  // namespace verger::streams
