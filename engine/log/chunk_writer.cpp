#include <fmt/format.h>
#include <limits>

#include "engine/log/chunk.h"
#include "engine/log/detail/chunk_output.h"
#include "engine/log/detail/limits.h"

namespace verger::log {

struct ChunkWriter::State {
  FileSystem* files = nullptr;
  Path path;
  std::unique_ptr<File> file;
  ChunkHeader header;
  std::unique_ptr<detail::ChunkOutput> output;
  Bytes map;
  std::int64_t data_size = 0;
  std::int64_t logical_size = 0;
  bool finished = false;
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
                                        const ChunkHeader& header, bool hash_in_background) {
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
  s.output = std::make_unique<detail::ChunkOutput>(*s.file, 0, hash_in_background);
  VERGER_RETURN_IF_ERROR(s.output->rehash());
  VERGER_RETURN_IF_ERROR(s.output->append(encode_chunk_header(header)));
  return writer;
}

Result<void> ChunkWriter::append(LogPosition position, ByteView framed) {
  State& s = *state_;
  const auto local = position - s.header.start_position();
  const auto size = static_cast<std::int64_t>(framed.size());
  if (local < s.logical_size || position + size > s.header.end_position() ||
      (!s.header.scavenged && local != s.data_size)) {
    return Error{
        Errc::kInvalidArgument,
        fmt::format("{}: a record at log position {} cannot follow; the last one ends at {}",
                    s.path.string(), position, s.header.start_position() + s.logical_size)};
  }
  if (s.data_size + size > std::numeric_limits<std::int32_t>::max() - kChunkHeaderSize) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: more than 2 GiB of records do not fit into a chunk file",
                             s.path.string())};
  }
  VERGER_RETURN_IF_ERROR(s.output->append(framed));
  if (s.header.scavenged) {
    append_le(s.map, static_cast<std::int32_t>(s.data_size));
    append_le(s.map, local);
  }
  s.data_size += size;
  s.logical_size = local + size;
  return {};
}

std::int64_t ChunkWriter::data_size() const { return state_->data_size; }

Result<ChunkWriter::Finished> ChunkWriter::finish() {
  State& s = *state_;
  ChunkFooter footer;
  footer.completed = true;
  footer.physical_data_size = static_cast<std::int32_t>(s.data_size);
  footer.logical_data_size = s.logical_size;
  footer.map_size = static_cast<std::int32_t>(s.map.size());
  VERGER_RETURN_IF_ERROR(s.output->append(s.map));
  VERGER_TRY(const auto written, s.output->complete(footer));
  VERGER_RETURN_IF_ERROR(s.file->sync());
  s.finished = true;
  return Finished{s.path, s.header, written.footer, written.file_size};
}

}  // namespace verger::log
