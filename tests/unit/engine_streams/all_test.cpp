#include "tests/unit/engine_streams/streams_test.h"

namespace verger::streams {
namespace {

using ::testing::ElementsAre;

class All : public StreamsTest {
 protected:
  static std::vector<std::string> names(const std::vector<Event>& events) {
    std::vector<std::string> result;
    for (const auto& event : events) {
      result.push_back(fmt::format("{}@{}", event.number, event.stream));
    }
    return result;
  }
  /// All pages from `from` on; `read` reads one of them.
  template <class Read>
  static std::vector<Event> page_by_page(AllPosition from, const Read& read) {
    std::vector<Event> events;
    for (;;) {
      auto slice = read(from);
      if (!slice) {
        ADD_FAILURE() << slice.error().message;
        return events;
      }
      std::ranges::move(slice->events, std::back_inserter(events));
      if (slice->end) {
        return events;
      }
      from = slice->next;
    }
  }
  std::vector<Event> forward_all(std::size_t page) {
    return page_by_page({LogPosition(0), LogPosition(0)}, [&](const AllPosition& from) {
      return database().read_all_forward(from, page);
    });
  }
  std::vector<Event> backward_all(std::size_t page) {
    const auto end = database().transaction_log().end();
    return page_by_page({end, end}, [&](const AllPosition& from) {
      return database().read_all_backward(from, page);
    });
  }
};

TEST_F(All, FollowsTheLogAndIgnoresLimits) {
  builder.write("a", 2);
  builder.metadata("a", R"({"$maxCount":1})");
  builder.hard_delete("b");
  EXPECT_THAT(names(forward_all(100)), ElementsAre("0@a", "1@a", "0@$$a", "9223372036854775807@b"));
}

TEST_F(All, EventsOfATransactionComeWhenItCommits) {
  auto& log = database().transaction_log();
  static_cast<void>(log);
  builder.write("a");
  builder.transaction("t", 3);
  builder.transaction("u", 2, /*open=*/true);
  builder.write("a");
  const auto expected = ElementsAre("0@a", "0@t", "1@t", "2@t", "1@a");
  for (const std::size_t page : {1U, 2U, 3U, 100U}) {
    EXPECT_THAT(names(forward_all(page)), expected) << page;
    auto back = names(backward_all(page));
    std::ranges::reverse(back);
    EXPECT_THAT(back, expected) << page;
  }
  const auto events = forward_all(100);
  EXPECT_LT(events[1].prepare_position, events[1].commit_position);
  EXPECT_EQ(events[1].commit_position, events[3].commit_position);
}

TEST_F(All, HidesTheStreamsOfTheServersDefaultFilter) {
  builder.write("$epoch-information");
  builder.write("$persistentsubscription-$all::group-checkpoint");
  builder.write("$persistentsubscription-$all::group-parked");
  builder.write("$persistentsubscription-s::group-parked");
  EXPECT_THAT(names(forward_all(10)), ElementsAre("0@$persistentsubscription-s::group-parked"));
  EXPECT_EQ(backward_all(10).size(), 1U);
}

TEST_F(All, TheEndOfOneReadIsTheBeginningOfTheNext) {
  builder.write("a");
  const auto first = database().read_all_forward({LogPosition(0), LogPosition(0)}, 10);
  ASSERT_TRUE(first);
  ASSERT_TRUE(first->end);
  builder.write("b");
  builder.transaction("t", 1);
  const auto second = database().read_all_forward(first->next, 10);
  ASSERT_TRUE(second);
  EXPECT_THAT(names(second->events), ElementsAre("0@b", "0@t"));
}

TEST_F(All, ReadsAcrossChunks) {
  for (int i = 0; i < 40; ++i) {
    builder.write("a", 1, 2000);
  }
  ASSERT_GT(database().transaction_log().chunks().size(), 3U);
  EXPECT_EQ(forward_all(7).size(), 40U);
  EXPECT_EQ(backward_all(7).size(), 40U);
}

TEST_F(All, DoesNotShowWhatIsNotCommitted) {
  builder.write("a");
  ASSERT_TRUE(append("b", kExpectAny));
  EXPECT_THAT(names(forward_all(10)), ElementsAre("0@a"));
  EXPECT_THAT(names(backward_all(10)), ElementsAre("0@a"));
}

}  // namespace
}  // namespace verger::streams
