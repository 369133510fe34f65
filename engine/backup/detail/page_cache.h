#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/unique_fd.h"

namespace verger::backup::detail {

/// Keeps a copy of a file that is read once, from its beginning to its end, from filling the
/// machine's page cache, and leaves there what a node keeps there: before a part is read it is seen
/// which pages are cached, and only the others are dropped afterwards. Does nothing where the
/// kernel does not tell, and on other file systems than the machine's disk.
class ReadOnce {
 public:
  ReadOnce() = default;
  ReadOnce(const FileSystem& files, const Path& path);
  /// Before [offset, offset + size) is read, and after it was; parts in order, of the same size.
  void before(std::uint64_t offset, std::uint64_t size);
  void after();

 private:
  /// Pages of a part of the file, and which of them are cached.
  struct Pages {
    std::uint64_t offset = 0;
    std::vector<unsigned char> cached;
  };
  [[nodiscard]] Pages look(std::uint64_t offset, std::uint64_t size) const;

  UniqueFd fd_;
  Pages now_;
  Pages next_;  ///< looked at before the kernel reads ahead
};

/// A file that was just written and synced, and is not read soon.
void drop_from_page_cache(const FileSystem& files, const Path& path);

}  // namespace verger::backup::detail
