#include "engine/index/ptable.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/digest.h"
#include "engine/index/bloom_filter.h"
#include "engine/index/detail/entry_reader.h"
#include "engine/index/detail/latest_before.h"
#include "engine/index/detail/ptable_format.h"

namespace verger::index {
namespace {

using detail::kGreatestNumber;
using detail::kGreatestPosition;
using detail::kSmallestNumber;
using detail::kSmallestPosition;

/// What stays in memory of a table's midpoints; the rest of a search reads the file.
constexpr std::uint64_t kMaxMidpoints = 65536;
constexpr std::uint64_t kSparseMidpoints = 16384;
/// Entries one read takes; a search ends with one such read.
constexpr std::uint64_t kBlock = 256;

struct Midpoint {
  EventNumber number;
  StreamHash hash;
  std::uint64_t entry = 0;
};

Midpoint decode_midpoint(const std::byte* bytes) {
  return {EventNumber(load_le<std::int64_t>(bytes)), StreamHash(load_le<std::uint64_t>(bytes + 8)),
          static_cast<std::uint64_t>(load_le<std::int64_t>(bytes + 16))};
}

}  // namespace

struct PTable::State {
  Path path;
  std::unique_ptr<File> file;
  std::uint64_t file_size = 0;
  detail::PTableLayout layout;
  std::uint64_t search_midpoints = 0;
  std::vector<Midpoint> midpoints;
  std::unique_ptr<BloomFilter> bloom;

  Result<void> load_midpoints();
  Result<Midpoint> check_midpoint(Midpoint midpoint, std::uint64_t k) const;
  [[nodiscard]] StreamHash stored_hash(StreamHash hash) const {
    return layout.version == 1 ? StreamHash(hash.value() >> 32U) : hash;
  }
};

Result<Midpoint> PTable::State::check_midpoint(Midpoint midpoint, std::uint64_t k) const {
  const bool descends = midpoints.empty() || (midpoint.entry >= midpoints.back().entry &&
                                              (midpoint.hash != midpoints.back().hash
                                                   ? midpoint.hash < midpoints.back().hash
                                                   : midpoint.number <= midpoints.back().number));
  // With a wrong number of midpoints what is read as the first or last one is another.
  const bool first_or_last = (k != 0 || midpoint.entry == 0) &&
                             (k + 1 != layout.midpoint_count || midpoint.entry + 1 == layout.count);
  if (midpoint.entry >= layout.count || !descends || !first_or_last) {
    return Error{Errc::kCorruption, fmt::format("{}: midpoint {} at offset {} is out of order",
                                                path.string(), k, layout.midpoint_offset(k))};
  }
  return midpoint;
}

Result<void> PTable::State::load_midpoints() {
  const auto count = layout.midpoint_count;
  if (count <= kMaxMidpoints) {
    Bytes bytes(count * detail::kMidpointSize);
    VERGER_RETURN_IF_ERROR(file->read_exact(layout.midpoint_offset(0), bytes));
    midpoints.reserve(count);
    for (std::uint64_t k = 0; k < count; ++k) {
      VERGER_TRY(const auto midpoint,
                 check_midpoint(decode_midpoint(bytes.data() + k * detail::kMidpointSize), k));
      midpoints.push_back(midpoint);
    }
    return {};
  }
  midpoints.reserve(kSparseMidpoints);
  std::array<std::byte, detail::kMidpointSize> bytes;
  for (std::uint64_t i = 0; i < kSparseMidpoints; ++i) {
    const auto k = detail::midpoint_entry(i, count, kSparseMidpoints);
    VERGER_RETURN_IF_ERROR(file->read_exact(layout.midpoint_offset(k), bytes));
    VERGER_TRY(const auto midpoint, check_midpoint(decode_midpoint(bytes.data()), k));
    midpoints.push_back(midpoint);
  }
  return {};
}

namespace {

/// One lookup in one table: keeps the block of entries it has read last.
class Search {
 public:
  explicit Search(const Path& path, const File& file, const detail::PTableLayout& layout,
                  const std::vector<Midpoint>& midpoints)
      : path_(path), file_(file), layout_(layout), midpoints_(midpoints) {}

  Result<IndexEntry> at(std::uint64_t n) {
    if (n < start_ || n >= start_ + block_.size()) {
      // Centred: lookups continue in either direction from where a search has ended.
      const auto start = n < kBlock / 4 ? 0 : n - kBlock / 4;
      VERGER_RETURN_IF_ERROR(load(start, std::min(kBlock, layout_.count - start)));
    }
    return block_[n - start_];
  }

  /// The first entry in file order that is not above `key`; the count if all are.
  Result<std::uint64_t> first_not_above(const IndexEntry& key) {
    std::uint64_t low = 0;               // entries before it are above the key
    std::uint64_t high = layout_.count;  // this one and those behind it are not
    narrow(key, low, high);
    std::optional<IndexEntry> ceiling;
    std::optional<IndexEntry> floor;
    while (high - low > kBlock) {
      const auto middle = low + (high - low) / 2;
      VERGER_TRY(const auto entry, probe(middle));
      if ((ceiling && entry > *ceiling) || (floor && entry < *floor)) {
        return detail::out_of_order(path_, layout_.entry_offset(middle));
      }
      if (entry > key) {
        low = middle + 1;
        ceiling = entry;
      } else {
        high = middle;
        floor = entry;
      }
    }
    if (low == high) {
      return low;
    }
    // Both neighbours are read too: they show whether the way here was right.
    const auto first = low == 0 ? 0 : low - 1;
    const auto last = std::min(high + 1, layout_.count);
    if (first < start_ || last > start_ + block_.size()) {
      VERGER_RETURN_IF_ERROR(load(first, last - first));
    }
    const auto begin = block_.begin() + static_cast<std::ptrdiff_t>(low - start_);
    const auto end = block_.begin() + static_cast<std::ptrdiff_t>(high - start_);
    const bool low_right = low == 0 || *(begin - 1) > key;
    const bool high_right = high == layout_.count || *end <= key;
    if (!low_right || !high_right) {
      return detail::out_of_order(path_, layout_.entry_offset(low_right ? high : low - 1));
    }
    const auto found =
        std::partition_point(begin, end, [&](const IndexEntry& e) { return e > key; });
    return low + static_cast<std::uint64_t>(found - begin);
  }

 private:
  Result<void> load(std::uint64_t start, std::uint64_t count) {
    VERGER_RETURN_IF_ERROR(
        detail::read_entries(file_, layout_.entry_offset(start), layout_.version, count, block_));
    start_ = start;
    return {};
  }

  Result<IndexEntry> probe(std::uint64_t n) const {
    std::array<std::byte, detail::kEntrySize> bytes;
    const auto size = detail::entry_size(layout_.version);
    VERGER_RETURN_IF_ERROR(
        file_.read_exact(layout_.entry_offset(n), MutableBytes(bytes).first(size)));
    return detail::decode_entry(bytes.data(), layout_.version);
  }

  void narrow(const IndexEntry& key, std::uint64_t& low, std::uint64_t& high) const {
    // A midpoint has no position: one equal in hash and number may be on either side of the key.
    const auto not_above = [&](const Midpoint& m) {
      return m.hash != key.hash ? m.hash > key.hash : m.number > key.number;
    };
    const auto from = std::partition_point(midpoints_.begin(), midpoints_.end(), not_above);
    if (from != midpoints_.begin()) {
      low = std::prev(from)->entry + 1;
    }
    const auto below = std::partition_point(from, midpoints_.end(), [&](const Midpoint& m) {
      return m.hash == key.hash && m.number == key.number;
    });
    if (below != midpoints_.end()) {
      high = std::max(low, below->entry);
    }
  }

  const Path& path_;
  const File& file_;
  const detail::PTableLayout& layout_;
  const std::vector<Midpoint>& midpoints_;
  std::uint64_t start_ = 0;
  std::vector<IndexEntry> block_;
};

}  // namespace

Result<std::shared_ptr<const PTable>> PTable::open(FileSystem& files, const Path& path,
                                                   int cache_depth) {
  auto state = std::make_unique<State>();
  state->path = path;
  VERGER_TRY(state->file, files.open(path, OpenMode::kRead));
  VERGER_TRY(state->file_size, state->file->size());
  std::array<std::byte, detail::kPTableHeaderSize> header;
  VERGER_RETURN_IF_ERROR(state->file->read_exact(0, header));
  const auto version = detail::decode_ptable_header(header);
  std::array<std::byte, detail::kPTableFooterSize> footer{};
  constexpr auto kTail = detail::kPTableFooterSize + detail::kPTableMd5Size;
  if (!version) {
    if (version.error().code == Errc::kUnsupported &&
        state->file_size >= detail::kPTableHeaderSize + kTail &&
        state->file->read_exact(state->file_size - kTail, footer) &&
        detail::is_newest_footer(footer)) {
      return Error{Errc::kCorruption,
                   fmt::format("{}: PTable header at offset 1: version {} above a footer of {}",
                               path.string(), std::to_integer<int>(header[1]),
                               detail::kNewestPTableVersion)};
    }
    return version.error().within(path.string());
  }
  if (*version == detail::kNewestPTableVersion) {
    if (state->file_size < detail::kPTableHeaderSize + kTail) {
      return Error{Errc::kCorruption, fmt::format("{}: a PTable of version 4 cannot have {} bytes",
                                                  path.string(), state->file_size)};
    }
    VERGER_RETURN_IF_ERROR(state->file->read_exact(state->file_size - kTail, footer));
  }
  const auto layout = detail::decode_ptable_layout(*version, footer, state->file_size);
  if (!layout) {
    return layout.error().within(path.string());
  }
  state->layout = *layout;
  state->search_midpoints = detail::search_midpoints(*layout, cache_depth);
  VERGER_RETURN_IF_ERROR(state->load_midpoints());
  auto bloom_path = path;
  bloom_path += ".bloomfilter";
  // Without a usable filter the table only costs more reads.
  if (auto bloom = BloomFilter::open(files, bloom_path)) {
    state->bloom = *std::move(bloom);
  }
  return std::shared_ptr<const PTable>(new PTable(std::move(state)));
}

PTable::PTable(std::unique_ptr<State> state) : state_(std::move(state)) {}
PTable::~PTable() = default;

const Path& PTable::path() const { return state_->path; }
int PTable::version() const { return state_->layout.version; }
std::uint64_t PTable::count() const { return state_->layout.count; }
std::uint64_t PTable::file_size() const { return state_->file_size; }
bool PTable::has_bloom_filter() const { return state_->bloom != nullptr; }
std::uint64_t PTable::entry_offset(std::uint64_t n) const { return state_->layout.entry_offset(n); }

bool PTable::may_contain(StreamHash hash) const {
  return state_->layout.count > 0 &&
         (state_->bloom == nullptr || state_->bloom->may_contain(state_->stored_hash(hash)));
}

Result<void> PTable::range(StreamHash hash, EventNumber from, EventNumber to, std::size_t limit,
                           std::vector<IndexEntry>& out) const {
  if (!may_contain(hash) || from > to) {
    return {};
  }
  const auto stored = state_->stored_hash(hash);
  Search search(state_->path, *state_->file, state_->layout, state_->midpoints);
  VERGER_TRY(auto n, search.first_not_above({stored, to, kGreatestPosition}));
  for (; limit > 0 && n < count(); ++n, --limit) {
    VERGER_TRY(const auto entry, search.at(n));
    if (entry.hash != stored || entry.number < from) {
      break;
    }
    out.push_back({hash, entry.number, entry.position});
  }
  return {};
}

Result<void> PTable::range_forward(StreamHash hash, EventNumber from, EventNumber to,
                                   std::size_t limit, std::vector<IndexEntry>& out) const {
  if (!may_contain(hash) || from > to) {
    return {};
  }
  const auto stored = state_->stored_hash(hash);
  Search search(state_->path, *state_->file, state_->layout, state_->midpoints);
  // The smallest possible key is never in a table, so "not above it" is "below every one".
  VERGER_TRY(auto n, search.first_not_above({stored, from, kSmallestPosition}));
  for (; limit > 0 && n > 0; --n, --limit) {
    VERGER_TRY(const auto entry, search.at(n - 1));
    if (entry.hash != stored || entry.number > to) {
      break;
    }
    out.push_back({hash, entry.number, entry.position});
  }
  return {};
}

Result<std::optional<IndexEntry>> PTable::latest(StreamHash hash) const {
  std::vector<IndexEntry> found;
  VERGER_RETURN_IF_ERROR(range(hash, kSmallestNumber, kGreatestNumber, 1, found));
  return found.empty() ? std::nullopt : std::optional(found.front());
}

Result<std::optional<IndexEntry>> PTable::oldest(StreamHash hash) const {
  std::vector<IndexEntry> found;
  VERGER_RETURN_IF_ERROR(range_forward(hash, kSmallestNumber, kGreatestNumber, 1, found));
  return found.empty() ? std::nullopt : std::optional(found.front());
}

Result<std::optional<IndexEntry>> PTable::previous(StreamHash hash, EventNumber number) const {
  std::vector<IndexEntry> found;
  if (number > kSmallestNumber) {
    VERGER_RETURN_IF_ERROR(range(hash, kSmallestNumber, EventNumber(number.value() - 1), 1, found));
  }
  return found.empty() ? std::nullopt : std::optional(found.front());
}

Result<std::optional<IndexEntry>> PTable::next(StreamHash hash, EventNumber number) const {
  std::vector<IndexEntry> found;
  if (number < kGreatestNumber) {
    VERGER_RETURN_IF_ERROR(
        range_forward(hash, EventNumber(number.value() + 1), kGreatestNumber, 1, found));
  }
  return found.empty() ? std::nullopt : std::optional(found.front());
}

Result<std::optional<IndexEntry>> PTable::latest_before(StreamHash hash, LogPosition limit,
                                                        const EntryFilter& is_of_stream) const {
  if (!may_contain(hash)) {
    return std::optional<IndexEntry>();
  }
  const auto stored = state_->stored_hash(hash);
  Search search(state_->path, *state_->file, state_->layout, state_->midpoints);
  detail::TableRun run{.entries = count(), .midpoints = state_->search_midpoints};
  VERGER_TRY(run.first, search.first_not_above({stored, kGreatestNumber, kGreatestPosition}));
  VERGER_TRY(run.end, search.first_not_above({stored, kSmallestNumber, kSmallestPosition}));
  const auto at = [&](std::uint64_t n) -> Result<IndexEntry> {
    VERGER_TRY(auto entry, search.at(n));
    entry.hash = hash;
    return entry;
  };
  return detail::find_latest_in_table(at, run, limit, is_of_stream);
}

Result<IndexEntry> PTable::entry(std::uint64_t n) const {
  if (n >= count()) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: entry {} of {}", path().string(), n, count())};
  }
  Search search(state_->path, *state_->file, state_->layout, state_->midpoints);
  return search.at(n);
}

Result<void> PTable::read(std::uint64_t first, std::uint64_t count_wanted,
                          std::vector<IndexEntry>& out) const {
  if (first > count() || count_wanted > count() - first) {
    return Error{Errc::kInvalidArgument, fmt::format("{}: entries {} to {} of {}", path().string(),
                                                     first, first + count_wanted, count())};
  }
  return detail::read_entries(*state_->file, state_->layout.entry_offset(first),
                              state_->layout.version, count_wanted, out);
}

Result<std::uint64_t> PTable::first_below(StreamHash hash) const {
  Search search(state_->path, *state_->file, state_->layout, state_->midpoints);
  return search.first_not_above({hash, kSmallestNumber, kSmallestPosition});
}

Result<void> PTable::verify_md5(const std::function<Result<void>()>& pause) const {
  Md5 running;
  Bytes block(1U << 20U);
  const auto end = state_->file_size - detail::kPTableMd5Size;
  for (std::uint64_t at = 0; at < end;) {
    if (pause) {
      VERGER_RETURN_IF_ERROR(pause());
    }
    const auto bytes = MutableBytes(block).first(std::min<std::uint64_t>(block.size(), end - at));
    VERGER_RETURN_IF_ERROR(state_->file->read_exact(at, bytes));
    running.update(bytes);
    at += bytes.size();
  }
  return compare_md5(running.finish());
}

Result<void> PTable::compare_md5(const Md5Digest& computed) const {
  const auto end = state_->file_size - detail::kPTableMd5Size;
  Md5Digest stored;
  VERGER_RETURN_IF_ERROR(state_->file->read_exact(end, stored));
  if (computed != stored) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: the MD5 at offset {} is not that of the file's content; rebuild "
                             "the index (verger-db index rebuild)",
                             path().string(), end)};
  }
  return {};
}

VerifiedFile PTable::verified_file(std::shared_ptr<const PTable> table) {
  const auto& file = *table;
  return {
      .object = std::move(table),
      .size = file.state_->file_size - detail::kPTableMd5Size,
      .read = [&file](std::uint64_t offset,
                      MutableBytes into) { return file.state_->file->read_exact(offset, into); },
      .compare = [&file](const Md5Digest& computed) { return file.compare_md5(computed); }};
}

struct PTableScanner::State {
  std::shared_ptr<const PTable> table;
  detail::EntryReader reader;
};

PTableScanner::PTableScanner(std::shared_ptr<const PTable> table) {
  const auto& source = *table->state_;
  detail::EntryReader reader(*source.file, source.layout.entry_offset(0), source.layout.version,
                             source.layout.count);
  state_ = std::make_unique<State>(State{std::move(table), std::move(reader)});
}
PTableScanner::PTableScanner(PTableScanner&&) noexcept = default;
PTableScanner& PTableScanner::operator=(PTableScanner&&) noexcept = default;
PTableScanner::~PTableScanner() = default;

Result<const IndexEntry*> PTableScanner::next() {
  VERGER_TRY(const bool more, state_->reader.advance());
  return more ? &state_->reader.current() : nullptr;
}

Result<std::span<const IndexEntry>> PTableScanner::ahead() { return state_->reader.ahead(); }
std::span<const IndexEntry> PTableScanner::held() const { return state_->reader.held(); }
void PTableScanner::skip(std::size_t count) { state_->reader.skip(count); }

}  // namespace verger::index
