#pragma once

#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <thread>
#include <utility>
#include <vector>

#include "engine/index/detail/write_collector.h"
#include "engine/index/stream_hash.h"
#include "engine/log/transaction_log.h"

namespace verger::index::detail {

/// Reads a log in threads of its own, several chunks side by side, and gives out what an index has
/// to know of their records in the order of the log. One thread uses it; its end is the threads'.
class RecordsAhead {
 public:
  /// Some records that follow each other.
  struct Batch {
    std::uint64_t records = 0;
    std::vector<WriteCollector::Prepared> prepares;
    /// How many of the prepares lie before each commit.
    std::vector<std::pair<std::size_t, log::Commit>> commits;
    std::optional<Error> error;  ///< behind all of that; nothing follows
  };

  /// Up to `end`. The log outlives it.
  RecordsAhead(const log::TransactionLog& log, LogPosition end, HashFunction hash,
               std::size_t threads);
  ~RecordsAhead();
  RecordsAhead(const RecordsAhead&) = delete;
  RecordsAhead& operator=(const RecordsAhead&) = delete;

  /// The next records, which are waited for; nullopt at the end.
  std::optional<Batch> next();

 private:
  /// One chunk.
  struct Part {
    LogPosition from;
    LogPosition end;
    std::deque<Batch> batches;
    bool ended = false;
  };
  void work();
  void read(Part& part);
  /// False once the reading is to end.
  bool hand_over(Part& part, Batch batch);

  const log::TransactionLog& log_;
  HashFunction hash_;
  std::size_t threads_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<Part> parts_;
  std::size_t given_out_ = 0;  ///< parts of which nothing is left
  std::size_t taken_ = 0;      ///< parts that are, or were, read
  bool stopping_ = false;
  std::vector<std::jthread> workers_;  ///< last: they end before what they use
};

}  // namespace verger::index::detail
