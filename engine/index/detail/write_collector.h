#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <unordered_map>
#include <vector>

#include "engine/index/entry.h"
#include "engine/index/stream_hash.h"
#include "engine/log/transaction_log.h"

namespace verger::index::detail {

/// Turns the records of a log, fed in order, into the index entries of its committed writes: what
/// the server does at start-up (docs/formats/index.md, "Catching up").
class WriteCollector {
 public:
  struct Write {
    std::span<const IndexEntry> entries;  ///< never empty
    LogPosition prepare;                  ///< the greatest position among them
    LogPosition commit;                   ///< of the commit record, or of the last prepare
    bool has_commit_record = false;
  };
  using Sink = std::function<Result<void>(const Write&)>;

  /// `from`: no record before it will be fed; what a commit needs of them is read from `log`.
  WriteCollector(const log::TransactionLog& log, HashFunction hash, LogPosition from, Sink sink)
      : log_(log), hash_(hash), kept_from_(from), sink_(std::move(sink)) {}

  /// Called for every prepare fed, committed or not, with its stream's hash.
  using PrepareCallback = std::function<void(const log::Prepare&, StreamHash)>;
  void on_prepare(PrepareCallback callback) { on_prepare_ = std::move(callback); }

  /// What counts of a prepare.
  struct Prepared {
    LogPosition position;
    LogPosition transaction_position;
    StreamHash hash;
    EventNumber number;
    std::int32_t transaction_offset = 0;
    std::uint16_t flags = 0;
  };
  static Prepared prepared(const log::Prepare& prepare, StreamHash hash) {
    return {prepare.position,       prepare.transaction_position, hash,
            prepare.event_number(), prepare.transaction_offset,   prepare.flags};
  }

  /// Errors: kCorruption (one transaction with several streams), those of reading, the sink's.
  Result<void> feed(const log::LogRecord& record);
  /// The same for others who read the records; without the callback.
  Result<void> feed(const Prepared& prepare);
  Result<void> feed(const log::Commit& commit);
  /// After the last record: a write whose end was not fed is handed on as it is. So is one whose
  /// end was scavenged or never written; the server indexes each such prepare on its own.
  Result<void> finish();

 private:
  struct Part {
    LogPosition position;
    StreamHash hash;
    std::int32_t offset = 0;
    std::uint16_t flags = 0;
  };

  Result<void> emit(LogPosition commit, bool has_commit_record = false);
  Result<std::vector<Part>> parts_of(const log::Commit& commit);
  StreamHash hash_of(std::string_view stream);

  const log::TransactionLog& log_;
  HashFunction hash_;
  /// Parts of every transaction that begins at or after it are in `open_`.
  LogPosition kept_from_;
  Sink sink_;
  PrepareCallback on_prepare_;

  std::vector<IndexEntry> entries_;  // of the self-committed write that has not ended
  LogPosition write_{-1};            // its transaction position
  std::unordered_map<LogPosition, std::vector<Part>> open_;
  std::size_t open_parts_ = 0;
  LogPosition last_commit_{-1};

  std::string last_stream_;
  StreamHash last_hash_;
};

}  // namespace verger::index::detail
