#include <fmt/format.h>
#include <limits>

#include "engine/base/assert.h"
#include "engine/base/varint.h"
#include "engine/log/chunk.h"
#include "engine/log/detail/chunk_output.h"
#include "engine/log/detail/limits.h"

namespace verger::log {
namespace {

constexpr std::size_t kMapBlockSize = std::size_t{48} << 10U;
/// A position map in some four bytes a record instead of twelve, until the file has its end: of
/// each record the gap before it in the log, and its size.
class CompactMap {
 public:
  void add(std::int64_t gap, std::int64_t size) {
    // In blocks: as one it would be copied again and again as it grows.
    if (blocks_.empty() || blocks_.back().size() + 2 * kMostBytesOfVarint > kMapBlockSize) {
      blocks_.emplace_back().reserve(kMapBlockSize);
    }
    append_varint(blocks_.back(), static_cast<std::uint64_t>(gap));
    append_varint(blocks_.back(), static_cast<std::uint64_t>(size));
    ++records_;
  }
  [[nodiscard]] std::size_t size_in_file() const { return records_ * detail::kPosmapEntrySize; }
  /// Appends it as it is in the file.
  Result<void> write(detail::ChunkOutput& output) const {
    std::int64_t local = 0;
    std::int64_t actual = 0;
    Bytes entries;
    for (ByteView block : blocks_) {
      entries.clear();
      while (!block.empty()) {
        local += take(block);
        append_le(entries, static_cast<std::int32_t>(actual));
        append_le(entries, local);
        const auto size = take(block);
        local += size;
        actual += size;
      }
      VERGER_RETURN_IF_ERROR(output.append(entries));
    }
    return {};
  }

 private:
  static std::int64_t take(ByteView& block) {
    const auto value = take_varint(block);
    VERGER_ASSERT(value.has_value());
    return static_cast<std::int64_t>(*value);
  }

  std::vector<Bytes> blocks_;
  std::size_t records_ = 0;
};

}  // namespace

struct ChunkWriter::State {
  FileSystem* files = nullptr;
  Path path;
  std::unique_ptr<File> file;
  ChunkHeader header;
  std::unique_ptr<detail::ChunkOutput> output;
  CompactMap map;
  std::int64_t data_size = 0;
  std::int64_t logical_size = 0;
  bool finished = false;

  /// Notes a record of `size` bytes that begins at `position` and is appended next.
  Result<void> note(LogPosition position, std::int64_t size);
};

ChunkWriter::ChunkWriter(std::unique_ptr<State> state) : state_(std::move(state)) {}
ChunkWriter::ChunkWriter(ChunkWriter&&) noexcept = default;

ChunkWriter& ChunkWriter::operator=(ChunkWriter&& other) noexcept {
  std::swap(state_, other.state_);  // what was here is abandoned with `other`
  return *this;
}

ChunkWriter::~ChunkWriter() {
  if (state_ && !state_->finished) {
    state_->output.reset();
    state_->file.reset();
    // A leftover is removed by the next opening for writing.
    static_cast<void>(state_->files->remove(state_->path));
  }
}

Result<ChunkWriter> ChunkWriter::create(FileSystem& files, const Path& directory, std::string name,
                                        const ChunkHeader& header,
                                        std::shared_ptr<Md5Thread> hasher, bool writes_behind) {
  if (!name.ends_with(".tmp")) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: a chunk is written under a name that ends in .tmp", name)};
  }
  auto state = std::make_unique<State>();
  state->files = &files;
  state->path = directory / name;
  state->header = header;
  VERGER_TRY(state->file, files.open(state->path, OpenMode::kCreateNew));
  ChunkWriter writer(std::move(state));  // removes the file should the header not go in
  State& s = *writer.state_;
  s.output = std::make_unique<detail::ChunkOutput>(*s.file, 0, std::move(hasher), writes_behind);
  VERGER_RETURN_IF_ERROR(s.output->rehash());
  VERGER_RETURN_IF_ERROR(s.output->append(encode_chunk_header(header)));
  return writer;
}

Result<void> ChunkWriter::State::note(LogPosition position, std::int64_t size) {
  const auto local = position - header.start_position();
  if (local < logical_size || position + size > header.end_position() ||
      (!header.scavenged && local != data_size)) {
    return Error{
        Errc::kInvalidArgument,
        fmt::format("{}: a record at log position {} cannot follow; the last one ends at {}",
                    path.string(), position, header.start_position() + logical_size)};
  }
  if (data_size + size > std::numeric_limits<std::int32_t>::max() - kChunkHeaderSize) {
    return Error{
        Errc::kInvalidArgument,
        fmt::format("{}: more than 2 GiB of records do not fit into a chunk file", path.string())};
  }
  if (header.scavenged) {
    map.add(local - logical_size, size);
  }
  data_size += size;
  logical_size = local + size;
  return {};
}

Result<void> ChunkWriter::append(LogPosition position, ByteView framed) {
  VERGER_RETURN_IF_ERROR(state_->note(position, static_cast<std::int64_t>(framed.size())));
  return state_->output->append(framed);
}

Result<void> ChunkWriter::append_copied(LogPosition start, std::span<const PosmapEntry> records,
                                        ByteView framed) {
  VERGER_ASSERT(state_->header.scavenged);
  for (std::size_t n = 0; n < records.size(); ++n) {
    const auto begin = records[n].actual - records.front().actual;
    const auto end = n + 1 < records.size() ? records[n + 1].actual - records.front().actual
                                            : static_cast<std::int64_t>(framed.size());
    VERGER_RETURN_IF_ERROR(state_->note(start + records[n].local, end - begin));
  }
  return state_->output->append(framed);
}

std::int64_t ChunkWriter::data_size() const { return state_->data_size; }

Result<ChunkWriter::Finished> ChunkWriter::finish() {
  State& s = *state_;
  ChunkFooter footer;
  footer.completed = true;
  footer.physical_data_size = static_cast<std::int32_t>(s.data_size);
  footer.logical_data_size = s.logical_size;
  footer.map_size = static_cast<std::int32_t>(s.map.size_in_file());
  VERGER_RETURN_IF_ERROR(s.map.write(*s.output));
  s.map = {};  // the memory is for other files
  VERGER_TRY(const auto written, s.output->complete(footer));
  VERGER_RETURN_IF_ERROR(s.file->sync());
  s.finished = true;
  return Finished{s.path, s.header, written.footer, written.file_size};
}

}  // namespace verger::log
