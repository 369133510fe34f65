#pragma once

#include <span>

#include "engine/base/file_system.h"

namespace verger {

/// The machine's disk, for the files of a server that may be another user's. What is made gets
/// owner, group and permissions of the directory it is made in, despite the caller's umask; not in
/// a directory that users share (one with the sticky bit, such as /tmp). A file that cannot get
/// them is not made: kRefused. A directory is made all the same, and what is made in it follows it.
FileSystem& database_file_system();

/// Is it the machine's disk, where other processes may have files open?
bool is_machine_disk(const FileSystem& files);

/// Who makes files: what `database_file_system` may give away depends on it.
struct FileMaker {
  std::uint32_t user = 0;
  std::vector<std::uint32_t> groups;  ///< the effective one and all others
};
FileMaker this_process();

/// kRefused where files that `maker` makes in one of `directories` could not get its owner and
/// group: the server could not use them. Says which, and whom to run as. What is not there is not
/// looked at. Changes nothing.
Result<void> check_file_owner(std::span<const Path> directories,
                              const FileMaker& maker = this_process());

}  // namespace verger
