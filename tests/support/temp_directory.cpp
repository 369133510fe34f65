#include "tests/support/temp_directory.h"

#include <stdexcept>
#include <stdlib.h>
#include <string>
#include <system_error>

namespace verger::test {

TempDirectory::TempDirectory() {
  auto name = (std::filesystem::temp_directory_path() / "verger-test-XXXXXX").string();
  if (mkdtemp(name.data()) == nullptr) {
    throw std::system_error(errno, std::generic_category(), "mkdtemp " + name);
  }
  path_ = name;
}

TempDirectory::~TempDirectory() {
  // Completed chunks are read-only files; their directory is writable, so they can be removed.
  std::error_code ignored;
  std::filesystem::remove_all(path_, ignored);
}

}  // namespace verger::test
