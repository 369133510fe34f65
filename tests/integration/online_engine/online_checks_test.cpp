// What an online scavenge refuses, and what it leaves to the server.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/base/slow_file_system.h"
#include "engine/log/pending_truncation.h"
#include "engine/online/comparison.h"
#include "engine/online/installation.h"
#include "engine/online/native_run.h"
#include "engine/redaction/chunk_switch.h"
#include "tests/support/online/online_run.h"
#include "tests/support/results.h"
#include "tests/support/scavenge/fixture_case.h"
#include "tests/support/scavenge/snapshot.h"

namespace verger::test {
namespace {

using online_scavenge::Preparation;
using online_scavenge::PreparedChunk;
using testing::HasSubstr;

/// A record of a chunk, on its way into another file.
struct Kept {
  LogPosition position;
  Bytes framed;
};

class OnlineChecks : public testing::Test {
 protected:
  static Result<void> drive(Job& job) {
    while (true) {
      VERGER_TRY(const auto outcome, job.step({}));
      if (outcome.kind == StepOutcome::Kind::kDone) {
        return {};
      }
    }
  }
  Result<void> shadow(FileSystem& files) {
    online_scavenge::ShadowJob job({files, clock_, random_, null_log()}, place_);
    return drive(job);
  }
  Preparation prepare() {
    ok(shadow(*files_));
    online_scavenge::NativeRunJob job(machine_, place_, *fixture_.point(), {});
    ok(drive(job));
    EXPECT_EQ(job.stage(), scavenge::Stage::kMergingChunks);
    return job.preparation();
  }
  Result<void> compare(const Preparation& preparation) {
    online_scavenge::ComparisonJob job(machine_, place_, preparation);
    return drive(job);
  }
  Path made(const PreparedChunk& chunk) const {
    return online_scavenge::shadow_directory("/db") / chunk.made.name;
  }
  /// Writes the chunk that was made once more, with other records.
  void rewrite(PreparedChunk& chunk, const std::function<void(std::vector<Kept>&)>& change) {
    auto old = value(log::Chunk::open_completed(*files_, made(chunk)));
    const auto header = old->header();
    std::vector<Kept> records;
    auto scanner = value(log::ChunkScanner::open(old, old->start_position()));
    while (const auto record = value(scanner.next())) {
      records.push_back({record->position(), Bytes(record->framed.begin(), record->framed.end())});
    }
    change(records);
    auto writer = value(log::ChunkWriter::create(*files_, online_scavenge::shadow_directory("/db"),
                                                 "other.tmp", header));
    for (const auto& record : records) {
      ok(writer.append(record.position, record.framed));
    }
    const auto finished = value(writer.finish());
    old.reset();
    ok(files_->set_read_only(made(chunk), false));
    ok(files_->rename(finished.path, made(chunk)));
    chunk.made = value(online_scavenge::describe_chunk(*files_, made(chunk)));
    chunk.records_kept = records.size();
  }
  void expect_unlike(const Preparation& preparation, std::string_view what) {
    const auto compared = compare(preparation);
    ASSERT_FALSE(compared);
    EXPECT_EQ(compared.error().code, Errc::kCorruption) << compared.error().message;
    EXPECT_THAT(compared.error().message, HasSubstr(what));
  }

  FixtureCase fixture_{"basic-limits"};
  std::unique_ptr<MemoryFileSystem> files_ = fixture_.unpack("before");
  ManualClock clock_;
  SeededRandom random_{3};
  online_scavenge::Machine machine_{*files_, clock_, random_, null_log()};
  online_scavenge::DatabasePlace place_{.database = "/db"};
};

TEST_F(OnlineChecks, ARecordThatNoRuleRemovesMustNotBeMissing) {
  auto preparation = prepare();
  rewrite(preparation.chunks.at(0), [](std::vector<Kept>& records) {
    ASSERT_GT(records.size(), 2U);
    records.erase(records.begin() + 1);
  });
  expect_unlike(preparation, "is missing, and no rule removes it");
}

TEST_F(OnlineChecks, EveryByteOfARecordCounts) {
  auto preparation = prepare();
  rewrite(preparation.chunks.at(0), [](std::vector<Kept>& records) {
    // Of the last bytes before the length, where data or metadata are.
    auto& framed = records.at(0).framed;
    framed[framed.size() - 5] ^= std::byte{1};
  });
  expect_unlike(preparation, "is not the node's");
}

TEST_F(OnlineChecks, ARecordMustNotBeAdded) {
  auto preparation = prepare();
  rewrite(preparation.chunks.at(0), [](std::vector<Kept>& records) {
    auto again = records.back();
    again.position = again.position + static_cast<std::int64_t>(again.framed.size());
    records.push_back(std::move(again));
  });
  const auto compared = compare(preparation);
  ASSERT_FALSE(compared);
  EXPECT_EQ(compared.error().code, Errc::kCorruption);
}

TEST_F(OnlineChecks, ThePositionMapMustHaveEachRecord) {
  auto preparation = prepare();
  rewrite(preparation.chunks.at(0), [](std::vector<Kept>& records) {
    records.back().position = records.back().position + 1;
  });
  expect_unlike(preparation, "the position map does not have the record");
}

TEST_F(OnlineChecks, ANewChunkMustBeTheOneThatWasMade) {
  auto preparation = prepare();
  preparation.chunks.at(0).made.chunk_id = random_.uuid();
  expect_unlike(preparation, "header");
}

TEST_F(OnlineChecks, ADamagedNewChunkIsFound) {
  const auto preparation = prepare();
  const auto path = made(preparation.chunks.at(0));
  ok(files_->set_read_only(path, false));
  {
    const auto file = value(files_->open(path, OpenMode::kReadWrite));
    std::array<std::byte, 1> byte{};
    ok(file->read_exact(300, byte));
    byte[0] ^= std::byte{1};
    ok(file->write_at(300, byte));
  }
  const auto compared = compare(preparation);
  ASSERT_FALSE(compared);
  EXPECT_EQ(compared.error().code, Errc::kCorruption);
}

TEST_F(OnlineChecks, TheServersChunkMustBeTheOneThatWasScavenged) {
  const auto preparation = prepare();
  const auto& chunk = preparation.chunks.at(0);
  ok(files_->remove(Path("/db") / chunk.source.name));
  ok(files_->link(made(chunk), Path("/db") / chunk.source.name));
  const auto compared = compare(preparation);
  ASSERT_FALSE(compared);
  EXPECT_EQ(compared.error().code, Errc::kConflict);
}

TEST_F(OnlineChecks, TwoFileSystemsAreNotSupported) {
  SlowFileSystem without_links(*files_, [] {});
  const auto made = shadow(without_links);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::kUnsupported);
}

TEST_F(OnlineChecks, ALogThatIsToBeCutIsLeftAlone) {
  ok(log::note_truncation(*files_, "/db", LogPosition(4096)));
  const auto made = shadow(*files_);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::kRefused);
}

TEST_F(OnlineChecks, AFullDiskChangesNothing) {
  const auto before = take_snapshot(*files_, "/db");
  files_->set_free_space(20'000);
  const auto live = value(open_database(*files_, "/db", fixture_.run(), log::Access::kWrite));
  const auto outcome = run_online(*files_, "/db", *live, {.point = *fixture_.point()});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kNoSpace) << outcome.error().message;
  files_->set_free_space(std::nullopt);
  ok(online_scavenge::remove_shadow(*files_, "/db"));
  const auto after = take_snapshot(*files_, "/db");
  ASSERT_EQ(after.chunks.size(), before.chunks.size());
  for (std::size_t n = 0; n < after.chunks.size(); ++n) {
    EXPECT_EQ(after.chunks[n].version, before.chunks[n].version);
    EXPECT_TRUE(after.chunks[n].records == before.chunks[n].records);
  }
}

TEST_F(OnlineChecks, WhatWasPreparedIsOfNoUseAfterAnotherScavenge) {
  auto preparation = prepare();
  ok(compare(preparation));
  EXPECT_TRUE(value(online_scavenge::find_resumable(*files_, place_)));
  value(run_scavenge(*files_, "/db", fixture_.run()));
  EXPECT_FALSE(value(online_scavenge::find_resumable(*files_, place_)));
  preparation.compared = true;
  ok(online_scavenge::finish_state(*files_, "/db", preparation, {}, &index::hash_stream));
  const auto installed = online_scavenge::install_state(machine_, place_, preparation);
  ASSERT_FALSE(installed);
  EXPECT_EQ(installed.error().code, Errc::kConflict);
}

TEST_F(OnlineChecks, AChunkThatWasReplacedMeanwhileIsLeftToTheServer) {
  auto own = fixture_.unpack("before");
  value(run_scavenge(*own, "/db", fixture_.run()));
  const auto whole = take_snapshot(*own, "/db");
  auto live = value(open_database(*files_, "/db", fixture_.run(), log::Access::kWrite));
  std::int32_t replaced = -1;
  const auto outcome =
      value(run_online(*files_, "/db", *live,
                       {.point = *fixture_.point(), .switches = [&](const PreparedChunk& one) {
                          if (replaced < 0) {
                            // As a redaction does: the same records in the next version.
                            replaced = one.start;
                            const auto bytes =
                                value(read_file(*files_, Path("/db") / one.source.name));
                            ok(write_file_durably(*files_, "/db/copy.redact", bytes));
                            ok(files_->rename("/db/copy.redact", "/db/copy.redact.tmp"));
                            redaction::ChunkSwitchJob job(*files_, live->transaction_log(),
                                                          one.source.name, "copy.redact.tmp");
                            ok(drive(job));
                            EXPECT_EQ(job.result(), redaction::SwitchResult::kSuccess);
                            return false;
                          }
                          return true;
                        }}));
  EXPECT_EQ(outcome.left, std::set<std::int32_t>{replaced});
  live.reset();
  ok(online_scavenge::remove_shadow(*files_, "/db"));
  EXPECT_EQ(value(run_scavenge(*files_, "/db", fixture_.run())).progress.chunks_executed, 1U);
  const auto after = take_snapshot(*files_, "/db");
  ASSERT_EQ(after.chunks.size(), whole.chunks.size());
  for (std::size_t n = 0; n < after.chunks.size(); ++n) {
    EXPECT_TRUE(after.chunks[n].records == whole.chunks[n].records);
  }
  EXPECT_TRUE(after.entries == whole.entries);
}

TEST(OnlineDefects, ARecordOnWhichTheServerFailsIsNamedAndNothingIsTouched) {
  FixtureCase fixture("fails-metadata-in-transaction");
  const auto files = fixture.unpack("before");
  const auto live = value(open_database(*files, "/db", fixture.run(), log::Access::kWrite));
  const auto before = take_snapshot(*files, "/db");
  const auto outcome = run_online(*files, "/db", *live, {.point = *fixture.point()});
  ASSERT_FALSE(outcome);
  EXPECT_EQ(outcome.error().code, Errc::kUnsupported);
  EXPECT_THAT(outcome.error().message, HasSubstr("\"$$bad\" at log position "));
  ok(online_scavenge::remove_shadow(*files, "/db"));
  const auto after = take_snapshot(*files, "/db");
  EXPECT_EQ(after.state, before.state);
  ASSERT_EQ(after.chunks.size(), before.chunks.size());
  for (std::size_t n = 0; n < after.chunks.size(); ++n) {
    EXPECT_EQ(after.chunks[n].version, before.chunks[n].version);
  }
}

TEST(OnlineDefects, ALateCollisionGivesWhatOneScavengeOfTheEngineGives) {
  FixtureCase fixture("fails-late-collision");
  const auto own = fixture.unpack("before");
  value(run_scavenge(*own, "/db", fixture.run()));
  const auto whole = take_snapshot(*own, "/db");
  const auto files = fixture.unpack("before");
  auto live = value(open_database(*files, "/db", fixture.run(), log::Access::kWrite));
  value(run_online(*files, "/db", *live, {.point = *fixture.point()}));
  live.reset();
  value(run_scavenge(*files, "/db", fixture.run()));
  ok(online_scavenge::remove_shadow(*files, "/db"));
  const auto after = take_snapshot(*files, "/db");
  EXPECT_EQ(after.state, whole.state);
  EXPECT_TRUE(after.entries == whole.entries);
  ASSERT_EQ(after.chunks.size(), whole.chunks.size());
  for (std::size_t n = 0; n < after.chunks.size(); ++n) {
    EXPECT_TRUE(after.chunks[n].records == whole.chunks[n].records);
  }
}

TEST_F(OnlineChecks, WhatIsWrittenMeanwhileBelongsToTheNextPoint) {
  auto own = fixture_.unpack("before");
  value(run_scavenge(*own, "/db", fixture_.run()));
  const auto whole = take_snapshot(*own, "/db");
  auto live = value(open_database(*files_, "/db", fixture_.run(), log::Access::kWrite));
  // Streams that have events below the point.
  std::vector<std::string> streams;
  log::LogCursor cursor(live->transaction_log(), LogPosition(0), fixture_.point()->position);
  while (const auto record = value(cursor.next())) {
    const auto* prepare = record->prepare();
    if (prepare != nullptr && !prepare->stream.starts_with('$') &&
        std::ranges::find(streams, prepare->stream) == streams.end()) {
      streams.emplace_back(prepare->stream);
    }
  }
  ASSERT_GT(streams.size(), 2U);
  bool is_written = false;
  value(run_online(*files_, "/db", *live,
                   {.point = *fixture_.point(), .switches = [&](const PreparedChunk&) {
                      if (!is_written) {
                        is_written = true;
                        for (const auto& stream : streams) {
                          // Some are deleted already: that is refused.
                          const auto deleted = live->hard_delete(stream, -2);
                          if (deleted) {
                            ok(live->commit_up_to(deleted->end));
                          }
                        }
                      }
                      return true;
                    }}));
  EXPECT_TRUE(is_written);
  live.reset();
  value(run_scavenge(*files_, "/db", fixture_.run()));
  const auto after = take_snapshot(*files_, "/db");
  const auto last = fixture_.point()->position.value() / fixture_.run().chunk_size;
  for (std::size_t n = 0; n < whole.chunks.size() && whole.chunks[n].start <= last; ++n) {
    ASSERT_LT(n, after.chunks.size());
    EXPECT_EQ(after.chunks[n].end, whole.chunks[n].end);
    EXPECT_TRUE(after.chunks[n].records == whole.chunks[n].records);
  }
}

TEST_F(OnlineChecks, WhatWasPreparedIsReadAsItWasWritten) {
  auto preparation = prepare();
  EXPECT_FALSE(preparation.weights.empty());
  preparation.checkpoint_before = R"({"a":"b"})";
  EXPECT_EQ(
      value(online_scavenge::decode_preparation(online_scavenge::encode_preparation(preparation))),
      preparation);
  for (const auto* text : {"", "{}", "[1]", R"({"format":2})"}) {
    EXPECT_EQ(online_scavenge::decode_preparation(text).error().code, Errc::kCorruption) << text;
  }
  auto text = online_scavenge::encode_preparation(preparation);
  const auto name = preparation.chunks.at(0).made.name;
  text.replace(text.find(name), name.size(), "../" + name);
  EXPECT_FALSE(online_scavenge::decode_preparation(text));
}

}  // namespace
}  // namespace verger::test
