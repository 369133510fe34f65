#include "nodeagent/node/persistent/group.h"

#include "tests/unit/nodeagent_node_persistent/group_case.h"

namespace verger::node::persistent {
namespace {

using namespace std::chrono_literals;

TEST_F(GroupCase, DeliversWhatIsThereAndThenWhatComesInOrder) {
  stream_length_ = 6;
  auto group = make(settings());
  EXPECT_EQ(group.status().status, "Behind");
  connect(group, 1, 100);
  read(group);
  EXPECT_EQ(group.status().status, "Live");
  come(group);
  EXPECT_EQ(got_[1], (Texts{"0", "1", "2", "3", "4", "5", "6"}));
  EXPECT_EQ(group.status().outstanding, 7U);
}

TEST_F(GroupCase, BeginsAtTheConfiguredEventInclusive) {
  stream_length_ = 6;
  auto wanted = settings();
  wanted.start = EventNumber(3);
  auto group = make(wanted);
  connect(group, 1, 100);
  read(group);
  EXPECT_EQ(got_[1], (Texts{"3", "4", "5"}));
}

TEST_F(GroupCase, FromNowOnItDeliversWhatComesAlone) {
  stream_length_ = 6;
  auto wanted = settings();
  wanted.start = EventNumber(-1);
  auto group = make(wanted);
  connect(group, 1, 100);
  EXPECT_FALSE(group.wants_page());
  come(group);
  EXPECT_EQ(got_[1], (Texts{"6"}));
}

TEST_F(GroupCase, AStartInTheFutureLeavesOutWhatComesBefore) {
  auto wanted = settings();
  wanted.start = EventNumber(2);
  auto group = make(wanted);
  connect(group, 1, 100);
  read(group);
  for (int i = 0; i < 4; ++i) {
    come(group);
  }
  EXPECT_EQ(got_[1], (Texts{"2", "3"}));
}

TEST_F(GroupCase, BeginsBehindItsCheckpoint) {
  stream_length_ = 6;
  auto group = make(settings(), 3);
  connect(group, 1, 100);
  read(group);
  EXPECT_EQ(got_[1], (Texts{"4", "5"}));
}

TEST_F(GroupCase, EventsThatComeTwiceAreOneMessage) {
  stream_length_ = 3;
  auto group = make(settings());
  connect(group, 1, 100);
  read(group);
  group.live(entry(1));
  group.live(entry(2));
  look(group);
  EXPECT_EQ(got_[1], (Texts{"0", "1", "2"}));
}

TEST_F(GroupCase, AConsumerHasNoMoreThanItsSlots) {
  stream_length_ = 5;
  auto group = make(settings());
  connect(group, 1, 2);
  read(group);
  EXPECT_EQ(got_[1], (Texts{"0", "1"}));
  acknowledge(group, {0});
  EXPECT_EQ(got_[1], (Texts{"0", "1", "2"}));
  connect(group, 2, 0);
  EXPECT_TRUE(got_[2].empty());
}

TEST_F(GroupCase, NoMoreConsumersThanAllowed) {
  auto wanted = settings();
  wanted.max_subscriber_count = 1;
  auto group = make(wanted);
  connect(group, 1, 1);
  EXPECT_FALSE(group.connect({.id = 2, .slots = 1}));
  group.disconnect(1);
  EXPECT_TRUE(group.connect({.id = 3, .slots = 1}));
}

TEST_F(GroupCase, BuffersNoMoreThanConfiguredAndReadsOnWhenThereIsRoom) {
  stream_length_ = 100;
  auto group = make(settings());
  read(group);
  EXPECT_EQ(group.status().buffered, 8U);  // two pages; with a third there were more than 10
  EXPECT_EQ(group.status().status, "Behind");
  come(group);
  EXPECT_EQ(group.status().live_waiting, 1U);
  connect(group, 1, 1000);
  read(group);
  EXPECT_EQ(got_[1].size(), 101U);
  EXPECT_EQ(got_[1].back(), "100");
  EXPECT_EQ(group.status().live_waiting, 0U);
}

TEST_F(GroupCase, ALiveGroupWhoseBufferIsFullFallsBehindAndLosesNothing) {
  auto group = make(settings());
  read(group);
  for (int i = 0; i < 25; ++i) {
    come(group);
  }
  EXPECT_EQ(group.status().status, "Behind");
  EXPECT_EQ(group.status().buffered, 10U);
  EXPECT_EQ(group.status().live_waiting, 10U);  // as many as the live buffer is said to hold
  connect(group, 1, 1000);
  read(group);
  ASSERT_EQ(got_[1].size(), 25U);
  for (std::size_t i = 0; i < 25; ++i) {
    EXPECT_EQ(got_[1][i], std::to_string(i));
  }
  EXPECT_EQ(group.status().status, "Live");
}

TEST_F(GroupCase, APageThatIsOnItsWayIsNotRequestedAgain) {
  stream_length_ = 3;
  auto group = make(settings());
  ASSERT_TRUE(group.wants_page());
  group.page_requested();
  EXPECT_FALSE(group.wants_page());
  EXPECT_EQ(group.status().status, "Behind, OutstandingPageRequest");
  group.page({}, EventNumber(0), true);
  EXPECT_EQ(group.status().status, "Live");
}

TEST_F(GroupCase, RetryComesAgainUntilItIsParked) {
  stream_length_ = 1;
  auto group = make(settings());
  connect(group, 1, 10);
  read(group);
  refuse(group, {0}, NackAction::kRetry);
  refuse(group, {0}, NackAction::kUnknown);
  EXPECT_EQ(got_[1], (Texts{"0", "0+1", "0+2"}));
  EXPECT_TRUE(parked_.empty());
  refuse(group, {0}, NackAction::kRetry);
  ASSERT_EQ(parked_.size(), 1U);
  EXPECT_EQ(parked_[0].reason, "Reached retry count of 2");
  EXPECT_EQ(got_[1].size(), 3U);
}

TEST_F(GroupCase, RetriesComeBeforeWhatWasNotSentInTheirOrder) {
  stream_length_ = 6;
  auto group = make(settings());
  connect(group, 1, 3);
  read(group);
  group.not_acknowledge(ids({2, 0}), NackAction::kRetry, "");
  look(group);
  EXPECT_EQ(got_[1], (Texts{"0", "1", "2", "0+1", "2+1"}));
}

TEST_F(GroupCase, ParkSkipAndStopAreAnswersThatFreeASlot) {
  stream_length_ = 6;
  auto group = make(settings());
  connect(group, 1, 3);
  read(group);
  refuse(group, {0}, NackAction::kPark);
  refuse(group, {1}, NackAction::kSkip);
  refuse(group, {2}, NackAction::kStop);
  ASSERT_EQ(parked_.size(), 1U);
  EXPECT_EQ(parked_[0].reason, "Client explicitly NAK'ed message.\nwhy");
  EXPECT_EQ(got_[1].size(), 6U);
  EXPECT_EQ(group.status().outstanding, 3U);
}

TEST_F(GroupCase, AnswersForWhatIsNotOutstandingAreIgnored) {
  stream_length_ = 2;
  auto group = make(settings());
  connect(group, 1, 1);
  read(group);
  acknowledge(group, {1, 7});
  refuse(group, {1}, NackAction::kPark);
  EXPECT_EQ(got_[1], (Texts{"0"}));
  EXPECT_TRUE(parked_.empty());
  acknowledge(group, {0});
  acknowledge(group, {0});
  EXPECT_EQ(got_[1], (Texts{"0", "1"}));
}

TEST_F(GroupCase, OneIdTwiceInTheStreamNeedsTwoAnswers) {
  auto group = make(settings());
  read(group);
  connect(group, 1, 10);
  auto again = std::make_shared<SourceEvent>(*event(1));
  again->record.id = id_of(0);
  group.live(entry(0));
  group.live({EventNumber(1), again});
  look(group);
  acknowledge(group, {0});
  EXPECT_EQ(group.status().outstanding, 1U);
  acknowledge(group, {0});
  EXPECT_EQ(group.status().outstanding, 0U);
}

TEST_F(GroupCase, WhatAConsumerLeavesGoesToAnotherOne) {
  stream_length_ = 3;
  auto group = make(settings());
  connect(group, 1, 10);
  read(group);
  acknowledge(group, {1});
  group.disconnect(1);
  look(group);
  EXPECT_EQ(group.status().retries, 2U);
  connect(group, 2, 10);
  EXPECT_EQ(got_[2], (Texts{"0+1", "2+1"}));
}

TEST_F(GroupCase, ALeavingConsumerParksNothing) {
  stream_length_ = 1;
  auto group = make(settings());
  read(group);
  for (ConsumerId id = 1; id < 6; ++id) {
    connect(group, id, 10);
    group.disconnect(id);
    look(group);
  }
  EXPECT_TRUE(parked_.empty());
  connect(group, 9, 10);
  EXPECT_EQ(got_[9], (Texts{"0+5"}));
}

TEST_F(GroupCase, WhatTakesTooLongComesAgainAndIsParkedInTheEnd) {
  stream_length_ = 2;
  auto wanted = settings();
  wanted.max_retry_count = 1;
  auto group = make(wanted);
  connect(group, 1, 1);
  read(group);
  pass(group, 9s);
  EXPECT_EQ(got_[1], (Texts{"0"}));
  pass(group, 1s);
  EXPECT_EQ(got_[1], (Texts{"0", "0+1"}));
  pass(group, 10s);
  ASSERT_EQ(parked_.size(), 1U);
  EXPECT_EQ(got_[1], (Texts{"0", "0+1", "1"}));
}

TEST_F(GroupCase, WithoutATimeoutEachTickIsTooLate) {
  stream_length_ = 1;
  auto wanted = settings();
  wanted.message_timeout_ms = 0;
  auto group = make(wanted);
  connect(group, 1, 1);
  read(group);
  pass(group, 3s);
  EXPECT_EQ(got_[1], (Texts{"0", "0+1", "0+2"}));
  EXPECT_EQ(parked_.size(), 1U);
}

TEST_F(GroupCase, AParkedMessageIsDoneOnceItsLinkIsThere) {
  stream_length_ = 2;
  auto group = make(settings());
  connect(group, 1, 10);
  read(group);
  refuse(group, {0}, NackAction::kPark);
  acknowledge(group, {1});
  pass(group, 3s);
  EXPECT_TRUE(checkpoints_.empty());  // it could still be lost
  EXPECT_EQ(group.status().parked, 0);
  group.parked(parked_[0].message, EventNumber(0));
  pass(group, 1s);
  EXPECT_EQ(checkpoints_, (Texts{"1"}));
  EXPECT_EQ(group.status().parked, 1);
}

class Replayed : public GroupCase {
 protected:
  static EventPointer link(std::int64_t number) {
    auto out = std::make_shared<SourceEvent>(*event(number, "parked"));
    out->record.id = id_of(100 + number);
    out->is_link = true;
    out->target = event(number)->record;
    return out;
  }
};

TEST_F(Replayed, ParkedMessagesComeAgainAfterAllOthersAndTheirLinksGo) {
  auto group = make(settings(), std::nullopt, 3);
  EXPECT_EQ(group.status().parked, 3);
  read(group);
  group.replay(std::nullopt, EventNumber(3));
  EXPECT_EQ(group.status().status, "ReplayingParkedMessages, Live");
  EXPECT_EQ(group.wants_parked(), EventNumber(0));
  const std::vector<EventPointer> links = {link(0), link(1), link(2)};
  group.parked_page(links, EventNumber(3), true);
  look(group);
  EXPECT_EQ(truncated_, std::vector<std::int64_t>{3});
  EXPECT_EQ(group.status().parked, 0);
  EXPECT_EQ(group.status().status, "Live");
  come(group);
  connect(group, 1, 10);
  EXPECT_EQ(got_[1], (Texts{"0", "1", "2", "0"}));
  // Answered by the ids of the links; they move no checkpoint.
  acknowledge(group, {100, 101, 102});
  pass(group, 3s);
  EXPECT_TRUE(checkpoints_.empty());
  acknowledge(group, {0});
  pass(group, 1s);
  EXPECT_EQ(checkpoints_, (Texts{"0"}));
}

TEST_F(Replayed, OnlyThoseBeforeTheGivenNumber) {
  auto group = make(settings(), std::nullopt, 3);
  read(group);
  connect(group, 1, 10);
  group.replay(2, EventNumber(3));
  const std::vector<EventPointer> links = {link(0), link(1), link(2)};
  group.parked_page(links, EventNumber(3), true);
  look(group);
  EXPECT_EQ(got_[1], (Texts{"0", "1"}));
  EXPECT_EQ(truncated_, std::vector<std::int64_t>{2});
  EXPECT_EQ(group.status().parked, 1);
  // None is left before it.
  group.replay(2, EventNumber(3));
  EXPECT_FALSE(group.wants_parked());
}

TEST_F(Replayed, NoMoreLinksAreReadThanThereIsRoomFor) {
  auto group = make(settings(), std::nullopt, 100);
  read(group);
  group.replay(std::nullopt, EventNumber(100));
  std::vector<EventPointer> links;
  for (int i = 0; i < 20; ++i) {
    links.push_back(link(i));
  }
  group.parked_page(links, EventNumber(20), false);
  EXPECT_FALSE(group.wants_parked());
  EXPECT_EQ(group.status().parked, 100);
  connect(group, 1, 50);
  EXPECT_EQ(group.wants_parked(), EventNumber(20));
  EXPECT_TRUE(truncated_.empty());
}

TEST_F(Replayed, AReplayedMessageIsParkedAgainAsALinkToItsEvent) {
  auto group = make(settings(), std::nullopt, 1);
  read(group);
  connect(group, 1, 10);
  group.replay(std::nullopt, EventNumber(1));
  const std::vector<EventPointer> links = {link(0)};
  group.parked_page(links, EventNumber(1), true);
  look(group);
  refuse(group, {100}, NackAction::kPark);
  ASSERT_EQ(parked_.size(), 1U);
  EXPECT_EQ(parked_[0].event->target->stream, "s");
  group.parked(parked_[0].message, EventNumber(1));
  EXPECT_EQ(group.status().parked, 1);
}

}  // namespace
}  // namespace verger::node::persistent
