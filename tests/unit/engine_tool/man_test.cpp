#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
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
    in_tree.push_back(entry.path().filename().string());
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
