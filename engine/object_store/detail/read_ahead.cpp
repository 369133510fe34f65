#include "engine/object_store/detail/read_ahead.h"

#include <algorithm>
#include <fmt/format.h>
#include <utility>

namespace verger::object_store::detail {
namespace {

/// The first window: what a look at a header or footer costs.
constexpr std::size_t kFirstWindow = 64U << 10U;

}  // namespace

bool ReadAheadBudget::take(std::size_t bytes) {
  const auto wanted = static_cast<std::int64_t>(bytes);
  if (left_.fetch_sub(wanted) >= wanted) {
    return true;
  }
  left_.fetch_add(wanted);
  return false;
}

void ReadAheadBudget::give_back(std::size_t bytes) {
  left_.fetch_add(static_cast<std::int64_t>(bytes));
}

ReadAhead::ReadAhead(Read read, std::uint64_t size, std::size_t most, ReadAheadBudget& budget)
    : read_(std::move(read)), size_(size), most_(most), budget_(budget) {}

ReadAhead::~ReadAhead() { drop_window(); }

void ReadAhead::drop_window() {
  budget_.give_back(window_.size());
  window_ = {};
}

Result<bool> ReadAhead::fill_window(std::uint64_t offset, std::size_t wanted) {
  drop_window();
  next_size_ = offset == expected_ ? std::min(std::max(2 * next_size_, kFirstWindow), most_)
                                   : std::min(kFirstWindow, most_);
  const auto size = std::min<std::uint64_t>(next_size_, size_ - offset);
  if (size <= wanted || !budget_.take(size)) {
    return false;
  }
  window_.resize(size);
  window_at_ = offset;
  auto read = read_(offset, window_);
  if (!read) {
    drop_window();
    return read.error();
  }
  return true;
}

Result<void> ReadAhead::read_exact(std::uint64_t offset, MutableBytes into) {
  if (offset > size_ || into.size() > size_ - offset) {
    return Error{Errc::kCorruption,
                 fmt::format("the content has {} bytes; {} were to be read at {}", size_,
                             into.size(), offset)};
  }
  const std::scoped_lock lock(mutex_);
  if (offset >= window_at_ && offset - window_at_ < window_.size()) {
    const auto from = ByteView(window_).subspan(offset - window_at_);
    const auto part = from.first(std::min(from.size(), into.size()));
    std::ranges::copy(part, into.begin());
    offset += part.size();
    into = into.subspan(part.size());
    if (part.size() == from.size()) {
      drop_window();
    }
    expected_ = offset;
  }
  if (into.empty()) {
    return {};
  }
  VERGER_TRY(const bool filled, fill_window(offset, into.size()));
  expected_ = offset + into.size();
  if (!filled) {
    return read_(offset, into);
  }
  std::ranges::copy(ByteView(window_).first(into.size()), into.begin());
  return {};
}

}  // namespace verger::object_store::detail
