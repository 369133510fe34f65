#pragma once

#include <string_view>

#include "engine/base/file_system.h"

namespace verger {

enum class IfThere : std::uint8_t {
  kReplace,
  kRefuse,  ///< kExists; an existing file stays as it is, even one made at this moment
};

/// Writes a file that only its owner can read or write (mode 0600 from its first byte on), durably
/// and as a whole. For keys; they are the machine's and never in a simulation, so this goes to the
/// disk itself instead of through a FileSystem. Errors: kExists, kIo, kNoSpace.
Result<void> write_private_file(const Path& path, std::string_view content, IfThere if_there);

/// Restricts an existing file to its owner (mode 0600). Errors: kNotFound,
/// kIo.
Result<void> make_private(const Path& path);

/// kRefused where the file's mode lets others than its owner in; kNotFound; kIo.
Result<void> check_private_file(const Path& path);

}  // namespace verger
