#include <algorithm>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>
#include <sstream>

#include "engine/base/memory_file_system.h"
#include "engine/tool/man_command.h"
#include "engine/tool/program.h"
#include "tests/support/fixtures.h"

namespace verger::tool {
namespace {

using ::testing::HasSubstr;

class Man : public ::testing::Test {
 protected:
  int run(std::vector<const char*> arguments) {
    arguments.insert(arguments.begin(), "verger-db");
    SeededRandom random(3);
    ToolContext tool{disk, system_clock(), random, null_log(), out, err};
    return run_program(static_cast<int>(arguments.size()), arguments.data(), tool);
  }
  std::string page(const std::string& name) {
    const auto content = read_file(disk, "/man/" + name);
    return content ? std::string(as_text(*content)) : content.error().message;
  }

  MemoryFileSystem disk;
  std::ostringstream out;
  std::ostringstream err;
};

TEST_F(Man, PagesInTheTreeAreThoseOfThisProgram) {
  ASSERT_EQ(run({"man", "/man"}), kExitDone) << err.str();
  const auto directory = test::fixtures_directory().parent_path().parent_path() / "docs" / "man";
  std::vector<std::string> in_tree;
  for (const auto& entry : std::filesystem::directory_iterator(directory)) {
    if (const auto name = entry.path().filename().string(); name.starts_with("verger-db")) {
      in_tree.push_back(name);
    }
  }
  const auto pages = disk.list("/man");
  ASSERT_TRUE(pages);
  std::vector<std::string> made;
  for (const auto& one : *pages) {
    made.push_back(one.name);
    std::ifstream file(directory / one.name);
    const std::string content((std::istreambuf_iterator<char>(file)), {});
    EXPECT_EQ(content, page(one.name))
        << "the help has changed: run `verger-db man docs/man` in the source tree";
  }
  EXPECT_THAT(in_tree, testing::UnorderedElementsAreArray(made));
}

/// The numbers after `start`, up to the end of the line or the next sentence: "0 done, 1 failed".
std::set<int> codes_in(const std::string& text, std::string_view start) {
  std::set<int> codes;
  for (auto at = text.find(start); at != std::string::npos; at = text.find(start, at + 1)) {
    const auto end = text.find_first_of("\n.", at);
    std::istringstream words(text.substr(at + start.size(), end - at - start.size()));
    for (std::string word; words >> word;) {
      if (std::ranges::all_of(word, [](char c) { return c >= '0' && c <= '9'; })) {
        codes.insert(std::stoi(word));
      }
    }
  }
  return codes;
}

TEST_F(Man, ExitCodesAreThoseOfTheTableOfAllPrograms) {
  const auto docs = test::fixtures_directory().parent_path().parent_path() / "docs";
  std::ifstream file(docs / "operations" / "command-line.md");
  std::set<int> table;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| ") && line.size() > 2 && line[2] >= '0' && line[2] <= '9') {
      table.insert(std::stoi(line.substr(2)));
    }
  }
  EXPECT_EQ(table, (std::set<int>{kExitDone, kExitFailed, kExitRefused, kExitStopped, kExitWaiting,
                                  kExitUsage}));
  ASSERT_EQ(run({"--help"}), kExitDone);
  EXPECT_EQ(codes_in(out.str(), "Exit codes: "),
            (std::set<int>{kExitDone, kExitFailed, kExitRefused, kExitStopped, kExitUsage}))
      << "this program waits for nothing";
  ASSERT_EQ(run({"man", "/man"}), kExitDone);
  int reported = 0;
  for (const auto& one : *disk.list("/man")) {
    const auto codes = codes_in(page(one.name), "Exit codes: ");
    reported += codes.empty() ? 0 : 1;
    for (const int code : codes) {
      EXPECT_TRUE(table.contains(code)) << one.name << ": " << code;
    }
    EXPECT_EQ(codes.empty(), !codes.contains(kExitUsage)) << one.name << ": wrong usage is missing";
  }
  EXPECT_GT(reported, 3);
  out.str("");
  ASSERT_EQ(run({"scavenge", "--help"}), kExitDone);
  EXPECT_EQ(codes_in(out.str(), "Exit codes: "),
            (std::set<int>{kExitDone, kExitFailed, kExitRefused, kExitStopped, kExitUsage}));
}

TEST_F(Man, EveryCommandHasAnExample) {
  ASSERT_EQ(run({"man", "/man"}), kExitDone);
  EXPECT_THAT(page("verger-db.1"), HasSubstr("\\fBestimate\\fR"));
  EXPECT_THAT(page("verger-db-info.1"), HasSubstr("\\fB\\-\\-chunk\\-size\\fR"));
  for (const auto& one : *disk.list("/man")) {
    const auto text = page(one.name);
    if (!text.contains(".SH COMMANDS")) {
      EXPECT_THAT(text, HasSubstr(".SH EXAMPLE")) << one.name;
    }
  }
}

}  // namespace
}  // namespace verger::tool
