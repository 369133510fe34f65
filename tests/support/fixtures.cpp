#include "tests/support/fixtures.h"

#include <algorithm>
#include <spawn.h>
#include <stdexcept>
#include <sys/wait.h>

extern char** environ;

namespace verger::test {

std::filesystem::path fixtures_directory() { return VERGER_TEST_FIXTURES; }

std::vector<std::string> scavenge_cases() {
  std::vector<std::string> names;
  for (const auto& entry : std::filesystem::directory_iterator(fixtures_directory() / "scavenge")) {
    names.push_back(entry.path().filename().string());
  }
  std::ranges::sort(names);
  return names;
}

void unpack_fixture(std::string_view relative, const std::filesystem::path& target) {
  std::filesystem::create_directories(target);
  const auto archive = (fixtures_directory() / relative).string();
  std::string program = "tar";
  std::vector<std::string> words{"tar",   "--zstd", "--no-same-owner", "-xf",
                                 archive, "-C",     target.string()};
  std::vector<char*> arguments;
  for (auto& word : words) {
    arguments.push_back(word.data());
  }
  arguments.push_back(nullptr);
  pid_t child = 0;
  if (posix_spawnp(&child, program.c_str(), nullptr, nullptr, arguments.data(), environ) != 0) {
    throw std::runtime_error("cannot start tar");
  }
  int status = 0;
  if (waitpid(child, &status, 0) != child || status != 0) {
    throw std::runtime_error("tar could not unpack " + archive);
  }
}

}  // namespace verger::test
