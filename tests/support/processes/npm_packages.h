#pragma once

#include <filesystem>
#include <string>

namespace verger::test {

/// Puts what `from`/package-lock.json names into `directory`/node_modules; install scripts are not
/// run. Empty, or why not. Needs node, npm and the npm registry.
std::string install_npm_packages(const std::filesystem::path& from,
                                 const std::filesystem::path& directory);

}  // namespace verger::test
