#include "engine/scavenge/removal_rule.h"

#include <array>
#include <gtest/gtest.h>
#include <limits>

namespace verger::scavenge {
namespace {

constexpr auto kGreatest = std::numeric_limits<std::int64_t>::max();

TEST(RuleOfDiscard, IsTheOneThatEachNumberBeforeTheDiscardPointGoesBy) {
  using Limit = std::optional<std::int64_t>;
  int known = 0;
  for (const Limit truncate_before : {Limit(), Limit(0), Limit(3), Limit(4), Limit(kGreatest)}) {
    for (const Limit max_count : {Limit(), Limit(2), Limit(kGreatest - 2), Limit(kGreatest)}) {
      for (const Limit max_age : {Limit(), Limit(60)}) {
        for (const std::int64_t discard : {1, 2, 3, 4, 5}) {
          const OriginalData stream{.max_age_seconds = max_age,
                                    .max_count = max_count,
                                    .truncate_before = truncate_before,
                                    .discard = DiscardPoint(discard)};
          // As RemovalRules looks them up.
          const bool several = truncate_before || max_age;
          const RemovalFacts facts{stream, max_count && several ? EventNumber(6) : kDeletedStream};
          const auto rule = rule_of_discard(stream);
          known += rule ? 1 : 0;
          for (std::int64_t number = 0; rule && number < discard; ++number) {
            EXPECT_EQ(removal_rule(EventNumber(number), facts), *rule)
                << truncate_before.value_or(-1) << " " << max_count.value_or(-1) << " "
                << max_age.value_or(-1) << " " << discard << " " << number;
          }
        }
      }
    }
  }
  EXPECT_GT(known, 100);
}

TEST(RuleOfDiscard, IsKnownOfASingleLimit) {
  const DiscardPoint discard(5);
  EXPECT_EQ(rule_of_discard({.max_count = 3, .discard = discard}), RemovalRule::kMaxCount);
  EXPECT_EQ(rule_of_discard({.max_age_seconds = 3, .discard = discard}), RemovalRule::kMaxAge);
  EXPECT_EQ(rule_of_discard({.truncate_before = 5, .discard = discard}),
            RemovalRule::kTruncateBefore);
  EXPECT_EQ(rule_of_discard({.truncate_before = kGreatest, .discard = discard}),
            RemovalRule::kSoftDeleted);
  EXPECT_EQ(rule_of_discard({.discard = discard}), RemovalRule::kEarlierScavenge);
  EXPECT_EQ(rule_of_discard({.truncate_before = 4, .discard = discard}), std::nullopt)
      << "4 goes by another rule";
  EXPECT_EQ(rule_of_discard({.max_age_seconds = 3, .max_count = 3, .discard = discard}),
            std::nullopt);
}

TEST(RemovalRule, IsSaidByLimitsUnlessTheyAreSeveral) {
  log::Prepare prepare;
  prepare.flags = log::prepare_flags::kIsCommitted;
  prepare.expected_version = 6;  // the number is 7
  EXPECT_EQ(removal_rule(prepare, false, {.tombstoned = true}), RemovalRule::kDeletedStream);
  EXPECT_EQ(removal_rule(prepare, true, {.tombstoned = true}), RemovalRule::kDeletedMetadata);
  EXPECT_EQ(removal_rule(prepare, true, {.discard = DiscardPoint(9)}),
            RemovalRule::kReplacedMetadata);
  EXPECT_EQ(removal_rule(prepare, false, {.discard = DiscardPoint(7)}), RemovalRule::kMaxAge);
  EXPECT_EQ(removal_rule(prepare, false, {.discard = DiscardPoint(8)}), std::nullopt);
  EXPECT_EQ(removal_rule(prepare, false,
                         {.discard = DiscardPoint(8), .discarded_by = RemovalRule::kMaxCount}),
            RemovalRule::kMaxCount);
  prepare.flags |= log::prepare_flags::kStreamDelete;
  EXPECT_EQ(removal_rule(prepare, false, {.tombstoned = true}), RemovalRule::kTombstone);
}

}  // namespace
}  // namespace verger::scavenge
