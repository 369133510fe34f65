#include <algorithm>
#include <fmt/format.h>

#include "engine/base/background_md5.h"
#include "engine/base/digest.h"
#include "engine/base/writeback.h"
#include "engine/index/bloom_filter.h"
#include "engine/index/detail/ptable_format.h"
#include "engine/index/ptable.h"

namespace verger::index {
namespace {

constexpr std::size_t kBufferSize = 256U << 10U;
constexpr std::uint64_t kWritebackSize = std::uint64_t{8} << 20U;

}  // namespace

struct PTableWriter::State {
  FileSystem& files;
  Path directory;
  Path path;
  Path bloom_path;
  int cache_depth;
  BloomBuilder bloom;
  std::unique_ptr<File> file;
  Md5 md5;
  std::unique_ptr<BackgroundMd5> background;  ///< instead of `md5`
  Bytes buffer = Bytes(kBufferSize + 2 * detail::kPTableHeaderSize);
  std::size_t buffered = 0;
  std::uint64_t written = 0;
  std::uint64_t on_its_way = 0;  ///< to the disk
  std::uint64_t count = 0;
  std::optional<IndexEntry> last;
  bool finished = false;

  State(FileSystem& files_in, const Path& directory_in, const Uuid& name,
        std::uint64_t bloom_entries, int depth, bool hash_in_background)
      : files(files_in),
        directory(directory_in),
        path(directory_in / name.to_string()),
        bloom_path(directory_in / (name.to_string() + ".bloomfilter")),
        cache_depth(depth),
        bloom(bloom_bytes_for(bloom_entries)),
        background(hash_in_background ? std::make_unique<BackgroundMd5>() : nullptr) {}
  ~State() {
    if (!finished && file != nullptr) {
      // Left-overs are removed at the next opening, so a failure here costs only space.
      static_cast<void>(files.remove(path));
      static_cast<void>(files.remove(bloom_path));
    }
  }

  /// Room for up to a header's size; there is always that much, since a full buffer is flushed.
  std::byte* extend(std::size_t size) {
    auto* at = buffer.data() + buffered;
    buffered += size;
    return at;
  }
  Result<void> flush_when_full() { return buffered >= kBufferSize ? flush() : Result<void>(); }
  Result<void> flush() {
    const auto bytes = ByteView(buffer).first(buffered);
    VERGER_RETURN_IF_ERROR(file->write_at(written, bytes));
    if (background != nullptr) {
      background->update(bytes);
    } else {
      md5.update(bytes);
    }
    written += buffered;
    buffered = 0;
    if (written - on_its_way >= kWritebackSize) {
      start_writeback(*file, on_its_way, written - on_its_way);
      on_its_way = written;
    }
    return {};
  }
  Result<std::uint64_t> append_midpoints();
  Result<void> write_bloom();
};

Result<PTableWriter> PTableWriter::create(FileSystem& files, const Path& directory,
                                          const Uuid& name, std::uint64_t bloom_entries,
                                          int cache_depth, bool hash_in_background) {
  auto state = std::make_unique<State>(files, directory, name, bloom_entries, cache_depth,
                                       hash_in_background);
  VERGER_TRY(state->file, files.open(state->path, OpenMode::kCreateNew));
  auto* header = state->extend(detail::kPTableHeaderSize);
  std::fill_n(header, detail::kPTableHeaderSize, std::byte{0});
  header[0] = std::byte{1};
  header[1] = std::byte{detail::kNewestPTableVersion};
  return PTableWriter(std::move(state));
}

PTableWriter::PTableWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
PTableWriter::PTableWriter(PTableWriter&&) noexcept = default;
PTableWriter& PTableWriter::operator=(PTableWriter&&) noexcept = default;
PTableWriter::~PTableWriter() = default;

std::uint64_t PTableWriter::count() const { return state_->count; }

Result<void> PTableWriter::append(const IndexEntry& entry) {
  auto& state = *state_;
  if (state.last && entry > *state.last) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: entry {} is greater than the one before it", state.path.string(),
                             state.count)};
  }
  if (!state.last || state.last->hash != entry.hash) {
    state.bloom.add(entry.hash);
  }
  detail::encode_entry(state.extend(detail::kEntrySize), entry);
  state.last = entry;
  ++state.count;
  return state.flush_when_full();
}

Result<std::uint64_t> PTableWriter::State::append_midpoints() {
  VERGER_RETURN_IF_ERROR(flush());
  const auto midpoints = detail::required_midpoints(count, cache_depth);
  // How many entries there would be was not known while they were written, so they are read again,
  // in order: mostly from memory.
  std::vector<std::byte> block;
  std::uint64_t start = 0;
  for (std::uint64_t k = 0; k < midpoints; ++k) {
    const auto n = detail::midpoint_entry(k, count, midpoints);
    auto at = (n - start) * detail::kEntrySize;
    if (at >= block.size()) {
      start = n;
      at = 0;
      block.resize(std::min<std::uint64_t>(4096, count - n) * detail::kEntrySize);
      VERGER_RETURN_IF_ERROR(
          file->read_exact(detail::kPTableHeaderSize + n * detail::kEntrySize, block));
    }
    const auto* entry = block.data() + at;
    auto* midpoint = extend(detail::kMidpointSize);
    std::copy_n(entry, 16, midpoint);
    store_le(midpoint + 16, static_cast<std::int64_t>(n));
    VERGER_RETURN_IF_ERROR(flush_when_full());
  }
  return midpoints;
}

Result<void> PTableWriter::State::write_bloom() {
  VERGER_TRY(const auto target, files.open(bloom_path, OpenMode::kCreateNew));
  VERGER_RETURN_IF_ERROR(target->write_at(0, bloom.finish()));
  return target->sync();
}

Result<Path> PTableWriter::finish() {
  auto& state = *state_;
  VERGER_TRY(const auto midpoints, state.append_midpoints());
  auto* footer = state.extend(detail::kPTableFooterSize);
  std::fill_n(footer, detail::kPTableFooterSize, std::byte{0});
  footer[0] = std::byte{1};
  footer[1] = std::byte{detail::kNewestPTableVersion};
  store_le(footer + 2, static_cast<std::uint32_t>(midpoints));
  VERGER_RETURN_IF_ERROR(state.flush());
  Md5Digest digest;
  if (state.background != nullptr) {
    VERGER_TRY(digest, state.background->finish());
  } else {
    digest = state.md5.finish();
  }
  VERGER_RETURN_IF_ERROR(state.file->write_at(state.written, digest));
  VERGER_RETURN_IF_ERROR(state.file->sync());
  VERGER_RETURN_IF_ERROR(state.write_bloom());
  VERGER_RETURN_IF_ERROR(state.files.sync_directory(state.directory));
  state.finished = true;
  return state.path;
}

}  // namespace verger::index
