#include "engine/tool/detail/verify_index.h"

#include <algorithm>
#include <unordered_map>

#include "engine/streams/transaction_reader.h"
#include "engine/tool/progress.h"

namespace verger::tool {

namespace {

class IndexVerifier {
 public:
  IndexVerifier(ToolContext& tool, const streams::Database& database, Findings& findings)
      : tool_(tool),
        log_(database.transaction_log()),
        index_(database.stream_index()),
        findings_(findings) {}

  Result<IndexTotals> run(const streams::Database& database) {
    verify_epochs();
    VERGER_TRY(const auto points, streams::scavenge_points(database));
    // What lies before may have lost its entries to a scavenge that left the record in a chunk
    // below the threshold.
    complete_from_ = points.empty() ? LogPosition(0) : points.back().position;
    VERGER_CHECK(log_against_index());
    for (const auto& slot : index_.tables()) {
      VERGER_CHECK(verify_table(slot.table));
    }
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
        findings_.damage(
            log_.directory(), std::nullopt,
            fmt::format("the chain of epochs is broken at log position {}", epochs[i].position));
      }
    }
  }

  Result<void> log_against_index() {
    std::uint64_t bytes = 0;
    for (const auto& chunk : log_.chunks()) {
      bytes += static_cast<std::uint64_t>(chunk->data_size());
    }
    Progress progress(tool_, "verify log against index", bytes);
    std::uint64_t done = 0;
    log::LogCursor cursor(log_, LogPosition(0), log_.end());
    for (;;) {
      VERGER_TRY(const auto record, cursor.next());
      if (!record) {
        return {};
      }
      done += record->framed.size();
      progress.update(done);
      namespace detail = streams::detail;
      if (const auto* prepare = record->prepare()) {
        if (prepare->has(log::prepare_flags::kIsCommitted) && detail::carries_event(*prepare)) {
          VERGER_CHECK(look_up(*prepare, prepare->event_number()));
        }
      } else if (const auto* commit = std::get_if<log::Commit>(&record->record)) {
        Result<void> outcome;
        VERGER_CHECK(detail::visit_transaction(log_, *commit, [&](const log::Prepare& part) {
          const auto number = detail::number_by_commit(*commit, part);
          by_commit_.emplace(part.position.value(), number);
          outcome = look_up(part, number);
          return outcome.has_value();
        }));
        VERGER_CHECK(outcome);
      }
    }
  }

  Result<void> look_up(const log::Prepare& prepare, EventNumber number) {
    ++totals_.events;
    const auto hash = index_.hash(prepare.stream);
    VERGER_TRY(const auto entries,
               index_.range(hash, number, number, std::numeric_limits<std::size_t>::max()));
    if (std::ranges::find(entries, prepare.position, &index::IndexEntry::position) ==
        entries.end()) {
      if (prepare.position < complete_from_) {
        ++totals_.without_entry;
        return {};
      }
      findings_.damage_of_kind(
          "event without index entry", index_.directory(),
          fmt::format("event {} of stream '{}' at log position {} is not in the index; rebuild it "
                      "with `verger-db index rebuild`",
                      number, prepare.stream, prepare.position));
      return {};
    }
    // A tombstone alone may be missing there: the server itself leaves it out.
    if (!index_.may_exist(prepare.stream) && number != kDeletedStream) {
      findings_.damage_of_kind(
          "stream missing in the existence filter", index_.directory() / "stream-existence",
          fmt::format("stream '{}' is not in the existence filter: readers do not find it",
                      prepare.stream));
    }
    return {};
  }

  Result<void> verify_table(const std::shared_ptr<const index::PTable>& table) {
    ++totals_.tables;
    if (const auto sum = table->verify_md5(); !sum) {
      findings_.damage(table->path(), table->file_size() - sizeof(Md5Digest), sum.error().message);
    }
    index::PTableScanner scanner(table);
    Progress progress(tool_, "verify " + table->path().filename().string(), table->file_size());
    std::optional<index::IndexEntry> previous;
    const auto entry_size = table->version() == 1 ? 16U : table->version() == 2 ? 20U : 24U;
    for (std::uint64_t n = 0;; ++n) {
      auto entry = scanner.next();
      const auto offset = 128 + n * entry_size;
      if (!entry) {
        findings_.damage(table->path(), offset, entry.error().message);
        return {};
      }
      if (!*entry) {
        return {};
      }
      if (previous && *previous < **entry) {
        findings_.damage(table->path(), offset,
                         fmt::format("entry {} is greater than the one before it", n));
      }
      previous = **entry;
      ++totals_.entries;
      VERGER_CHECK(entry_against_log(*table, **entry, offset));
      progress.update(offset);
    }
  }

  Result<void> entry_against_log(const index::PTable& table, const index::IndexEntry& entry,
                                 std::uint64_t offset) {
    if (table.version() > 1 && !table.may_contain(entry.hash)) {
      findings_.damage_of_kind("entry missing in the bloom filter", table.path(),
                               fmt::format("its bloom filter hides the entry at offset {}: remove "
                                           "the filter file or rebuild the index",
                                           offset));
    }
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
      damaged_entry(table, entry, offset, record.error().message);
      return {};
    }
    const auto* prepare = record->prepare();
    if (prepare == nullptr) {
      damaged_entry(table, entry, offset, "the record there carries no event");
      return {};
    }
    // Version 1 stores half of the hash, and 1 and 2 cut numbers: those are compared as stored.
    if (table.version() > 2 && index_.hash(prepare->stream) != entry.hash) {
      damaged_entry(table, entry, offset,
                    fmt::format("the record there is of stream '{}'", prepare->stream));
      return {};
    }
    const auto by_commit = by_commit_.find(entry.position.value());
    const auto number = by_commit != by_commit_.end() ? by_commit->second : prepare->event_number();
    if (table.version() > 2 && number != entry.number) {
      damaged_entry(table, entry, offset,
                    fmt::format("the record there is event {} of its stream", number));
    }
    return {};
  }

  void damaged_entry(const index::PTable& table, const index::IndexEntry& entry,
                     std::uint64_t offset, std::string_view why) {
    findings_.damage_of_kind(
        "wrong index entry", table.path(),
        fmt::format(
            "the entry at offset {} (hash {:016x}, number {}) points to log position {}: {}",
            offset, entry.hash.value(), entry.number, entry.position, why));
  }

  ToolContext& tool_;
  const log::TransactionLog& log_;
  const index::Index& index_;
  Findings& findings_;
  LogPosition complete_from_;
  std::unordered_map<std::int64_t, EventNumber> by_commit_;
  Bytes buffer_;
  IndexTotals totals_;
};

}  // namespace

Result<IndexTotals> verify_index(ToolContext& tool, const streams::Database& database,
                                 Findings& findings) {
  return IndexVerifier(tool, database, findings).run(database);
}

}  // namespace verger::tool
