#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/base/result.h"
#include "engine/index/entry.h"
#include "engine/index/ptable.h"

namespace verger::index::detail {

/// Entries of several descending sources as one descending sequence; equal ones all stay.
/// A Source has `Result<bool> advance()` and `const IndexEntry& current() const`.
template <class Source>
class KWayMerge {
 public:
  explicit KWayMerge(std::vector<Source> sources) : sources_(std::move(sources)) {}

  Result<bool> advance() {
    if (!started_) {
      started_ = true;
      for (std::size_t i = 0; i < sources_.size(); ++i) {
        VERGER_TRY(const bool more, sources_[i].advance());
        if (more) {
          heap_.push_back(i);
        }
      }
      for (std::size_t i = heap_.size(); i > 0; --i) {
        sift_down(i - 1);
      }
    } else if (!heap_.empty()) {
      VERGER_TRY(const bool more, sources_[heap_.front()].advance());
      if (!more) {
        heap_.front() = heap_.back();
        heap_.pop_back();
      }
      sift_down(0);
    }
    return !heap_.empty();
  }
  [[nodiscard]] const IndexEntry& current() const { return sources_[heap_.front()].current(); }

 private:
  [[nodiscard]] bool above(std::size_t a, std::size_t b) const {
    return sources_[heap_[a]].current() > sources_[heap_[b]].current();
  }
  void sift_down(std::size_t at) {
    while (true) {
      auto greatest = at;
      for (const auto child : {2 * at + 1, 2 * at + 2}) {
        if (child < heap_.size() && above(child, greatest)) {
          greatest = child;
        }
      }
      if (greatest == at) {
        return;
      }
      std::swap(heap_[at], heap_[greatest]);
      at = greatest;
    }
  }

  std::vector<Source> sources_;
  std::vector<std::size_t> heap_;  // indices of sources that have a current entry
  bool started_ = false;
};

/// A PTable as a source.
class TableSource {
 public:
  explicit TableSource(std::shared_ptr<const PTable> table) : scanner_(std::move(table)) {}
  Result<bool> advance() {
    VERGER_TRY(current_, scanner_.next());
    return current_ != nullptr;
  }
  [[nodiscard]] const IndexEntry& current() const { return *current_; }

 private:
  PTableScanner scanner_;
  const IndexEntry* current_ = nullptr;
};

}  // namespace verger::index::detail
