#include "engine/redaction/detail/chunk_copy.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/base/assert.h"

namespace verger::redaction::detail {
namespace {

constexpr std::size_t kPieceSize = std::size_t{1} << 20U;

}  // namespace

ChunkCopy::ChunkCopy(FileSystem& files, std::shared_ptr<const log::Chunk> source, Path path,
                     std::vector<BytePatch> patches)
    : files_(&files),
      source_(std::move(source)),
      path_(std::move(path)),
      patches_(std::move(patches)),
      end_(source_->file_size() - sizeof(Md5Digest)) {}

Result<std::unique_ptr<ChunkCopy>> ChunkCopy::start(FileSystem& files,
                                                    std::shared_ptr<const log::Chunk> source,
                                                    const Path& path,
                                                    std::vector<BytePatch> patches) {
  VERGER_ASSERT(source->completed());
  auto file = files.open(path, OpenMode::kCreateNew);
  if (!file) {
    return std::move(file).error();
  }
  std::unique_ptr<ChunkCopy> copy(
      new ChunkCopy(files, std::move(source), path, std::move(patches)));
  copy->file_ = *std::move(file);
  return copy;
}

ChunkCopy::~ChunkCopy() {
  if (!kept_) {
    remove();
  }
}

void ChunkCopy::remove() {
  file_.reset();
  kept_ = true;
  // A leftover is removed by the next opening for writing.
  static_cast<void>(files_->remove(path_));
}

Result<bool> ChunkCopy::step(std::uint64_t bytes) {
  const auto stop = std::min(end_, at_ + bytes);
  while (at_ < stop) {
    buffer_.resize(static_cast<std::size_t>(std::min<std::uint64_t>(kPieceSize, stop - at_)));
    VERGER_RETURN_IF_ERROR(source_->read_raw(at_, buffer_));
    before_.update(buffer_);
    apply_patches(buffer_);
    after_.update(buffer_);
    VERGER_RETURN_IF_ERROR(file_->write_at(at_, buffer_));
    at_ += buffer_.size();
  }
  if (at_ < end_) {
    return false;
  }
  const auto computed = before_.finish();
  const auto stored = source_->footer()->md5;
  if (computed != stored) {
    // Under a new checksum the damage would look sound.
    return Error{Errc::kCorruption,
                 fmt::format("{}: its bytes have the MD5 {}, its footer says {}: it is damaged and "
                             "was left as it is; restore it from a backup or another node first",
                             source_->path().string(), to_hex(computed), to_hex(stored))};
  }
  return true;
}

void ChunkCopy::apply_patches(MutableBytes piece) {
  const auto piece_end = at_ + piece.size();
  for (auto n = next_patch_; n < patches_.size() && patches_[n].offset < piece_end; ++n) {
    const auto& patch = patches_[n];
    std::byte flags[sizeof(patch.flags)];
    store_le(flags, patch.flags);
    const auto from = std::max(at_, patch.offset);
    const auto to = std::min(piece_end, patch.offset + patch.size);
    for (auto at = from; at < to; ++at) {
      piece[static_cast<std::size_t>(at - at_)] =
          patch.is_flags ? flags[at - patch.offset] : kBlank;
    }
    if (patch.offset + patch.size <= piece_end) {
      next_patch_ = n + 1;
    }
  }
}

Result<Md5Digest> ChunkCopy::finish() {
  const auto md5 = after_.finish();
  VERGER_RETURN_IF_ERROR(file_->write_at(end_, md5));
  VERGER_RETURN_IF_ERROR(file_->sync());
  file_.reset();
  VERGER_TRY(const auto copy, log::Chunk::open_completed(*files_, path_));
  if (copy->file_size() != source_->file_size() || copy->footer()->md5 != md5) {
    return Error{Errc::kCorruption,
                 fmt::format("{}: is not what was written into it", path_.string())};
  }
  VERGER_RETURN_IF_ERROR(copy->verify_md5());
  source_.reset();  // the former file is removed with the last that has it
  kept_ = true;
  return md5;
}

}  // namespace verger::redaction::detail
