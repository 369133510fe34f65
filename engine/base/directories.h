#pragma once

#include "engine/base/file_system.h"

namespace verger {

/// make_directories, and on the disk when it returns: a power cut must not take the directory away
/// with everything that was synced inside it.
Result<void> make_directories_durably(FileSystem& files, const Path& directory);

/// The directory itself, or the next one above it that is there. Error: kIo.
Result<Path> existing_part(FileSystem& files, const Path& directory);

}  // namespace verger
