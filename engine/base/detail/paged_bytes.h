#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <utility>
#include <vector>

#include "engine/base/bytes.h"

namespace verger::detail {

inline constexpr std::uint64_t kPageSize = 4096;

/// A counted reference to 4 KiB, or to nothing: a hole that reads as zeros. The holder of the only
/// reference may change the page; references may be copied and dropped in several threads.
class PageRef {
 public:
  PageRef() = default;
  PageRef(const PageRef& other) : page_(other.page_) {
    if (page_ != nullptr) {
      page_->owners.fetch_add(1, std::memory_order_relaxed);
    }
  }
  PageRef(PageRef&& other) noexcept : page_(std::exchange(other.page_, nullptr)) {}
  PageRef& operator=(PageRef other) noexcept {
    std::swap(page_, other.page_);
    return *this;
  }
  ~PageRef() {
    if (page_ != nullptr && page_->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) {
      delete page_;
    }
  }

  [[nodiscard]] bool is_hole() const { return page_ == nullptr; }
  /// Not for a hole.
  [[nodiscard]] const std::byte* data() const { return page_->bytes.data(); }
  /// The page for writing: made of zeros if it is a hole, copied first if it is shared.
  std::byte* own();

 private:
  struct Page {
    std::atomic<std::uint32_t> owners{1};
    std::array<std::byte, kPageSize> bytes;
  };
  Page* page_ = nullptr;
};

/// The content of a file: grows without copying, has holes, and copies share their pages until one
/// of them writes. What is past the end in the last page is zero.
class PagedBytes {
 public:
  [[nodiscard]] std::uint64_t size() const { return size_; }
  /// Up to into.size() bytes; fewer at the end.
  std::size_t read(std::uint64_t offset, MutableBytes into) const;
  void write(std::uint64_t offset, ByteView bytes);
  void resize(std::uint64_t size);
  /// Bytes of such a write that do not go over bytes already there: extensions and holes.
  [[nodiscard]] std::uint64_t claimed_by(std::uint64_t offset, std::uint64_t length) const;

  /// What resize(size) would drop.
  struct Tail {
    Bytes partial;               ///< from `size` to the end of its page
    std::vector<PageRef> pages;  ///< the whole pages after it
  };
  [[nodiscard]] Tail tail_from(std::uint64_t size) const;
  /// Undoes a resize() to the present size from `old_size`, which dropped `tail`.
  void restore_tail(std::uint64_t old_size, const Tail& tail);

 private:
  std::uint64_t size_ = 0;
  std::vector<PageRef> pages_;
};

}  // namespace verger::detail
