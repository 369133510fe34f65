#include "controller/journal/detail/journal_memory.h"

#include <gtest/gtest.h>

namespace verger::controller::detail {
namespace {

JournalEvent event(std::int64_t sequence, const std::string& stream, std::int64_t revision,
                   std::size_t bytes = 2) {
  return {Sequence(sequence),      stream,
          Revision(revision),      "noted",
          std::string(bytes, '.'), Ticks(sequence * 1'000),
          ControllerEpoch(1),      ""};
}

TEST(JournalMemory, AnswersForAStreamOnlyWhenItHasAllThatIsAskedFor) {
  JournalMemory memory;
  memory.keep_newest(event(7, "a", 3));
  memory.keep_newest(event(8, "b", 1));
  memory.keep_newest(event(9, "a", 4));
  EXPECT_FALSE(memory.read("a", Revision(2), 10)) << "the stream's end is not known";
  memory.keep_tip("a", {Revision(4), "hash"});
  const auto both = memory.read("a", Revision(2), 10);
  ASSERT_TRUE(both);
  ASSERT_EQ(both->size(), 2U);
  EXPECT_EQ(both->back().sequence, Sequence(9));
  EXPECT_EQ(memory.read("a", Revision(2), 1)->size(), 1U);
  EXPECT_FALSE(memory.read("a", Revision(1), 10)) << "revision 2 is not in memory";
  EXPECT_TRUE(memory.read("a", Revision(4), 10)->empty());
}

TEST(JournalMemory, AnswersForAllStreamsFromTheOldestEventOnThatItKeeps) {
  JournalMemory memory;
  EXPECT_FALSE(memory.read_all(Sequence(0), 10));
  memory.keep_newest(event(7, "a", 3));
  memory.keep_newest(event(8, "b", 1));
  EXPECT_FALSE(memory.read_all(Sequence(5), 10));
  EXPECT_EQ(memory.read_all(Sequence(6), 10)->size(), 2U);
  EXPECT_EQ(memory.read_all(Sequence(7), 10)->front().stream, "b");
  EXPECT_TRUE(memory.read_all(Sequence(8), 10)->empty());
  memory.forget();
  EXPECT_FALSE(memory.read_all(Sequence(7), 10));
}

TEST(JournalMemory, LetsTheOldestGoWhenEventsAreLarge) {
  JournalMemory memory;
  const std::size_t large = std::size_t{3} << 20U;
  for (std::int64_t i = 1; i <= 4; ++i) {
    memory.keep_newest(event(i, "a", i, large));
  }
  EXPECT_FALSE(memory.read_all(Sequence(1), 10));
  EXPECT_EQ(memory.read_all(Sequence(2), 10)->size(), 2U);
}

}  // namespace
}  // namespace verger::controller::detail
