#include "controller/journal/sqlite_journal.h"

#include <algorithm>
#include <fmt/format.h>
#include <set>
#include <utility>

#include "controller/journal/chain.h"
#include "controller/journal/detail/listeners.h"
#include "controller/journal/detail/removal.h"
#include "controller/journal/detail/sqlite_schema.h"
#include "engine/base/digest.h"
#include "engine/base/sqlite.h"

namespace verger::controller {
namespace {

using detail::change_of_ranges;
using detail::check_removal;

constexpr std::string_view kColumns =
    "SELECT sequence, stream, revision, type, data, at, epoch, hash FROM events ";

struct Head : ChainHead {
  ControllerEpoch epoch;
};

class SqliteJournal final : public Journal {
 public:
  SqliteJournal(FileSystem& files, Path path, Clock& clock, ControllerEpoch epoch_above)
      : files_(files), path_(std::move(path)), clock_(clock), epoch_above_(epoch_above) {}

  Result<void> open() {
    auto database = sqlite::Database::open(files_, path_);
    if (!database && database.error().code == Errc::kRefused) {
      return Error{Errc::kRefused,
                   fmt::format("{}: another vergerd uses this directory; stop that one, or choose "
                               "another directory with --data",
                               path_.parent_path().string())};
    }
    if (!database) {
      return database.error();
    }
    database_.emplace(*std::move(database));
    VERGER_RETURN_IF_ERROR(detail::bring_up_to_date(*database_, path_));
    return load_head();
  }

  Result<std::vector<JournalEvent>> append(std::string_view stream, Revision expected,
                                           std::vector<NewEvent> events,
                                           ControllerEpoch epoch) override {
    VERGER_RETURN_IF_ERROR(ready());
    VERGER_RETURN_IF_ERROR(check_epoch(stream, epoch));
    VERGER_TRY(const auto current, revision(stream));
    if (expected != kAnyRevision && expected != current) {
      return Error{Errc::kConflict, fmt::format("{}: expected revision {}, it is at {}", stream,
                                                expected.value(), current.value())};
    }
    if (events.empty()) {
      return std::vector<JournalEvent>();
    }
    auto head = head_;
    auto begun = sqlite::Transaction::begin(*database_);
    if (!begun) {
      return failed(begun.error(), stream, false);
    }
    auto written = write(stream, current, std::move(events), epoch, head);
    if (!written) {
      return failed(written.error(), stream, false);
    }
    auto committed = begun->commit();
    if (!committed) {
      // The commit record may have reached the disk although its sync failed.
      return failed(committed.error(), stream, committed.error().code != Errc::kNoSpace);
    }
    head_ = std::move(head);
    listeners_.tell(head_.sequence);
    return written;
  }

  Result<std::vector<JournalEvent>> read(std::string_view stream, Revision after,
                                         std::size_t limit) override {
    VERGER_RETURN_IF_ERROR(ready());
    VERGER_TRY(auto statement,
               database_->prepare_to_keep(fmt::format(
                   "{} WHERE stream = ? AND revision > ? ORDER BY revision LIMIT ?", kColumns)));
    statement.bind(1, stream).bind(2, after.value()).bind(3, static_cast<std::int64_t>(limit));
    return rows(statement);
  }

  Result<std::vector<JournalEvent>> read_all(Sequence after, std::size_t limit) override {
    VERGER_RETURN_IF_ERROR(ready());
    VERGER_TRY(auto statement, database_->prepare_to_keep(fmt::format(
                                   "{} WHERE sequence > ? ORDER BY sequence LIMIT ?", kColumns)));
    statement.bind(1, after.value()).bind(2, static_cast<std::int64_t>(limit));
    return rows(statement);
  }

  Result<Revision> revision(std::string_view stream) override {
    VERGER_RETURN_IF_ERROR(ready());
    VERGER_TRY(auto statement,
               database_->prepare_to_keep("SELECT revision FROM streams WHERE stream = ?"));
    statement.bind(1, stream);
    VERGER_TRY(const bool there, statement.step());
    return there ? Revision(statement.column_int(0)) : Revision(0);
  }

  Result<Sequence> last_sequence() override {
    VERGER_RETURN_IF_ERROR(ready());
    return head_.sequence;
  }

  Result<std::vector<std::string>> streams(std::string_view prefix) override {
    VERGER_RETURN_IF_ERROR(ready());
    VERGER_TRY(auto statement, database_->prepare_to_keep(
                                   "SELECT stream FROM streams WHERE stream >= ? ORDER BY stream"));
    statement.bind(1, prefix);
    std::vector<std::string> out;
    for (;;) {
      VERGER_TRY(const bool more, statement.step());
      if (!more || !statement.column_text(0).starts_with(prefix)) {
        return out;
      }
      out.emplace_back(statement.column_text(0));
    }
  }

  Result<void> save_snapshot(const Snapshot& snapshot, ControllerEpoch epoch) override {
    VERGER_RETURN_IF_ERROR(ready());
    VERGER_RETURN_IF_ERROR(check_epoch(snapshot.stream, epoch));
    auto saved = [&]() -> Result<bool> {
      VERGER_TRY(auto statement,
                 database_->prepare_to_keep(
                     "INSERT OR REPLACE INTO snapshots (stream, revision, hash, summary, state) "
                     "SELECT e.stream, e.revision, e.hash, ?, ? FROM events e JOIN streams s ON "
                     "s.stream = e.stream AND s.revision = e.revision WHERE e.stream = ? AND "
                     "e.revision = ?"));
      statement.bind(1, std::string_view(snapshot.summary))
          .bind(2, std::string_view(snapshot.state))
          .bind(3, std::string_view(snapshot.stream))
          .bind(4, snapshot.revision.value());
      VERGER_RETURN_IF_ERROR(statement.run());
      return database_->changes() > 0;
    }();
    if (!saved) {
      return failed(saved.error(), snapshot.stream, false);
    }
    if (!*saved) {
      return Error{Errc::kConflict, fmt::format("{}: a snapshot of revision {}, which is not its "
                                                "last",
                                                snapshot.stream, snapshot.revision.value())};
    }
    return {};
  }

  Result<std::optional<Snapshot>> snapshot(std::string_view stream) override {
    VERGER_RETURN_IF_ERROR(ready());
    VERGER_TRY(auto statement,
               database_->prepare_to_keep(
                   "SELECT n.revision, n.summary, n.state FROM snapshots n JOIN "
                   "events e ON e.stream = n.stream AND e.revision = n.revision AND "
                   "e.hash = n.hash WHERE n.stream = ?"));
    statement.bind(1, stream);
    VERGER_TRY(const bool there, statement.step());
    if (!there) {
      return std::optional<Snapshot>();
    }
    return std::optional(Snapshot{std::string(stream), Revision(statement.column_int(0)),
                                  std::string(statement.column_text(1)),
                                  std::string(statement.column_text(2))});
  }

  Result<std::vector<Snapshot>> current_snapshots(std::string_view prefix) override {
    VERGER_RETURN_IF_ERROR(ready());
    VERGER_TRY(auto statement, database_->prepare_to_keep(
                                   "SELECT n.stream, n.revision, n.summary FROM snapshots n JOIN "
                                   "streams s ON s.stream = n.stream AND s.revision = n.revision "
                                   "JOIN events e ON e.stream = n.stream AND e.revision = "
                                   "n.revision AND e.hash = n.hash WHERE n.stream >= ? "
                                   "ORDER BY n.stream"));
    statement.bind(1, prefix);
    std::vector<Snapshot> out;
    for (;;) {
      VERGER_TRY(const bool more, statement.step());
      if (!more || !statement.column_text(0).starts_with(prefix)) {
        return out;
      }
      out.push_back(Snapshot{std::string(statement.column_text(0)),
                             Revision(statement.column_int(1)),
                             std::string(statement.column_text(2)),
                             {}});
    }
  }

  Result<void> remove(const Removal& removal, ControllerEpoch epoch) override {
    VERGER_RETURN_IF_ERROR(ready());
    VERGER_RETURN_IF_ERROR(check_epoch(kJournalStream, epoch));
    VERGER_RETURN_IF_ERROR(check_removal(removal, head_.sequence));
    auto begun = sqlite::Transaction::begin(*database_);
    if (!begun) {
      return failed(begun.error(), "removal", false);
    }
    // What is refused here rolls back.
    if (const auto taken = take_out(removal); !taken) {
      return failed(taken.error(), "removal", false);
    }
    const auto committed = begun->commit();
    if (!committed) {
      return failed(committed.error(), "removal", committed.error().code != Errc::kNoSpace);
    }
    return {};
  }

  Result<std::vector<RemovedRange>> removed() override {
    VERGER_RETURN_IF_ERROR(ready());
    VERGER_TRY(auto statement,
               database_->prepare_to_keep("SELECT first, last, hash FROM removed ORDER BY last"));
    std::vector<RemovedRange> out;
    for (;;) {
      VERGER_TRY(const bool more, statement.step());
      if (!more) {
        return out;
      }
      out.push_back(RemovedRange{Sequence(statement.column_int(0)),
                                 Sequence(statement.column_int(1)),
                                 to_hex(statement.column_blob(2))});
    }
  }

  Result<void> reclaim() override {
    VERGER_RETURN_IF_ERROR(ready());
    // Pages that are free serve new events; of the log beside the file nothing is left.
    return database_->execute("PRAGMA wal_checkpoint(TRUNCATE)");
  }

  Result<JournalSize> size() override {
    VERGER_RETURN_IF_ERROR(ready());
    VERGER_TRY(const auto page, database_->query_int("PRAGMA page_size"));
    VERGER_TRY(const auto pages, database_->query_int("PRAGMA page_count"));
    VERGER_TRY(const auto unused, database_->query_int("PRAGMA freelist_count"));
    VERGER_TRY(const auto gone,
               database_->query_int("SELECT coalesce(sum(last - first + 1), 0) FROM removed"));
    return JournalSize{.events = head_.sequence.value() - gone,
                       .bytes = page * pages,
                       .bytes_in_use = page * (pages - unused)};
  }

  Result<ControllerEpoch> begin_epoch(std::string_view owner) override {
    VERGER_RETURN_IF_ERROR(ready());
    const ControllerEpoch next(std::max(head_.epoch, epoch_above_).value() + 1);
    auto begun = sqlite::Transaction::begin(*database_);
    if (!begun) {
      return failed(begun.error(), "epochs", false);
    }
    auto inserted = [&]() -> Result<void> {
      VERGER_TRY(auto statement, database_->prepare_to_keep(
                                     "INSERT INTO epochs (epoch, owner, at) VALUES (?, ?, ?)"));
      statement.bind(1, next.value()).bind(2, owner).bind(3, clock_.now().value());
      return statement.run();
    }();
    if (!inserted) {
      return failed(inserted.error(), "epochs", false);
    }
    auto committed = begun->commit();
    if (!committed) {
      return failed(committed.error(), "epochs", committed.error().code != Errc::kNoSpace);
    }
    head_.epoch = next;
    return next;
  }

  Result<ControllerEpoch> epoch() override {
    VERGER_RETURN_IF_ERROR(ready());
    return head_.epoch;
  }

  Result<Sequence> verify() override {
    VERGER_RETURN_IF_ERROR(ready());
    const auto check = check_chain(*this);
    if (!check) {
      return check.error().within(path_.string());
    }
    return check->at();
  }

  Subscription subscribe(Listener listener) override { return listeners_.add(std::move(listener)); }

 private:
  /// Opens again after a failure that left the connection in doubt. The checkpoint writes what the
  /// WAL holds anew and syncs it, so that what is read from now on is durable.
  Result<void> ready() {
    if (!in_doubt_) {
      return {};
    }
    database_.reset();
    VERGER_RETURN_IF_ERROR(open());
    VERGER_RETURN_IF_ERROR(database_->execute("PRAGMA wal_checkpoint(TRUNCATE)"));
    in_doubt_ = false;
    return {};
  }

  Result<void> check_epoch(std::string_view stream, ControllerEpoch epoch) const {
    if (epoch == head_.epoch) {
      return {};
    }
    return Error{Errc::kRefused,
                 fmt::format("{}: epoch {} is over, the journal is at {}: another controller has "
                             "taken over",
                             stream, epoch.value(), head_.epoch.value())};
  }

  Error failed(const Error& error, std::string_view stream, bool may_be_written) {
    in_doubt_ = may_be_written || error.code == Errc::kIo;
    if (may_be_written) {
      return Error{Errc::kUnknownOutcome,
                   fmt::format("{}: {}; it may be written or not", stream, error.message)};
    }
    return error.within(stream);
  }

  Result<void> load_head() {
    VERGER_TRY(const auto epoch,
               database_->query_int("SELECT coalesce(max(epoch), 0) FROM epochs"));
    head_ = Head{{}, ControllerEpoch(epoch)};
    VERGER_TRY(auto statement,
               database_->prepare_to_keep("SELECT sequence, hash FROM events ORDER BY "
                                          "sequence DESC LIMIT 1"));
    VERGER_TRY(const bool there, statement.step());
    if (there) {
      head_.sequence = Sequence(statement.column_int(0));
      const auto hash = statement.column_blob(1);
      head_.hash.assign(hash.begin(), hash.end());
    }
    return {};
  }

  Result<std::vector<JournalEvent>> write(std::string_view stream, Revision current,
                                          std::vector<NewEvent> events, ControllerEpoch epoch,
                                          Head& head) {
    std::vector<JournalEvent> out;
    VERGER_TRY(auto insert, database_->prepare_to_keep(
                                "INSERT INTO events (sequence, stream, revision, type, data, at, "
                                "epoch, hash) VALUES (?, ?, ?, ?, ?, ?, ?, ?)"));
    auto revision = current;
    for (auto& event : events) {
      revision = Revision(revision.value() + 1);
      const auto& row = out.emplace_back(
          chain_event(head, stream, revision, std::move(event), clock_.now(), epoch));
      insert.bind(1, row.sequence.value())
          .bind(2, stream)
          .bind(3, revision.value())
          .bind(4, std::string_view(row.type))
          .bind(5, std::string_view(row.data))
          .bind(6, row.at.value())
          .bind(7, epoch.value())
          .bind(8, ByteView(head.hash));
      VERGER_RETURN_IF_ERROR(insert.run());
    }
    VERGER_TRY(auto update,
               database_->prepare_to_keep("INSERT INTO streams (stream, revision) VALUES (?, "
                                          "?) ON CONFLICT (stream) DO UPDATE SET revision = "
                                          "excluded.revision"));
    update.bind(1, stream).bind(2, revision.value());
    VERGER_RETURN_IF_ERROR(update.run());
    return out;
  }

  Result<void> take_out(const Removal& removal) {
    VERGER_TRY(auto drop, database_->prepare_to_keep(
                              "DELETE FROM events WHERE sequence = ? AND stream = ? AND "
                              "revision = ? AND hash = ?"));
    for (const auto& event : removal.events) {
      const auto hash = bytes_of_hex(event.hash);
      drop.bind(1, event.sequence.value())
          .bind(2, std::string_view(event.stream))
          .bind(3, event.revision.value())
          .bind(4, ByteView(hash));
      VERGER_RETURN_IF_ERROR(drop.run());
      if (database_->changes() != 1) {
        return Error{Errc::kInvalidArgument, fmt::format("event {} of {} is not there",
                                                         event.sequence.value(), event.stream)};
      }
    }
    for (const auto& stream : removal.streams) {
      for (const auto* from : {"streams", "snapshots"}) {
        VERGER_TRY(auto forget, database_->prepare_to_keep(
                                    fmt::format("DELETE FROM {} WHERE stream = ?", from)));
        forget.bind(1, std::string_view(stream));
        VERGER_RETURN_IF_ERROR(forget.run());
      }
    }
    VERGER_TRY(const auto known, removed());
    const auto change = change_of_ranges(known, removal);
    for (const auto& old : change.gone) {
      VERGER_TRY(auto forget, database_->prepare_to_keep("DELETE FROM removed WHERE last = ?"));
      forget.bind(1, old.value());
      VERGER_RETURN_IF_ERROR(forget.run());
    }
    for (const auto& range : change.now) {
      const auto hash = bytes_of_hex(range.hash);
      VERGER_TRY(auto keep, database_->prepare_to_keep(
                                "INSERT INTO removed (last, first, hash) VALUES (?, ?, ?)"));
      keep.bind(1, range.last.value()).bind(2, range.first.value()).bind(3, ByteView(hash));
      VERGER_RETURN_IF_ERROR(keep.run());
    }
    return each_stream_has_its_newest(removal);
  }

  /// Of the streams that lost events, `streams` says where they end, or that they are gone.
  Result<void> each_stream_has_its_newest(const Removal& removal) {
    std::set<std::string_view> streams;
    for (const auto& event : removal.events) {
      streams.insert(event.stream);
    }
    for (const auto stream : streams) {
      VERGER_TRY(auto newest, database_->prepare_to_keep(
                                  "SELECT (SELECT max(revision) FROM events WHERE stream = ?1) "
                                  "IS (SELECT revision FROM streams WHERE stream = ?1)"));
      newest.bind(1, stream);
      VERGER_TRY(const bool there, newest.step());
      if (!there || newest.column_int(0) != 1) {
        return Error{Errc::kInvalidArgument,
                     fmt::format("the newest event of {} must not be removed alone", stream)};
      }
    }
    return {};
  }

  static Result<std::vector<JournalEvent>> rows(sqlite::Statement& statement) {
    std::vector<JournalEvent> out;
    for (;;) {
      VERGER_TRY(const bool more, statement.step());
      if (!more) {
        return out;
      }
      out.push_back(
          JournalEvent{Sequence(statement.column_int(0)), std::string(statement.column_text(1)),
                       Revision(statement.column_int(2)), std::string(statement.column_text(3)),
                       std::string(statement.column_text(4)), Ticks(statement.column_int(5)),
                       ControllerEpoch(statement.column_int(6)), to_hex(statement.column_blob(7))});
    }
  }

  FileSystem& files_;
  Path path_;
  Clock& clock_;
  ControllerEpoch epoch_above_;
  std::optional<sqlite::Database> database_;
  bool in_doubt_ = false;
  Head head_{};
  detail::Listeners listeners_;
};

}  // namespace

Result<std::unique_ptr<Journal>> open_sqlite_journal_above(FileSystem& files, const Path& path,
                                                           Clock& clock,
                                                           ControllerEpoch epoch_above) {
  auto journal = std::make_unique<SqliteJournal>(files, path, clock, epoch_above);
  auto opened = journal->open();
  if (!opened) {
    return opened.error().within("journal");
  }
  return std::unique_ptr<Journal>(std::move(journal));
}

Result<std::unique_ptr<Journal>> open_sqlite_journal(FileSystem& files, const Path& path,
                                                     Clock& clock) {
  return open_sqlite_journal_above(files, path, clock, ControllerEpoch(0));
}

}  // namespace verger::controller
