#pragma once

#include <bit>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace verger::scavenge::detail {

/// Remembers values of stream names within a fixed number of entries. A name may be in one of two
/// neighbouring places, of which the less recently used one is given up. Looking up allocates
/// nothing.
template <class Value>
class NameCache {
 public:
  explicit NameCache(std::size_t entries)
      : entries_(std::bit_ceil(entries < 2 ? std::size_t{2} : entries)) {}

  /// Valid until the next put() or find().
  const Value* find(std::string_view name) {
    const auto hash = hash_of(name);
    const auto at = slot(hash);
    if (is(at, hash, name)) {
      return &entries_[at].value;
    }
    if (is(at + 1, hash, name)) {
      std::swap(entries_[at], entries_[at + 1]);
      return &entries_[at].value;
    }
    return nullptr;
  }

  /// `name` must not be there.
  const Value& put(std::string_view name, Value value) {
    const auto hash = hash_of(name);
    const auto at = slot(hash);
    std::swap(entries_[at], entries_[at + 1]);
    entries_[at].hash = hash;
    entries_[at].name.assign(name);
    entries_[at].value = std::move(value);
    return entries_[at].value;
  }

  void clear() {
    for (auto& entry : entries_) {
      entry.hash = 0;
      entry.name.clear();
    }
  }

 private:
  struct Entry {
    std::uint64_t hash = 0;  ///< 0: free
    std::string name;
    Value value{};
  };

  static std::uint64_t hash_of(std::string_view name) {
    return std::hash<std::string_view>{}(name) | 1U;
  }
  std::size_t slot(std::uint64_t hash) const {
    return static_cast<std::size_t>(hash >> 7U) & (entries_.size() - 2);
  }
  bool is(std::size_t at, std::uint64_t hash, std::string_view name) const {
    return entries_[at].hash == hash && entries_[at].name == name;
  }

  std::vector<Entry> entries_;
};

}  // namespace verger::scavenge::detail
