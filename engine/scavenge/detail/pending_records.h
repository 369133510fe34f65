#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <string>
#include <string_view>
#include <vector>

#include "engine/base/types.h"
#include "engine/scavenge/detail/seen_names.h"
#include "engine/scavenge/rules.h"

namespace verger::scavenge::detail {

/// A piece of PendingRecords' text.
struct PendingName {
  std::uint32_t offset = 0;
  std::uint32_t size = 0;
};

constexpr LogPosition kNothingReplaced{-1};

/// A metadata record or a tombstone whose effects are not stored yet.
struct PendingRecord {
  bool tombstone = false;
  /// By RecordOrder: a record that is out of order has no effect.
  bool in_order = true;
  /// So many names stand before it in the log.
  std::uint32_t names_before = 0;
  /// By RecordOrder: what goes because of this one, or the record itself where it is out of order;
  /// -1: nothing.
  LogPosition replaced = kNothingReplaced;
  PendingName metastream;  ///< the original stream's name is its end
  StreamHash metastream_hash;
  StreamHash original_hash;
  EventNumber number;
  LogPosition position;
  /// -1: none. ($tb may be 0; the others are above.)
  std::int64_t max_age_seconds = -1;
  std::int64_t max_count = -1;
  std::int64_t truncate_before = -1;
};

/// Streams met and records read by the accumulator, in the order of the log, until there are
/// enough of them to be worth sorting: some 50 MiB at most.
class PendingRecords {
 public:
  /// `most_names`: as many are enough, and a quarter as many records.
  explicit PendingRecords(std::size_t most_names)
      : most_names_(most_names), most_records_(std::max<std::size_t>(most_names / 4, 1)) {}

  /// A name that may be new. True when settle() is due.
  bool add_name(std::string_view name, const SeenNames::Key& key) {
    candidates_.push_back({store(name), key});
    return candidates_.size() >= kMostCandidates;
  }
  /// Keeps those names added since the last call that `is_new(name, key)`.
  template <class IsNew>
  void settle(const IsNew& is_new) {
    if (candidates_.empty()) {
      return;
    }
    auto end = candidates_.front().name.offset;
    for (const auto& [name, key] : candidates_) {
      if (!is_new(text(name), key)) {
        continue;
      }
      std::memmove(text_.data() + end, text_.data() + name.offset, name.size);
      names_.push_back({end, name.size});
      end += name.size;
    }
    text_.resize(end);
    candidates_.clear();
  }
  /// After settle(), with the names of its streams.
  void add(PendingRecord record, std::string_view metastream) {
    if (records_.capacity() == 0) {  // growing would copy, and keep what it has copied from
      records_.reserve(most_records_ + kMostAddedAtOnce);
    }
    // Most often its name is the newest one.
    record.metastream =
        !names_.empty() && text(names_.back()) == metastream ? names_.back() : store(metastream);
    record.names_before = static_cast<std::uint32_t>(names_.size());
    records_.push_back(record);
  }
  [[nodiscard]] bool empty() const {
    return names_.empty() && records_.empty() && candidates_.empty();
  }
  [[nodiscard]] bool full() const {
    return text_.size() >= kMostText || names_.size() >= most_names_ ||
           records_.size() >= most_records_;
  }
  void clear() {
    text_.clear();
    names_.clear();
    candidates_.clear();
    records_.clear();
  }

  [[nodiscard]] std::string_view text(PendingName name) const {
    return std::string_view(text_).substr(name.offset, name.size);
  }
  [[nodiscard]] const std::vector<PendingName>& names() const { return names_; }
  std::vector<PendingRecord>& records() { return records_; }

 private:
  static constexpr std::size_t kMostText = std::size_t{24} << 20U;
  static constexpr std::size_t kMostCandidates = 32;
  /// Records that are added after the last of them was enough.
  static constexpr std::size_t kMostAddedAtOnce = std::size_t{1} << 15U;

  PendingName store(std::string_view name) {
    if (text_.capacity() < kMostText) {
      text_.reserve(kMostText + kMostText / 4);
    }
    const PendingName stored{static_cast<std::uint32_t>(text_.size()),
                             static_cast<std::uint32_t>(name.size())};
    text_ += name;
    return stored;
  }

  struct Candidate {
    PendingName name;
    SeenNames::Key key;
  };

  std::size_t most_names_;
  std::size_t most_records_;
  std::string text_;
  std::vector<Candidate> candidates_;  ///< their text is the last
  std::vector<PendingName> names_;
  std::vector<PendingRecord> records_;
};

}  // namespace verger::scavenge::detail
