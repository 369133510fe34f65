#pragma once

#include <filesystem>
#include <string>
#include <string_view>
#include <vector>

namespace verger::test {

/// tests/fixtures of the source tree.
std::filesystem::path fixtures_directory();
/// Names of the cases below tests/fixtures/scavenge, sorted.
std::vector<std::string> scavenge_cases();
/// Unpacks e.g. "scavenge/everything/before.tar.zst" into `target` (created). Throws on failure.
void unpack_fixture(std::string_view relative, const std::filesystem::path& target);

}  // namespace verger::test
