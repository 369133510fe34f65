#include "engine/index/detail/write_collector.h"

#include <algorithm>
#include <fmt/format.h>

namespace verger::index::detail {
namespace {

namespace flags = log::prepare_flags;

constexpr std::uint16_t kIndexed = flags::kData | flags::kStreamDelete;
/// Parts of open transactions kept in memory; beyond it commits read them again.
constexpr std::size_t kMaxOpenParts = 100'000;

}  // namespace

StreamHash WriteCollector::hash_of(std::string_view stream) {
  if (stream != last_stream_ || last_stream_.empty()) {
    last_stream_ = stream;
    last_hash_ = hash_(stream);
  }
  return last_hash_;
}

Result<void> WriteCollector::feed(const log::LogRecord& record) {
  if (const auto* prepare = record.prepare()) {
    const auto hash = hash_of(prepare->stream);
    if (on_prepare_) {
      on_prepare_(*prepare, hash);
    }
    return feed(prepared(*prepare, hash));
  }
  if (const auto* commit = std::get_if<log::Commit>(&record.record)) {
    return feed(*commit);
  }
  return {};
}

Result<void> WriteCollector::feed(const Prepared& prepare) {
  if ((prepare.flags & flags::kIsCommitted) == 0) {
    if (++open_parts_ > kMaxOpenParts) {
      open_.clear();
      open_parts_ = 1;
      kept_from_ = prepare.position;
    }
    open_[prepare.transaction_position].push_back(
        {prepare.position, prepare.hash, prepare.transaction_offset, prepare.flags});
    return {};
  }
  if (!entries_.empty() && prepare.transaction_position != write_) {
    VERGER_RETURN_IF_ERROR(finish());
  }
  write_ = prepare.transaction_position;
  if ((prepare.flags & kIndexed) != 0) {
    entries_.push_back({prepare.hash, prepare.number, prepare.position});
  }
  return (prepare.flags & flags::kTransactionEnd) != 0 ? emit(prepare.position) : Result<void>();
}

Result<void> WriteCollector::finish() {
  return entries_.empty() ? Result<void>() : emit(entries_.back().position);
}

Result<void> WriteCollector::emit(LogPosition commit, bool has_commit_record) {
  if (entries_.empty()) {
    return {};
  }
  LogPosition prepare = entries_.front().position;
  for (const auto& entry : entries_) {
    prepare = std::max(prepare, entry.position);
  }
  last_commit_ = std::max(last_commit_, commit);
  auto sent = sink_({entries_, prepare, commit, has_commit_record});
  entries_.clear();
  return sent;
}

Result<void> WriteCollector::feed(const log::Commit& commit) {
  if (commit.position < last_commit_) {
    return {};
  }
  VERGER_TRY(const auto parts, parts_of(commit));
  if (!entries_.empty()) {
    VERGER_RETURN_IF_ERROR(finish());
  }
  std::optional<StreamHash> stream;
  for (const auto& part : parts) {
    if ((part.flags & kIndexed) != 0) {
      if (stream && *stream != part.hash) {
        entries_.clear();
        return Error{Errc::kCorruption,
                     fmt::format("{}: the transaction at {}, committed at {}, writes to several "
                                 "streams (prepare at {})",
                                 log_.directory().string(), commit.transaction_position,
                                 commit.position, part.position)};
      }
      stream = part.hash;
      const auto number = (part.flags & flags::kStreamDelete) != 0
                              ? kDeletedStream
                              : EventNumber(commit.first_event_number.value() + part.offset);
      entries_.push_back({part.hash, number, part.position});
    }
    if ((part.flags & flags::kTransactionEnd) != 0) {
      break;
    }
  }
  return emit(commit.position, true);
}

Result<std::vector<WriteCollector::Part>> WriteCollector::parts_of(const log::Commit& commit) {
  const auto start = commit.transaction_position;
  if (start >= kept_from_) {
    auto found = open_.extract(start);
    if (found.empty()) {
      return std::vector<Part>();
    }
    open_parts_ -= std::min(open_parts_, found.mapped().size());
    return std::move(found.mapped());
  }
  std::vector<Part> parts;
  log::LogCursor cursor(log_, std::max(start, LogPosition(0)), commit.position);
  while (true) {
    VERGER_TRY(const auto record, cursor.next());
    if (!record) {
      return parts;
    }
    const auto* prepare = record->prepare();
    if (prepare != nullptr && prepare->transaction_position == start &&
        !prepare->has(flags::kIsCommitted)) {
      parts.push_back({prepare->position, hash_of(prepare->stream), prepare->transaction_offset,
                       prepare->flags});
      if (prepare->has(flags::kTransactionEnd)) {
        return parts;
      }
    }
  }
}

}  // namespace verger::index::detail
