#include <algorithm>
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "engine/base/random.h"
#include "engine/scavenge/detail/limits_table.h"
#include "engine/scavenge/detail/seen_names.h"
#include "engine/scavenge/scavenge_state.h"
#include "tests/unit/engine_scavenge/colliding_hash.h"

namespace verger::scavenge {
namespace {

class NoteStreamsTest : public testing::Test {
 protected:
  void SetUp() override {
    auto opened = ScavengeState::open(files, "/db/index", &colliding_hash, {});
    ASSERT_TRUE(opened) << opened.error().message;
    state = std::move(*opened);
    ASSERT_TRUE(state->begin());
  }
  bool note(const std::vector<std::string>& names) {
    std::vector<ScavengeState::NamedHash> streams;
    for (const auto& name : names) {
      streams.push_back({colliding_hash(name), name});
    }
    std::ranges::sort(streams, {}, [](const auto& stream) { return row_key(stream.hash); });
    return state->note_streams(streams, [] { return Result<void>{}; }).value();
  }

  bool seen_before(std::string_view name) {
    return state->seen_before(name, detail::SeenNames::key_of(name));
  }

  MemoryFileSystem files;
  std::unique_ptr<ScavengeState> state;
};

TEST_F(NoteStreamsTest, StoresEachNewStreamOnce) {
  EXPECT_TRUE(note({"c", "a", "b", "a"}));
  EXPECT_TRUE(note({"b", "d"}));
  EXPECT_EQ(state->count_rows("HashUsers").value(), 4);
  EXPECT_EQ(state->note_stream("d").value(), std::nullopt);
  EXPECT_FALSE(state->has_collisions());
}

TEST_F(NoteStreamsTest, LeavesACollisionAmongThemToTheOrderOfTheLog) {
  EXPECT_FALSE(note({"z", "a|2", "a|1"}));
  EXPECT_EQ(state->count_rows("HashUsers").value(), 0);
  EXPECT_FALSE(state->has_collisions());
}

TEST_F(NoteStreamsTest, LeavesACollisionWithAnEarlierStreamToTheOrderOfTheLog) {
  EXPECT_TRUE(note({"a|1"}));
  EXPECT_FALSE(note({"x", "a|2", "y"}));
  EXPECT_FALSE(state->has_collisions());
  for (const auto* name : {"x", "a|2", "y"}) {
    EXPECT_EQ(state->note_stream(name).value().has_value(), name == std::string_view("a|2"));
  }
  EXPECT_EQ(state->count_rows("HashUsers").value(), 3);
  EXPECT_EQ(state->count_rows("HashCollisions").value(), 2);
  EXPECT_TRUE(note({"a|2", "a|1", "new"})) << "known collisions are nothing to report";
}

TEST_F(NoteStreamsTest, EndsOnRequest) {
  std::vector<ScavengeState::NamedHash> streams{{colliding_hash("a"), "a"}};
  const auto noted =
      state->note_streams(streams, [] { return Result<void>(Error{Errc::kCancelled, "enough"}); });
  ASSERT_FALSE(noted);
  EXPECT_EQ(noted.error().code, Errc::kCancelled);
}

TEST_F(NoteStreamsTest, ForgetsWithTheTransactionWhatWasSeen) {
  EXPECT_FALSE(seen_before("a"));
  EXPECT_TRUE(seen_before("a"));
  state->roll_back();
  ASSERT_TRUE(state->begin());
  EXPECT_FALSE(seen_before("a"));
}

TEST(SeenNames, KnowsANameAgainAndTakesNoOtherForIt) {
  detail::SeenNames seen(1U << 14U);
  for (int n = 0; n < 1000; ++n) {
    EXPECT_FALSE(seen.insert("stream-" + std::to_string(n))) << n;
    EXPECT_FALSE(seen.insert(std::string(static_cast<std::size_t>(n), 'x') + '\0')) << n;
  }
  int known = 0;
  for (int n = 0; n < 1000; ++n) {
    known += seen.insert("stream-" + std::to_string(n)) ? 1 : 0;
  }
  EXPECT_EQ(known, 1000);
}

TEST(SeenNames, KnowsNamesWhileItGrows) {
  detail::SeenNames seen(1U << 20U);
  int known = 0;
  for (int n = 0; n < 100'000; ++n) {
    EXPECT_FALSE(seen.insert("stream-" + std::to_string(n))) << n;
    known += seen.insert("stream-" + std::to_string(n / 2)) ? 1 : 0;
  }
  EXPECT_GT(known, 90'000);
}

TEST(SeenNames, ForgetsHardlyOneUntilThreeQuartersAreTaken) {
  constexpr int kEntries = 1 << 14;
  constexpr int kNames = kEntries * 3 / 4;
  detail::SeenNames seen(kEntries);
  for (int n = 0; n < kNames; ++n) {
    EXPECT_FALSE(seen.insert("stream-" + std::to_string(n))) << n;
  }
  int known = 0;
  for (int n = 0; n < kNames; ++n) {
    known += seen.insert("stream-" + std::to_string(n)) ? 1 : 0;
  }
  EXPECT_GT(known, kNames * 999 / 1000);
}

TEST(SeenNames, ForgetsSomeNamesWhenThereAreMoreThanItHolds) {
  detail::SeenNames seen(1024);
  for (int round = 0; round < 2; ++round) {
    int known = 0;
    for (int n = 0; n < 1500; ++n) {
      known += seen.insert("stream-" + std::to_string(n)) ? 1 : 0;
    }
    EXPECT_EQ(known > 0, round == 1);
    EXPECT_LT(known, 1500);
  }
}

TEST_F(NoteStreamsTest, TheTableOfLimitsAnswersAsTheState) {
  SeededRandom random(3);
  for (int n = 0; n < 500; ++n) {
    const auto name = "s" + std::to_string(n);
    const auto handle = state->handle_of(name);
    OriginalData limits;
    if (n % 3 == 0) {
      limits.max_age_seconds = 60;
    }
    ASSERT_TRUE(state->set_limits(handle, limits));
    if (n % 7 == 0) {
      ASSERT_TRUE(state->set_tombstone(handle));
    }
    const auto discard = static_cast<std::int64_t>(random.below(3));
    const auto maybe = discard + static_cast<std::int64_t>(random.below(3));
    ASSERT_TRUE(state->set_calculated(handle, StreamStatus::kActive, DiscardPoint(discard),
                                      DiscardPoint(maybe)));
    if (n % 5 == 0) {
      ASSERT_TRUE(state->set_metastream_discard(state->handle_of("$$" + name), DiscardPoint(2)));
    }
    if (n % 11 == 0) {
      ASSERT_TRUE(state->set_metastream_tombstone(state->handle_of("$$" + name)));
    }
  }
  const auto table = detail::LimitsTable::load(*state, [] { return Result<void>{}; }).value();
  ASSERT_NE(table, nullptr);
  const RunRules rules{LogPosition(1000), Ticks(1000 * kTicksPerSecond), false};
  for (int n = 0; n < 510; ++n) {
    for (const bool metastream : {false, true}) {
      const auto name = (metastream ? "$$s" : "s") + std::to_string(n);
      const auto expected = state->limits_of(name).value().value_or(StreamLimits{});
      StreamLimits found;
      table->find(colliding_hash(name), metastream, found);
      for (const std::int64_t number : {0, 1, 2, 3, 4, 5}) {
        for (const std::int64_t age : {0, 100}) {
          for (const int flags : {0x27, 0x01, 0x2F}) {
            log::Prepare prepare;
            prepare.position = LogPosition(10);
            prepare.flags = static_cast<std::uint16_t>(flags);
            prepare.expected_version = number - 1;
            prepare.timestamp = Ticks((1000 - age) * kTicksPerSecond);
            EXPECT_EQ(keeps_prepare(prepare, metastream, found, rules),
                      keeps_prepare(prepare, metastream, expected, rules))
                << name << " " << number << " " << age << " " << flags;
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace verger::scavenge
