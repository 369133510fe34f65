#include "tests/unit/nodeagent_node_persistent/group_case.h"

namespace verger::node::persistent {
namespace {

using namespace std::chrono_literals;

class Checkpoints : public GroupCase {
 protected:
  /// Without those that are being parked.
  static std::size_t unfinished(const Group& group) {
    const auto status = group.status();
    return status.outstanding + status.buffered + status.retries;
  }
};

TEST_F(Checkpoints, SayNoMoreThanThatAllBeforeAreDone) {
  stream_length_ = 5;
  auto group = make(settings());
  connect(group, 1, 10);
  read(group);
  acknowledge(group, {1, 3});
  pass(group, 3s);
  EXPECT_TRUE(checkpoints_.empty());
  acknowledge(group, {0});
  pass(group, 3s);
  acknowledge(group, {2, 4});
  pass(group, 3s);
  EXPECT_EQ(checkpoints_, (Texts{"1", "4"}));
}

TEST_F(Checkpoints, AreWrittenAtOnceWhenThereAreMany) {
  stream_length_ = 5;
  auto wanted = settings();
  wanted.max_checkpoint_count = 3;
  auto group = make(wanted);
  connect(group, 1, 10);
  read(group);
  acknowledge(group, {0, 1});
  EXPECT_TRUE(checkpoints_.empty());
  acknowledge(group, {2});
  EXPECT_EQ(checkpoints_, (Texts{"2"}));
}

TEST_F(Checkpoints, WaitForTheirTimeAndTheirNumber) {
  auto wanted = settings();
  wanted.min_checkpoint_count = 2;
  auto group = make(wanted);
  read(group);
  connect(group, 1, 10);
  come(group);
  acknowledge(group, {0});
  pass(group, 5s);
  EXPECT_TRUE(checkpoints_.empty());
  come(group);
  acknowledge(group, {1});
  EXPECT_TRUE(checkpoints_.empty());
  pass(group, 1s);
  EXPECT_EQ(checkpoints_, (Texts{"1"}));
  come(group);
  come(group);
  acknowledge(group, {2, 3});
  pass(group, 1s);
  EXPECT_EQ(checkpoints_.size(), 1U);  // two seconds have not passed
  pass(group, 1s);
  EXPECT_EQ(checkpoints_, (Texts{"1", "3"}));
}

TEST_F(Checkpoints, WithoutAnAgeComeByNumberAlone) {
  auto wanted = settings();
  wanted.checkpoint_after_ms = 0;
  wanted.max_checkpoint_count = 2;
  auto group = make(wanted);
  read(group);
  connect(group, 1, 10);
  come(group);
  acknowledge(group, {0});
  pass(group, 60s);
  EXPECT_TRUE(checkpoints_.empty());
  come(group);
  acknowledge(group, {1});
  EXPECT_EQ(checkpoints_, (Texts{"1"}));
}

TEST_F(Checkpoints, AreNotRepeated) {
  stream_length_ = 1;
  auto group = make(settings());
  connect(group, 1, 10);
  read(group);
  acknowledge(group, {0});
  pass(group, 30s);
  EXPECT_EQ(checkpoints_, (Texts{"0"}));
}

TEST_F(Checkpoints, AGroupThatBeginsAgainDoesNotFallBehindItsOwn) {
  stream_length_ = 3;
  auto group = make(settings(), 1);
  connect(group, 1, 10);
  read(group);
  pass(group, 5s);
  EXPECT_TRUE(checkpoints_.empty());
  EXPECT_EQ(to_text(*group.status().last_checkpoint), "1");
  acknowledge(group, {2});
  pass(group, 1s);
  EXPECT_EQ(checkpoints_, (Texts{"2"}));
}

TEST_F(Checkpoints, MoveOverWhatAFilterLeavesOut) {
  const auto at = [](std::int64_t position) {
    return SourcePosition(streams::AllPosition{LogPosition(position), LogPosition(position)});
  };
  auto wanted = settings();
  wanted.start = at(-1);
  wanted.filter = EventPattern{.by_stream = true, .prefixes = {"s"}};
  auto group = value(Group::make({.stream = "$all", .group = "g"}, wanted, clock_));
  group.begin(std::nullopt, at(100), {EventNumber(0), EventNumber(0)});
  EXPECT_TRUE(group.keeps(event(0)->record));
  EXPECT_FALSE(group.keeps(event(0, "other")->record));
  connect(group, 1, 10);
  group.live({at(100), nullptr});
  look(group);
  pass(group, 1s);
  group.live({at(110), event(0)});
  group.live({at(120), nullptr});
  look(group);
  pass(group, 3s);
  // Nothing behind the event before it is done.
  EXPECT_EQ(checkpoints_, (Texts{"C:100/P:100"}));
  acknowledge(group, {0});
  pass(group, 1s);
  EXPECT_EQ(checkpoints_, (Texts{"C:100/P:100", "C:120/P:120"}));
  EXPECT_EQ(to_text(*group.status().last_known), "C:110/P:110");
}

TEST_F(Checkpoints, WhateverHappensAGroupThatBeginsAtOneDeliversTheRest) {
  // Chance decides what consumers do; then the group is lost, and begins again at its checkpoint.
  for (std::uint64_t seed = 1; seed <= 200; ++seed) {
    SCOPED_TRACE(seed);
    auto chance = seed * 0x9E37'79B9'7F4A'7C15;
    const auto draw = [&](std::uint64_t below) {
      chance ^= chance >> 12U;
      chance ^= chance << 25U;
      chance ^= chance >> 27U;
      return (chance * 0x2545'F491'4F6C'DD1D >> 33U) % below;
    };
    stream_length_ = 0;
    auto wanted = settings();
    wanted.max_checkpoint_count = static_cast<std::int32_t>(draw(8)) + 1;
    wanted.strategy = static_cast<Strategy>(draw(4));
    std::set<std::int64_t> done;
    std::optional<std::int64_t> checkpoint;
    for (int life = 0; life < 4; ++life) {
      auto group = make(wanted, checkpoint);
      std::vector<std::int64_t> held;
      ConsumerId next = 1;
      for (int step = 0; step < 60; ++step) {
        switch (draw(8)) {
          case 0:
            group.live(entry(stream_length_++));
            break;
          case 1:
            group.connect({.id = next++, .slots = static_cast<std::int32_t>(draw(5))});
            break;
          case 2:
            group.disconnect(1 + draw(next));
            break;
          case 3:
            clock_.advance_seconds(1);
            group.tick();
            break;
          default:
            if (!held.empty()) {
              const auto number = held[draw(held.size())];
              if (draw(4) == 0) {
                group.not_acknowledge(ids({number}), NackAction::kRetry, "");
              } else {
                const auto before = unfinished(group);
                group.acknowledge(ids({number}));
                if (unfinished(group) < before) {
                  done.insert(number);  // else it was not outstanding any longer
                }
              }
            }
        }
        while (const auto page = group.wants_page()) {
          const auto from = std::get<EventNumber>(page->from).value();
          const auto to = std::min(stream_length_, from + static_cast<std::int64_t>(page->count));
          std::vector<SourceEntry> entries;
          for (auto number = from; number < to; ++number) {
            entries.push_back(entry(number));
          }
          group.page(entries, EventNumber(std::max(from, to)), to >= stream_length_);
        }
        for (const auto& action : group.take_actions()) {
          if (const auto* deliver = std::get_if<action::Deliver>(&action)) {
            held.push_back(deliver->event->record.number.value());
          } else if (const auto* written = std::get_if<action::WriteCheckpoint>(&action)) {
            checkpoint = std::get<EventNumber>(written->position).value();
          } else if (const auto* park = std::get_if<action::Park>(&action)) {
            done.insert(park->event->record.number.value());
            group.parked(park->message, EventNumber(0));
          }
        }
      }
    }
    // All that the last checkpoint says is done was acknowledged or parked by someone.
    for (std::int64_t number = 0; checkpoint && number <= *checkpoint; ++number) {
      EXPECT_TRUE(done.contains(number)) << number;
    }
    // And what is behind it comes.
    auto group = make(wanted, checkpoint);
    group.connect({.id = 1, .slots = 10'000});
    got_.clear();
    read(group);
    look(group);
    EXPECT_EQ(static_cast<std::int64_t>(got_[1].size()),
              stream_length_ - checkpoint.value_or(-1) - 1);
  }
}

}  // namespace
}  // namespace verger::node::persistent
