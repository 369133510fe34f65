#include <gtest/gtest.h>

#include "nodeagent/node/persistent/group_records.h"
#include "tests/support/results.h"

namespace verger::node::persistent {
namespace {

GroupSettings some_settings() {
  GroupSettings out;
  out.message_timeout_ms = 30'000;
  out.live_buffer_size = 50;
  out.history_buffer_size = 50;
  out.max_retry_count = 2;
  out.read_batch_size = 10;
  out.checkpoint_after_ms = 1'000;
  out.min_checkpoint_count = 1;
  out.max_checkpoint_count = 5;
  return out;
}

constexpr Ticks kSomeTime{638'994'199'005'340'121};

TEST(GroupRecords, TheConfigurationIsWrittenAsTheServerWritesIt) {
  GroupConfig one{.key = {"p-1", "g-old"}, .settings = some_settings()};
  one.settings.start = EventNumber(3);
  GroupConfig all{.key = {"$all", "ga"}, .settings = some_settings()};
  all.settings.start = streams::AllPosition{LogPosition(-1), LogPosition(-1)};
  all.settings.filter = EventPattern{.by_stream = true, .prefixes = {"p-all"}};
  EXPECT_EQ(config_json({one, all}, kSomeTime, "system"), R"json({
  "version": "2",
  "updated": "2025-11-22T14:51:40.5340121+00:00",
  "updatedBy": "system",
  "entries": [
    {
      "stream": "p-1",
      "group": "g-old",
      "messageTimeout": 30000,
      "startFrom": 3,
      "startPosition": "3",
      "liveBufferSize": 50,
      "historyBufferSize": 50,
      "maxRetryCount": 2,
      "readBatchSize": 10,
      "checkPointAfter": 1000,
      "minCheckPointCount": 1,
      "maxCheckPointCount": 5,
      "namedConsumerStrategy": "RoundRobin"
    },
    {
      "stream": "$all",
      "group": "ga",
      "filter": {
        "context": "streamid",
        "type": "prefix",
        "data": "p-all",
        "isAllStream": true
      },
      "messageTimeout": 30000,
      "startFrom": -9223372036854775808,
      "startPosition": "C:-1/P:-1",
      "liveBufferSize": 50,
      "historyBufferSize": 50,
      "maxRetryCount": 2,
      "readBatchSize": 10,
      "checkPointAfter": 1000,
      "minCheckPointCount": 1,
      "maxCheckPointCount": 5,
      "namedConsumerStrategy": "RoundRobin"
    }
  ]
})json");
}

TEST(GroupRecords, TheConfigurationComesBackAsItWas) {
  std::vector<GroupConfig> groups;
  groups.push_back({.key = {"s", ""}, .settings = {}});
  groups.push_back({.key = {"s::t", "g"}, .settings = some_settings()});
  groups.back().settings.resolve_links = true;
  groups.back().settings.extra_statistics = true;
  groups.back().settings.max_subscriber_count = 7;
  groups.back().settings.start = EventNumber(-1);
  groups.back().settings.strategy = Strategy::kPinnedByCorrelation;
  groups.push_back({.key = {"$all", "types"}, .settings = some_settings()});
  groups.back().settings.start = streams::AllPosition{LogPosition(70), LogPosition(60)};
  groups.back().settings.filter = EventPattern{.prefixes = {"a", "b"}};
  groups.push_back(groups.back());
  groups.back().key.group = "pattern";
  groups.back().settings.filter = EventPattern{.regex = "^[^\\$].*"};
  const auto json = config_json(groups, kSomeTime, "admin");
  EXPECT_EQ(value(parse_config(as_bytes(json))), groups);
}

TEST(GroupRecords, AnEmptyPrefixKeepsItsPlace) {
  GroupConfig group{.key = {"$all", "g"}, .settings = {}};
  group.settings.start = streams::AllPosition{LogPosition(7), LogPosition(6)};
  group.settings.filter = EventPattern{.prefixes = {"", "a"}};
  EXPECT_EQ(value(parse_config(as_bytes(config_json({group}, kSomeTime, "admin")))),
            std::vector{group});
}

TEST(GroupRecords, AnOldEntryHasItsStartAsANumber) {
  const std::string json =
      R"({"version":"1","entries":[{"stream":"s","group":"g","startFrom":4,"historyBufferSize":20}]})";
  const auto groups = value(parse_config(as_bytes(json)));
  ASSERT_EQ(groups.size(), 1U);
  EXPECT_EQ(groups[0].settings.start, SourcePosition(EventNumber(4)));
  EXPECT_EQ(groups[0].settings.strategy, Strategy::kRoundRobin);
}

TEST(GroupRecords, WhatIsNoConfigurationIsRefused) {
  for (const std::string json :
       {"", "[]", "{}", R"({"entries":[1]})", R"({"entries":[{"group":"g"}]})",
        R"({"entries":[{"stream":"s","maxRetryCount":1e300}]})",
        R"({"entries":[{"stream":"$all","group":"g"}]})"}) {
    EXPECT_FALSE(parse_config(as_bytes(json)).has_value()) << json;
  }
}

TEST(GroupRecords, ACheckpointIsATextInJson) {
  EXPECT_EQ(checkpoint_json(EventNumber(6)), "\"6\"");
  const SourcePosition place = streams::AllPosition{LogPosition(60911), LogPosition(60900)};
  EXPECT_EQ(checkpoint_json(place), "\"C:60911/P:60900\"");
  const auto parsed = [](const std::string& text, bool all) {
    return parse_checkpoint(as_bytes(text), all);
  };
  EXPECT_EQ(parsed("\"6\"", false), SourcePosition(EventNumber(6)));
  EXPECT_EQ(parsed("6", false), SourcePosition(EventNumber(6)));
  EXPECT_EQ(parsed("\"C:60911/P:60900\"", true), place);
  for (const auto* text :
       {"", "\"\"", "\"x\"", "\"C:1\"", "\"C:1/P:\"", "\"C:/P:1\"", "{}", "6.5"}) {
    EXPECT_FALSE(parsed(text, true)) << text;
    EXPECT_FALSE(parsed(text, false)) << text;
  }
  EXPECT_FALSE(parsed("\"6\"", true));
}

TEST(GroupRecords, AParkedEventIsALinkWithItsReason) {
  SourceEvent event;
  event.record.stream = "p-1";
  event.record.number = EventNumber(1);
  EXPECT_EQ(parked_link(event), "1@p-1");
  EXPECT_EQ(parked_metadata(event, kSomeTime, "Reached retry count of 1"), R"json({
  "added": "2025-11-22T14:51:40.5340121+00:00",
  "reason": "Reached retry count of 1",
  "subscriptionEventNumber": 1
})json");
  event.record.number = EventNumber(0);
  EXPECT_FALSE(parked_metadata(event, kSomeTime, "").contains("subscriptionEventNumber"));
  // Of a link what it points to is parked; of one that points nowhere, the same link.
  event.is_link = true;
  event.target.emplace();
  event.target->stream = "source";
  event.target->number = EventNumber(5);
  EXPECT_EQ(parked_link(event), "5@source");
  event.target.reset();
  const std::string data = "99@gone";
  const auto bytes = as_bytes(data);
  event.record.data.assign(bytes.begin(), bytes.end());
  EXPECT_EQ(parked_link(event), "99@gone");
}

TEST(GroupRecords, TheParkedStreamIsForAdmins) {
  EXPECT_EQ(parked_stream_metadata(EventNumber(2)),
            R"({"$tb":2,"$acl":{"$r":"$admins","$w":"$admins","$d":"$admins","$mr":"$admins",)"
            R"("$mw":"$admins"}})");
  EXPECT_EQ(checkpoint_stream({"p-1", "g1"}), "$persistentsubscription-p-1::g1-checkpoint");
  EXPECT_EQ(parked_stream({"$all", "ga"}), "$persistentsubscription-$all::ga-parked");
}

TEST(GroupSettings, ABatchIsSmallerThanTheBuffer) {
  auto settings = some_settings();
  EXPECT_FALSE(problem_of(settings));
  settings.read_batch_size = settings.history_buffer_size;
  ASSERT_TRUE(problem_of(settings));
  EXPECT_TRUE(problem_of(settings)->contains("ReadBatchSize"));
  EXPECT_TRUE(problem_of({}));
}

TEST(EventMatcher, KeepsByPrefixesOrARegularExpression) {
  streams::Event event;
  event.stream = "orders-1";
  event.type = "placed";
  const auto keeps = [&](EventPattern pattern) {
    return value(EventMatcher::make(std::move(pattern))).keeps(event);
  };
  EXPECT_TRUE(keeps({.by_stream = true, .prefixes = {"x", "orders"}}));
  EXPECT_FALSE(keeps({.prefixes = {"orders"}}));
  EXPECT_TRUE(keeps({.regex = "^[^\\$].*", .prefixes = {"nothing"}}));
  EXPECT_FALSE(keeps({}));
  EXPECT_FALSE(EventMatcher::make({.regex = "("}).has_value());
}

}  // namespace
}  // namespace verger::node::persistent
