#include "engine/verify/detail/index_comparison.h"

#include <algorithm>
#include <fmt/format.h>
#include <limits>

#include "engine/index/index_map.h"

namespace verger::verify::detail {

void check_epochs(const log::TransactionLog& log, Findings& findings) {
  const auto path = log.directory() / "epoch.chk";
  const auto checkpoint = log.checkpoints().epoch;
  const auto& epochs = log.epochs().all();
  if (checkpoint.value() >= 0 &&
      std::ranges::find(epochs, checkpoint, &log::Epoch::position) == epochs.end()) {
    findings.damage(path, 0, fmt::format("no epoch record lies at {}", checkpoint));
  }
  for (std::size_t i = 1; i < epochs.size(); ++i) {
    if (epochs[i].previous != epochs[i - 1].position || epochs[i].number <= epochs[i - 1].number) {
      const auto chunk = log.chunk_at(epochs[i].position);
      findings.damage(
          chunk == nullptr ? log.directory() : chunk->path(), std::nullopt,
          fmt::format("the chain of epochs is broken at log position {}", epochs[i].position));
    }
  }
}

/// No damage: a node that was killed leaves this, and one at work has it for moments.
void check_reach(const streams::Database& database, Findings& findings) {
  const auto& index = database.stream_index();
  const auto commit = index.commit_checkpoint();
  const auto chaser = database.transaction_log().checkpoints().chaser;
  if (commit >= LogPosition(0) && commit >= chaser) {
    findings.note(index.directory() / index::kIndexMapName,
                  fmt::format("the index goes to {}, chaser.chk to {}: a node that starts on "
                              "this throws the index away and makes it anew",
                              commit, chaser));
  }
}

IndexComparison::IndexComparison(const streams::Database& database, ExpectedEntries& expected,
                                 ExistenceCheck& existence, Findings& findings)
    : database_(database),
      log_(database.transaction_log()),
      index_(database.stream_index()),
      expected_(expected),
      existence_(existence),
      findings_(findings) {}

Result<void> IndexComparison::begin() {
  VERGER_TRY(const auto points, streams::scavenge_points(database_));
  // What lies before may have lost its entries to a scavenge that left the record in a chunk
  // below the threshold.
  complete_from_ = points.empty() ? LogPosition(0) : points.back().position;
  // The point of the last scavenge may never have been in this log.
  for (const auto& chunk : log_.chunks()) {
    if (chunk->header().scavenged) {
      complete_from_ = std::max(complete_from_, chunk->end_position());
    }
  }
  std::vector<index::TableSlot> sortable;
  for (const auto& slot : index_.tables()) {
    if (slot.table->version() > 2) {
      sortable.push_back(slot);
    } else {
      old_tables_.emplace_back(std::vector{slot});
    }
  }
  tables_.emplace(sortable);
  found_ = tables_->advance(findings_);
  VERGER_TRY(wanted_, expected_.advance());
  return {};
}

Result<bool> IndexComparison::step(std::uint32_t units) {
  if (!tables_) {
    VERGER_RETURN_IF_ERROR(begin());
  }
  for (std::uint32_t n = 0; n < units; ++n) {
    if (const auto passed = pass_equal(units - n); passed > 0) {
      n += passed - 1;
    } else if (found_ != nullptr || wanted_) {
      VERGER_RETURN_IF_ERROR(compare_one());
    } else if (old_tables_.empty()) {
      return true;
    } else if (auto* source = old_tables_.front().advance(findings_); source != nullptr) {
      ++totals_.entries;
      VERGER_RETURN_IF_ERROR(entry_against_log(*source->table, *source->entry, source->number));
    } else {
      old_tables_.pop_front();
    }
  }
  return false;
}

/// Moves along both sequences. Events that no table has are those of the memtable when all is well.
Result<void> IndexComparison::compare_one() {
  if (found_ != nullptr && wanted_ && *found_->entry == expected_.current()) {
    matched_ = expected_.current();
    VERGER_TRY(wanted_, expected_.advance());
  }
  if (found_ != nullptr && (!wanted_ || expected_.current() < *found_->entry)) {
    VERGER_RETURN_IF_ERROR(look_at(*found_, matched_ == found_->entry));
    found_ = tables_->advance(findings_);
    return {};
  }
  if (wanted_ && (found_ == nullptr || *found_->entry < expected_.current())) {
    VERGER_RETURN_IF_ERROR(look_up(expected_.current()));
    VERGER_TRY(wanted_, expected_.advance());
  }
  return {};
}

std::uint32_t IndexComparison::pass_equal(std::uint32_t most) {
  if (found_ == nullptr || !wanted_ || *found_->entry != expected_.current()) {
    return 0;
  }
  const auto entries = tables_->held(*found_);
  const auto events = expected_.held();
  const auto differ =
      std::ranges::mismatch(entries.first(std::min<std::size_t>(entries.size(), most)), events);
  const auto equal = entries.first(static_cast<std::size_t>(differ.in1 - entries.begin()));
  if (equal.empty()) {
    return 0;
  }
  auto number = found_->number;
  const auto pass = [&](const index::IndexEntry& entry) {
    count(*found_, entry, number++);
    existence_.look_at(entry, findings_);
  };
  pass(*found_->entry);
  std::ranges::for_each(equal.first(equal.size() - 1), pass);
  TableEntries::skip(*found_, equal);
  expected_.skip(equal.size());
  return static_cast<std::uint32_t>(equal.size());
}

void IndexComparison::count(TableEntries::Source& source, const index::IndexEntry& entry,
                            std::uint64_t number) {
  ++totals_.entries;
  if (source.last_hash != entry.hash) {
    source.last_hash = entry.hash;
    if (!source.table->may_contain(entry.hash)) {
      findings_.damage_of_kind(
          "entry missing in the bloom filter", source.table->path(),
          source.table->entry_offset(number),
          "its bloom filter hides this entry: remove the filter file or rebuild the index");
    }
  }
}

Result<void> IndexComparison::look_at(TableEntries::Source& source, bool matched) {
  const auto& entry = *source.entry;
  count(source, entry, source.number);
  if (matched) {
    existence_.look_at(entry, findings_);
    return {};
  }
  return entry_against_log(*source.table, entry, source.number);
}

/// An event that no table has: the index may hold it in memory.
Result<void> IndexComparison::look_up(const index::IndexEntry& event) {
  VERGER_TRY(const auto entries, index_.range(event.hash, event.number, event.number,
                                              std::numeric_limits<std::size_t>::max()));
  if (std::ranges::find(entries, event.position, &index::IndexEntry::position) != entries.end()) {
    return {};
  }
  if (event.position < complete_from_) {
    ++totals_.without_entry;
    return {};
  }
  const auto chunk = log_.chunk_at(event.position);
  const auto record = log_.read(event.position, buffer_);
  const auto* prepare = record ? record->prepare() : nullptr;
  findings_.damage_of_kind(
      "event without index entry", chunk == nullptr ? log_.directory() : chunk->path(),
      record ? std::optional(record->file_offset) : std::nullopt,
      fmt::format("event {} of stream '{}' at log position {} is not in the index; rebuild it "
                  "with `verger-db index rebuild`",
                  event.number, prepare == nullptr ? "?" : prepare->stream, event.position));
  return {};
}

Result<void> IndexComparison::entry_against_log(const index::PTable& table,
                                                const index::IndexEntry& entry, std::uint64_t n) {
  const auto record = log_.read(entry.position, buffer_);
  if (!record) {
    if (record.error().code == Errc::kIo) {
      return record.error();
    }
    const auto chunk = log_.chunk_at(entry.position);
    const bool scavenged = chunk != nullptr && chunk->header().scavenged;
    if (record.error().code == Errc::kNotFound && scavenged) {
      ++totals_.without_record;
      return {};
    }
    damaged_entry(table, entry, n, record.error().message);
    return {};
  }
  const auto* prepare = record->prepare();
  if (prepare == nullptr) {
    damaged_entry(table, entry, n, "the record there carries no event");
    return {};
  }
  if (table.version() <= 2) {
    return {};
  }
  if (index_.hash(prepare->stream) != entry.hash) {
    damaged_entry(table, entry, n,
                  fmt::format("the record there is of stream '{}'", prepare->stream));
    return {};
  }
  if (!expected_.complete() && !prepare->has(log::prepare_flags::kIsCommitted)) {
    return {};  // which number its commit gave it is not known
  }
  const auto number = expected_.number_by_commit(entry.position).value_or(prepare->event_number());
  if (number != entry.number) {
    damaged_entry(table, entry, n,
                  fmt::format("the record there is event {} of its stream", number));
  }
  return {};
}

void IndexComparison::damaged_entry(const index::PTable& table, const index::IndexEntry& entry,
                                    std::uint64_t n, std::string_view why) {
  findings_.damage_of_kind(
      "wrong index entry", table.path(), table.entry_offset(n),
      fmt::format("the entry (hash {:016x}, number {}) points to log position {}: {}",
                  entry.hash.value(), entry.number, entry.position, why));
}

}  // namespace verger::verify::detail
