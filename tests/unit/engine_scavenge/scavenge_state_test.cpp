#include "engine/scavenge/scavenge_state.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/memory_file_system.h"
#include "engine/base/sqlite.h"
#include "tests/unit/engine_scavenge/colliding_hash.h"

namespace verger::scavenge {
namespace {

class ScavengeStateTest : public testing::Test {
 protected:
  void open(StateOptions options = {}) {
    state.reset();
    auto opened = ScavengeState::open(files, "/db/index", &colliding_hash, options);
    ASSERT_TRUE(opened) << opened.error().message;
    state = std::move(*opened);
  }
  void note(std::string_view name) { ASSERT_TRUE(state->note_stream(name)); }
  std::vector<std::string> active(std::size_t page = 100) {
    std::vector<std::string> names;
    std::optional<StreamHandle> from;
    for (;;) {
      const auto rows = state->active_streams(from ? &*from : nullptr, page).value();
      if (rows.empty()) {
        return names;
      }
      for (const auto& row : rows) {
        names.push_back(row.handle.by_name()
                            ? row.handle.name
                            : std::to_string(static_cast<std::int64_t>(row.handle.hash.value())));
      }
      from = rows.back().handle;
    }
  }

  MemoryFileSystem files;
  std::unique_ptr<ScavengeState> state;
};

TEST_F(ScavengeStateTest, HasTheServersSettings) {
  open();
  state.reset();
  auto database =
      sqlite::Database::open_snapshot(files, "/db/index/scavenging/scavenging.db").value();
  EXPECT_EQ(database.query_int("PRAGMA page_size").value(), 16384);
  EXPECT_EQ(database.query_text("PRAGMA journal_mode").value(), "wal");
  EXPECT_EQ(database.query_int("PRAGMA user_version").value(), 0);
  EXPECT_EQ(database.query_int("SELECT version FROM SchemaVersion").value(), 1);
  EXPECT_EQ(database.query_int("SELECT count(*) FROM sqlite_master WHERE type = 'table'").value(),
            10);
}

TEST_F(ScavengeStateTest, CompletesTablesOfAServerThatDiedWhileItMadeThem) {
  open();
  state.reset();
  {
    auto database =
        sqlite::Database::open(files, "/db/index/scavenging/scavenging.db", {.own_state = false})
            .value();
    ASSERT_TRUE(
        database.execute("DROP TABLE HashUsers; DROP TABLE Checkpoint; "
                         "DROP INDEX OriginalStreamDatasKeyStatus;"));
  }
  open();
  EXPECT_EQ(state->checkpoint().value(), std::nullopt);
  state.reset();
  auto database =
      sqlite::Database::open_snapshot(files, "/db/index/scavenging/scavenging.db").value();
  EXPECT_EQ(database.query_int("SELECT count(*) FROM sqlite_master WHERE name NOT LIKE 'sqlite_%'")
                .value(),
            12);
}

TEST_F(ScavengeStateTest, RefusesAnotherPageSize) {
  open({.page_size = 4096});
  state.reset();
  const auto opened = ScavengeState::open(files, "/db/index", &colliding_hash, {});
  ASSERT_FALSE(opened);
  EXPECT_EQ(opened.error().code, Errc::kRefused);
  EXPECT_THAT(opened.error().message, testing::HasSubstr("page_size is 4096"));
}

TEST_F(ScavengeStateTest, KeepsTheCheckpoint) {
  open();
  EXPECT_EQ(state->checkpoint().value(), std::nullopt);
  const Checkpoint checkpoint{
      .point = {LogPosition(9), EventNumber(1), Ticks(637'769'376'000'000'000), 3},
      .stage = Stage::kExecutingChunks,
      .done_chunk = 4,
      .done_stream = {}};
  ASSERT_TRUE(state->set_checkpoint(checkpoint));
  open();
  EXPECT_EQ(state->checkpoint().value(), checkpoint);
}

TEST_F(ScavengeStateTest, FindsCollisionsAndMovesRows) {
  open();
  note("a|1");
  ASSERT_TRUE(state->set_limits(state->handle_of("a|1"), {.max_count = 3}));
  ASSERT_TRUE(state->set_metastream_tombstone(state->handle_of("a|1")));
  EXPECT_FALSE(state->handle_of("a|1").by_name());
  EXPECT_EQ(state->note_stream("a|1").value(), std::nullopt);

  EXPECT_EQ(state->note_stream("a|2").value(), "a|1") << "the first user of the hash is named";
  EXPECT_TRUE(state->is_collision("a|1"));
  EXPECT_TRUE(state->handle_of("a|2").by_name());
  EXPECT_EQ(active(), (std::vector<std::string>{"a|1"}));
  EXPECT_EQ(state->note_stream("a|3").value(), "a|1");
  EXPECT_EQ(state->note_stream("a|2").value(), std::nullopt) << "known by now";
  EXPECT_EQ(state->count_rows("MetastreamDataCollisions").value(), 1);
  EXPECT_EQ(state->count_rows("MetastreamDatas").value(), 0);
  EXPECT_EQ(state->count_rows("HashUsers").value(), 1);
  EXPECT_EQ(state->count_rows("HashCollisions").value(), 3);
}

TEST_F(ScavengeStateTest, ForgetsCollisionsThatAreRolledBack) {
  open();
  note("a|1");
  ASSERT_TRUE(state->begin());
  note("a|2");
  EXPECT_TRUE(state->is_collision("a|1"));
  state->roll_back();
  EXPECT_FALSE(state->has_collisions());
  EXPECT_EQ(state->note_stream("a|2").value(), "a|1");
}

TEST_F(ScavengeStateTest, OverwritesLimitsAndKeepsDiscardPoints) {
  open();
  const auto stream = state->handle_of("s");
  ASSERT_TRUE(state->set_limits(stream, {.max_count = 3}));
  ASSERT_TRUE(
      state->set_calculated(stream, StreamStatus::kSpent, DiscardPoint(4), DiscardPoint(5)));
  EXPECT_THAT(active(), testing::IsEmpty());
  ASSERT_TRUE(state->set_limits(stream, {.max_age_seconds = 60}));
  const auto rows = state->active_streams(nullptr, 10).value();
  ASSERT_EQ(rows.size(), 1U);
  EXPECT_EQ(rows[0].data, (OriginalData{.max_age_seconds = 60,
                                        .discard = DiscardPoint(4),
                                        .maybe = DiscardPoint(5),
                                        .status = StreamStatus::kActive}));
}

TEST_F(ScavengeStateTest, VisitsNamesFirstThenHashesAsSignedNumbers) {
  open();
  const auto by_hash = [](std::uint64_t hash) { return StreamHandle{StreamHash(hash), {}}; };
  for (const std::uint64_t hash :
       {std::uint64_t{0}, std::uint64_t{7}, std::uint64_t{1} << 63U, ~std::uint64_t{0}}) {
    ASSERT_TRUE(state->set_tombstone(by_hash(hash)));
  }
  for (const auto* name : {"b|1", "a|2", "Z"}) {
    ASSERT_TRUE(state->set_tombstone({StreamHash(1), name}));
  }
  const std::vector<std::string> expected{"Z",  "a|2", "b|1", "-9223372036854775808",
                                          "-1", "0",   "7"};
  for (const std::size_t page : {1U, 2U, 3U, 100U}) {
    EXPECT_EQ(active(page), expected) << page;
  }
}

TEST_F(ScavengeStateTest, AddsUpWeightsOfPhysicalChunks) {
  open();
  ASSERT_TRUE(state->add_weight(0, 2));
  ASSERT_TRUE(state->add_weight(0, 1));
  ASSERT_TRUE(state->add_weight(2, 4));
  ASSERT_TRUE(state->add_weight(3, 8));
  EXPECT_EQ(state->weight(0, 2).value(), 7);
  ASSERT_TRUE(state->reset_weights(0, 2));
  EXPECT_EQ(state->weight(0, 2).value(), 0);
  EXPECT_TRUE(state->any_weight().value());
  ASSERT_TRUE(state->reset_weights(3, 3));
  EXPECT_FALSE(state->any_weight().value());
}

TEST_F(ScavengeStateTest, OverwritesTimeRanges) {
  open();
  EXPECT_EQ(state->time_range(3).value(), std::nullopt);
  ASSERT_TRUE(state->set_time_range(3, {Ticks(1), Ticks(9)}));
  ASSERT_TRUE(state->set_time_range(3, {Ticks(2), Ticks(4)}));
  EXPECT_EQ(state->time_range(3).value(), (TimeRange{Ticks(2), Ticks(4)}));
}

TEST_F(ScavengeStateTest, CursorFindsRowsGoingDownAcrossTheSign) {
  open();
  std::vector<std::uint64_t> hashes;
  for (std::uint64_t n = 0; n < 64; ++n) {
    hashes.push_back(n * 0x0400'0000'0000'0000U + n);
  }
  for (const auto hash : hashes) {
    if (hash % 2 == 0) {
      ASSERT_TRUE(state->set_tombstone({StreamHash(hash), {}}));
    } else if (hash % 3 == 0) {
      ASSERT_TRUE(state->set_metastream_discard({StreamHash(hash), {}}, DiscardPoint(5)));
    }
  }
  for (const std::size_t stride : {1U, 5U, 33U}) {
    auto cursor = state->limits_cursor();
    for (std::size_t n = 0; n < hashes.size(); n += stride) {
      const auto hash = StreamHash(hashes[hashes.size() - 1 - n]);
      const auto* found = cursor->seek(hash).value();
      const auto expected = state->limits_by_hash(hash).value();
      ASSERT_EQ(found != nullptr, expected.has_value()) << hash.value();
      if (found != nullptr) {
        EXPECT_EQ(*found, *expected);
        EXPECT_EQ(cursor->seek(hash).value(), found) << "asked again";
      }
      EXPECT_EQ(
          cursor->seek(StreamHash(hash.value() - (hash.value() == 0 ? 0 : 1))).value() != nullptr,
          hash.value() == 0 && found != nullptr);
    }
  }
}

TEST_F(ScavengeStateTest, VisitsTheSameHoweverManyAreActiveAndHowTheyLie) {
  open();
  std::vector<std::string> expected;
  const auto add = [&](std::int64_t key, bool is_active) {
    const StreamHandle stream{StreamHash(static_cast<std::uint64_t>(key)), {}};
    ASSERT_TRUE(state->set_limits(stream, {.max_count = 3}));
    if (is_active) {
      expected.push_back(std::to_string(key));
    } else {
      ASSERT_TRUE(state->set_calculated(stream, StreamStatus::kArchived, {}, {}));
    }
  };
  std::int64_t key = std::numeric_limits<std::int64_t>::min();
  for (const int others : {0, 1, 2, 9, 40, 0}) {  // between two that are active
    for (int n = 0; n < 12; ++n) {
      for (int i = 0; i < others; ++i) {
        add(key++, false);
      }
      add(key, true);
      key += std::int64_t{1} << 57U;
    }
  }
  add(std::numeric_limits<std::int64_t>::max(), true);
  for (const std::size_t page : {1U, 2U, 5U, 1024U}) {
    SCOPED_TRACE(page);
    open();
    EXPECT_EQ(active(page), expected);
  }
}

TEST_F(ScavengeStateTest, CursorOfOthersLeavesActiveStreamsOut) {
  open();
  std::vector<std::uint64_t> hashes;
  for (std::uint64_t n = 0; n < 64; ++n) {
    hashes.push_back(n * 0x0400'0000'0000'0000U + n);
    const StreamHandle stream{StreamHash(hashes.back()), {}};
    if (n % 4 != 3) {
      ASSERT_TRUE(state->set_tombstone(stream));
      ASSERT_TRUE(
          state->set_calculated(stream, static_cast<StreamStatus>(1 + n % 4), DiscardPoint(2), {}));
    }
    if (n % 3 == 0) {  // some have the hash of an original stream
      ASSERT_TRUE(state->set_metastream_discard(stream, DiscardPoint(5)));
    }
  }
  const auto others = state->limits_cursor_of_others().value();
  for (std::size_t n = hashes.size(); n-- > 0;) {
    const auto hash = StreamHash(hashes[n]);
    const auto* found = others->seek(hash).value();
    const bool is_active = n % 4 == 0;
    const bool metastream = n % 3 == 0;
    ASSERT_EQ(found != nullptr, metastream || n % 4 == 1 || n % 4 == 2) << n;
    if (found != nullptr) {
      EXPECT_EQ(*found, state->limits_by_hash(hash).value()) << n << " " << is_active;
    }
  }
}

TEST_F(ScavengeStateTest, CursorOfOthersIsRefusedBesideAnUnknownStatus) {
  open();
  ASSERT_TRUE(state->set_tombstone(state->handle_of("s")));
  EXPECT_NE(state->limits_cursor_of_others().value(), nullptr);
  ASSERT_TRUE(state->set_calculated(state->handle_of("s"), static_cast<StreamStatus>(4), {}, {}));
  EXPECT_EQ(state->limits_cursor_of_others().value(), nullptr);
}

TEST_F(ScavengeStateTest, CleansWhatIsFinished) {
  open();
  ASSERT_TRUE(state->set_metastream_tombstone(state->handle_of("$$a")));
  int n = 0;
  for (const auto status : {StreamStatus::kActive, StreamStatus::kArchived, StreamStatus::kSpent}) {
    const auto stream = state->handle_of("s" + std::to_string(n++));
    ASSERT_TRUE(state->set_tombstone(stream));
    ASSERT_TRUE(state->set_calculated(stream, status, {}, {}));
  }
  ASSERT_TRUE(state->delete_metastreams());
  ASSERT_TRUE(state->delete_originals(false));
  EXPECT_EQ(state->count_rows("OriginalStreamDatas").value(), 2);
  EXPECT_EQ(state->count_rows("MetastreamDatas").value(), 0);
  ASSERT_TRUE(state->delete_originals(true));
  EXPECT_EQ(state->count_rows("OriginalStreamDatas").value(), 1);
}

}  // namespace
}  // namespace verger::scavenge
