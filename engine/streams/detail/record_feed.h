#pragma once

#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/uuid.h"
#include "engine/log/transaction_log.h"
#include "engine/streams/detail/stream_reader.h"

namespace verger::streams::detail {

/// One event of a write.
struct WrittenEvent {
  EventNumber number;
  Uuid id;
  LogPosition position;  ///< of its prepare
  LogPosition end;       ///< of its prepare: the next record lies at or after it
};

/// The events of one stream that become visible together.
struct Write {
  std::string stream;
  std::vector<WrittenEvent> events;
  LogPosition begin;   ///< where its first record lies
  LogPosition end;     ///< it is committed once everything below is
  LogPosition commit;  ///< of the commit record, or of the last self-committed prepare
  /// The newest of its events, for a metastream.
  std::optional<RawMetadata> metadata;
};

/// Groups the records of a log, handed in one after the other, into writes.
class RecordFeed {
 public:
  using Sink = std::function<void(Write)>;
  /// `log` is read for the prepares of an explicit transaction when its commit comes.
  RecordFeed(const log::TransactionLog& log, Sink sink) : log_(log), sink_(std::move(sink)) {}

  /// `next`: where the record ends.
  Result<void> push(const log::Record& record, LogPosition next);
  /// Hands out a write whose last record never came (scavenged, or never written).
  void finish();
  /// Where the write that is still being collected begins.
  std::optional<LogPosition> open_since() const;

 private:
  void add(const log::Prepare& prepare, EventNumber number, LogPosition next);

  const log::TransactionLog& log_;
  Sink sink_;
  std::optional<Write> open_;
  LogPosition open_transaction_{-1};
};

}  // namespace verger::streams::detail
