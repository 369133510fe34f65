#include "engine/scavenge/rules.h"

#include <gtest/gtest.h>
#include <vector>

namespace verger::scavenge {
namespace {

using enum EventDecision;
namespace flags = log::prepare_flags;

constexpr auto kMax = std::numeric_limits<std::int64_t>::max();
constexpr Ticks kRulesNow{638'396'640'000'000'000};

// --- Status and numbers ---

TEST(StatusAfterCalculation, FollowsTheFirstConditionThatHolds) {
  const auto status = [](OriginalData data, std::int64_t last) {
    return status_after_calculation(data, EventNumber(last));
  };
  EXPECT_EQ(status({.tombstoned = true, .max_count = 1}, 5), StreamStatus::kArchived);
  EXPECT_EQ(status({.max_age_seconds = 1}, 5), StreamStatus::kActive);
  EXPECT_EQ(status({.max_count = 1, .truncate_before = kMax}, 5), StreamStatus::kActive);
  EXPECT_EQ(status({.truncate_before = 6}, 5), StreamStatus::kActive) << "not yet spent";
  EXPECT_EQ(status({.truncate_before = 5}, 5), StreamStatus::kSpent);
  EXPECT_EQ(status({.truncate_before = kMax}, 5), StreamStatus::kSpent) << "soft-deleted";
  EXPECT_EQ(status({}, 5), StreamStatus::kSpent);
}

TEST(DiscardedByNumber, IsArithmeticNotCounting) {
  // Row 9: numbers 0, 1, 5, 6, 10 with maxCount 3: the bound is 10 - 3.
  const OriginalData count{.max_count = 3};
  EXPECT_TRUE(discarded_by_number(count, EventNumber(7), EventNumber(10)));
  EXPECT_FALSE(discarded_by_number(count, EventNumber(8), EventNumber(10)));
  const OriginalData truncated{.truncate_before = 4};
  EXPECT_TRUE(discarded_by_number(truncated, EventNumber(3), EventNumber(10)));
  EXPECT_FALSE(discarded_by_number(truncated, EventNumber(4), EventNumber(10)));
  EXPECT_FALSE(discarded_by_number({.max_count = kMax}, EventNumber(0), kNoStream));
}

// --- Age ---

TEST(DecideByAge, ComparesTheCutoffWithTheRange) {
  const auto decide = [](std::int64_t min, std::int64_t max) {
    return decide_by_age(TimeRange{Ticks(min), Ticks(max)}, Ticks(100));
  };
  EXPECT_EQ(decide(100, 200), kKeep) << "row 27: the oldest equals the cutoff";
  EXPECT_EQ(decide(50, 100), kMaybeDiscard) << "row 26: the newest equals the cutoff";
  EXPECT_EQ(decide(50, 99), kDiscard);
  EXPECT_EQ(decide(99, 300), kMaybeDiscard);
  EXPECT_EQ(decide_by_age(std::nullopt, Ticks(100)), kAlreadyDiscarded);
}

TEST(CutoffOf, DoesNotGoBehindTheBeginningOfTime) {
  EXPECT_EQ(cutoff_of(kRulesNow, 10), Ticks(kRulesNow.value() - 10 * kTicksPerSecond));
  EXPECT_EQ(cutoff_of(kRulesNow, 900'000'000'000), Ticks(0));
}

// --- Walk ---

struct Seen {
  std::int64_t number;
  EventDecision decision;
};
struct Walked {
  std::int64_t discard;
  std::int64_t maybe;
  int weight;
  friend bool operator==(const Walked&, const Walked&) = default;
  friend void PrintTo(const Walked& w, std::ostream* out) {
    *out << "D " << w.discard << ", M " << w.maybe << ", weight " << w.weight;
  }
};
Walked walk(const std::vector<Seen>& events) {
  StreamWalk stream;
  int weight = 0;
  for (const auto& event : events) {
    weight += stream.add(EventNumber(event.number), event.decision);
  }
  EXPECT_TRUE(stream.stopped());
  return {stream.discard().first_kept(), stream.maybe().first_kept(), weight};
}

TEST(StreamWalk, DiscardsBelowTheFirstEntryWithoutWeight) {
  EXPECT_EQ(walk({{5, kKeep}}), (Walked{5, 5, 0}));
}
TEST(StreamWalk, Row8DiscardsAcrossGaps) {
  EXPECT_EQ(walk({{0, kDiscard}, {1, kDiscard}, {5, kDiscard}, {6, kDiscard}, {7, kKeep}}),
            (Walked{7, 7, 8}));
}
TEST(StreamWalk, Row20KeepsMaybeEventsApart) {
  EXPECT_EQ(walk({{0, kMaybeDiscard}, {1, kMaybeDiscard}, {2, kMaybeDiscard}, {3, kKeep}}),
            (Walked{0, 3, 3}));
}
TEST(StreamWalk, Row30DiscardAfterMaybePassesBoth) {
  EXPECT_EQ(walk({{0, kMaybeDiscard}, {1, kMaybeDiscard}, {2, kDiscard}, {3, kKeep}}),
            (Walked{3, 3, 4}));
}
TEST(StreamWalk, Row120DropsEntriesOfEmptiedChunksInFront) {
  EXPECT_EQ(walk({{0, kAlreadyDiscarded}, {1, kAlreadyDiscarded}, {2, kKeep}}), (Walked{2, 2, 0}));
}
TEST(StreamWalk, Row121DropsThemAfterDiscardedEntries) {
  EXPECT_EQ(walk({{0, kDiscard}, {1, kAlreadyDiscarded}, {2, kKeep}}), (Walked{2, 2, 2}));
}
TEST(StreamWalk, Row122KeepsThemAfterAMaybe) {
  EXPECT_EQ(walk({{0, kMaybeDiscard}, {1, kAlreadyDiscarded}, {2, kKeep}}), (Walked{0, 1, 1}));
}
TEST(StreamWalk, ADiscardAfterAMaybeMakesThemGoAgain) {
  EXPECT_EQ(walk({{0, kMaybeDiscard}, {1, kDiscard}, {2, kAlreadyDiscarded}, {3, kKeep}}),
            (Walked{3, 3, 3}));
}

// --- Records ---

struct PrepareCase {
  std::string_view what;
  std::uint16_t flags;
  std::int64_t number;
  bool metastream;
  StreamLimits limits;
  bool unsafe;
  bool kept;
  std::int64_t age_seconds = 0;
};

constexpr std::uint16_t kCommitted = flags::kData | flags::kIsCommitted;
constexpr std::uint16_t kTombstone = flags::kStreamDelete | flags::kIsCommitted;

TEST(KeepsPrepare, FollowsTheTable) {
  const StreamLimits dead{.tombstoned = true, .discard = DiscardPoint(3)};
  const StreamLimits dead_meta{.tombstoned = true, .metastream = true};
  const StreamLimits aged{
      .discard = DiscardPoint(2), .maybe = DiscardPoint(5), .max_age_seconds = 60};
  const StreamLimits ageless{.discard = DiscardPoint(2), .maybe = DiscardPoint(5)};
  const PrepareCase cases[] = {
      {"2: a transaction is kept", flags::kData, -1, false, aged, false, true},
      {"3: of a deleted stream, unsafe", flags::kTransactionBegin, -1, false, dead, true, false},
      {"4: its begin", flags::kTransactionBegin, -1, false, dead, false, true},
      {"4: its tombstone", flags::kStreamDelete, -1, false, dead, false, true},
      {"5: its data", flags::kData, -1, false, dead, false, false},
      {"5: its end", flags::kTransactionEnd, -1, false, dead, false, false},
      {"6: a tombstone, unsafe", kTombstone, kMax, false, dead, true, false},
      {"7: metadata of a deleted stream", kCommitted, 9, true, dead_meta, false, false},
      {"8: below the discard point", kCommitted, 2, false, dead, false, false},
      {"8: a tombstone is above it", kTombstone, kMax, false, dead, false, true},
      {"9: at the maybe point", kCommitted, 5, false, aged, false, true, 100},
      {"10: no age", kCommitted, 4, false, ageless, false, true, 100},
      {"11: too old", kCommitted, 4, false, aged, false, false, 61},
      {"12: exactly at the cutoff", kCommitted, 4, false, aged, false, true, 60},
      {"nothing is known", kCommitted, 0, false, {}, false, true},
  };
  for (const auto& c : cases) {
    log::Prepare prepare;
    prepare.position = LogPosition(500);
    prepare.flags = c.flags;
    prepare.expected_version = c.number - 1;
    prepare.timestamp = Ticks(kRulesNow.value() - c.age_seconds * kTicksPerSecond);
    RunRules rules{LogPosition(1000), kRulesNow, c.unsafe};
    EXPECT_EQ(keeps_prepare(prepare, c.metastream, c.limits, rules), c.kept) << c.what;
    prepare.position = LogPosition(1000);
    EXPECT_TRUE(keeps_prepare(prepare, c.metastream, c.limits, rules)) << "1: " << c.what;
  }
}

// --- Index entries ---

TEST(KeepsEntry, UsesOnlyTombstoneAndDiscardPoint) {
  const auto keeps = [](std::int64_t number, const StreamLimits& limits, bool unsafe = false,
                        std::int64_t position = 500) {
    return keeps_entry({StreamHash(1), EventNumber(number), LogPosition(position)}, limits,
                       {LogPosition(1000), kRulesNow, unsafe});
  };
  const StreamLimits aged{
      .discard = DiscardPoint(2), .maybe = DiscardPoint(5), .max_age_seconds = 60};
  EXPECT_FALSE(keeps(1, aged));
  EXPECT_TRUE(keeps(2, aged)) << "maybe entries stay";
  EXPECT_TRUE(keeps(1, aged, false, 1000)) << "at the point";
  EXPECT_FALSE(keeps(9, {.tombstoned = true, .metastream = true}));
  EXPECT_TRUE(keeps(kMax, {.tombstoned = true, .discard = DiscardPoint(9)}));
  EXPECT_FALSE(keeps(kMax, {.tombstoned = true}, true));
}

}  // namespace
}  // namespace verger::scavenge
