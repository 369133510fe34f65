#pragma once

#include <cstdint>

namespace verger::log {

/// Size of a scavenged chunk's file that holds so many records of so many bytes, framing included.
std::uint64_t scavenged_file_size(std::uint64_t data_bytes, std::uint64_t records);

}  // namespace verger::log
