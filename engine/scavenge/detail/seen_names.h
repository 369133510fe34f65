#pragma once

#include <algorithm>
#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <string_view>
#include <vector>

#include "engine/base/wide_memory.h"

namespace verger::scavenge::detail {

/// Remembers which names were met, in a bounded amount of memory: 8 bytes for each of at most
/// `entries` names, and a quarter of it for the table before the largest one. A name may be
/// forgotten, but hardly one before the table is three quarters full, as each may be in two places.
/// It is known by 64 bits of one hash, at places that another one gives, not by its bytes: among
/// ten million names two that are taken for one have a chance of 10^-11.
class SeenNames {
 public:
  explicit SeenNames(std::size_t entries)
      : most_(std::bit_ceil(std::max(entries, kWays))), size_(std::min(most_, kFirst)) {}

  struct Key {
    std::uint64_t place = 0;
    std::uint64_t tag = 0;
  };
  static Key key_of(std::string_view name) {
    return {std::hash<std::string_view>{}(name), tag_of(name)};
  }
  /// The memory that insert() will look at is fetched meanwhile: expecting some keys first, and
  /// inserting them then, hides most of the waiting.
  void expect(const Key& key) const {
    if (!newest_.empty()) {
      __builtin_prefetch(newest_.data() + set_of(key.place, newest_), 1);
      __builtin_prefetch(newest_.data() + set_of(other(key.place), newest_), 1);
    }
  }

  /// True when the name was there; it is afterwards.
  bool insert(const Key& key) {
    if (newest_.empty()) {
      newest_.resize(size_);
    }
    auto* first = newest_.data() + set_of(key.place, newest_);
    auto* second = newest_.data() + set_of(other(key.place), newest_);
    const auto used = place_in(first, key.tag);
    const auto used_second = place_in(second, key.tag);
    if ((used < kWays && first[used] == key.tag) ||
        (used_second < kWays && second[used_second] == key.tag)) {
      return true;
    }
    const bool known = is_in(older_, key);
    if (const auto least = std::min(used, used_second); least < kWays) {
      (used == least ? first : second)[least] = key.tag;
      grow();
    } else {
      // Any of them: a round over all names would always find the longest unused one gone.
      first[victim_++ % kWays] = key.tag;
    }
    return known;
  }
  bool insert(std::string_view name) { return insert(key_of(name)); }

  void clear() {
    newest_ = {};
    older_ = {};
    size_ = std::min(most_, kFirst);
    count_ = 0;
  }

 private:
  using Table = std::vector<std::uint64_t, WideMemory<std::uint64_t>>;
  static constexpr std::size_t kFirst = std::size_t{1} << 14U;
  static constexpr std::size_t kGrowth = 4;
  static constexpr std::size_t kWays = 8;  ///< a line of the processor's cache

  static std::size_t set_of(std::uint64_t place, const Table& table) {
    return static_cast<std::size_t>(place) & (table.size() - kWays);
  }
  static std::uint64_t other(std::uint64_t place) { return std::rotl(place, 32); }
  /// Where the tag stands in the set, or the first free place; kWays: neither.
  static std::size_t place_in(const std::uint64_t* set, std::uint64_t tag) {
    std::size_t way = 0;
    while (way < kWays && set[way] != tag && set[way] != 0) {
      ++way;
    }
    return way;
  }
  static bool is_in(const Table& table, const Key& key) {
    if (table.empty()) {
      return false;
    }
    return std::ranges::any_of(std::array{key.place, other(key.place)}, [&](std::uint64_t place) {
      const auto* set = table.data() + set_of(place, table);
      return std::find(set, set + kWays, key.tag) != set + kWays;
    });
  }

  /// One entry more. A table that is half full is followed by a larger one, which takes the names
  /// over as they are met again.
  void grow() {
    if (++count_ <= newest_.size() / 2) {
      return;
    }
    if (newest_.size() < most_) {
      size_ = std::min(most_, newest_.size() * kGrowth);
      older_ = std::move(newest_);
      newest_ = Table(size_);
      count_ = 0;
    }
  }

  static std::uint64_t tag_of(std::string_view name) {
    constexpr std::uint64_t kMultiplier = 0x9FB21C651E98DF25U;
    std::uint64_t tag = name.size() + 0x9E3779B97F4A7C15U;
    const auto mix = [&tag](std::uint64_t word) {
      tag = (tag ^ word) * kMultiplier;
      tag ^= tag >> 35U;
    };
    while (name.size() >= sizeof(std::uint64_t)) {
      std::uint64_t word = 0;
      std::memcpy(&word, name.data(), sizeof word);
      mix(word);
      name.remove_prefix(sizeof word);
    }
    std::uint64_t word = 0;
    std::memcpy(&word, name.data(), name.size());
    mix(word);
    mix(tag >> 28U);
    return tag == 0 ? 1 : tag;
  }

  std::size_t most_;
  std::size_t size_;       ///< of the newest table
  Table newest_;           ///< tags; 0: free
  Table older_;            ///< the one before it, or empty
  std::size_t count_ = 0;  ///< entries of the newest table
  std::size_t victim_ = 0;
};

}  // namespace verger::scavenge::detail
