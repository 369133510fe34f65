#include "engine/streams/detail/stream_keys.h"

#include <algorithm>
#include <functional>

#include "engine/base/digest.h"
#include "engine/streams/stream_names.h"

namespace verger::streams::detail {
namespace {

constexpr std::size_t kNamesKept = std::size_t{1} << 16U;
/// A name is in one of so many places.
constexpr std::size_t kPlaces = 4;
/// How many events before it is needed memory is fetched.
constexpr std::size_t kKeysAhead = 6;

std::size_t hash_of_name(std::string_view name) { return std::hash<std::string_view>{}(name); }

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

const StreamKey& StreamKeys::key_of(std::string_view name, std::size_t hash) {
  const auto first = first_place_of(hash);
  for (auto place = first; place < first + kPlaces; ++place) {
    if (hashes_[place] == hash && names_[place].name == name && !name.empty()) {
      return names_[place].key;
    }
  }
  const auto place = first + hash / kNamesKept % kPlaces;
  hashes_[place] = hash;
  auto& kept = names_[place];
  kept.name = name;
  const auto whole = sha256(as_bytes(name));
  std::copy_n(whole.begin(), kept.key.size(), kept.key.begin());
  return kept.key;
}

void StreamKeys::find(std::span<DescribedEvent> events, ByteView messages) {
  wanted_.clear();
  for (const auto& event : events) {
    const auto name = stream_in(messages);
    wanted_.push_back({name, hash_of_name(name)});
    messages = messages.subspan(event.message_size);
  }
  for (std::size_t n = 0; n < events.size(); ++n) {
    if (n + 3 * kKeysAhead < wanted_.size()) {
      __builtin_prefetch(&hashes_[first_place_of(wanted_[n + 3 * kKeysAhead].hash)]);
      __builtin_prefetch(&names_[place_of(wanted_[n + 2 * kKeysAhead].hash)]);
      __builtin_prefetch(names_[place_of(wanted_[n + kKeysAhead].hash)].name.data());
    }
    set_stream(events[n], wanted_[n].name, wanted_[n].hash);
  }
}

void StreamKeys::set_stream(DescribedEvent& event, std::string_view name, std::size_t hash) {
  auto& kept = event.kept;
  kept.stream = key_of(name, hash);
  // A stream, its metastream, and that one's, share a part: what one says decides on the other.
  auto root = kept.stream;
  while (is_metastream(name)) {
    name = original_of(name);
    root = key_of(name, hash_of_name(name));
    kept.originals.push_back(root);
  }
  event.partition = load_le<std::uint64_t>(root.data()) % EventSpill::kPartitions;
}

}  // namespace verger::streams::detail
