#include "tests/support/tree_hash.h"

#include <algorithm>
#include <fstream>
#include <iterator>
#include <vector>

#include "engine/base/digest.h"

namespace verger::test {

std::string tree_hash(const std::filesystem::path& directory) {
  std::vector<std::filesystem::path> paths;
  for (const auto& entry : std::filesystem::recursive_directory_iterator(directory)) {
    paths.push_back(entry.path());
  }
  std::ranges::sort(paths);
  Sha256 hash;
  for (const auto& path : paths) {
    const auto status = std::filesystem::status(path);
    hash.update(as_bytes(path.lexically_relative(directory).string()));
    hash.update(as_bytes(std::to_string(static_cast<unsigned>(status.permissions()))));
    if (std::filesystem::is_regular_file(status)) {
      std::ifstream file(path, std::ios::binary);
      const std::string content((std::istreambuf_iterator<char>(file)), {});
      hash.update(as_bytes(std::to_string(content.size()) + ":"));
      hash.update(as_bytes(content));
    }
  }
  return to_hex(hash.finish());
}

}  // namespace verger::test
