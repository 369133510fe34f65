#include "engine/index/detail/entry_reader.h"

#include <algorithm>
#include <fmt/format.h>
#include <optional>
#include <span>
#include <type_traits>

namespace verger::index::detail {
namespace {

constexpr std::uint64_t kBlockEntries = 8192;

}  // namespace

Error out_of_order(const Path& path, std::uint64_t offset) {
  return Error{Errc::kCorruption,
               fmt::format("{}: index entries out of order at offset {}; rebuild the index "
                           "(verger-db index rebuild)",
                           path.string(), offset)};
}

Result<void> read_entries(const File& file, std::uint64_t offset, int version, std::uint64_t count,
                          std::vector<IndexEntry>& out) {
  const auto size = entry_size(version);
  static_assert(sizeof(IndexEntry) == kEntrySize && std::is_trivially_copyable_v<IndexEntry>);
  out.resize(count);
  // Entries of the newer versions are decoded where they were read to.
  const bool in_place = size == kEntrySize;
  Bytes apart(in_place ? 0 : count * size);
  const auto bytes = in_place ? std::as_writable_bytes(std::span(out)) : MutableBytes(apart);
  VERGER_RETURN_IF_ERROR(file.read_exact(offset, bytes));
  for (std::uint64_t i = 0; i < count; ++i) {
    out[i] = decode_entry(bytes.data() + i * size, version);
    if (i > 0 && out[i] > out[i - 1]) {
      return out_of_order(file.path(), offset + i * size);
    }
  }
  return {};
}

Result<bool> EntryReader::refill() {
  const auto last = block_.empty() ? std::nullopt : std::optional(block_.back());
  const auto count = std::min(left_, kBlockEntries);
  at_ = 0;
  if (count == 0) {
    block_.clear();
    return false;
  }
  VERGER_RETURN_IF_ERROR(read_entries(*file_, offset_, version_, count, block_));
  if (last && block_.front() > *last) {
    return out_of_order(file_->path(), offset_);
  }
  offset_ += count * entry_size(version_);
  left_ -= count;
  return true;
}

}  // namespace verger::index::detail
