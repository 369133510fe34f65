#pragma once

#include <gtest/gtest.h>
#include <map>
#include <string>
#include <vector>

#include "nodeagent/node/persistent/group.h"
#include "tests/support/manual_clock.h"
#include "tests/support/results.h"

namespace verger::node::persistent {

/// A group of stream "s" in time that a test moves, and what its consumers got.
class GroupCase : public ::testing::Test {
 protected:
  static GroupSettings settings() {
    GroupSettings out;
    out.message_timeout_ms = 10'000;
    out.max_retry_count = 2;
    out.checkpoint_after_ms = 2'000;
    out.min_checkpoint_count = 1;
    out.max_checkpoint_count = 100;
    out.live_buffer_size = 10;
    out.history_buffer_size = 10;
    out.read_batch_size = 4;
    return out;
  }

  Group make(GroupSettings wanted, std::optional<std::int64_t> checkpoint = std::nullopt,
             std::int64_t parked = 0) {
    auto group = value(Group::make({.stream = "s", .group = "g"}, std::move(wanted), clock_));
    group.begin(checkpoint ? std::optional<SourcePosition>(EventNumber(*checkpoint)) : std::nullopt,
                EventNumber(stream_length_), {EventNumber(0), EventNumber(parked)});
    return group;
  }

  static Uuid id_of(std::int64_t number) {
    return value(Uuid::parse(fmt::format("00000000-0000-4000-8000-{:012}", number + 1)));
  }
  static EventPointer event(std::int64_t number, const std::string& stream = "s") {
    auto out = std::make_shared<SourceEvent>();
    out->position = EventNumber(number);
    out->record.stream = stream;
    out->record.number = EventNumber(number);
    out->record.id = id_of(number);
    out->record.type = "t";
    return out;
  }
  static SourceEntry entry(std::int64_t number) { return {EventNumber(number), event(number)}; }

  /// Answers what the group wants to read, from a stream of stream_length_ events.
  void read(Group& group) {
    while (const auto wanted = group.wants_page()) {
      ++pages_;
      std::vector<SourceEntry> entries;
      auto number = std::get<EventNumber>(wanted->from).value();
      for (; number < stream_length_ && entries.size() < wanted->count; ++number) {
        entries.push_back(entry(number));
      }
      group.page(entries, EventNumber(number), number >= stream_length_);
      look(group);
    }
  }
  /// Another event comes.
  void come(Group& group) {
    group.live(entry(stream_length_++));
    look(group);
  }
  void connect(Group& group, ConsumerId id, std::int32_t slots) {
    EXPECT_TRUE(group.connect({.id = id, .slots = slots}));
    look(group);
  }
  void acknowledge(Group& group, std::initializer_list<std::int64_t> numbers) {
    group.acknowledge(ids(numbers));
    look(group);
  }
  void refuse(Group& group, std::initializer_list<std::int64_t> numbers, NackAction how) {
    group.not_acknowledge(ids(numbers), how, "why");
    look(group);
  }
  void pass(Group& group, std::chrono::seconds time) {
    for (; time.count() > 0; --time) {
      clock_.advance_seconds(1);
      group.tick();
      look(group);
    }
  }
  static std::vector<Uuid> ids(std::initializer_list<std::int64_t> numbers) {
    std::vector<Uuid> out;
    for (const auto number : numbers) {
      out.push_back(id_of(number));
    }
    return out;
  }

  /// Sorts what the group has had done.
  void look(Group& group) {
    for (const auto& action : group.take_actions()) {
      if (const auto* deliver = std::get_if<action::Deliver>(&action)) {
        got_[deliver->consumer].push_back(
            fmt::format("{}{}", deliver->event->record.number,
                        deliver->retry_count == 0 ? "" : fmt::format("+{}", deliver->retry_count)));
      } else if (const auto* checkpoint = std::get_if<action::WriteCheckpoint>(&action)) {
        checkpoints_.push_back(to_text(checkpoint->position));
      } else if (const auto* park = std::get_if<action::Park>(&action)) {
        parked_.push_back(*park);
      } else {
        truncated_.push_back(std::get<action::TruncateParked>(action).before.value());
      }
    }
  }
  using Texts = std::vector<std::string>;

  test::ManualClock clock_;
  std::int64_t stream_length_ = 0;
  int pages_ = 0;
  std::map<ConsumerId, Texts> got_;  ///< numbers, with the count of retries
  Texts checkpoints_;
  std::vector<action::Park> parked_;
  std::vector<std::int64_t> truncated_;
};

}  // namespace verger::node::persistent
