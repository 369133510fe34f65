#include "engine/streams/detail/pending_writes.h"

#include "engine/base/assert.h"
#include "engine/streams/stream_names.h"

namespace verger::streams::detail {

void PendingWrites::push(Write write) {
  if (!write.events.empty()) {
    auto& stream = streams_[write.stream];
    stream.last = write.events.back().number;
    ++stream.writes;
    if (write.metadata) {
      stream.metadata = write.metadata;
    }
  }
  items_.emplace_back(std::move(write));
}

void PendingWrites::push(Range range) {
  if (!items_.empty()) {
    if (auto* last = std::get_if<Range>(&items_.back()); last && last->end == range.begin) {
      last->end = range.end;
      return;
    }
  }
  items_.emplace_back(range);
  ++ranges_;
}

void PendingWrites::pop_front() {
  VERGER_ASSERT(!items_.empty());
  if (const auto* write = std::get_if<Write>(&items_.front())) {
    if (!write->events.empty()) {
      const auto stream = streams_.find(write->stream);
      if (--stream->second.writes == 0) {
        streams_.erase(stream);
      }
    }
  } else {
    --ranges_;
  }
  items_.pop_front();
}

std::deque<PendingWrites::Item> PendingWrites::take() {
  streams_.clear();
  ranges_ = 0;
  return std::exchange(items_, {});
}

std::optional<EventNumber> PendingWrites::last(std::string_view stream) const {
  const auto found = streams_.find(std::string(stream));
  return found == streams_.end() ? std::nullopt : std::optional(found->second.last);
}

const RawMetadata* PendingWrites::metadata(std::string_view stream) const {
  const auto found = streams_.find(metastream_of(stream));
  return found == streams_.end() || !found->second.metadata ? nullptr : &*found->second.metadata;
}

void RecentEvents::add(const Write& write) {
  for (const auto& event : write.events) {
    entries_.insert_or_assign(event.id, Entry{write.stream, event});
    order_.emplace_back(event.id, event.position);
  }
  while (order_.size() > capacity_) {
    const auto& [id, position] = order_.front();
    const auto found = entries_.find(id);
    if (found != entries_.end() && found->second.event.position == position) {
      entries_.erase(found);
    }
    order_.pop_front();
  }
}

const RecentEvents::Entry* RecentEvents::find(std::string_view stream, const Uuid& id) const {
  const auto found = entries_.find(id);
  return found == entries_.end() || found->second.stream != stream ? nullptr : &found->second;
}

void RecentEvents::truncate(LogPosition position) {
  while (!order_.empty() && order_.back().second >= position) {
    const auto found = entries_.find(order_.back().first);
    if (found != entries_.end() && found->second.event.position >= position) {
      entries_.erase(found);
    }
    order_.pop_back();
  }
}

void WrittenVersions::put(const std::string& stream, EventNumber last) {
  if (const auto found = entries_.find(stream); found != entries_.end()) {
    found->second->last = last;
    order_.splice(order_.begin(), order_, found->second);
    return;
  }
  order_.push_front({stream, last});
  entries_.emplace(order_.front().stream, order_.begin());
  if (order_.size() > capacity_) {
    entries_.erase(order_.back().stream);
    order_.pop_back();
  }
}

std::optional<EventNumber> WrittenVersions::find(std::string_view stream) const {
  const auto found = entries_.find(stream);
  return found == entries_.end() ? std::nullopt : std::optional(found->second->last);
}

void WrittenVersions::clear() {
  entries_.clear();
  order_.clear();
}

}  // namespace verger::streams::detail
