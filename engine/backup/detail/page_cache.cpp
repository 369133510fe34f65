#include "engine/backup/detail/page_cache.h"

#include <algorithm>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>
#include <utility>

#include "engine/base/database_files.h"

namespace verger::backup::detail {
namespace {

UniqueFd open_to_advise(const Path& path) {
  return UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
}

std::uint64_t page_size() {
  static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

ReadOnce::ReadOnce(const FileSystem& files, const Path& path)
    : path_(is_machine_disk(files) ? path : Path()) {}

ReadOnce::~ReadOnce() {
  if (fd_.valid()) {
    // Once more from the start: a page that was in use is dropped now.
    drop(0, cached_.size());
  }
}

void ReadOnce::before_read() {
  if (path_.empty()) {
    return;
  }
  fd_ = open_to_advise(std::exchange(path_, Path()));
  struct stat status{};
  if (::fstat(fd_.get(), &status) != 0 || status.st_size <= 0) {
    return;
  }
  const auto size = static_cast<std::size_t>(status.st_size);
  void* const mapped = ::mmap(nullptr, size, PROT_READ, MAP_SHARED, fd_.get(), 0);
  if (mapped == MAP_FAILED) {
    return;
  }
  cached_.resize((size + page_size() - 1) / page_size());
  if (::mincore(mapped, size, cached_.data()) != 0) {
    cached_.clear();
  }
  ::munmap(mapped, size);
}

void ReadOnce::read_to(std::uint64_t offset) {
  // The kernel reads ahead, and keeps several pages as one: a part is dropped once the copy is well
  // behind it, together with the end of the part before.
  const std::size_t part = (std::size_t{8} << 20U) / page_size();
  const auto end = std::min(static_cast<std::size_t>(offset / page_size()), cached_.size());
  if (end >= dropped_ + 2 * part) {
    drop(dropped_ > part ? dropped_ - part : 0, end - part);
    dropped_ = end - part;
  }
}

void ReadOnce::drop(std::size_t first_page, std::size_t end_page) const {
  // One call for each run of pages that were not cached.
  for (auto first = first_page; first < end_page;) {
    if ((cached_[first] & 1U) != 0) {
      ++first;
      continue;
    }
    auto last = first;
    while (last < end_page && (cached_[last] & 1U) == 0) {
      ++last;
    }
    ::posix_fadvise(fd_.get(), static_cast<off_t>(first * page_size()),
                    static_cast<off_t>((last - first) * page_size()), POSIX_FADV_DONTNEED);
    first = last;
  }
}

void drop_from_page_cache(const FileSystem& files, const Path& path) {
  const auto fd = is_machine_disk(files) ? open_to_advise(path) : UniqueFd();
  if (fd.valid()) {
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

}  // namespace verger::backup::detail
