#pragma once

#include <algorithm>
#include <bit>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/scavenge/estimate.h"
#include "engine/scavenge/removal_rule.h"

namespace verger::scavenge::detail {

/// What goes of each stream, in bounded memory: when there are too many streams the lesser half is
/// dropped. The table grows with the streams: few of them stay in the processor's cache.
class TopStreams {
 public:
  /// One line of the processor's cache.
  struct alignas(64) Stream {
    std::string name;
    std::size_t hash = 0;
    Volume removed;
    std::unique_ptr<const RemovalFacts> facts;  ///< of few streams
  };
  static_assert(sizeof(Stream) == 64);

  static std::size_t hash_of(std::string_view name) { return std::hash<std::string_view>{}(name); }

  /// The memory that at() will look at is fetched meanwhile: first where the stream is, some time
  /// later the stream, then its name.
  void expect_place(std::size_t hash) const { __builtin_prefetch(slots_.data() + place_of(hash)); }
  void expect_stream(std::size_t hash) const {
    if (const auto number = slots_[place_of(hash)]; number != 0) {
      __builtin_prefetch(&streams_[number - 1], 1);
    }
  }
  void expect_name(std::size_t hash) const {
    if (const auto number = slots_[place_of(hash)]; number != 0) {
      __builtin_prefetch(streams_[number - 1].name.data());
    }
  }

  /// The stream, which something goes of. Valid until the next call.
  Stream& at(std::string_view name) { return at(name, hash_of(name)); }
  Stream& at(std::string_view name, std::size_t hash) {
    auto slot = find(hash, name);
    if (slots_[slot] == 0) {
      if (streams_.size() == kMost) {
        drop_lesser_half();
      }
      streams_.push_back({.name = std::string(name), .hash = hash, .removed = {}, .facts = {}});
      if (streams_.size() * 2 > slots_.size()) {
        fill_slots();
      } else {
        slot = find(hash, name);
        slots_[slot] = static_cast<std::uint32_t>(streams_.size());
      }
      return streams_.back();
    }
    return streams_[slots_[slot] - 1];
  }
  [[nodiscard]] bool exact() const { return exact_; }
  [[nodiscard]] std::uint64_t streams() const { return streams_.size() + dropped_; }
  [[nodiscard]] std::vector<StreamEstimate> largest(std::size_t count) const {
    std::vector<const Stream*> all;
    all.reserve(streams_.size());
    for (const auto& stream : streams_) {
      all.push_back(&stream);
    }
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size()));
    std::partial_sort(all.begin(), end, all.end(), [](const Stream* a, const Stream* b) {
      return a->removed.bytes != b->removed.bytes ? a->removed.bytes > b->removed.bytes
                                                  : a->name < b->name;
    });
    std::vector<StreamEstimate> largest;
    for (const auto* stream : std::span(all.begin(), end)) {
      largest.push_back({stream->name, stream->removed});
    }
    return largest;
  }

 private:
  static constexpr std::size_t kMost = 400'000;
  static constexpr std::size_t kFirstSlots = 1024;

  [[nodiscard]] std::size_t place_of(std::size_t hash) const {
    return (hash >> 7U) & (slots_.size() - 1);
  }

  /// The slot of the name, or the free one where it would be.
  [[nodiscard]] std::size_t find(std::size_t hash, std::string_view name) const {
    const auto last = slots_.size() - 1;
    auto slot = place_of(hash);
    while (slots_[slot] != 0) {
      const auto& stream = streams_[slots_[slot] - 1];
      if (stream.hash == hash && stream.name == name) {
        break;
      }
      slot = (slot + 1) & last;
    }
    return slot;
  }

  void fill_slots() {
    slots_.assign(std::max(std::bit_ceil(streams_.size() * 4), kFirstSlots), 0);
    for (std::size_t n = 0; n < streams_.size(); ++n) {
      slots_[find(streams_[n].hash, streams_[n].name)] = static_cast<std::uint32_t>(n + 1);
    }
  }

  void drop_lesser_half() {
    std::vector<std::uint64_t> sizes;
    sizes.reserve(streams_.size());
    for (const auto& stream : streams_) {
      sizes.push_back(stream.removed.bytes);
    }
    const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
    std::ranges::nth_element(sizes, middle);
    auto to_go = sizes.size() / 2;
    dropped_ += std::erase_if(streams_, [&, limit = *middle](const auto& stream) {
      const bool goes = to_go > 0 && stream.removed.bytes <= limit;
      to_go -= goes ? 1 : 0;
      return goes;
    });
    exact_ = false;
    fill_slots();
  }

  std::vector<Stream> streams_;
  std::vector<std::uint32_t> slots_ = std::vector<std::uint32_t>(kFirstSlots);  ///< 0: free
  std::uint64_t dropped_ = 0;
  bool exact_ = true;
};

}  // namespace verger::scavenge::detail
