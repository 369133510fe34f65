#include "engine/backup/detail/page_cache.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>
#include <utility>

#include "engine/base/database_files.h"

namespace verger::backup::detail {
namespace {

UniqueFd open_to_advise(const FileSystem& files, const Path& path) {
  return is_machine_disk(files) ? UniqueFd(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) : UniqueFd();
}

std::uint64_t page_size() {
  static const auto size = static_cast<std::uint64_t>(::sysconf(_SC_PAGESIZE));
  return size;
}

}  // namespace

ReadOnce::ReadOnce(const FileSystem& files, const Path& path) : fd_(open_to_advise(files, path)) {}

ReadOnce::Pages ReadOnce::look(std::uint64_t offset, std::uint64_t size) const {
  Pages pages;
  pages.offset = offset / page_size() * page_size();
  const auto length = offset + size - pages.offset;
  void* const mapped =
      ::mmap(nullptr, length, PROT_READ, MAP_SHARED, fd_.get(), static_cast<off_t>(pages.offset));
  if (mapped == MAP_FAILED) {
    return pages;
  }
  pages.cached.resize((length + page_size() - 1) / page_size());
  if (::mincore(mapped, length, pages.cached.data()) != 0) {
    pages.cached.clear();
  }
  ::munmap(mapped, length);
  return pages;
}

void ReadOnce::before(std::uint64_t offset, std::uint64_t size) {
  if (!fd_.valid() || size == 0) {
    return;
  }
  const bool known = !next_.cached.empty() && next_.offset == offset;
  now_ = known ? std::move(next_) : look(offset, size);
  next_ = look(offset + size, size);
}

void ReadOnce::after() {
  // One call for each run of pages that the read has brought in.
  const auto& cached = now_.cached;
  for (std::size_t first = 0; first < cached.size();) {
    if ((cached[first] & 1U) != 0) {
      ++first;
      continue;
    }
    auto last = first;
    while (last < cached.size() && (cached[last] & 1U) == 0) {
      ++last;
    }
    ::posix_fadvise(fd_.get(), static_cast<off_t>(now_.offset + first * page_size()),
                    static_cast<off_t>((last - first) * page_size()), POSIX_FADV_DONTNEED);
    first = last;
  }
  now_.cached.clear();
}

void drop_from_page_cache(const FileSystem& files, const Path& path) {
  const auto fd = open_to_advise(files, path);
  if (fd.valid()) {
    ::posix_fadvise(fd.get(), 0, 0, POSIX_FADV_DONTNEED);
  }
}

}  // namespace verger::backup::detail
