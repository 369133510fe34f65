#pragma once

#include <cstdint>

namespace verger::log {

/// Size of a chunk's file that was completed with so many bytes of records, framing included,
/// before any scavenge.
std::uint64_t completed_file_size(std::uint64_t data_bytes);
/// Size of a scavenged chunk's file that holds so many records of so many bytes, framing included.
std::uint64_t scavenged_file_size(std::uint64_t data_bytes, std::uint64_t records);

}  // namespace verger::log
