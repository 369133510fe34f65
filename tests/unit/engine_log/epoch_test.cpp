#include "engine/log/epoch.h"

#include <gtest/gtest.h>

#include "engine/base/clock.h"
#include "tests/support/results.h"

namespace verger::log {
namespace {

Epoch first_epoch() {
  Epoch epoch;
  epoch.position = LogPosition(0);
  epoch.number = EpochNumber(0);
  epoch.id = value(Uuid::parse("11111111-2222-3333-4444-555555555555"));
  epoch.timestamp = Ticks(638396640000000000);
  epoch.leader_instance_id = value(Uuid::parse("aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee"));
  return epoch;
}

TEST(Epoch, TheFirstOfADatabaseHasTheTextOfTheExample) {
  const std::string want =
      "{\n"
      "  \"epochId\": \"11111111-2222-3333-4444-555555555555\",\n"
      "  \"prevEpochPosition\": -1,\n"
      "  \"timeStamp\": \"2024-01-01T00:00:00Z\",\n"
      "  \"leaderInstanceId\": \"aaaaaaaa-bbbb-cccc-dddd-eeeeeeeeeeee\"\n"
      "}";
  EXPECT_EQ(want.size(), 183U);
  EXPECT_EQ(encode_epoch_json(first_epoch()), want);
  EXPECT_EQ(value(decode_epoch_json(as_bytes(want))), first_epoch());
}

TEST(Epoch, TheSecondLeavesOutThatTheFirstIsAtZero) {
  Epoch epoch = first_epoch();
  epoch.position = LogPosition(532);
  epoch.number = EpochNumber(1);
  epoch.previous = LogPosition(0);
  epoch.timestamp = value(parse_ticks("2026-11-21T07:35:44.4491879Z"));
  const std::string text = encode_epoch_json(epoch);
  EXPECT_TRUE(
      text.starts_with("{\n  \"epochPosition\": 532,\n  \"epochNumber\": 1,\n  \"epochId\""))
      << text;
  EXPECT_EQ(text.find("prevEpochPosition"), std::string::npos);
  EXPECT_NE(text.find("\"2026-11-21T07:35:44.4491879Z\""), std::string::npos);
  EXPECT_EQ(value(decode_epoch_json(as_bytes(text))), epoch);
}

TEST(Epoch, RefusesTextThatIsNone) {
  for (const char* text :
       {"", "[]", "{", "null", R"({"epochPosition":"x"})", R"({"epochPosition":-5})",
        R"({"epochNumber":4294967296})", R"({"epochId":"no"})", R"({"timeStamp":7})",
        R"({"epochPosition":10,"prevEpochPosition":10})"}) {
    EXPECT_FALSE(decode_epoch_json(as_bytes(text)).has_value()) << text;
  }
}

TEST(EpochHistory, TellsTheEpochInForceAndForgetsFromTheEnd) {
  EpochHistory history;
  for (const int i : {1, 2, 3}) {
    Epoch epoch = first_epoch();
    epoch.position = LogPosition(100 * i);
    epoch.number = EpochNumber(i);
    history.add(epoch);
  }
  EXPECT_FALSE(history.at(LogPosition(99)).has_value());
  EXPECT_EQ(history.at(LogPosition(100))->number.value(), 1);
  EXPECT_EQ(history.at(LogPosition(299))->number.value(), 2);
  history.truncate(LogPosition(300));
  EXPECT_EQ(history.last()->number.value(), 2);
}

}  // namespace
}  // namespace verger::log
