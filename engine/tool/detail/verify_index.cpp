#include "engine/tool/detail/verify_index.h"

#include <algorithm>

#include "engine/index/index_map.h"
#include "engine/tool/detail/parallel.h"
#include "engine/tool/detail/verify_filters.h"
#include "engine/tool/progress.h"

namespace verger::tool {

namespace {

/// The tables of versions 3 and 4, as one descending sequence, with the place of each entry.
class TableEntries {
 public:
  struct Source {
    std::shared_ptr<const index::PTable> table;
    index::PTableScanner scanner;
    std::optional<index::IndexEntry> entry = {};
    std::uint64_t number = 0;  ///< of `entry` in the table
    bool first = true;
    std::optional<StreamHash> last_hash = {};
  };

  explicit TableEntries(const std::vector<index::TableSlot>& slots) {
    for (const auto& slot : slots) {
      sources_.push_back(Source{.table = slot.table, .scanner = index::PTableScanner(slot.table)});
    }
  }

  /// Moves to the next entry; nullptr at the end. A table that cannot be read on is reported, and
  /// left.
  Source* advance(Findings& findings) {
    if (current_ != nullptr) {
      step(*current_, findings);
    } else {
      for (auto& source : sources_) {
        step(source, findings);
      }
    }
    current_ = nullptr;
    for (auto& source : sources_) {
      if (source.entry && (current_ == nullptr || *current_->entry < *source.entry)) {
        current_ = &source;
      }
    }
    return current_;
  }

 private:
  static void step(Source& source, Findings& findings) {
    const auto previous = source.entry;
    source.number += source.first ? 0 : 1;
    source.first = false;
    auto entry = source.scanner.next();
    if (!entry) {
      findings.damage(source.table->path(), source.table->entry_offset(source.number),
                      entry.error().message);
      source.entry.reset();
      return;
    }
    source.entry = *entry == nullptr ? std::nullopt : std::optional(**entry);
    if (previous && source.entry && *previous < *source.entry) {
      findings.damage(source.table->path(), source.table->entry_offset(source.number),
                      fmt::format("entry {} is greater than the one before it", source.number));
    }
  }

  std::vector<Source> sources_;
  Source* current_ = nullptr;
};

class IndexVerifier {
 public:
  IndexVerifier(ToolContext& tool, const streams::Database& database, const VerifyOptions& options,
                Findings& findings)
      : tool_(tool),
        log_(database.transaction_log()),
        index_(database.stream_index()),
        options_(options),
        findings_(findings) {}

  Result<IndexTotals> run(const streams::Database& database) {
    verify_epochs();
    VERGER_TRY(const auto points, streams::scavenge_points(database));
    // What lies before may have lost its entries to a scavenge that left the record in a chunk
    // below the threshold.
    complete_from_ = points.empty() ? LogPosition(0) : points.back().position;
    // The point of the last scavenge may never have been in this log.
    for (const auto& chunk : log_.chunks()) {
      if (chunk->header().scavenged) {
        complete_from_ = std::max(complete_from_, chunk->end_position());
      }
    }
    const auto slots = index_.tables();
    totals_.tables = slots.size();
    verify_reach();
    verify_sums(slots);
    verify_table_filters(tool_.files, slots, findings_);
    VERGER_TRY(existence_, ExistenceCheck::open(tool_.files, index_.directory(), findings_));
    VERGER_TRY(auto expected, ExpectedEntries::read(tool_, database, options_, findings_));
    totals_.events = expected.count();
    VERGER_RETURN_IF_ERROR(compare(slots, expected));
    return totals_;
  }

 private:
  void verify_epochs() {
    const auto path = log_.directory() / "epoch.chk";
    const auto checkpoint = log_.checkpoints().epoch;
    const auto& epochs = log_.epochs().all();
    if (checkpoint.value() >= 0 &&
        std::ranges::find(epochs, checkpoint, &log::Epoch::position) == epochs.end()) {
      findings_.damage(path, 0, fmt::format("no epoch record lies at {}", checkpoint));
    }
    for (std::size_t i = 1; i < epochs.size(); ++i) {
      if (epochs[i].previous != epochs[i - 1].position ||
          epochs[i].number <= epochs[i - 1].number) {
        const auto chunk = log_.chunk_at(epochs[i].position);
        findings_.damage(
            chunk == nullptr ? log_.directory() : chunk->path(), std::nullopt,
            fmt::format("the chain of epochs is broken at log position {}", epochs[i].position));
      }
    }
  }

  /// No damage: a node that was killed leaves this, and one at work has it for moments.
  void verify_reach() {
    const auto commit = index_.commit_checkpoint();
    const auto chaser = log_.checkpoints().chaser;
    if (commit >= LogPosition(0) && commit >= chaser) {
      findings_.note(index_.directory() / index::kIndexMapName,
                     fmt::format("the index goes to {}, chaser.chk to {}: a node that starts on "
                                 "this throws the index away and makes it anew",
                                 commit, chaser));
    }
  }

  void verify_sums(const std::vector<index::TableSlot>& slots) {
    std::uint64_t bytes = 0;
    for (const auto& slot : slots) {
      bytes += slot.table->file_size();
    }
    Progress progress(tool_, "verify tables", bytes);
    std::atomic<std::uint64_t> done{0};
    std::vector<Result<void>> sums(slots.size());
    run_parallel(
        slots.size(), options_.threads,
        [&](std::size_t n) {
          sums[n] = slots[n].table->verify_md5();
          done += slots[n].table->file_size();
        },
        [&] { progress.update(done); });
    for (std::size_t n = 0; n < slots.size(); ++n) {
      if (!sums[n]) {
        findings_.damage(slots[n].table->path(), slots[n].table->file_size() - sizeof(Md5Digest),
                         sums[n].error().message);
      }
    }
  }

  /// Walks along both sequences. Tables of versions 1 and 2 hold half of the hash or cut numbers:
  /// their entries are looked at one by one, and so are events that no other table has, which are
  /// those of the memtable when all is well.
  Result<void> compare(const std::vector<index::TableSlot>& slots, ExpectedEntries& expected) {
    std::vector<index::TableSlot> sortable;
    std::uint64_t entries = 0;
    for (const auto& slot : slots) {
      entries += slot.table->count();
      if (slot.table->version() > 2) {
        sortable.push_back(slot);
      }
    }
    Progress progress(tool_, "verify index", entries, Progress::Unit::kEvents);
    TableEntries tables(sortable);
    auto* found = tables.advance(findings_);
    VERGER_TRY(bool wanted, expected.advance());
    std::optional<index::IndexEntry> matched;
    while (found != nullptr || wanted) {
      if (found != nullptr && wanted && *found->entry == expected.current()) {
        matched = expected.current();
        VERGER_TRY(wanted, expected.advance());
      }
      if (found != nullptr && (!wanted || expected.current() < *found->entry)) {
        VERGER_RETURN_IF_ERROR(look_at(*found, matched == found->entry, expected));
        found = tables.advance(findings_);
        progress.update(totals_.entries);
        continue;
      }
      if (wanted && (found == nullptr || *found->entry < expected.current())) {
        VERGER_RETURN_IF_ERROR(look_up(expected.current()));
        VERGER_TRY(wanted, expected.advance());
      }
    }
    for (const auto& slot : slots) {
      if (slot.table->version() <= 2) {
        VERGER_RETURN_IF_ERROR(verify_old_table(slot.table, expected));
      }
    }
    return {};
  }

  Result<void> look_at(TableEntries::Source& source, bool matched,
                       const ExpectedEntries& expected) {
    ++totals_.entries;
    const auto& entry = *source.entry;
    if (source.last_hash != entry.hash) {
      source.last_hash = entry.hash;
      if (!source.table->may_contain(entry.hash)) {
        findings_.damage_of_kind(
            "entry missing in the bloom filter", source.table->path(),
            source.table->entry_offset(source.number),
            "its bloom filter hides this entry: remove the filter file or rebuild the index");
      }
    }
    if (matched) {
      existence_.look_at(entry, findings_);
      return {};
    }
    return entry_against_log(*source.table, entry, source.number, expected);
  }

  Result<void> verify_old_table(const std::shared_ptr<const index::PTable>& table,
                                const ExpectedEntries& expected) {
    TableEntries entries({index::TableSlot{.level = 0, .position = 0, .table = table}});
    while (auto* source = entries.advance(findings_)) {
      ++totals_.entries;
      VERGER_RETURN_IF_ERROR(entry_against_log(*table, *source->entry, source->number, expected));
    }
    return {};
  }

  /// An event that no table has: the index may hold it in memory.
  Result<void> look_up(const index::IndexEntry& event) {
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

  Result<void> entry_against_log(const index::PTable& table, const index::IndexEntry& entry,
                                 std::uint64_t n, const ExpectedEntries& expected) {
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
    if (!expected.complete() && !prepare->has(log::prepare_flags::kIsCommitted)) {
      return {};  // which number its commit gave it is not known
    }
    const auto number = expected.number_by_commit(entry.position).value_or(prepare->event_number());
    if (number != entry.number) {
      damaged_entry(table, entry, n,
                    fmt::format("the record there is event {} of its stream", number));
    }
    return {};
  }

  void damaged_entry(const index::PTable& table, const index::IndexEntry& entry, std::uint64_t n,
                     std::string_view why) {
    findings_.damage_of_kind(
        "wrong index entry", table.path(), table.entry_offset(n),
        fmt::format("the entry (hash {:016x}, number {}) points to log position {}: {}",
                    entry.hash.value(), entry.number, entry.position, why));
  }

  ToolContext& tool_;
  const log::TransactionLog& log_;
  const index::Index& index_;
  const VerifyOptions& options_;
  Findings& findings_;
  LogPosition complete_from_;
  ExistenceCheck existence_;
  Bytes buffer_;
  IndexTotals totals_;
};

}  // namespace

Result<IndexTotals> verify_index(ToolContext& tool, const streams::Database& database,
                                 const VerifyOptions& options, Findings& findings) {
  return IndexVerifier(tool, database, options, findings).run(database);
}

}  // namespace verger::tool
