#include "controller/cli/table.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <sstream>

namespace verger::cli {
namespace {

TEST(Table, AlignsColumnsAndLeavesNoBlanksAtTheEnd) {
  Table table({{"node"}, {"bytes", Table::Align::kRight}, {"what"}});
  table.add({"n1", "1,024", "x"});
  table.add({"a-longer-name", "7", ""});
  std::ostringstream out;
  table.print(out);
  EXPECT_EQ(out.str(),
            "node           bytes  what\n"
            "n1             1,024  x\n"
            "a-longer-name      7\n");
}

TEST(Table, CutsTheWidestColumnToAHundredCharacters) {
  Table table({{"node"}, {"reason"}});
  table.add({"n1", std::string(200, 'r')});
  std::ostringstream out;
  table.print(out);
  std::istringstream lines(out.str());
  std::string heading;
  std::string row;
  std::getline(lines, heading);
  std::getline(lines, row);
  // 99 one-byte characters and the three bytes of the ellipsis.
  EXPECT_EQ(row.size(), 102U);
  EXPECT_TRUE(row.ends_with("r…"));
}

TEST(Table, WrapsAColumnThatAsksForIt) {
  Table table({{"node"}, {"why", Table::Align::kWrap}, {"n", Table::Align::kRight}});
  std::string reason;
  for (int i = 0; i < 30; ++i) {
    reason += fmt::format("{}word", i == 0 ? "" : " ");
  }
  table.add({"n1", reason, "7"});
  std::ostringstream out;
  table.print(out);
  std::istringstream lines(out.str());
  std::string line;
  std::size_t words = 0;
  std::size_t rows = 0;
  while (std::getline(lines, line)) {
    EXPECT_LE(line.size(), 100U);
    for (auto at = line.find("word"); at != std::string::npos; at = line.find("word", at + 1)) {
      ++words;
    }
    rows += line.starts_with("n1") ? 1 : 0;
  }
  EXPECT_EQ(words, 30U);
  EXPECT_EQ(rows, 1U);
}

TEST(Table, CountsCharactersNotBytes) {
  Table table({{"name"}, {"x"}});
  table.add({"ünï", "1"});
  table.add({"abcd", "2"});
  std::ostringstream out;
  table.print(out);
  EXPECT_EQ(out.str(), "name  x\nünï   1\nabcd  2\n");
}

TEST(Numbers, AreWrittenForPeople) {
  EXPECT_EQ(with_separators(0), "0");
  EXPECT_EQ(with_separators(999), "999");
  EXPECT_EQ(with_separators(-1234567), "-1,234,567");
  EXPECT_EQ(human_bytes(1023), "1023 B");
  EXPECT_EQ(human_bytes(70507), "68.9 KiB");
  EXPECT_EQ(human_bytes(-2048), "-2.0 KiB");
}

}  // namespace
}  // namespace verger::cli
