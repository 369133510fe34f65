#include "engine/index/detail/records_ahead.h"

#include <algorithm>
#include <string>

namespace verger::index::detail {
namespace {

constexpr std::size_t kRecordsOfBatch = 8192;
/// Of a chunk, waiting to be given out: some 20 MB.
constexpr std::size_t kMostBatches = 64;

}  // namespace

RecordsAhead::RecordsAhead(const log::TransactionLog& log, LogPosition end, HashFunction hash,
                           std::size_t threads)
    : log_(log), hash_(hash), threads_(threads) {
  for (LogPosition at(0); at < end;) {
    const auto chunk = log.chunk_at(at);
    // Where there is none, reading says so.
    const auto next = chunk == nullptr ? end : std::min(chunk->end_position(), end);
    parts_.push_back({.from = at, .end = next, .batches = {}});
    at = next;
  }
  for (std::size_t n = 0; n < threads; ++n) {
    workers_.emplace_back([this] { work(); });
  }
}

RecordsAhead::~RecordsAhead() {
  const std::lock_guard lock(mutex_);
  stopping_ = true;
  changed_.notify_all();
}

void RecordsAhead::work() {
  std::unique_lock lock(mutex_);
  while (true) {
    // No further ahead: what waits is held in memory.
    changed_.wait(lock, [this] {
      return stopping_ || taken_ == parts_.size() || taken_ < given_out_ + threads_;
    });
    if (stopping_ || taken_ == parts_.size()) {
      return;
    }
    auto& part = parts_[taken_++];
    lock.unlock();
    read(part);
    lock.lock();
    part.ended = true;
    changed_.notify_all();
  }
}

void RecordsAhead::read(Part& part) {
  log::LogCursor cursor(log_, part.from, part.end);
  std::string stream;
  StreamHash hash;
  bool more = true;
  while (more) {
    Batch batch;
    batch.prepares.reserve(kRecordsOfBatch);
    while (batch.records < kRecordsOfBatch) {
      const auto record = cursor.next();
      if (!record) {
        batch.error = record.error();
      }
      more = record && record->has_value();
      if (!more) {
        break;
      }
      ++batch.records;
      if (const auto* prepare = (*record)->prepare()) {
        if (prepare->stream != stream) {
          stream = prepare->stream;
          hash = hash_(stream);
        }
        batch.prepares.push_back(WriteCollector::prepared(*prepare, hash));
      } else if (const auto* commit = std::get_if<log::Commit>(&(*record)->record)) {
        batch.commits.emplace_back(batch.prepares.size(), *commit);
      }
    }
    more = hand_over(part, std::move(batch)) && more;
  }
}

bool RecordsAhead::hand_over(Part& part, Batch batch) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [&] { return stopping_ || part.batches.size() < kMostBatches; });
  part.batches.push_back(std::move(batch));
  changed_.notify_all();
  return !stopping_;
}

std::optional<RecordsAhead::Batch> RecordsAhead::next() {
  std::unique_lock lock(mutex_);
  while (given_out_ < parts_.size()) {
    auto& part = parts_[given_out_];
    changed_.wait(lock, [&] { return part.ended || !part.batches.empty(); });
    if (!part.batches.empty()) {
      auto batch = std::move(part.batches.front());
      part.batches.pop_front();
      changed_.notify_all();
      return batch;
    }
    ++given_out_;
    changed_.notify_all();
  }
  return std::nullopt;
}

}  // namespace verger::index::detail
