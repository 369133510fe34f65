#include "engine/base/detail/paged_bytes.h"

#include <algorithm>
#include <cstring>

namespace verger::detail {
namespace {

std::size_t pages_for(std::uint64_t size) { return (size + kPageSize - 1) / kPageSize; }

/// Calls visit(page index, offset in the page, length, bytes before it) for each page of a range.
template <class Visit>
void for_each_page(std::uint64_t offset, std::uint64_t length, Visit visit) {
  for (std::uint64_t done = 0; done < length;) {
    const std::uint64_t in_page = (offset + done) % kPageSize;
    const std::uint64_t part = std::min(kPageSize - in_page, length - done);
    visit((offset + done) / kPageSize, in_page, part, done);
    done += part;
  }
}

}  // namespace

std::byte* PageRef::own() {
  if (page_ == nullptr) {
    page_ = new Page;
    page_->bytes.fill(std::byte{0});
  } else if (page_->owners.load(std::memory_order_acquire) != 1) {
    PageRef copy;
    copy.page_ = new Page;
    copy.page_->bytes = page_->bytes;
    *this = std::move(copy);
  }
  return page_->bytes.data();
}

std::size_t PagedBytes::read(std::uint64_t offset, MutableBytes into) const {
  if (offset >= size_) {
    return 0;
  }
  const std::uint64_t length = std::min<std::uint64_t>(into.size(), size_ - offset);
  for_each_page(offset, length, [&](auto page, auto in_page, auto part, auto done) {
    if (pages_[page].is_hole()) {
      std::memset(into.data() + done, 0, part);
    } else {
      std::memcpy(into.data() + done, pages_[page].data() + in_page, part);
    }
  });
  return length;
}

void PagedBytes::write(std::uint64_t offset, ByteView bytes) {
  if (bytes.empty()) {
    return;
  }
  if (offset + bytes.size() > size_) {
    resize(offset + bytes.size());
  }
  for_each_page(offset, bytes.size(), [&](auto page, auto in_page, auto part, auto done) {
    std::memcpy(pages_[page].own() + in_page, bytes.data() + done, part);
  });
}

void PagedBytes::resize(std::uint64_t size) {
  pages_.resize(pages_for(size));
  if (size < size_ && size % kPageSize != 0 && !pages_.back().is_hole()) {
    std::memset(pages_.back().own() + size % kPageSize, 0, kPageSize - size % kPageSize);
  }
  size_ = size;
}

std::uint64_t PagedBytes::claimed_by(std::uint64_t offset, std::uint64_t length) const {
  std::uint64_t claimed = 0;
  for_each_page(offset, length, [&](auto page, auto in_page, auto part, auto) {
    const std::uint64_t start = page * kPageSize + in_page;
    if (page >= pages_.size() || pages_[page].is_hole()) {
      claimed += part;
    } else if (start + part > size_) {
      claimed += start + part - std::max(start, size_);
    }
  });
  return claimed;
}

PagedBytes::Tail PagedBytes::tail_from(std::uint64_t size) const {
  Tail tail;
  if (size >= size_) {
    return tail;
  }
  const std::size_t whole = pages_for(size);
  tail.partial.resize(std::min<std::uint64_t>(whole * kPageSize, size_) - size);
  read(size, tail.partial);
  tail.pages.assign(pages_.begin() + static_cast<std::ptrdiff_t>(whole), pages_.end());
  return tail;
}

void PagedBytes::restore_tail(std::uint64_t old_size, const Tail& tail) {
  const std::uint64_t cut = size_;
  resize(old_size);
  write(cut, tail.partial);
  std::ranges::copy(tail.pages, pages_.begin() + static_cast<std::ptrdiff_t>(pages_for(cut)));
}

}  // namespace verger::detail
