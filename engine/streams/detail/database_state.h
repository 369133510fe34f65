#pragma once

#include <atomic>
#include <expected>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "engine/base/random.h"
#include "engine/index/index.h"
#include "engine/log/transaction_log.h"
#include "engine/streams/detail/pending_writes.h"
#include "engine/streams/detail/stream_reader.h"
#include "engine/streams/event_store.h"

namespace verger::streams {

/// The parts of a database, and the steps of writing and committing.
struct Database::State {
  static constexpr std::size_t kRecentEvents = 100'000;
  static constexpr std::size_t kWrittenStreams = 2'000;

  FileSystem& files;
  Clock& clock;
  Random& random;
  Log& out;
  bool writable;
  std::unique_ptr<log::TransactionLog> log;
  std::unique_ptr<index::Index> index;
  detail::StreamReader reader;
  /// Readers see the log below this.
  std::atomic<std::int64_t> committed;
  // What follows belongs to the writing thread.
  detail::PendingWrites pending;
  detail::RecentEvents recent{kRecentEvents};
  detail::WrittenVersions written{kWrittenStreams};
  /// Up to here `pending` accounts for the log.
  LogPosition accounted;
  /// Set when an append failed half-way: what `pending` says may then not be on the disk, so that
  /// no later write may be decided by it.
  std::optional<Error> broken;

  State(FileSystem& files_in, Clock& clock_in, Random& random_in, Log& out_in, bool writable_in,
        std::unique_ptr<log::TransactionLog> log_in, std::unique_ptr<index::Index> index_in,
        LogPosition committed_in);
  ~State();

  LogPosition committed_position() const { return LogPosition(committed.load()); }
  Result<void> check_writable(std::string_view what) const;

  /// Notes what others appended to the log (epochs, received chunks) since the last look.
  void account_for_log();
  /// Makes all that is not committed a range to be read again.
  void forget_pending();
  /// Reads all noted ranges, so that expected versions see what is in them.
  Result<void> look_into_ranges();
  Result<void> add_to_index(const detail::Write& write);
  Result<void> commit_up_to(LogPosition position);
  /// Fills `recent` from the end of the committed log.
  Result<void> remember_recent();

  // --- Streams as they are once everything in flight is committed ---
  Result<EventNumber> last_event_number(std::string_view stream) const;
  Result<std::optional<detail::RawMetadata>> raw_metadata(std::string_view stream) const;
  Result<bool> soft_deleted(std::string_view stream) const;

  // --- Writing ---

  /// What to do with a write, by its expected version and its events' ids.
  struct Decision {
    enum class Kind : std::uint8_t { kWrite, kRepeated, kFailed } kind;
    EventNumber current{-1};
    bool soft_deleted = false;
    WriteOutcome outcome{};  ///< kRepeated
    Error error{};           ///< kFailed
  };
  Result<Decision> decide(std::string_view stream, std::int64_t expected_version,
                          std::span<const Uuid> ids);
  /// Whether the stream may be deleted; the number of its last event.
  std::expected<EventNumber, WriteFailure> decide_deletion(std::string_view stream,
                                                           std::int64_t expected_version,
                                                           const Uuid& id);
  Result<std::optional<detail::WrittenEvent>> find_written(std::string_view stream,
                                                           EventNumber number, const Uuid& id);
  /// Appends prepares of one stream and notes them; not flushed.
  Result<detail::Write> append_prepares(std::span<log::Prepare> prepares);
  Result<void> flush(Flush when);
  /// After a flush that ended like this.
  Result<void> flushed(Result<void> outcome);
  /// Appends one.
  WriteResult append_alone(log::Prepare prepare, EventNumber current, Flush when);
  /// Appends the metadata event that lets a soft-deleted stream begin at `first`.
  Result<LogPosition> undelete(std::string_view stream, EventNumber first);
  log::Prepare event_prepare(std::string_view stream, EventNumber number, const NewEvent& event,
                             std::uint16_t flags);
};

}  // namespace verger::streams
