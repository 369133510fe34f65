#pragma once

#include <cstdint>
#include <functional>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/file_system.h"
#include "engine/base/log.h"
#include "engine/base/result.h"
#include "engine/base/types.h"

namespace verger::controller {

/// Count of events in a stream: 0 = it does not exist. Appending to revision n makes it n + size.
using Revision = Strong<struct RevisionTag, std::int64_t>;
/// Place of an event among all events of the journal, from 1; the id of server-sent events. What
/// was removed leaves gaps, nothing else does.
using Sequence = Strong<struct SequenceTag, std::int64_t>;
/// Term of one controller. Each start takes the next; older ones are refused from then on.
using ControllerEpoch = Strong<struct ControllerEpochTag, std::int64_t>;

inline constexpr Revision kAnyRevision{-1};

/// `data` is JSON text; it never holds a secret.
struct NewEvent {
  std::string type;
  std::string data = "{}";
};

/// An event as the journal has it.
struct JournalEvent {
  Sequence sequence;
  std::string stream;
  Revision revision;  ///< of the stream after this event: 1 for the first
  std::string type;
  std::string data;
  Ticks at;
  ControllerEpoch epoch;
  std::string hash;  ///< hex; covers this event and the hash before it
};

/// What a reader made of a stream's events up to `revision`, kept so that it need not read those
/// again. It is no part of the history: it may be missing, and the events alone decide.
struct Snapshot {
  std::string stream;
  Revision revision;
  std::string summary;  ///< JSON, small: what a list of streams shows
  std::string state;    ///< JSON: all of it
};

/// Events that are to go, and what the journal needs to know of them.
struct Removal {
  struct Event {
    Sequence sequence;
    std::string stream;
    Revision revision;
    std::string hash;  ///< hex
  };
  std::vector<Event> events;         ///< by sequence
  std::vector<std::string> streams;  ///< of these, those that have no other event; by name
};

/// Events beside each other that are gone. The event behind them was hashed with the hash of
/// `last`: the chain continues there.
struct RemovedRange {
  Sequence first;
  Sequence last;
  std::string hash;  ///< hex, of `last`
  friend bool operator==(const RemovedRange&, const RemovedRange&) = default;
};

struct JournalSize {
  std::int64_t events = 0;
  std::int64_t bytes = 0;         ///< on disk: of the file, or of etcd's database
  std::int64_t bytes_in_use = 0;  ///< of these, what is not free for new events
};

/// Types of the events in the stream "journal".
namespace events {
/// {by, reason, events, ranges: [[first, last], ...], archive, archive_sha256}: written before
/// events go. Each range of the journal that is gone lies in those of such events.
inline constexpr std::string_view kEventsRemoved = "events-removed";
}  // namespace events
inline constexpr std::string_view kJournalStream = "journal";

/// The controller's only durable state: a list of events in streams, to which events are appended
/// and from which old ones can be removed. One thread.
class Journal {
 public:
  virtual ~Journal() = default;

  /// All events or none; durable when it returns: then these are they. Errors: kConflict (the
  /// stream is at another revision), kRefused (`epoch` is not the newest: another controller has
  /// taken over), kUnknownOutcome (it may be written: read the stream before anything else),
  /// kNoSpace. After kNoSpace and kUnknownOutcome the journal can still be read.
  virtual Result<std::vector<JournalEvent>> append(std::string_view stream, Revision expected,
                                                   std::vector<NewEvent> events,
                                                   ControllerEpoch epoch) = 0;
  /// Events of `stream` with a revision above `after`, oldest first, `limit` of them at most. A
  /// stream that is not there has none.
  virtual Result<std::vector<JournalEvent>> read(
      std::string_view stream, Revision after = Revision(0),
      std::size_t limit = std::numeric_limits<std::int64_t>::max()) = 0;
  /// Events of all streams with a sequence above `after`, oldest first.
  virtual Result<std::vector<JournalEvent>> read_all(Sequence after, std::size_t limit = 1'000) = 0;
  virtual Result<Revision> revision(std::string_view stream) = 0;
  virtual Result<Sequence> last_sequence() = 0;
  /// Names of streams that begin with `prefix`, sorted.
  virtual Result<std::vector<std::string>> streams(std::string_view prefix) = 0;

  /// Keeps it in place of the stream's last one. Errors: kConflict (the stream is not at its
  /// revision), kRefused (the epoch, as in append), kNoSpace, kIo; then the last one may be kept.
  virtual Result<void> save_snapshot(const Snapshot& snapshot, ControllerEpoch epoch) = 0;
  /// Nothing where none is kept, or where the event at its revision is not the one it was made
  /// with.
  virtual Result<std::optional<Snapshot>> snapshot(std::string_view stream) = 0;
  /// Those of streams that begin with `prefix` and have no event above their revision, without
  /// `state`, sorted by stream.
  virtual Result<std::vector<Snapshot>> current_snapshots(std::string_view prefix) = 0;

  /// Removes events for good, all of the call or, after an error, a part of them; streams without
  /// any event are gone with their snapshots. The journal's newest event cannot be removed, nor a
  /// stream's newest one unless the whole stream goes. Errors: kInvalidArgument (one of these),
  /// kRefused (the epoch, as in append), kUnknownOutcome, kNoSpace, kIo.
  virtual Result<void> remove(const Removal& removal, ControllerEpoch epoch) = 0;
  /// What was removed, by sequence; ranges do not touch.
  virtual Result<std::vector<RemovedRange>> removed() = 0;
  /// Gives the space of what was removed back to the store, for new events. It may take a while.
  virtual Result<void> reclaim() = 0;
  virtual Result<JournalSize> size() = 0;

  /// Takes the next epoch: every append with an older one is refused from now on.
  virtual Result<ControllerEpoch> begin_epoch(std::string_view owner) = 0;
  virtual Result<ControllerEpoch> epoch() = 0;

  /// Walks the hash chain. kCorruption names the first event that is not what was written, or that
  /// is missing and was not removed on record.
  virtual Result<Sequence> verify() = 0;

  /// Called after each append, on the caller's stack: do little, such as waking a waiter. Ends
  /// when the Subscription is destroyed, which may be after the journal is gone.
  using Listener = std::function<void(Sequence last)>;
  using Subscription = std::shared_ptr<void>;
  [[nodiscard]] virtual Subscription subscribe(Listener listener) = 0;
};

/// SQLite: WAL, synchronous=FULL. The format is in controller/journal/README.md. Errors:
/// kUnsupported (a newer schema), kRefused (another process has it), kCorruption, kIo.
Result<std::unique_ptr<Journal>> open_sqlite_journal(FileSystem& files, const Path& path,
                                                     Clock& clock);

/// Appends to a stream by one owner who knows its revision, and resolves unknown outcomes by
/// reading the stream.
class StreamWriter {
 public:
  StreamWriter(Journal& journal, std::string stream, ControllerEpoch epoch, Revision revision)
      : journal_(&journal), stream_(std::move(stream)), epoch_(epoch), revision_(revision) {}
  /// The events as the journal has them. After kUnknownOutcome the stream was read: either the
  /// events are there, or the error is kUnavailable and they certainly are not, or it stays
  /// kUnknownOutcome because the journal cannot be read either.
  Result<std::vector<JournalEvent>> append(std::vector<NewEvent> events);
  [[nodiscard]] const std::string& stream() const { return stream_; }
  [[nodiscard]] Revision revision() const { return revision_; }

 private:
  Journal* journal_;
  std::string stream_;
  ControllerEpoch epoch_;
  Revision revision_;
};

}  // namespace verger::controller
