#pragma once

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "tests/support/fixtures.h"
#include "tests/support/processes/process.h"
#include "tests/support/temp_directory.h"
#include "tests/support/tree_hash.h"

namespace verger {

/// Runs the program on copies of databases that a server wrote.
class VergerDb : public ::testing::Test {
 protected:
  /// A writable copy of a fixture.
  void unpack(std::string_view archive) {
    test::unpack_fixture(archive, database());
    for (const auto& entry : std::filesystem::recursive_directory_iterator(database())) {
      std::filesystem::permissions(entry.path(), std::filesystem::perms::owner_write,
                                   std::filesystem::perm_options::add);
    }
  }
  std::filesystem::path database() const { return directory_.path() / "db"; }

  static test::Finished run(std::vector<std::string> arguments) {
    arguments.insert(arguments.begin(), test::program("verger-db"));
    return test::run(arguments);
  }
  test::Finished run_on_database(const std::string& command,
                                 std::vector<std::string> more = {}) const {
    std::vector<std::string> arguments{command, database().string()};
    arguments.insert(arguments.end(), more.begin(), more.end());
    return run(arguments);
  }
  nlohmann::json json_of(const std::string& command, std::vector<std::string> more = {}) const {
    more.insert(more.end(), {"-o", "json"});
    const auto outcome = run_on_database(command, more);
    EXPECT_EQ(outcome.status, 0) << outcome.err;
    return nlohmann::json::parse(outcome.out, nullptr, false);
  }
  static std::vector<nlohmann::json> lines_of(const std::string& text) {
    std::vector<nlohmann::json> lines;
    for (std::size_t begin = 0; begin < text.size();) {
      const auto end = text.find('\n', begin);
      lines.push_back(nlohmann::json::parse(text.substr(begin, end - begin), nullptr, false));
      begin = end + 1;
    }
    return lines;
  }

  /// Overwrites bytes of a file of the database; a negative offset counts from its end.
  void overwrite(const std::string& name, std::int64_t offset, std::string_view bytes) const {
    std::fstream file(database() / name, std::ios::in | std::ios::out | std::ios::binary);
    ASSERT_TRUE(file) << name;
    file.seekp(offset, offset < 0 ? std::ios::end : std::ios::beg);
    file.write(bytes.data(), static_cast<std::streamsize>(bytes.size()));
    ASSERT_TRUE(file.flush()) << name;
  }
  /// Changes one bit.
  void flip(const std::string& name, std::int64_t offset) const {
    std::ifstream file(database() / name, std::ios::binary);
    file.seekg(offset, offset < 0 ? std::ios::end : std::ios::beg);
    const char byte = static_cast<char>(file.get() ^ 0x10);
    overwrite(name, offset, {&byte, 1});
  }

 private:
  test::TempDirectory directory_;
};

}  // namespace verger
