#pragma once

#include <filesystem>
#include <string>

namespace verger::test {

/// SHA-256 over names, permissions and contents of everything below `directory`.
std::string tree_hash(const std::filesystem::path& directory);

}  // namespace verger::test
