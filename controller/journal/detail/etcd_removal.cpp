#include "controller/journal/detail/etcd_removal.h"

#include <algorithm>
#include <map>
#include <utility>

#include "controller/journal/detail/removal.h"

namespace verger::controller::detail {

using nlohmann::json;

namespace {

/// etcd takes 128.
constexpr std::size_t kOperations = 100;

/// Keys of events beside each other: first and last.
struct Span {
  std::string stream{};
  std::int64_t first = 0;
  std::int64_t last = 0;
};

void add_to(std::vector<Span>& spans, std::string_view stream, std::int64_t number) {
  const auto joined = std::ranges::find_if(
      spans, [&](const Span& span) { return span.stream == stream && span.last + 1 == number; });
  if (joined == spans.end()) {
    spans.push_back({std::string(stream), number, number});
  } else {
    joined->last = number;
  }
}

/// What one transaction does.
struct Batch {
  Removal part;
  std::vector<Span> sequences;
  std::vector<Span> revisions;

  /// A range takes the place of up to two others.
  [[nodiscard]] std::size_t operations() const { return 4 * sequences.size() + revisions.size(); }
};

void replace(std::vector<RemovedRange>& known, const ChangeOfRanges& change) {
  std::erase_if(known, [&](const RemovedRange& range) {
    return std::ranges::find(change.gone, range.last) != change.gone.end();
  });
  known.insert(known.end(), change.now.begin(), change.now.end());
  std::ranges::sort(known, {}, &RemovedRange::last);
}

json operations_of(const EtcdKeys& keys, const Batch& batch, std::vector<RemovedRange>& known) {
  auto out = json::array();
  for (const auto& span : batch.sequences) {
    out.push_back(etcd::remove(keys.sequence(span.first), keys.sequence(span.last + 1)));
  }
  for (const auto& span : batch.revisions) {
    out.push_back(
        etcd::remove(keys.event(span.stream, span.first), keys.event(span.stream, span.last + 1)));
  }
  const auto change = change_of_ranges(known, batch.part);
  for (const auto& last : change.gone) {
    // A transaction writes no key twice.
    if (std::ranges::find(change.now, last, &RemovedRange::last) == change.now.end()) {
      out.push_back(etcd::remove(keys.removed(last)));
    }
  }
  for (const auto& range : change.now) {
    out.push_back(etcd::put(keys.removed(range.last), removed_text(range)));
  }
  replace(known, change);
  return out;
}

}  // namespace

std::vector<json> removing(const EtcdKeys& keys, const Removal& removal,
                           std::vector<RemovedRange> known) {
  std::vector<json> out;
  Batch batch;
  for (const auto& event : removal.events) {
    if (batch.operations() + 5 > kOperations) {
      out.push_back(operations_of(keys, batch, known));
      batch = {};
    }
    batch.part.events.push_back(event);
    add_to(batch.sequences, "", event.sequence.value());
    add_to(batch.revisions, event.stream, event.revision.value());
  }
  if (!batch.part.events.empty()) {
    out.push_back(operations_of(keys, batch, known));
  }
  auto streams = json::array();
  for (const auto& stream : removal.streams) {
    for (const auto& key : {keys.stream(stream), keys.summary(stream), keys.state(stream)}) {
      streams.push_back(etcd::remove(key));
    }
    if (streams.size() + 3 > kOperations) {
      out.push_back(std::exchange(streams, json::array()));
    }
  }
  if (!streams.empty()) {
    out.push_back(std::move(streams));
  }
  return out;
}

}  // namespace verger::controller::detail
