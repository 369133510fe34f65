#include "engine/tool/table.h"

#include <gtest/gtest.h>
#include <sstream>

namespace verger::tool {
namespace {

std::string printed(const Table& table) {
  std::ostringstream out;
  table.print(out);
  return out.str();
}

TEST(Table, AlignsColumnsByCharactersNotBytes) {
  Table table({{"NAME"}, {"SIZE", Table::Align::kRight}, {"WHERE"}});
  table.add({"käse", "7", "a"});
  table.add({"x", "1234", "b"});
  EXPECT_EQ(printed(table),
            "NAME  SIZE  WHERE\n"
            "käse     7  a\n"
            "x     1234  b\n");
}

TEST(Table, CutsTheLastColumnAtAHundred) {
  Table table({{"N"}, {"LONG"}});
  table.add({"1", std::string(300, 'x')});
  const auto text = printed(table);
  EXPECT_EQ(text.substr(text.find('\n') + 1), "1  " + std::string(96, 'x') + "…\n");
}

TEST(HumanBytes, AreInBinaryUnitsAsAllProgramsPrintThem) {
  EXPECT_EQ(human_bytes(999), "999 B");
  EXPECT_EQ(human_bytes(268'435'456), "256 MiB");
  EXPECT_EQ(human_bytes(70507), "68.9 KiB");
}

TEST(HumanCount, GroupsThousands) {
  EXPECT_EQ(human_count(0), "0");
  EXPECT_EQ(human_count(999), "999");
  EXPECT_EQ(human_count(1000), "1,000");
  EXPECT_EQ(human_count(12'345'678), "12,345,678");
}

TEST(Printable, ShowsControlCharacters) {
  EXPECT_EQ(printable("a\x1b[31mb\n"), "a\\x1b[31mb\\x0a");
  EXPECT_EQ(printable("käse", 3), "kä…");
}

}  // namespace
}  // namespace verger::tool
