#include "engine/verify/detail/expected_entries.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "engine/streams/transaction_reader.h"
#include "engine/verify/detail/table_entries.h"

namespace verger::verify::detail {
namespace {

namespace flags = log::prepare_flags;

}  // namespace

/// What the parts share: each takes the next chunk that none has.
struct ExpectedEntries::Shared {
  explicit Shared(const streams::Database& database)
      : log(database.transaction_log()), index(database.stream_index()), chunks(log.chunks()) {}

  const log::TransactionLog& log;
  const index::Index& index;
  std::vector<std::shared_ptr<const log::Chunk>> chunks;
  std::atomic<std::size_t> next{0};
};

bool ExpectedEntries::Part::step(std::uint32_t units) {
  for (std::uint32_t n = 0; n < units; ++n) {
    if (!scanner_ && !next_chunk()) {
      return true;
    }
    if (auto read = read_record(); !read) {
      complete = false;
      scanner_.reset();
      if (!outcome) {
        return true;
      }
      findings.damage(chunk_->path(), std::nullopt,
                      "looking up its events in the index ended early: " + read.error().message);
    }
  }
  return false;
}

bool ExpectedEntries::Part::next_chunk() {
  while (!scanner_) {
    const auto mine = shared_.next++;
    if (mine >= shared_.chunks.size()) {
      return false;
    }
    chunk_ = shared_.chunks[mine];
    auto scanner = log::ChunkScanner::open(chunk_, chunk_->start_position());
    if (scanner) {
      scanner_.emplace(*std::move(scanner));
    } else {
      complete = false;
      findings.damage(chunk_->path(), std::nullopt,
                      "looking up its events in the index ended early: " + scanner.error().message);
    }
  }
  return true;
}

Result<void> ExpectedEntries::Part::read_record() {
  VERGER_TRY(const auto record, scanner_->next());
  if (!record) {
    scanner_.reset();
    return {};
  }
  bytes_ += record->framed.size();
  return add(*record);
}

void ExpectedEntries::Part::add(std::span<const log::LogRecord> records) {
  for (const auto& record : records) {
    if (!complete) {
      return;
    }
    complete = add(record).has_value();
  }
}

void ExpectedEntries::Part::note_read(const log::Chunk& chunk) {
  read_chunks.emplace_back(chunk.path(), chunk.data_size());
}

Result<void> ExpectedEntries::Part::add(const log::LogRecord& record) {
  namespace streams_detail = streams::detail;
  if (const auto* prepare = record.prepare()) {
    return prepare->has(flags::kIsCommitted) && streams_detail::carries_event(*prepare)
               ? add_event(*prepare, prepare->event_number())
               : Result<void>{};
  }
  const auto* commit = std::get_if<log::Commit>(&record.record);
  if (commit == nullptr) {
    return {};
  }
  Result<void> added;
  VERGER_RETURN_IF_ERROR(
      streams_detail::visit_transaction(shared_.log, *commit, [&](const log::Prepare& event) {
        const auto number = streams_detail::number_by_commit(*commit, event);
        by_commit.emplace(event.position.value(), number);
        added = add_event(event, number);
        return added.has_value();
      }));
  return added;
}

Result<void> ExpectedEntries::Part::add_event(const log::Prepare& prepare, EventNumber number) {
  outcome = entries.add({shared_.index.hash(prepare.stream), number, prepare.position});
  return outcome;
}

ExpectedEntries::ExpectedEntries(FileSystem& files, Path scratch, Random& random,
                                 const streams::Database& database, std::uint64_t in_memory,
                                 std::size_t lanes, scavenge::ParallelRunner& runner)
    : shared_(std::make_unique<Shared>(database)), lanes_(lanes, runner) {
  const auto parts = std::max<std::size_t>(lanes, 1);
  for (const auto& chunk : shared_->chunks) {
    total_bytes_ += static_cast<std::uint64_t>(chunk->data_size());
  }
  for (std::size_t n = 0; n < parts; ++n) {
    parts_.push_back(std::make_unique<Part>(
        *shared_, index::SortedEntries(files, scratch, random,
                                       std::max<std::uint64_t>(in_memory / parts, 1))));
    lanes_.add(*parts_.back());
  }
}
ExpectedEntries::~ExpectedEntries() = default;

Result<bool> ExpectedEntries::read(std::uint32_t units, Findings& findings) {
  if (!lanes_.step(units)) {
    return false;
  }
  VERGER_RETURN_IF_ERROR(check_parts());
  for (const auto& part : parts_) {
    findings.take(part->findings);
  }
  return true;
}

Result<void> ExpectedEntries::check_parts() {
  for (const auto& part : parts_) {
    if (!part->outcome) {
      scratch_error_ = part->outcome.error();
      return *scratch_error_;
    }
  }
  return {};
}

Result<bool> ExpectedEntries::has_all() {
  VERGER_RETURN_IF_ERROR(check_parts());
  std::set<std::pair<Path, std::int64_t>> read;
  for (const auto& part : parts_) {
    read.insert(part->read_chunks.begin(), part->read_chunks.end());
  }
  // As many: each was read once, and none that is not of the log.
  return complete() && read.size() == shared_->chunks.size() &&
         std::ranges::all_of(shared_->chunks, [&](const auto& chunk) {
           return read.contains({chunk->path(), chunk->data_size()});
         });
}

bool ExpectedEntries::complete() const {
  return std::ranges::all_of(parts_, [](const auto& part) { return part->complete; });
}

std::uint64_t ExpectedEntries::count() const {
  std::uint64_t count = 0;
  for (const auto& part : parts_) {
    count += part->entries.count();
  }
  return count;
}

std::optional<EventNumber> ExpectedEntries::number_by_commit(LogPosition position) const {
  for (const auto& part : parts_) {
    if (const auto found = part->by_commit.find(position.value()); found != part->by_commit.end()) {
      return found->second;
    }
  }
  return std::nullopt;
}

const index::IndexEntry& ExpectedEntries::current() const {
  return parts_[next_]->entries.current();
}

std::span<const index::IndexEntry> ExpectedEntries::held() const {
  auto held = parts_[next_]->entries.held();
  for (std::size_t n = 0; n < parts_.size(); ++n) {
    if (n != next_ && parts_[n]->more) {
      held = those_above(held, parts_[n]->entries.current());
    }
  }
  return held;
}

void ExpectedEntries::skip(std::size_t count) { parts_[next_]->entries.skip(count); }

Result<bool> ExpectedEntries::advance() {
  const auto advance = [this](Part& part) -> Result<void> {
    auto more = part.entries.advance();
    if (!more) {
      return scratch_error_.emplace(std::move(more).error());
    }
    part.more = *more;
    return {};
  };
  if (started_) {
    VERGER_RETURN_IF_ERROR(advance(*parts_[next_]));
  } else {
    started_ = true;
    for (const auto& part : parts_) {
      VERGER_RETURN_IF_ERROR(advance(*part));
    }
  }
  bool found = false;
  for (std::size_t n = 0; n < parts_.size(); ++n) {
    if (parts_[n]->more &&
        (!found || parts_[next_]->entries.current() < parts_[n]->entries.current())) {
      next_ = n;
      found = true;
    }
  }
  return found;
}

}  // namespace verger::verify::detail
