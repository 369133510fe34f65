#include "engine/streams/detail/hashed_records.h"

#include <utility>

#include "engine/base/sha256_lanes.h"

namespace verger::streams::detail {
namespace {

constexpr std::size_t kMostUnderWay = 3;

}  // namespace

void HashedRecords::clear() {
  log.clear();
  chunk_ends.clear();
  chunks.clear();
  messages.clear();
  events.clear();
}

RecordHashing::RecordHashing(bool in_background) {
  if (in_background) {
    background_.emplace([this](HashedRecords& records) { hash(records); });
  }
}

std::unique_ptr<HashedRecords> RecordHashing::make() {
  if (spare_.empty()) {
    return std::make_unique<HashedRecords>();
  }
  auto records = std::move(spare_.back());
  spare_.pop_back();
  records->clear();
  return records;
}

void RecordHashing::give(std::unique_ptr<HashedRecords> records) {
  if (background_) {
    background_->give(std::move(records));
    return;
  }
  hash(*records);
  hashed_ = std::move(records);
}

std::unique_ptr<HashedRecords> RecordHashing::take(bool all) {
  if (background_) {
    return all || background_->size() >= kMostUnderWay ? background_->take() : nullptr;
  }
  return std::exchange(hashed_, nullptr);
}

void RecordHashing::recycle(std::unique_ptr<HashedRecords> records) {
  spare_.push_back(std::move(records));
}

void RecordHashing::hash(HashedRecords& records) {
  std::size_t begin = 0;
  for (const auto end : records.chunk_ends) {
    chunk_.update(ByteView(records.log).subspan(begin, end - begin));
    records.chunks.push_back(chunk_.finish());
    chunk_ = Sha256();
    begin = end;
  }
  chunk_.update(ByteView(records.log).subspan(begin));
  ByteView left = records.messages;
  messages_.clear();
  for (const auto& event : records.events) {
    messages_.push_back(left.first(event.message_size));
    left = left.subspan(event.message_size);
  }
  digests_.resize(messages_.size());
  sha256_of_each(messages_, digests_);
  for (std::size_t n = 0; n < digests_.size(); ++n) {
    records.events[n].kept.digest = digests_[n];
  }
}

}  // namespace verger::streams::detail
