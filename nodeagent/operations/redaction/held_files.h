#pragma once

#include <string>
#include <vector>

#include "engine/base/file_system.h"

namespace verger::agent {

/// A file that was removed and that a process still has: its content is on the disk until that
/// process is done with it.
struct HeldFile {
  std::string name{};  ///< relative to the directory that was asked for
  std::string process{};
  /// Opens it, where this process may (/proc/PID/fd/N); empty: it is mapped, and not open.
  Path open_as{};
  /// "chunk-000000.000000 (process 4711)"
  [[nodiscard]] std::string text() const;
};

/// Of files below `directory`, in no order. Processes that cannot be looked into are left out.
std::vector<HeldFile> held_files(const Path& directory, const Path& proc = "/proc");

/// The texts of held_files().
std::vector<std::string> removed_and_held(const Path& directory);

}  // namespace verger::agent
