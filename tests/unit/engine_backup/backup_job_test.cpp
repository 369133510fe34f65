// Copies of stopped and of running databases, and what is refused.
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>

#include "engine/log/chunk.h"
#include "tests/unit/engine_backup/backup_case.h"

namespace verger::backup {
namespace {

using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// The live chunk's records in a new file, switched in: what a scavenge that removes nothing does.
void rewrite_chunk(BackupCase& backup, ChunkNumber number) {
  auto& log = backup.builder.database().transaction_log();
  const auto chunk = log.chunk_at(LogPosition(std::int64_t{number.value()} * log.chunk_size()));
  auto header = chunk->header();
  header.scavenged = true;
  header.chunk_id = backup.random.uuid();
  auto writer =
      value(log::ChunkWriter::create(backup.disk, "/db", "rewritten.scavenge.tmp", header));
  auto scanner = value(log::ChunkScanner::open(chunk, chunk->start_position()));
  while (const auto record = value(scanner.next())) {
    ok(writer.append(record->position(), record->framed));
  }
  value(log.switch_in_chunk(value(writer.finish()).path));
}

TEST(BackupJob, OfAStoppedDatabaseIsRestoredByteForByte) {
  BackupCase backup;
  backup.fill();
  backup.builder.close();
  const auto source = tree_of(backup.disk, "/db");
  const auto manifest = value(backup.back_up(backup.options(SourceState::kStopped)));
  EXPECT_GT(manifest.files.size(), 10U);
  EXPECT_EQ(manifest.positions.end, manifest.positions.writer);
  ok(backup.restore(manifest, "/restored"));
  auto restored = tree_of(backup.disk, "/restored");
  EXPECT_EQ(checkpoint_in(backup.disk, "/restored/truncate.chk"),
            manifest.positions.writer.value());
  for (const auto& [path, content] : source) {
    if (path != "truncate.chk" && path != "verger.lock") {
      EXPECT_EQ(restored[path], content) << path;
    }
  }
  backup.builder.open();
  expect_restored(backup, manifest, "/again");
}

TEST(BackupJob, OfAnEmptyDatabaseIsRestored) {
  BackupCase backup;
  backup.builder.close();
  const auto manifest = value(backup.back_up(backup.options(SourceState::kStopped)));
  ok(backup.restore(manifest, "/restored"));
  EXPECT_EQ(backup.open("/restored")->transaction_log().end().value(), 0);
}

TEST(BackupJob, WhileEventsAreWrittenIsOneOfAMoment) {
  // Chunks end and begin, and tables are merged, between all steps of the copy.
  int behind = 0;
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    SCOPED_TRACE(seed);
    BackupCase backup({.seed = seed});
    backup.fill(60);
    const auto chunks_before = backup.builder.database().transaction_log().chunks().size();
    SeededRandom when(seed);
    const auto tables = [&] { return value(backup.disk.list("/db/index")).size(); };
    const auto manifest = value(backup.back_up(backup.options(SourceState::kLive), [&] {
      if (when.below(3) == 0 && tables() < 100) {
        backup.builder.write("busy", 2, 1500);
        ok(backup.builder.database().transaction_log().flush_checkpoints());
      }
    }));
    EXPECT_GT(backup.builder.database().transaction_log().chunks().size(), chunks_before);
    behind += manifest.positions.writer < backup.builder.database().transaction_log().end() ? 1 : 0;
    expect_restored(backup, manifest, "/restored");
  }
  EXPECT_GT(behind, 10);
}

TEST(BackupJob, LeavesAChunkOutThatBeginsBehindTheCheckpoints) {
  BackupCase backup;
  backup.fill(40);
  auto& log = backup.builder.database().transaction_log();
  ok(log.flush_checkpoints());
  // Once writer.chk was read, and before the chunks are listed, a chunk ends and the next begins: a
  // server refuses to cut such a copy ("a chunk behind writer.chk").
  const auto written = value(read_file(backup.disk, "/db/writer.chk"));
  bool armed = false;
  int seen = 0;
  bool begun = false;
  backup.disk.set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
    if (armed && operation.kind == "rename" &&
        operation.path.native().starts_with("/repository/tmp") &&
        value(read_file(backup.disk, operation.path)) == written && ++seen == 2) {
      armed = false;  // chaser.chk, with the same number, was copied before
      begun = true;
      ok(log.complete_chunk());
      backup.builder.write("next", 1, 200);
    }
    return std::nullopt;
  });
  auto options = backup.options(SourceState::kLive);
  options.before_checkpoints = [&] {
    armed = true;
    return Result<void>();
  };
  const auto manifest = value(backup.back_up(options));
  backup.disk.set_fault_hook({});
  ASSERT_TRUE(begun);
  EXPECT_EQ(manifest.positions.writer.value(), load_le<std::int64_t>(written.data()));
  const auto last = manifest.positions.writer.value() / manifest.positions.chunk_size;
  EXPECT_TRUE(value(backup.disk.exists(
      Path("/db") / log::chunk_file_name(ChunkNumber(static_cast<std::int32_t>(last + 1)), 0))));
  for (const auto& file : manifest.files) {
    if (const auto name = log::parse_chunk_file_name(file.path)) {
      EXPECT_LE(name->start.value(), last);
    }
  }
  expect_restored(backup, manifest, "/restored");
}

TEST(BackupJob, OfAScavengeDuringTheCopyIsNone) {
  BackupCase backup;
  backup.fill();
  ok(backup.builder.database().transaction_log().flush_checkpoints());
  bool rewritten = false;
  const auto copies_chunks = [&] {
    for (const auto& session : value(backup.repository->sessions())) {
      if (std::ranges::any_of(session.files, [](const BackedUpFile& file) {
            return file.kind == FileKind::kChunk;
          })) {
        return true;
      }
    }
    return false;
  };
  const auto manifest = backup.back_up(backup.options(SourceState::kLive), [&] {
    if (!rewritten && copies_chunks()) {
      rewritten = true;
      rewrite_chunk(backup, ChunkNumber(1));
    }
  });
  ASSERT_TRUE(rewritten);
  ASSERT_FALSE(manifest);
  EXPECT_EQ(manifest.error().code, Errc::kConflict);
  EXPECT_THAT(manifest.error().message, HasSubstr("chunk-000001.000000"));
  EXPECT_THAT(value(backup.repository->generations()), IsEmpty());
  // The next one does not copy again what was stored.
  const auto next = value(backup.back_up(backup.options(SourceState::kLive)));
  EXPECT_GT(backup.progress.reused, backup.progress.copied / 2);
  expect_restored(backup, next, "/restored");
}

TEST(BackupJob, OfAScavengeThatEndedBeforeTheChunksWereCopiedIsNone) {
  BackupCase backup;
  backup.fill();
  ok(backup.builder.database().transaction_log().flush_checkpoints());
  int steps = 0;
  const auto manifest = backup.back_up(backup.options(SourceState::kLive), [&] {
    // The index is being copied: it would be of before, the chunks of afterwards.
    if (++steps == 3) {
      EXPECT_THAT(value(backup.repository->sessions()).at(0).files, IsEmpty());
      rewrite_chunk(backup, ChunkNumber(1));
    }
  });
  ASSERT_GT(steps, 3);
  ASSERT_FALSE(manifest);
  EXPECT_EQ(manifest.error().code, Errc::kConflict);
  EXPECT_THAT(manifest.error().message, HasSubstr("chunk-000001.000000"));
  EXPECT_THAT(value(backup.repository->generations()), IsEmpty());
}

TEST(BackupJob, OfAScavengeDuringTheCopyThatReplacedNoChunkIsNone) {
  const Path state = "/db/index/scavenging/scavenging.db";
  const Bytes before(100'000, std::byte{1});
  Bytes after = before;
  after[70'000] = std::byte{2};
  struct Change {
    std::optional<Bytes> from, to;
  };
  for (const auto& [from, to] :
       {Change{before, after}, Change{before, Bytes(200'000, std::byte{1})},
        Change{std::nullopt, after}, Change{before, before}}) {
    BackupCase backup;
    backup.fill();
    ok(backup.builder.database().transaction_log().flush_checkpoints());
    ok(backup.disk.make_directories(state.parent_path()));
    if (from) {
      ok(write_file_durably(backup.disk, state, *from));
    }
    bool written = false;
    const auto manifest = backup.back_up(backup.options(SourceState::kLive), [&] {
      const auto sessions = value(backup.repository->sessions());
      if (!written && !sessions.empty() &&
          std::ranges::any_of(sessions.front().files, [](const BackedUpFile& file) {
            return file.kind == FileKind::kChunk;
          })) {
        written = true;
        ok(write_file_durably(backup.disk, state, *to));
      }
    });
    ASSERT_TRUE(written);
    ASSERT_EQ(manifest.has_value(), from == to);
    if (!manifest) {
      EXPECT_EQ(manifest.error().code, Errc::kConflict);
      EXPECT_THAT(manifest.error().message, HasSubstr("scavenging.db"));
      EXPECT_THAT(value(backup.repository->generations()), IsEmpty());
    }
  }
}

TEST(BackupJob, SavesCheckpointsOfANodeOfOursBeforeItCopiesThem) {
  BackupCase backup;
  backup.fill(10);
  auto options = backup.options(SourceState::kLive);
  auto& log = backup.builder.database().transaction_log();
  options.before_checkpoints = [&] { return log.flush_checkpoints(); };
  const auto manifest = value(backup.back_up(options));
  EXPECT_EQ(manifest.positions.chaser, log.end());
  expect_restored(backup, manifest, "/restored");
}

TEST(BackupJob, OfARunningNodeHasWhatWasWrittenBeforeItBegan) {
  BackupCase backup;
  backup.fill(10);
  auto& log = backup.builder.database().transaction_log();
  const auto written = log.end();
  ASSERT_LT(checkpoint_in(backup.disk, "/db/chaser.chk"), written.value());
  int steps = 0;
  const auto manifest = value(backup.back_up(backup.options(SourceState::kLive), [&] {
    if (++steps == 20) {
      ok(log.publish_chaser());
    }
  }));
  EXPECT_EQ(manifest.positions.end, written);
  EXPECT_THAT(manifest.warnings, IsEmpty());
  expect_restored(backup, manifest, "/restored");
}

TEST(BackupJob, OfARunningNodeThatCommitsNothingSaysWhatItLacks) {
  BackupCase backup;
  backup.fill(10);
  const auto written = backup.builder.database().transaction_log().end();
  const auto manifest = value(backup.back_up(backup.options(SourceState::kLive)));
  EXPECT_LT(manifest.positions.end, written);
  ASSERT_EQ(manifest.warnings.size(), 1U);
  EXPECT_THAT(manifest.warnings[0],
              HasSubstr(fmt::format("the log reached to {} when the backup began", written)));
  expect_restored(backup, manifest, "/restored");
}

TEST(BackupJob, OfTheWholeLogOfARunningNodeEndsAtTheWriter) {
  BackupCase backup;
  backup.fill(10);
  auto options = backup.options(SourceState::kLive);
  options.whole_log = true;
  const auto manifest = value(backup.back_up(options));
  EXPECT_LT(manifest.positions.chaser, manifest.positions.end);
  EXPECT_EQ(manifest.positions.end, backup.builder.database().transaction_log().end());
  expect_restored(backup, manifest, "/restored");
}

struct Refusal {
  const char* file;
  const char* says;
};
class BackupRefusal : public ::testing::TestWithParam<Refusal> {};

TEST_P(BackupRefusal, OfARunningNodeSaysWhy) {
  BackupCase backup;
  backup.fill(10);
  ok(backup.builder.database().transaction_log().flush_checkpoints());
  const Path path = Path("/db") / GetParam().file;
  ok(backup.disk.make_directories(path.parent_path()));
  ok(write_file_durably(backup.disk, path, Bytes(8)));
  const auto manifest = backup.back_up(backup.options(SourceState::kLive));
  ASSERT_FALSE(manifest);
  EXPECT_EQ(manifest.error().code, Errc::kRefused);
  EXPECT_THAT(manifest.error().message, HasSubstr(GetParam().says));
  EXPECT_THAT(manifest.error().message, HasSubstr(GetParam().file));
  EXPECT_THAT(value(backup.repository->sessions()), IsEmpty());
}

INSTANTIATE_TEST_SUITE_P(
    Each, BackupRefusal,
    ::testing::Values(Refusal{"kurrent.ddb", "secondary indexes"},
                      Refusal{"index/scavenging/scavenging.db-wal", "a scavenge runs"},
                      Refusal{"0a1b2c3d-0000-0000-0000-000000000000.scavenge.tmp",
                              "a scavenge is writing"},
                      Refusal{"redacted.tmp", "a redaction"},
                      Refusal{"truncate.chk", "is to be cut to 0"}));

TEST(BackupRefusals, DoNotConcernWhatANodeAtWorkMakes) {
  BackupCase backup;
  backup.fill(10);
  ok(backup.builder.database().transaction_log().flush_checkpoints());
  for (const auto* name :
       {"chunk-000003.000000.0a1b2c3d-0000-0000-0000-000000000000.tmp",
        "0a1b2c3d-0000-0000-0000-000000000000.tmp", "replicated-000002.chunk.tmp"}) {
    ok(write_file_durably(backup.disk, Path("/db") / name, Bytes(8)));
  }
  EXPECT_TRUE(backup.back_up(backup.options(SourceState::kLive)));
}

TEST(BackupJob, OfAStoppedServerHasItsSecondaryIndexes) {
  BackupCase backup;
  backup.fill(10);
  backup.builder.close();
  ok(write_file_durably(backup.disk, "/db/kurrent.ddb", Bytes(5000, std::byte{3})));
  const auto manifest = value(backup.back_up(backup.options(SourceState::kStopped)));
  ok(backup.restore(manifest, "/restored"));
  EXPECT_EQ(value(read_file(backup.disk, "/restored/kurrent.ddb")), Bytes(5000, std::byte{3}));
}

TEST(BackupJob, RefusesANodeThatIsFarBehind) {
  BackupCase backup;
  backup.fill(30);
  // chaser.chk is written with a table: one of two small writes stays behind it.
  backup.builder.write("tail");
  backup.builder.write("tail");
  auto options = backup.options(SourceState::kLive);
  options.max_truncation = 0;
  const auto manifest = backup.back_up(options);
  ASSERT_FALSE(manifest);
  EXPECT_EQ(manifest.error().code, Errc::kUnavailable);
}

TEST(BackupJob, HasTheDigestsOfTheLog) {
  BackupCase backup;
  backup.fill(50);
  backup.builder.close();
  auto options = backup.options(SourceState::kStopped);
  options.digests = WantedDigests::kReadable;
  const auto manifest = value(backup.back_up(options));
  ASSERT_TRUE(manifest.digests);
  backup.builder.open();
  streams::DigestJob job(backup.builder.database(), manifest.positions.end,
                         manifest.digests->readable_now);
  ok(run_to_end(job));
  EXPECT_EQ(manifest.digests->logical, job.digest().logical);
  EXPECT_EQ(manifest.digests->readable, job.digest().readable);
  EXPECT_EQ(manifest.digests->chunks, job.digest().chunks);
}

TEST(BackupJob, LeavesNothingListedWhereverItFails) {
  BackupCase sound;
  sound.fill(30);
  sound.builder.close();
  for (std::uint64_t nth = 0;; ++nth) {
    SCOPED_TRACE(nth);
    BackupCase backup;
    ok(backup.disk.import_tree(sound.disk, "/db", "/source"));
    backup.disk.reset_count();
    backup.disk.set_fault_hook([&](const DiskOperation& operation) -> std::optional<Error> {
      if (operation.number != nth) {
        return std::nullopt;
      }
      backup.disk.cut_power(nth);
      return Error{Errc::kIo, "the power went"};
    });
    auto options = backup.options(SourceState::kFrozen);
    options.source.directory = "/source";
    const auto manifest = backup.back_up(options);
    backup.disk.set_fault_hook({});
    const auto listed = value(backup.repository->generations());
    if (manifest) {
      ASSERT_EQ(listed.size(), 1U);
      break;  // nth is past the last operation
    }
    for (const auto& entry : listed) {  // only what is complete
      ASSERT_TRUE(entry.manifest) << entry.damage;
      EXPECT_THAT(backup.verify(*entry.manifest), IsEmpty());
    }
    const auto again = value(backup.back_up(options));
    EXPECT_THAT(backup.verify(again), IsEmpty());
  }
}

}  // namespace
}  // namespace verger::backup
