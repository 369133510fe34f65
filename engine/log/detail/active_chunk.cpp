#include "engine/log/detail/active_chunk.h"

#include <fmt/format.h>

#include "engine/base/failpoint.h"
#include "engine/log/detail/chunk_state.h"
#include "engine/log/detail/limits.h"

namespace verger::log::detail {
namespace {

/// In place: the fields change together in one sector, and a crash leaves the old or the new form.
Result<void> upgrade_header(File& file, ChunkHeader& header) {
  header.min_compatible_version = 3;
  header.version = 0;
  VERGER_RETURN_IF_ERROR(file.write_at(0, encode_chunk_header(header)));
  return file.sync();
}

}  // namespace

ActiveChunk::ActiveChunk(FileSystem& files, std::shared_ptr<Chunk> chunk,
                         std::shared_ptr<File> file, bool hash_in_background)
    : files_(&files),
      chunk_(std::move(chunk)),
      file_(std::move(file)),
      output_(*file_, static_cast<std::uint64_t>(kChunkHeaderSize + chunk_->data_size()),
              hash_in_background ? std::make_shared<Md5Thread>() : nullptr) {}

Result<ActiveChunk> ActiveChunk::open(FileSystem& files, std::shared_ptr<Chunk> chunk,
                                      bool hash_in_background) {
  // It may be a completed one that is reopened; the server removes the write permission then.
  VERGER_RETURN_IF_ERROR(files.set_read_only(chunk->path(), false));
  VERGER_TRY(auto file, files.open(chunk->path(), OpenMode::kReadWrite));
  if (chunk->header().effective_version() < 3) {
    VERGER_RETURN_IF_ERROR(upgrade_header(*file, ChunkAccess::state(*chunk).header));
  }
  return ActiveChunk(files, std::move(chunk), std::move(file), hash_in_background);
}

Result<ActiveChunk> ActiveChunk::create(FileSystem& files, const Path& directory,
                                        const ChunkHeader& header, Random& random,
                                        bool hash_in_background) {
  if (header.start.value() >= kMaxChunkCount) {
    return Error{Errc::kUnsupported,
                 fmt::format("{}: a database has at most {} chunks; the log is full",
                             directory.string(), kMaxChunkCount)};
  }
  const std::string name = chunk_file_name(header.start, 0);
  const Path temporary = directory / fmt::format("{}.{}.tmp", name, random.uuid().to_string());
  const auto size = align_chunk_file(
      kChunkHeaderSize + static_cast<std::uint64_t>(header.chunk_size) + kChunkFooterSize);
  {
    VERGER_TRY(const auto file, files.open(temporary, OpenMode::kCreateNew));
    VERGER_RETURN_IF_ERROR(file->resize(size));
    VERGER_RETURN_IF_ERROR(file->write_at(0, encode_chunk_header(header)));
    VERGER_RETURN_IF_ERROR(file->sync());
  }
  // A chunk file is never seen without its header. A crash before the directory is synced leaves
  // the temporary file or nothing; after it, an empty chunk that opening removes or continues.
  VERGER_RETURN_IF_ERROR(files.rename(temporary, directory / name));
  VERGER_RETURN_IF_ERROR(files.sync_directory(directory));
  VERGER_FAILPOINT("log.new-chunk.after-create");
  VERGER_TRY(auto chunk, Chunk::open_active(files, directory / name, 0));
  return open(files, std::move(chunk), hash_in_background);
}

std::int64_t ActiveChunk::data_size() const {
  return static_cast<std::int64_t>(output_.offset()) - kChunkHeaderSize;
}

bool ActiveChunk::fits(std::int64_t bytes) const {
  return data_size() + bytes <= chunk_->header().chunk_size;
}

Result<void> ActiveChunk::hash_what_is_there() {
  if (!hashed_) {
    VERGER_RETURN_IF_ERROR(output_.rehash());
    hashed_ = true;
  }
  return {};
}

Result<void> ActiveChunk::append(ByteView framed) {
  VERGER_RETURN_IF_ERROR(hash_what_is_there());
  return output_.append(framed);
}

Result<std::shared_ptr<File>> ActiveChunk::written_file() {
  VERGER_RETURN_IF_ERROR(output_.flush());
  return file_;
}

Result<std::shared_ptr<Chunk>> ActiveChunk::complete() {
  VERGER_RETURN_IF_ERROR(hash_what_is_there());
  VERGER_RETURN_IF_ERROR(output_.flush());
  // Until writer.chk lies behind the chunk its footer is not looked at: a crash anywhere in here
  // leaves an active chunk; bytes behind its records do not matter.
  VERGER_RETURN_IF_ERROR(file_->resize(output_.offset()));
  VERGER_FAILPOINT("log.complete-chunk.before-footer");
  ChunkFooter footer;
  footer.completed = true;
  footer.physical_data_size = static_cast<std::int32_t>(data_size());
  footer.logical_data_size = footer.physical_data_size;
  VERGER_RETURN_IF_ERROR(output_.complete(footer));
  VERGER_RETURN_IF_ERROR(file_->sync());
  VERGER_FAILPOINT("log.complete-chunk.after-footer");
  // Only a sign for people and the server; nothing relies on it.
  static_cast<void>(files_->set_read_only(chunk_->path(), true));
  return Chunk::open_completed(*files_, chunk_->path());
}

}  // namespace verger::log::detail
