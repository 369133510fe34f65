#pragma once

#include <array>
#include <bit>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string_view>
#include <vector>

namespace verger::scavenge::detail {

/// Remembers which names were met, in a fixed amount of memory: 8 bytes for each of at most
/// `entries` names, taken page by page. A name may be forgotten. It is known by more than 80 bits
/// of two hashes, not by its bytes: among ten million names two that are taken for one have a
/// chance of 10^-11.
class SeenNames {
 public:
  explicit SeenNames(std::size_t entries)
      : pages_(std::bit_ceil((entries + kPageEntries - 1) / kPageEntries)) {}

  struct Key {
    std::uint64_t place = 0;
    std::uint64_t tag = 0;
  };
  /// What insert() wants to know of a name. The memory it will look at is fetched meanwhile: asking
  /// for some keys first, and inserting them then, hides most of the waiting.
  [[nodiscard]] Key key_of(std::string_view name) const {
    const Key key{std::hash<std::string_view>{}(name), tag_of(name)};
    if (const auto& page = page_of(key); page != nullptr) {
      __builtin_prefetch(page->data() + set_of(key), 1);
    }
    return key;
  }

  /// True when the name was there; it is afterwards.
  bool insert(const Key& key) {
    auto& page = pages_[page_number(key)];
    if (page == nullptr) {
      page = std::make_unique<Page>();
    }
    auto* set = page->data() + set_of(key);
    for (std::size_t way = 0; way < kWays; ++way) {
      if (set[way] == key.tag) {
        return true;
      }
      if (set[way] == 0) {
        set[way] = key.tag;
        return false;
      }
    }
    // Any of them: a round over all names would always find the longest unused one gone.
    set[victim_++ % kWays] = key.tag;
    return false;
  }
  bool insert(std::string_view name) { return insert(key_of(name)); }

  void clear() {
    for (auto& page : pages_) {
      page.reset();
    }
  }

 private:
  static constexpr std::size_t kPageEntries = 256;
  static constexpr std::size_t kWays = 8;  ///< a line of the processor's cache
  using Page = std::array<std::uint64_t, kPageEntries>;

  [[nodiscard]] std::size_t page_number(const Key& key) const {
    return static_cast<std::size_t>(key.place >> 8U) & (pages_.size() - 1);
  }
  [[nodiscard]] const std::unique_ptr<Page>& page_of(const Key& key) const {
    return pages_[page_number(key)];
  }
  static std::size_t set_of(const Key& key) {
    return static_cast<std::size_t>(key.place) & (kPageEntries - kWays);
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

  std::vector<std::unique_ptr<Page>> pages_;
  std::size_t victim_ = 0;
};

}  // namespace verger::scavenge::detail
