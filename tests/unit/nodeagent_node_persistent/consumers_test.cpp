#include "nodeagent/node/persistent/consumers.h"

#include "tests/unit/nodeagent_node_persistent/group_case.h"

namespace verger::node::persistent {
namespace {

class ConsumersCase : public GroupCase {
 protected:
  static EventPointer from(const std::string& stream, const std::string& metadata = "") {
    auto out = std::make_shared<SourceEvent>(*event(0, stream));
    const auto bytes = as_bytes(metadata);
    out->record.metadata.assign(bytes.begin(), bytes.end());
    return out;
  }
  /// Who gets each of the events, one after the other, without an answer.
  static std::vector<ConsumerId> who(Consumers& consumers, std::span<const EventPointer> events) {
    std::vector<ConsumerId> out;
    std::uint64_t number = 0;
    for (const auto& each : events) {
      auto* const chosen = consumers.choose(*each);
      out.push_back(chosen == nullptr ? 0 : chosen->id);
      if (chosen != nullptr) {
        chosen->in_flight.insert({.number = ++number});
      }
    }
    return out;
  }
  static Consumers with(Strategy strategy, std::int32_t slots, ConsumerId count = 3) {
    Consumers out(strategy);
    for (ConsumerId id = 1; id <= count; ++id) {
      out.add({.id = id, .slots = slots});
    }
    return out;
  }
  using Ids = std::vector<ConsumerId>;
};

TEST_F(ConsumersCase, RoundRobinGoesOnToTheNextOne) {
  auto consumers = with(Strategy::kRoundRobin, 2);
  const std::vector<EventPointer> events(7, event(0));
  EXPECT_EQ(who(consumers, events), (Ids{1, 2, 3, 1, 2, 3, 0}));
  EXPECT_FALSE(consumers.has_room());
}

TEST_F(ConsumersCase, DispatchToSingleFillsTheFirstOneFirst) {
  auto consumers = with(Strategy::kDispatchToSingle, 2);
  const std::vector<EventPointer> events(7, event(0));
  EXPECT_EQ(who(consumers, events), (Ids{1, 1, 2, 2, 3, 3, 0}));
}

TEST_F(ConsumersCase, PinnedKeepsAStreamWithOneConsumer) {
  auto consumers = with(Strategy::kPinned, 1000);
  std::map<std::string, ConsumerId> owner;
  std::set<ConsumerId> used;
  for (int round = 0; round < 3; ++round) {
    for (int i = 0; i < 60; ++i) {
      const auto stream = fmt::format("s-{}", i);
      const std::vector<EventPointer> events = {from(stream)};
      const auto chosen = who(consumers, events).front();
      EXPECT_EQ(owner.emplace(stream, chosen).first->second, chosen) << stream;
      used.insert(chosen);
    }
  }
  EXPECT_EQ(used.size(), 3U);
  // Without one of them, only its own streams go to others.
  consumers.remove(2);
  for (const auto& [stream, former] : owner) {
    const std::vector<EventPointer> events = {from(stream)};
    const auto chosen = who(consumers, events).front();
    EXPECT_EQ(former == 2 ? chosen != 2 : chosen == former, true) << stream;
  }
}

TEST_F(ConsumersCase, PinnedLetsOthersPassAConsumerWithoutRoom) {
  auto consumers = with(Strategy::kPinned, 1, 2);
  std::string other;
  const std::vector<EventPointer> first = {from("a"), from("a")};
  const auto chosen = who(consumers, first);
  EXPECT_EQ(chosen[1], 0U);
  EXPECT_TRUE(consumers.has_room());
}

TEST_F(ConsumersCase, ALinkCountsForTheStreamItPointsTo) {
  auto consumers = with(Strategy::kPinned, 1000);
  for (int i = 0; i < 20; ++i) {
    auto link = std::make_shared<SourceEvent>(*event(i, "links"));
    link->record.type = "$>";
    const auto data = fmt::format("3@s-{}", i);
    const auto bytes = as_bytes(data);
    link->record.data.assign(bytes.begin(), bytes.end());
    const std::vector<EventPointer> events = {from(fmt::format("s-{}", i)), link};
    const auto chosen = who(consumers, events);
    EXPECT_EQ(chosen[0], chosen[1]) << i;
  }
}

TEST_F(ConsumersCase, ByCorrelationTheMetadataDecides) {
  auto consumers = with(Strategy::kPinnedByCorrelation, 1000);
  std::set<ConsumerId> used;
  for (int i = 0; i < 20; ++i) {
    const auto metadata = fmt::format(R"({{"$correlationId":"c-{}"}})", i);
    const std::vector<EventPointer> events = {from("a", metadata), from("b", metadata)};
    const auto chosen = who(consumers, events);
    EXPECT_EQ(chosen[0], chosen[1]) << i;
    used.insert(chosen[0]);
  }
  EXPECT_EQ(used.size(), 3U);
  const std::vector<EventPointer> plain = {from("a"), from("a", "no JSON"), from("a", "[]")};
  const auto chosen = who(consumers, plain);
  EXPECT_EQ(chosen[0], chosen[1]);
  EXPECT_EQ(chosen[0], chosen[2]);
}

TEST_F(ConsumersCase, AGroupThatIsPinnedDeliversPastAFullConsumer) {
  auto wanted = settings();
  wanted.strategy = Strategy::kPinned;
  stream_length_ = 0;
  auto group = make(wanted);
  read(group);
  connect(group, 1, 1);
  connect(group, 2, 1);
  // Of stream "s" all go to one consumer, so one is outstanding and the rest waits.
  for (int i = 0; i < 3; ++i) {
    come(group);
  }
  EXPECT_EQ(group.status().outstanding, 1U);
  EXPECT_EQ(group.status().buffered, 2U);
  acknowledge(group, {0});
  acknowledge(group, {1});
  acknowledge(group, {2});
  EXPECT_EQ(got_.size(), 1U);
  EXPECT_EQ(got_.begin()->second, (Texts{"0", "1", "2"}));
}

}  // namespace
}  // namespace verger::node::persistent
