#include "engine/streams/detail/stream_keys.h"

#include <algorithm>
#include <functional>

#include "engine/base/sha256_lanes.h"
#include "engine/streams/stream_names.h"

namespace verger::streams::detail {
namespace {

constexpr std::size_t kNamesKept = std::size_t{1} << 16U;
/// A name is in one of so many places.
constexpr std::size_t kPlaces = 4;
/// How many names before it is needed memory is fetched.
constexpr std::size_t kKeysAhead = 6;

}  // namespace

StreamKeys::StreamKeys() : hashes_(kNamesKept), names_(kNamesKept) {}

std::size_t StreamKeys::first_place_of(std::size_t hash) {
  return hash % (kNamesKept / kPlaces) * kPlaces;
}

std::size_t StreamKeys::place_of(std::size_t hash) const {
  const auto first = first_place_of(hash);
  for (auto place = first; place < first + kPlaces; ++place) {
    if (hashes_[place] == hash) {
      return place;
    }
  }
  return first;
}

const StreamKey* StreamKeys::remembered(const Wanted& wanted) const {
  const auto first = first_place_of(wanted.hash);
  for (auto place = first; place < first + kPlaces; ++place) {
    const auto& kept = names_[place];
    if (hashes_[place] == wanted.hash && kept.name == wanted.name && !wanted.name.empty()) {
      return &kept.key;
    }
  }
  return nullptr;
}

void StreamKeys::remember(const Wanted& wanted) {
  const auto place = first_place_of(wanted.hash) + wanted.hash / kNamesKept % kPlaces;
  hashes_[place] = wanted.hash;
  names_[place].name = wanted.name;
  names_[place].key = wanted.key;
}

void StreamKeys::list_names(std::span<const DescribedEvent> events, ByteView messages) {
  const auto add = [this](std::string_view name) {
    wanted_.push_back({.name = name, .hash = std::hash<std::string_view>{}(name)});
  };
  wanted_.clear();
  for (const auto& event : events) {
    auto name = stream_in(messages);
    messages = messages.subspan(event.message_size);
    add(name);
    while (is_metastream(name)) {
      name = original_of(name);
      add(name);
    }
  }
}

void StreamKeys::find_keys() {
  unknown_.clear();
  unknown_names_.clear();
  for (std::size_t n = 0; n < wanted_.size(); ++n) {
    if (n + 3 * kKeysAhead < wanted_.size()) {
      __builtin_prefetch(&hashes_[first_place_of(wanted_[n + 3 * kKeysAhead].hash)]);
      __builtin_prefetch(&names_[place_of(wanted_[n + 2 * kKeysAhead].hash)]);
      __builtin_prefetch(names_[place_of(wanted_[n + kKeysAhead].hash)].name.data());
    }
    if (const auto* key = remembered(wanted_[n])) {
      wanted_[n].key = *key;
    } else {
      unknown_.push_back(static_cast<std::uint32_t>(n));
      unknown_names_.push_back(as_bytes(wanted_[n].name));
    }
  }
  digests_.resize(unknown_.size());
  sha256_of_each(unknown_names_, digests_);
  for (std::size_t n = 0; n < unknown_.size(); ++n) {
    auto& wanted = wanted_[unknown_[n]];
    std::copy_n(digests_[n].begin(), wanted.key.size(), wanted.key.begin());
    remember(wanted);
  }
}

void StreamKeys::find(std::span<DescribedEvent> events, ByteView messages) {
  list_names(events, messages);
  find_keys();
  auto next = wanted_.begin();
  for (auto& event : events) {
    auto& kept = event.kept;
    auto last = next++;
    kept.stream = last->key;
    for (; is_metastream(last->name); last = next++) {
      kept.originals.push_back(next->key);
    }
    // A stream, its metastream, and that one's, share a part: what one says decides on the other.
    event.partition = load_le<std::uint64_t>(last->key.data()) % EventSpill::kPartitions;
  }
}

}  // namespace verger::streams::detail
