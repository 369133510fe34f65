#include "engine/log/chunk.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/failpoint.h"
#include "engine/log/detail/chunk_state.h"
#include "engine/log/detail/limits.h"
#include "engine/log/detail/wrong_checksum.h"

namespace verger::log {
namespace {

/// Most records fit: one read of the file instead of two.
constexpr std::int64_t kFirstReadSize = 512;

struct OpenedFile {
  std::unique_ptr<File> file;
  ChunkHeader header;
  std::uint64_t size = 0;
  int version = 0;
};

/// `least_size`: a completed chunk has header and footer; one that a crash left while it was being
/// completed ends with its records.
Result<OpenedFile> open_file(FileSystem& files, const Path& path, std::uint64_t least_size) {
  OpenedFile opened;
  VERGER_TRY(opened.file, files.open(path, OpenMode::kRead));
  VERGER_TRY(opened.size, opened.file->size());
  if (opened.size < least_size) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: a chunk file has at least {} bytes, this one {}; it was cut off: "
                             "restore it from a backup or another node",
                             path.string(), least_size, opened.size)};
  }
  std::array<std::byte, kChunkHeaderSize> bytes{};
  VERGER_RETURN_IF_ERROR(opened.file->read_exact(0, bytes));
  auto header = decode_chunk_header(bytes);
  if (!header) {
    return header.error().within(path.string());
  }
  opened.header = *header;
  const auto name = parse_chunk_file_name(path.filename().string());
  if (name && name->start != header->start) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: the name says chunk {}, the header (offset 6) says {}; the file "
                             "was renamed or damaged: restore it from a backup or another node",
                             path.string(), name->start, header->start)};
  }
  opened.version = name ? name->version : 0;
  return opened;
}

/// A completed file ends where data, map and footer end, or at the next multiple of 4096.
Result<void> check_sizes(const Path& path, std::uint64_t file_size, const ChunkHeader& header,
                         const ChunkFooter& footer) {
  const auto used = std::uint64_t{kChunkHeaderSize} + kChunkFooterSize +
                    static_cast<std::uint64_t>(footer.physical_data_size) +
                    static_cast<std::uint64_t>(footer.map_size);
  if (file_size != used && file_size != detail::align_chunk_file(used)) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: the file has {} bytes, its footer (offset {}) accounts for {}; "
                             "restore it from a backup or another node",
                             path.string(), file_size, file_size - kChunkFooterSize, used)};
  }
  const auto logical_end = header.end_position() - header.start_position();
  if (footer.logical_data_size > logical_end ||
      (!header.scavenged && footer.logical_data_size != footer.physical_data_size)) {
    return Error{
        Errc::kCorruption,
        fmt::format("{}: footer (offset {}) has logical size {} beside data size {}, which cannot "
                    "be; restore the file from a backup or another node",
                    path.string(), file_size - kChunkFooterSize, footer.logical_data_size,
                    footer.physical_data_size)};
  }
  return {};
}

}  // namespace

Chunk::Chunk(std::unique_ptr<State> state) : state_(std::move(state)) {}

Chunk::~Chunk() {
  if (state_->remove_when_unused.load()) {
    VERGER_FAILPOINT("log.switch.before-delete");
    // When this fails the next opening for writing removes it: a newer version is there.
    static_cast<void>(state_->files->remove(state_->path));
  }
}

Result<std::shared_ptr<Chunk>> Chunk::open_completed(FileSystem& files, const Path& path) {
  VERGER_TRY(auto opened, open_file(files, path, kChunkHeaderSize + kChunkFooterSize));
  std::array<std::byte, kChunkFooterSize> bytes{};
  VERGER_RETURN_IF_ERROR(opened.file->read_exact(opened.size - kChunkFooterSize, bytes));
  auto footer = decode_chunk_footer(bytes);
  if (!footer) {
    return footer.error().within(path.string());
  }
  if (!footer->completed) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: the chunk is not completed (footer at offset {}), but writer.chk "
                             "lies behind it; restore it from a backup or another node",
                             path.string(), opened.size - kChunkFooterSize)};
  }
  VERGER_RETURN_IF_ERROR(check_sizes(path, opened.size, opened.header, *footer));
  auto state = std::make_unique<State>();
  state->files = &files;
  state->path = path;
  state->version = opened.version;
  state->file = std::move(opened.file);
  state->header = opened.header;
  state->footer = *footer;
  state->file_size = opened.size;
  state->data_size = footer->physical_data_size;
  return std::shared_ptr<Chunk>(new Chunk(std::move(state)));
}

Result<std::shared_ptr<Chunk>> Chunk::open_active(FileSystem& files, const Path& path,
                                                  std::int64_t data_size) {
  VERGER_TRY(auto opened, open_file(files, path, kChunkHeaderSize));
  if (opened.header.scavenged) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: writer.chk points into this scavenged chunk, which is never "
                             "appended to; writer.chk is wrong",
                             path.string())};
  }
  if (data_size < 0 || data_size > opened.header.chunk_size ||
      opened.size < std::uint64_t{kChunkHeaderSize} + static_cast<std::uint64_t>(data_size)) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: writer.chk says that the chunk holds {} bytes of records, the "
                             "file has {} bytes; one of the two was cut off or is out of date",
                             path.string(), data_size, opened.size)};
  }
  auto state = std::make_unique<State>();
  state->files = &files;
  state->path = path;
  state->version = opened.version;
  state->file = std::move(opened.file);
  state->header = opened.header;
  state->file_size = opened.size;
  state->data_size = data_size;
  return std::shared_ptr<Chunk>(new Chunk(std::move(state)));
}

const ChunkHeader& Chunk::header() const { return state_->header; }
std::optional<ChunkFooter> Chunk::footer() const { return state_->footer; }
const Path& Chunk::path() const { return state_->path; }
int Chunk::version() const { return state_->version; }
std::int64_t Chunk::data_size() const { return state_->data_size.load(std::memory_order_acquire); }
std::uint64_t Chunk::file_size() const { return state_->file_size; }

Error Chunk::State::corrupt(std::int64_t actual, std::string_view what) const {
  return {Errc::kCorruption, fmt::format("{}: record at file offset {}: {}", path.string(),
                                         kChunkHeaderSize + actual, what)};
}

Result<std::shared_ptr<const detail::Posmap>> Chunk::State::positions() const {
  const std::lock_guard lock(posmap_mutex);
  if (!posmap) {
    VERGER_TRY(auto loaded, detail::Posmap::load(*file, *footer));
    posmap = std::make_shared<const detail::Posmap>(std::move(loaded));
  }
  return posmap;
}

Result<void> Chunk::State::decode(ByteView framed, std::int64_t actual, LogRecord& record) const {
  const auto size = load_le<std::int32_t>(framed.data());
  const auto suffix = load_le<std::int32_t>(framed.data() + framed.size() - 4);
  if (suffix != size) {
    return corrupt(actual, fmt::format("the length before it is {}, behind it {}", size, suffix));
  }
  const auto decoded =
      decode_record(framed.subspan(4, framed.size() - kFramingSize), record.record);
  if (!decoded) {
    return decoded.error().within(
        fmt::format("{}: record at file offset {}", path.string(), kChunkHeaderSize + actual));
  }
  const auto position = record.position();
  const std::int64_t local = position.value() - start_position();
  const auto end = local + static_cast<std::int64_t>(framed.size());
  // A scavenge moves records towards the front of the file, never their positions.
  const bool in_place =
      header.scavenged ? local >= actual && end <= footer->logical_data_size : local == actual;
  if (!in_place) {
    return corrupt(actual, fmt::format("it says that its log position is {}, which does not belong "
                                       "here",
                                       position));
  }
  record.framed = framed;
  record.next = LogPosition(start_position() + end);
  record.file_offset = static_cast<std::uint64_t>(kChunkHeaderSize + actual);
  return {};
}

Result<LogRecord> Chunk::State::read_actual(std::int64_t actual, Bytes& buffer) const {
  if (gone.load(std::memory_order_acquire)) {
    return Error{Errc::kNotFound,
                 fmt::format("{}: the log was truncated below this chunk", path.string())};
  }
  const auto left = data_size.load(std::memory_order_acquire) - actual;
  if (left < kFramingSize) {
    return corrupt(actual, "it would reach beyond the chunk's data");
  }
  const auto resized = [&](std::int64_t size) {
    // Never shrunk: growing again would cost clearing it.
    if (buffer.size() < static_cast<std::size_t>(size)) {
      buffer.resize(static_cast<std::size_t>(size));
    }
    return MutableBytes(buffer).first(static_cast<std::size_t>(size));
  };
  const auto offset = static_cast<std::uint64_t>(kChunkHeaderSize + actual);
  const auto first = std::min(left, kFirstReadSize);
  VERGER_RETURN_IF_ERROR(file->read_exact(offset, resized(first)));
  const std::int64_t size = load_le<std::int32_t>(buffer.data());
  if (size <= 0 || size > kMaxRecordSize || size + kFramingSize > left) {
    return corrupt(actual, fmt::format("its length {} is impossible", size));
  }
  const auto framed = resized(size + kFramingSize);
  if (size + kFramingSize > first) {
    VERGER_RETURN_IF_ERROR(file->read_exact(offset + static_cast<std::uint64_t>(first),
                                            framed.subspan(static_cast<std::size_t>(first))));
  }
  Result<LogRecord> record;
  if (auto decoded = decode(framed, actual, *record); !decoded) {
    record = std::move(decoded).error();
  }
  return record;
}

Result<LogRecord> Chunk::read(LogPosition position, Bytes& buffer) const {
  const auto local = position - start_position();
  if (local < 0 || position >= end_position()) {
    return Error{Errc::kNotFound,
                 fmt::format("{}: does not cover log position {}", path().string(), position)};
  }
  if (!header().scavenged) {
    if (local >= data_size()) {
      return Error{Errc::kNotFound, fmt::format("{}: log position {} is beyond its data",
                                                path().string(), position)};
    }
    return state_->read_actual(local, buffer);
  }
  VERGER_TRY(const auto map, state_->positions());
  VERGER_TRY(const auto found, map->lower_bound(local));
  if (!found.entry || found.entry->local != local) {
    return Error{Errc::kNotFound,
                 fmt::format("{}: the record at log position {} was scavenged away, or none ever "
                             "started there",
                             path().string(), position)};
  }
  VERGER_TRY(auto record, state_->read_actual(found.entry->actual, buffer));
  if (record.position() != position) {
    return state_->corrupt(
        found.entry->actual,
        fmt::format("the position map says {}, the record {}", position, record.position()));
  }
  return record;
}

Result<std::optional<LogRecord>> Chunk::read_at_or_after(LogPosition position,
                                                         Bytes& buffer) const {
  const auto local = std::max<std::int64_t>(position - start_position(), 0);
  std::int64_t actual = local;
  if (header().scavenged) {
    VERGER_TRY(const auto map, state_->positions());
    VERGER_TRY(const auto found, map->lower_bound(local));
    if (!found.entry) {
      return std::optional<LogRecord>();
    }
    actual = found.entry->actual;
  }
  if (actual >= data_size()) {
    return std::optional<LogRecord>();
  }
  VERGER_TRY(auto record, state_->read_actual(actual, buffer));
  return std::optional(record);
}

Result<std::optional<LogRecord>> Chunk::read_before(LogPosition position, Bytes& buffer) const {
  const auto local = position - start_position();
  if (local <= 0) {
    return std::optional<LogRecord>();
  }
  std::int64_t actual = 0;
  if (header().scavenged) {
    VERGER_TRY(const auto map, state_->positions());
    VERGER_TRY(const auto found, map->lower_bound(local));
    if (found.index == 0) {
      return std::optional<LogRecord>();
    }
    VERGER_TRY(const auto entry, map->entry(found.index - 1));
    actual = entry.actual;
  } else {
    const auto end = std::min(local, data_size());
    if (end == 0) {
      return std::optional<LogRecord>();
    }
    std::array<std::byte, 4> suffix{};
    if (end < kFramingSize) {
      return state_->corrupt(
          0, fmt::format("no record can end at log position {}", start_position() + end));
    }
    VERGER_RETURN_IF_ERROR(
        state_->file->read_exact(static_cast<std::uint64_t>(kChunkHeaderSize + end - 4), suffix));
    const std::int64_t size = load_le<std::int32_t>(suffix.data());
    actual = end - size - kFramingSize;
    if (size <= 0 || size > kMaxRecordSize || actual < 0) {
      return state_->corrupt(
          end, fmt::format("no record ends here: the length before it would be {}", size));
    }
    VERGER_TRY(auto record, state_->read_actual(actual, buffer));
    if (static_cast<std::int64_t>(record.framed.size()) != size + kFramingSize) {
      return state_->corrupt(actual, "its length differs from the one behind it");
    }
    return std::optional(record);
  }
  VERGER_TRY(auto record, state_->read_actual(actual, buffer));
  return std::optional(record);
}

Result<bool> Chunk::has_record_at(LogPosition position) const {
  const auto local = position - start_position();
  if (local < 0 || position >= end_position()) {
    return false;
  }
  if (header().scavenged) {
    VERGER_TRY(const auto map, state_->positions());
    VERGER_TRY(const auto found, map->lower_bound(local));
    return found.entry && found.entry->local == local;
  }
  // Length, type, version, position; then the length behind. That much does not come by chance.
  constexpr std::int64_t kHeadSize = 14;
  const auto left = data_size() - local;
  if (left < kHeadSize + 4) {
    return false;
  }
  std::array<std::byte, kHeadSize> head{};
  const auto offset = static_cast<std::uint64_t>(kChunkHeaderSize + local);
  VERGER_RETURN_IF_ERROR(state_->file->read_exact(offset, head));
  const std::int64_t size = load_le<std::int32_t>(head.data());
  if (size <= 0 || size > kMaxRecordSize || size + kFramingSize > left ||
      load_le<std::int64_t>(head.data() + 6) != position.value()) {
    return false;
  }
  std::array<std::byte, 4> suffix{};
  VERGER_RETURN_IF_ERROR(
      state_->file->read_exact(offset + 4 + static_cast<std::uint64_t>(size), suffix));
  return load_le<std::int32_t>(suffix.data()) == size;
}

Result<std::vector<PosmapEntry>> Chunk::posmap() const {
  if (!header().scavenged) {
    return std::vector<PosmapEntry>();
  }
  VERGER_TRY(const auto map, state_->positions());
  return map->all();
}

Result<void> Chunk::read_raw(std::uint64_t offset, MutableBytes into) const {
  return state_->file->read_exact(offset, into);
}

Result<void> Chunk::verify_md5(const std::function<Result<void>()>& pause) const {
  if (!state_->footer) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: an active chunk has no checksum", path().string())};
  }
  Md5 hash;
  Bytes buffer(detail::kBufferSize);
  const auto hashed = state_->file_size - state_->footer->md5.size();
  for (std::uint64_t at = 0; at < hashed;) {
    if (pause) {
      VERGER_RETURN_IF_ERROR(pause());
    }
    const auto part = MutableBytes(buffer).first(
        static_cast<std::size_t>(std::min<std::uint64_t>(buffer.size(), hashed - at)));
    VERGER_RETURN_IF_ERROR(state_->file->read_exact(at, part));
    hash.update(part);
    at += part.size();
  }
  const auto computed = hash.finish();
  return computed == state_->footer->md5 ? Result<void>() : detail::wrong_checksum(*this, computed);
}

Error detail::wrong_checksum(const Chunk& chunk, const Md5Digest& computed) {
  const auto stored = chunk.footer()->md5;
  return {Errc::kCorruption,
          fmt::format("{}: its bytes have the MD5 {}, the footer (offset {}) says {}; the "
                      "file was damaged: restore it from a backup or another node",
                      chunk.path().string(), to_hex(computed), chunk.file_size() - stored.size(),
                      to_hex(stored))};
}

}  // namespace verger::log
