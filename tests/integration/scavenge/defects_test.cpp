// Databases on which the server fails.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/scavenge/compare.h"
#include "tests/support/scavenge/fixture_case.h"
#include "tests/support/scavenge/snapshot.h"

namespace verger::test {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// Name and content of every file of the directory.
std::map<std::string, Bytes> contents(FileSystem& files, const Path& directory,
                                      std::string_view prefix) {
  std::map<std::string, Bytes> result;
  const auto entries = files.list(directory).value();
  for (const auto& entry : entries) {
    if (!entry.is_directory && entry.name.starts_with(prefix)) {
      result[entry.name] = read_file(files, directory / entry.name).value();
    }
  }
  return result;
}

TEST(ScavengeDefect, MetadataInATransactionIsNamedAndNothingIsTouched) {
  FixtureCase fixture("fails-metadata-in-transaction");
  const auto files = fixture.unpack("before");
  // Opening for writing may tidy up: what counts is what the scavenge adds to that.
  ASSERT_TRUE(open_database(*files, "/db", fixture.run(), log::Access::kWrite));
  const auto chunks = contents(*files, "/db", "chunk-");
  const auto index = contents(*files, "/db/index", "");
  for (int time = 0; time < 2; ++time) {
    const auto result = run_scavenge(*files, "/db", fixture.run());
    ASSERT_FALSE(result);
    EXPECT_EQ(result.error().code, Errc::kUnsupported);
    EXPECT_THAT(result.error().message, HasSubstr("\"$$bad\" at log position "));
    EXPECT_EQ(contents(*files, "/db", "chunk-"), chunks);
    EXPECT_EQ(contents(*files, "/db/index", ""), index);
  }
  EXPECT_THAT(state_differences(read_state(*files, "/db/index"),
                                read_state(*fixture.unpack("after"), "/db/index")),
              IsEmpty())
      << "the state stands where the server's stands";
}

TEST(ScavengeDefect, EntriesWithoutRecordsHaveNoOwnerAfterALateCollision) {
  FixtureCase fixture("fails-late-collision");
  const auto files = fixture.unpack("before");
  const auto before = take_snapshot(*files, "/db");
  const auto result = run_scavenge(*files, "/db", fixture.run());
  ASSERT_TRUE(result) << result.error().message;
  const auto after = take_snapshot(*files, "/db");

  EXPECT_THAT(after.state.at("HashCollisions"),
              testing::ElementsAre("c2ffqlptrdepdm", "cedldnj4ssvq4i"));
  EXPECT_THAT(after.state.at("Checkpoint"), testing::ElementsAre(HasSubstr("\"Done\"")));
  // Each index entry below the point whose hash collides has a record now.
  const auto database = open_database(*files, "/db", fixture.run(), log::Access::kReadOnly).value();
  const auto collided = database->stream_index().hash("c2ffqlptrdepdm");
  ASSERT_EQ(collided, database->stream_index().hash("cedldnj4ssvq4i"));
  std::size_t dropped = 0;
  for (const auto& entry : before.entries) {
    if (entry.hash == collided && entry.position < fixture.point()->position) {
      const bool kept = std::ranges::binary_search(after.entries, entry);
      dropped += kept ? 0 : 1;
      if (kept) {
        EXPECT_TRUE(database->transaction_log().has_record_at(entry.position).value());
      }
    }
  }
  EXPECT_GT(dropped, 0U);
  // Both streams are readable: the one with $maxCount 2 shows its last two events.
  const auto counted = database->read_forward("c2ffqlptrdepdm", EventNumber(0), 1000).value();
  EXPECT_EQ(counted.events.size(), 2U);
  const auto aged = database->read_backward("cedldnj4ssvq4i", kDeletedStream, 1000).value();
  EXPECT_EQ(aged.status, streams::StreamStatus::kSuccess);
}

}  // namespace
}  // namespace verger::test
