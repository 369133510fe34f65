#pragma once

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/scavenge/estimate.h"

namespace verger::scavenge::detail {

/// Volumes by stream, in bounded memory: when there are too many streams the lesser half is
/// dropped.
class TopStreams {
 public:
  void add(std::string_view stream, std::uint64_t bytes) {
    auto found = streams_.find(stream);
    if (found == streams_.end()) {
      if (streams_.size() == kMost) {
        drop_lesser_half();
      }
      found = streams_.emplace(std::string(stream), Volume{}).first;
    }
    found->second += Volume{1, bytes};
  }
  [[nodiscard]] bool exact() const { return exact_; }
  [[nodiscard]] std::uint64_t streams() const { return streams_.size() + dropped_; }
  [[nodiscard]] std::vector<StreamEstimate> largest(std::size_t count) const {
    std::vector<StreamEstimate> all;
    all.reserve(streams_.size());
    for (const auto& [name, volume] : streams_) {
      all.push_back({name, volume});
    }
    const auto end = all.begin() + static_cast<std::ptrdiff_t>(std::min(count, all.size()));
    std::partial_sort(all.begin(), end, all.end(), [](const auto& a, const auto& b) {
      return a.removed.bytes != b.removed.bytes ? a.removed.bytes > b.removed.bytes
                                                : a.stream < b.stream;
    });
    all.erase(end, all.end());
    return all;
  }

 private:
  static constexpr std::size_t kMost = 400'000;

  void drop_lesser_half() {
    std::vector<std::uint64_t> sizes;
    sizes.reserve(streams_.size());
    for (const auto& [name, volume] : streams_) {
      sizes.push_back(volume.bytes);
    }
    const auto middle = sizes.begin() + static_cast<std::ptrdiff_t>(sizes.size() / 2);
    std::ranges::nth_element(sizes, middle);
    auto to_go = sizes.size() / 2;
    std::erase_if(streams_, [&, limit = *middle](const auto& stream) {
      const bool goes = to_go > 0 && stream.second.bytes <= limit;
      to_go -= goes ? 1 : 0;
      dropped_ += goes ? 1 : 0;
      return goes;
    });
    exact_ = false;
  }

  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>{}(text);
    }
  };
  std::unordered_map<std::string, Volume, Hash, std::equal_to<>> streams_;
  std::uint64_t dropped_ = 0;
  bool exact_ = true;
};

}  // namespace verger::scavenge::detail
