#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace verger {

/// 1234567 -> "1,234,567"
std::string with_separators(std::int64_t number);
/// Powers of 1024, one decimal: 70507 -> "68.9 KiB", 33554432 -> "32 MiB".
std::string human_bytes(std::int64_t bytes);
/// (1, "node") -> "1 node", (3, "node") -> "3 nodes"; for nouns that take an s.
std::string counted(std::int64_t number, std::string_view noun);

}  // namespace verger
