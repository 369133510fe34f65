#pragma once

#include <cstdint>

namespace verger::index {

/// Size of the file of a version-4 table with so many entries, without its bloom filter.
std::uint64_t ptable_file_size(std::uint64_t entries, int cache_depth);

}  // namespace verger::index
