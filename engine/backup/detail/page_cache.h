#pragma once

#include <cstdint>
#include <vector>

#include "engine/base/file_system.h"
#include "engine/base/unique_fd.h"

namespace verger::backup::detail {

/// Keeps a copy of a file that is read once, from its beginning to its end, from filling the
/// machine's page cache, and leaves there what a node keeps there: before the first read it is seen
/// which pages are cached, and only the others are dropped, as the copy moves on and at its end.
/// Does nothing where the kernel does not tell, and on other file systems than the machine's disk.
class ReadOnce {
 public:
  ReadOnce() = default;
  /// The file is opened later: many may wait.
  ReadOnce(const FileSystem& files, const Path& path);
  ReadOnce(ReadOnce&&) noexcept = default;
  ReadOnce& operator=(ReadOnce&&) noexcept = default;
  ~ReadOnce();
  /// Before each part is read.
  void before_read();
  /// All below `offset` was read.
  void read_to(std::uint64_t offset);

 private:
  void drop(std::size_t first_page, std::size_t end_page) const;

  Path path_;  ///< empty: nothing is to be done
  UniqueFd fd_;
  std::vector<unsigned char> cached_;  ///< of each page, before the first read
  std::size_t dropped_ = 0;            ///< pages
};

/// A file that was just written and synced, and is not read soon.
void drop_from_page_cache(const FileSystem& files, const Path& path);

}  // namespace verger::backup::detail
