#pragma once

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "engine/settings/settings.h"
#include "tests/support/temp_directory.h"

namespace verger::test {

/// An annotated file of options in which the defaults are no comments any longer.
class FileOfDefaults {
 public:
  FileOfDefaults(const std::string& text, const std::vector<settings::Effective>& options) {
    std::ofstream out(path());
    std::istringstream lines(text);
    for (std::string line; std::getline(lines, line);) {
      const auto key = line.substr(0, line.find(':'));
      const bool is_default = std::ranges::any_of(
          options, [&](const auto& option) { return key == "# " + option.name; });
      const bool is_set =
          std::ranges::any_of(options, [&](const auto& option) { return key == option.name; });
      count_ += is_default || is_set ? 1 : 0;
      out << (is_default ? line.substr(2) : line) << '\n';
    }
  }
  [[nodiscard]] std::filesystem::path path() const { return directory_.path() / "all.yaml"; }
  /// How many options it sets.
  [[nodiscard]] int count() const { return count_; }

 private:
  TempDirectory directory_;
  int count_ = 0;
};

}  // namespace verger::test
