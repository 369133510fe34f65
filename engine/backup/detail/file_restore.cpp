#include "engine/backup/detail/file_restore.h"

#include <algorithm>
#include <fmt/format.h>

#include "engine/backup/detail/file_copy.h"
#include "engine/base/directories.h"

namespace verger::backup::detail {

Result<FileRestore> FileRestore::copy(FileSystem& files, BlobStore& store, const NewFile& file,
                                      const Path& to) {
  FileRestore work(files, file, to);
  if (!file.content) {
    VERGER_TRY(work.content_, store.open_blob(file.entry.sha256));
    if (work.content_->size() != file.entry.size) {
      return Error{
          Errc::kCorruption,
          fmt::format("{}: the backup's content ({}) has {} bytes instead of {}", file.entry.path,
                      to_hex(file.entry.sha256), work.content_->size(), file.entry.size)};
    }
  }
  VERGER_RETURN_IF_ERROR(make_directories_durably(files, to.parent_path()));
  const Path part = to.string() + ".part";
  if (const auto removed = files.remove(part);
      !removed && removed.error().code != Errc::kNotFound) {
    return removed.error();
  }
  VERGER_TRY(work.file_, files.open(part, OpenMode::kCreateNew));
  work.copies_ = true;
  return work;
}

Result<FileRestore> FileRestore::compare(FileSystem& files, const NewFile& file, const Path& at) {
  FileRestore work(files, file, at);
  VERGER_TRY(work.file_, files.open(at, OpenMode::kRead));
  VERGER_TRY(const auto size, work.file_->size());
  if (size != file.entry.restored_size) {
    return Error{Errc::kCorruption, fmt::format("{}: has {} bytes after the restore, not {}",
                                                at.string(), size, file.entry.restored_size)};
  }
  work.cache_ = ReadOnce(files, at);
  return work;
}

Result<bool> FileRestore::step(std::uint64_t most) {
  std::uint64_t done = 0;
  while (at_ < entry_.size && (done == 0 || done < most)) {
    buffer_.resize(std::min(kBlockSize, entry_.size - at_));
    VERGER_RETURN_IF_ERROR(read());
    hash_.update(buffer_);
    if (copies_) {
      VERGER_RETURN_IF_ERROR(file_->write_at(at_, buffer_));
    }
    at_ += buffer_.size();
    done += buffer_.size();
  }
  if (at_ < entry_.size) {
    return false;
  }
  VERGER_RETURN_IF_ERROR(end());
  return true;
}

Result<void> FileRestore::read() {
  if (!copies_) {
    cache_.before_read();
    VERGER_RETURN_IF_ERROR(file_->read_exact(at_, buffer_));
    cache_.read_to(at_ + buffer_.size());
    return {};
  }
  if (own_) {
    std::ranges::copy(ByteView(*own_).subspan(at_, buffer_.size()), buffer_.begin());
    return {};
  }
  return content_->read_exact(at_, buffer_);
}

Result<void> FileRestore::end() {
  if (hash_.finish() != entry_.sha256) {
    return Error{Errc::kCorruption,
                 copies_ ? fmt::format("{}: the backup's content does not have its SHA-256 ({}); "
                                       "nothing was changed: restore another backup",
                                       entry_.path, to_hex(entry_.sha256))
                         : fmt::format("{}: does not have the SHA-256 of the backup after the "
                                       "restore: the disk has changed it; repeat the restore",
                                       to_.string())};
  }
  if (!copies_) {
    return {};
  }
  if (entry_.restored_size != entry_.size) {
    VERGER_RETURN_IF_ERROR(file_->resize(entry_.restored_size));
  }
  VERGER_RETURN_IF_ERROR(file_->sync());
  drop_from_page_cache(*files_, file_->path());
  VERGER_RETURN_IF_ERROR(files_->rename(file_->path(), to_));
  return files_->sync_directory(to_.parent_path());
}

Result<bool> has_content(FileSystem& files, const NewFile& file, const Path& at) {
  auto read = FileRestore::compare(files, file, at);
  if (!read) {
    const auto code = read.error().code;
    return code == Errc::kNotFound || code == Errc::kCorruption ? Result<bool>(false)
                                                                : read.error();
  }
  auto same = read->step(file.entry.size);
  if (!same && same.error().code == Errc::kCorruption) {
    return false;
  }
  return same;
}

}  // namespace verger::backup::detail
