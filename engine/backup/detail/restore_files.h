#pragma once

#include <string_view>

#include "engine/base/file_system.h"

namespace verger::backup::detail {

// Of paths in a generation.
bool is_checkpoint(std::string_view path);
bool is_chunk(std::string_view path);
/// Such a path begins so.
inline constexpr std::string_view kIndexPrefix = "index/";
bool is_of_index(std::string_view path);

/// A directory with all that is in it; nothing where it is not there.
Result<void> remove_tree(FileSystem& files, const Path& directory);
/// The bytes of all files in it; 0 where it is not there.
Result<std::uint64_t> tree_bytes(FileSystem& files, const Path& directory);

/// Whether what is written in one takes space of the other: on the machine's disk by their devices.
/// Of directories that are not there yet, the next one above counts.
Result<bool> share_volume(FileSystem& files, const Path& one, const Path& other);

}  // namespace verger::backup::detail
