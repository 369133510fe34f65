// For every record of every fixture: what explain says is what the server then did.
#include "engine/scavenge/explain.h"

#include <gmock/gmock.h>
#include <map>
#include <set>

#include "tests/integration/preview/preview_fixture.h"

namespace verger::test {
namespace {

using Entries = std::multiset<std::tuple<std::uint64_t, std::int64_t, std::int64_t>>;

std::map<std::int64_t, std::string> records_of(const DatabaseSnapshot& snapshot) {
  std::map<std::int64_t, std::string> records;
  for (const auto& chunk : snapshot.chunks) {
    records.insert(chunk.records.begin(), chunk.records.end());
  }
  return records;
}

class ExplainFixture : public PreviewFixture {};

TEST_P(ExplainFixture, SaysOfEveryRecordWhatTheServerDid) {
  const auto files = prepared();
  const auto opened = preview_of(*files);
  ASSERT_TRUE(opened) << opened.error().message;
  scavenge::Explainer explainer(*(*opened)->preview);
  const auto point = fixture.point()->position.value();
  for (const auto& after : fixture.afters()) {
    const auto left = records_of(take_snapshot(*fixture.unpack(after), "/db"));
    int stay = 0;
    int go = 0;
    for (const auto& [position, framed] : records_of(take_snapshot(*files, "/db"))) {
      if (position >= point) {
        continue;  // what the server wrote later does not matter here
      }
      const auto explained = explainer.record(LogPosition(position));
      ASSERT_TRUE(explained) << explained.error().message;
      const bool stays = left.contains(position);
      EXPECT_EQ(explained->stays, stays) << explained->stream << "@" << explained->number.value()
                                         << " at " << position << ": " << explained->reason;
      EXPECT_NE(explained->kept_by.has_value(), explained->removed_by.has_value());
      EXPECT_FALSE(explained->reason.empty());
      EXPECT_EQ(explained->missing.empty(), !explained->stays) << explained->reason;
      ++(explained->stays ? stay : go);
    }
    RecordProperty("stay", stay);
    RecordProperty("go", go);
  }
}

TEST_P(ExplainFixture, SaysOfEveryTableEntryWhatTheScavengeDoes) {
  const auto files = prepared();
  Entries said;
  const auto before = take_snapshot(*files, "/db").entries;
  {
    const auto opened = preview_of(*files);
    ASSERT_TRUE(opened) << opened.error().message;
    const auto& state = (*opened)->preview->state();
    scavenge::Explainer explainer(*(*opened)->preview);
    for (const auto& entry : before) {
      const auto record = explainer.record(entry.position);
      if (!record) {
        ASSERT_EQ(record.error().code, Errc::kNotFound) << record.error().message;
        // No name is known here: only that a colliding hash loses its entry.
        if (!state.is_collision_hash(entry.hash)) {
          said.insert({entry.hash.value(), -1, entry.position.value()});
        }
        continue;
      }
      ASSERT_TRUE(record->entry_stays.has_value()) << entry.position.value();
      if (*record->entry_stays) {
        said.insert({entry.hash.value(), entry.number.value(), entry.position.value()});
      }
    }
  }
  const auto result = run_scavenge(*files, "/db", fixture.run());
  ASSERT_TRUE(result) << result.error().message;
  Entries kept;
  for (const auto& entry : take_snapshot(*files, "/db").entries) {
    const bool unknown = said.contains({entry.hash.value(), -1, entry.position.value()});
    kept.insert({entry.hash.value(), unknown ? -1 : entry.number.value(), entry.position.value()});
  }
  std::erase_if(said,
                [&](const auto& one) { return std::get<1>(one) == -1 && !kept.contains(one); });
  EXPECT_EQ(said, kept);
}

TEST_P(ExplainFixture, FindsTheSameByStream) {
  const auto files = prepared();
  const auto opened = preview_of(*files);
  ASSERT_TRUE(opened) << opened.error().message;
  scavenge::Explainer explainer(*(*opened)->preview);
  std::set<std::string> names;
  std::map<std::int64_t, bool> by_position;
  log::LogCursor cursor((*opened)->database->transaction_log(), LogPosition(0),
                        (*opened)->database->transaction_log().end());
  for (;;) {
    const auto record = cursor.next();
    ASSERT_TRUE(record) << record.error().message;
    if (!*record) {
      break;
    }
    if (const auto* prepare = (*record)->prepare()) {
      names.emplace(prepare->stream);
      const auto explained = explainer.record(prepare->position);
      ASSERT_TRUE(explained) << explained.error().message;
      by_position[prepare->position.value()] = explained->stays;
    }
  }
  for (const auto& name : names) {
    const auto explained = explainer.stream(name, EventNumber(0), kDeletedStream, 100'000);
    if (!explained) {
      EXPECT_EQ(explained.error().code, Errc::kNotFound) << explained.error().message;
      continue;
    }
    for (const auto& one : *explained) {
      const auto found = by_position.find(one.position.value());
      EXPECT_EQ(found != by_position.end(), one.in_log);
      if (found != by_position.end()) {
        EXPECT_EQ(found->second, one.stays) << name << "@" << one.number.value();
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Cases, ExplainFixture, testing::ValuesIn(previewed_cases()), case_name);

}  // namespace
}  // namespace verger::test
