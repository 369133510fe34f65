#include "controller/cli/table.h"

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>

namespace verger::cli {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::string printed(const Table& table, std::optional<std::size_t> width = std::nullopt) {
  std::ostringstream out;
  table.print(out, width);
  return out.str();
}

std::size_t longest_line(const std::string& text) {
  std::istringstream lines(text);
  std::size_t longest = 0;
  for (std::string line; std::getline(lines, line);) {
    longest = std::max(longest, line.size());
  }
  return longest;
}

TEST(Table, AlignsColumnsAndLeavesNoBlanksAtTheEnd) {
  Table table({{"node"}, {"bytes", Table::Align::kRight}, {"what"}});
  table.add({"n1", "1,024", "x"});
  table.add({"a-longer-name", "7", ""});
  EXPECT_EQ(printed(table),
            "node           bytes  what\n"
            "n1             1,024  x\n"
            "a-longer-name      7\n");
}

TEST(Table, CutsNothingInAPipe) {
  Table table({{"plan", Table::Align::kId}, {"at"}, {"reason", Table::Align::kWrap}});
  const std::string hash(64, 'a');
  const std::string reason = "the plan moves the leader; " + std::string(200, 'r');
  table.add({hash, "2026-11-22T14:32:07Z", reason});
  EXPECT_THAT(printed(table), HasSubstr(hash + "  2026-11-22T14:32:07Z  " + reason + "\n"));
}

TEST(Table, KeepsToTheWidthOfTheTerminalWithoutBreakingWordsOrTimes) {
  Table table({{"plan", Table::Align::kId}, {"at"}, {"why", Table::Align::kWrap}});
  std::string reason;
  for (int i = 0; i < 30; ++i) {
    reason += fmt::format("{}word", i == 0 ? "" : " ");
  }
  table.add({std::string(64, 'a'), "2026-11-22T14:32:07Z", reason});
  for (const std::size_t width : {72U, 80U, 100U, 132U}) {
    SCOPED_TRACE(width);
    const auto text = printed(table, width);
    EXPECT_LE(longest_line(text), width);
    EXPECT_THAT(text, HasSubstr("aaaaaaaaaaaa"));
    EXPECT_THAT(text, HasSubstr("2026-11-22T14:32:07Z"));
    std::size_t words = 0;
    for (auto at = text.find("word"); at != std::string::npos; at = text.find("word", at + 1)) {
      ++words;
    }
    EXPECT_EQ(words, 30U) << text;
  }
}

TEST(Table, ShowsAWholeIdWhereThereIsRoom) {
  Table table({{"plan", Table::Align::kId}, {"at"}});
  table.add({std::string(64, 'a'), "2026-11-22T14:32:07Z"});
  EXPECT_THAT(printed(table, 90), HasSubstr(std::string(64, 'a')));
  EXPECT_THAT(printed(table, 80), Not(HasSubstr(std::string(13, 'a'))));
}

TEST(Table, PutsTextBelowTheRowWhereAColumnWouldBeCramped) {
  Table table({{"step"}, {"since"}, {"what", Table::Align::kWrap}});
  table.add({"compare_digests", "2026-11-22T14:32:07Z", "waits for a node that is far behind"});
  EXPECT_EQ(printed(table, 48),
            "step             since\n"
            "compare_digests  2026-11-22T14:32:07Z\n"
            "    waits for a node that is far behind\n");
}

TEST(Table, LeavesOutAnOptionalColumnThatSaysNothing) {
  Table table(
      {{"node"}, {"events", Table::Align::kRight, true}, {"disk", Table::Align::kRight, true}});
  table.add({"n1", "-", "2 GiB"});
  table.add({"n2", "", "-"});
  EXPECT_EQ(printed(table), "node   disk\nn1    2 GiB\nn2        -\n");
}

TEST(Table, CountsCharactersNotBytes) {
  Table table({{"name"}, {"x"}});
  table.add({"ünï", "1"});
  table.add({"abcd", "2"});
  EXPECT_EQ(printed(table), "name  x\nünï   1\nabcd  2\n");
}

}  // namespace
}  // namespace verger::cli
