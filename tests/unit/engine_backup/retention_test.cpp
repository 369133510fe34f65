#include "engine/backup/retention.h"

#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/clock.h"
#include "tests/support/results.h"

namespace verger::backup {
namespace {

using ::testing::ElementsAre;
using ::testing::IsEmpty;

Manifest at(const char* time, const char* node = "n1") {
  Manifest manifest;
  manifest.checkpoints_at = value(parse_ticks(time));
  manifest.source.node = node;
  manifest.id = make_generation_id(manifest.checkpoints_at, std::string_view(node) == "n1" ? 1 : 2);
  return manifest;
}

/// "MMDD:rule" of all that stay.
std::vector<std::string> kept(const std::vector<Manifest>& manifests, const KeepRules& rules,
                              const char* now = "2024-03-10T12:00:00Z") {
  std::vector<std::string> result;
  for (const auto& one : decide_retention(manifests, rules, value(parse_ticks(now)))) {
    if (!one.kept_by.empty()) {
      result.push_back(one.id.substr(4, 4) + ":" + one.kept_by);
    }
  }
  return result;
}

const std::vector<Manifest>& of_two_months() {
  static const std::vector<Manifest> manifests = {
      at("2024-01-15T00:00:00Z"), at("2024-01-31T23:00:00Z"), at("2024-02-01T01:00:00Z"),
      at("2024-03-03T01:00:00Z"),  // Sunday
      at("2024-03-04T01:00:00Z"),  // Monday
      at("2024-03-09T01:00:00Z"), at("2024-03-10T01:00:00Z"), at("2024-03-10T11:00:00Z")};
  return manifests;
}

TEST(Retention, KeepsTheNewestOfANodeRegardlessOfTheRules) {
  EXPECT_THAT(kept(of_two_months(), {}), ElementsAre("0310:last"));
  EXPECT_THAT(kept({at("2020-01-01T00:00:00Z"), at("2020-01-01T00:00:00Z", "n2")}, {.daily = 1}),
              ElementsAre("0101:last", "0101:last"));
  EXPECT_THAT(decide_retention({}, {.last = 3}, Ticks(0)), IsEmpty());
}

TEST(Retention, KeepsTheNewestOfEachPeriod) {
  EXPECT_THAT(kept(of_two_months(), {.last = 3}),
              ElementsAre("0309:last", "0310:last", "0310:last"));
  EXPECT_THAT(kept(of_two_months(), {.daily = 3}),
              ElementsAre("0304:daily", "0309:daily", "0310:last"));
  EXPECT_THAT(kept(of_two_months(), {.weekly = 2}), ElementsAre("0303:weekly", "0310:last"));
  EXPECT_THAT(kept(of_two_months(), {.monthly = 12}),
              ElementsAre("0131:monthly", "0201:monthly", "0310:last"));
  EXPECT_THAT(kept(of_two_months(), {.within_days = 7}),
              ElementsAre("0304:within", "0309:within", "0310:within", "0310:last"));
}

}  // namespace
}  // namespace verger::backup
