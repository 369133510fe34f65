#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "engine/base/result.h"
#include "engine/redaction/leftovers.h"
#include "engine/redaction/redaction_list.h"
#include "engine/streams/event_store.h"

namespace verger::redaction {

struct EventName {
  std::string stream;
  EventNumber number;
  friend bool operator==(const EventName&, const EventName&) = default;
};

/// What is to be redacted. An event may have several names here.
struct RedactionRequest {
  std::vector<EventName> events{};
  std::vector<LogPosition> positions{};
  /// Redactions of another node of the same database, or of this one before a restore.
  std::vector<ListedRedaction> listed{};
  bool metadata = false;  ///< of `events` and `positions`: the bytes of their metadata, too
  /// Events of "$$" streams of users' streams are accepted, their newest ones excepted.
  bool metadata_streams = false;
  /// `events` are looked for in all of the log, not in the index: finds records whose index entries
  /// a scavenge removed. Reads everything.
  bool scan_log = false;
};

/// One record of an event that is to be redacted, or already was.
struct PlannedRecord {
  std::string stream;
  EventNumber number;  ///< -1: of a transaction that was never committed
  LogPosition position;
  std::string chunk_file;
  std::uint64_t data_bytes = 0;
  std::uint64_t metadata_bytes = 0;
  bool metadata = false;  ///< is blanked, too
  bool already = false;   ///< nothing is to be done
  Sha256Digest digest{};  ///< blanked_digest()
};

/// One chunk file that is rewritten, with those of its records that change.
struct PlannedChunk {
  std::string file;
  ChunkNumber start;
  ChunkNumber end;
  std::uint64_t file_size = 0;
  bool active = false;                 ///< to be completed first
  std::vector<std::size_t> records{};  ///< indexes in RedactionPlan::records
  std::uint64_t bytes = 0;             ///< that become 0xFF
};

struct RedactionPlan {
  std::vector<PlannedRecord> records{};  ///< by position
  std::vector<PlannedChunk> chunks{};    ///< by number
  std::vector<std::string> missing{};    ///< what the log does not have, each a text
  std::vector<std::string> refused{};    ///< what is not redacted, each with its reason
  std::vector<Leftover> leftovers{};     ///< files beside the live ones that may hold the data
  std::string unfinished_scavenge{};     ///< why and what to do; empty: there is none

  [[nodiscard]] std::size_t to_do() const;
  /// Free space that the largest copy needs; the copies are made one after the other.
  [[nodiscard]] std::uint64_t disk_need() const;
  [[nodiscard]] bool has_active() const;
  /// All records, for a list of redactions.
  [[nodiscard]] std::vector<ListedRedaction> to_list() const;
};

/// Finds the records and says what would be done and what would not. The database may be open
/// read-only; nothing is changed. An event is looked up in the index (or, with `scan_log`, in all
/// of the log) by stream and number; records of other streams with the same hash are left out, and
/// an event with several records has all of them in the plan. Refused are: system streams, scavenge
/// points, metadata events (see `metadata_streams`), tombstones, markers of transactions, records
/// that carry no event, and listed records that are others here. `pause` is called now and then
/// while the log is read; its error ends it. Errors: those of reading.
Result<RedactionPlan> plan_redaction(FileSystem& files, const streams::Database& database,
                                     const RedactionRequest& request,
                                     const std::function<Result<void>()>& pause = {});

/// What the caller allows beyond the usual.
struct RedactionConsent {
  bool skip_missing = false;
  /// The active chunk is completed first: for a database that no other node has.
  bool complete_chunk = false;
  bool remove_leftovers = false;
};

/// kNotFound or kRefused with everything that stands against this plan; nothing has changed then.
Result<void> check_plan(const RedactionPlan& plan, const RedactionConsent& consent);

/// "12@orders-7"
std::string name_of(std::string_view stream, EventNumber number);
/// The reverse. Error: kInvalidArgument.
Result<EventName> parse_event_name(std::string_view text);

}  // namespace verger::redaction
