// Situations in which known tools make backups that are none, or lose those that were good: those
// of docs/tournament.md that no other test is about.
#include <algorithm>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <set>

#include "engine/index/index_map.h"
#include "tests/unit/engine_backup/backup_case.h"

namespace verger::backup {
namespace {

using ::testing::Contains;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

/// The restored database has what the source has below the backup's end, by log and by index.
void expect_sound(BackupCase& backup, const Manifest& manifest, const Path& directory) {
  EXPECT_THAT(backup.verify(manifest), IsEmpty());
  ok(backup.restore(manifest, directory));
  const auto restored = backup.open(directory);
  const auto end = manifest.positions.end;
  EXPECT_EQ(restored->transaction_log().end(), end);
  EXPECT_EQ(backup.digest(*restored, end), backup.digest(backup.builder.database(), end));
}

std::set<std::string> tables_of(const Manifest& manifest) {
  std::set<std::string> out;
  for (const auto& file : manifest.files) {
    if (file.kind == FileKind::kTable) {
      out.insert(file.path);
    }
  }
  return out;
}

TEST(BackupTournament, AnIndexMergeDuringTheCopyLeavesOneMapAndItsTables) {
  BackupCase backup;
  backup.fill(100);
  ok(backup.builder.database().transaction_log().flush_checkpoints());
  const auto named = [&] {
    std::set<std::string> out;
    const auto map = value(index::parse_index_map(
        as_text(value(read_file(backup.disk, Path("/db/index") / index::kIndexMapName)))));
    for (const auto& table : map.tables) {
      out.insert("index/" + table.file);
    }
    return out;
  };
  const auto before = named();
  ASSERT_GE(before.size(), 2U);
  bool merged = false;
  const auto manifest = value(backup.back_up(backup.options(SourceState::kLive), [&] {
    const auto sessions = value(backup.repository->sessions());
    if (merged || sessions.empty()) {
      return;
    }
    // Until tables that were named are gone: a merge has put them together.
    for (int i = 0; i < 200 && !merged; ++i) {
      backup.builder.write("busy", 20, 20);
      const auto now = named();
      merged = std::ranges::none_of(before, [&](const auto& name) { return now.contains(name); });
    }
    ok(backup.builder.database().transaction_log().flush_checkpoints());
  }));
  ASSERT_TRUE(merged);
  EXPECT_EQ(tables_of(manifest), named());
  for (const auto& gone : before) {
    EXPECT_THAT(tables_of(manifest), Not(Contains(gone)));
  }
  expect_sound(backup, manifest, "/restored");
}

TEST(BackupTournament, AChunkThatIsCompletedDuringTheCopyIsStoredUpToTheCheckpoint) {
  BackupCase backup;
  backup.fill(40);
  auto& log = backup.builder.database().transaction_log();
  ok(log.flush_checkpoints());
  const auto last = log.chunks().back();
  ASSERT_FALSE(last->completed());
  const auto name = last->path().filename().string();
  bool completed = false;
  auto options = backup.options(SourceState::kLive);
  const auto manifest = value(backup.back_up(options, [&] {
    const auto sessions = value(backup.repository->sessions());
    // Chunks are being copied, by what the checkpoints said.
    const bool copies =
        !sessions.empty() && std::ranges::any_of(sessions.front().files, [](const auto& file) {
          return file.kind == FileKind::kChunk;
        });
    if (copies && !completed) {
      completed = true;
      ok(log.complete_chunk());
      backup.builder.write("next", 1, 200);
      ok(log.flush_checkpoints());
    }
  }));
  ASSERT_TRUE(completed);
  const auto* const stored = manifest.find(name);
  ASSERT_NE(stored, nullptr);
  EXPECT_LT(stored->size, stored->restored_size) << "as one that is written to";
  expect_sound(backup, manifest, "/restored");
  // The next one has it whole.
  options.parent = manifest;
  const auto next = value(backup.back_up(options));
  EXPECT_EQ(next.find(name)->size, next.find(name)->restored_size);
  expect_sound(backup, next, "/again");
}

TEST(BackupTournament, AFullDiskAtTheTargetLosesNothingAndIsContinuedOnceThereIsRoom) {
  BackupCase backup;
  backup.fill(150);
  backup.builder.close();
  const auto options = backup.options(SourceState::kStopped);
  const auto first = value(backup.back_up(options));
  backup.builder.open();
  for (int i = 0; i < 150; ++i) {
    backup.builder.write(fmt::format("later-{}", i % 7), 2, 300);
  }
  backup.builder.close();
  auto differential = options;
  differential.parent = first;
  std::uint64_t room = 1'000;
  std::optional<Manifest> made;
  int refused = 0;
  for (; !made; room *= 2) {
    SCOPED_TRACE(room);
    backup.disk.set_free_space(room);
    auto outcome = backup.back_up(differential);
    backup.disk.set_free_space(std::nullopt);
    if (outcome) {
      made = *outcome;
      break;
    }
    EXPECT_EQ(outcome.error().code, Errc::kNoSpace) << outcome.error().message;
    EXPECT_THAT(outcome.error().message, HasSubstr("/repository"));
    const auto listed = value(backup.repository->generations());
    ASSERT_EQ(listed.size(), 1U);
    EXPECT_THAT(backup.verify(*listed.front().manifest), IsEmpty()) << "the one before is whole";
    ++refused;
  }
  EXPECT_GT(refused, 2);
  backup.builder.open();
  expect_sound(backup, *made, "/restored");
}

/// A store each of whose writes takes a minute.
class SlowStore final : public BlobStore {
 public:
  SlowStore(BlobStore& store, test::ManualClock& clock) : store_(store), clock_(clock) {}
  [[nodiscard]] std::string name() const override { return store_.name(); }
  Result<std::unique_ptr<BlobWriter>> create_blob() override {
    clock_.advance_seconds(60);
    return store_.create_blob();
  }
  Result<std::optional<std::uint64_t>> blob_size(const Sha256Digest& digest) override {
    return store_.blob_size(digest);
  }
  Result<std::unique_ptr<BlobReader>> open_blob(const Sha256Digest& digest) override {
    return store_.open_blob(digest);
  }
  Result<std::vector<StoredBlob>> list_blobs() override { return store_.list_blobs(); }
  Result<void> remove_blob(const Sha256Digest& name) override { return store_.remove_blob(name); }
  Result<std::uint64_t> remove_leftovers() override { return store_.remove_leftovers(); }
  Result<void> put(std::string_view document, ByteView content) override {
    clock_.advance_seconds(60);
    return store_.put(document, content);
  }
  Result<Bytes> get(std::string_view document) override { return store_.get(document); }
  Result<std::vector<std::string>> list(std::string_view folder) override {
    return store_.list(folder);
  }
  Result<void> remove(std::string_view document) override { return store_.remove(document); }

 private:
  BlobStore& store_;
  test::ManualClock& clock_;
};

TEST(BackupTournament, OverASlowTargetTheNodeWorksAndTheBackupIsOneOfAMoment) {
  BackupCase backup;
  backup.fill(60);
  ok(backup.builder.database().transaction_log().flush_checkpoints());
  SlowStore slow(backup.store, backup.clock);
  auto repository = value(Repository::open(slow, Repository::Create::kNo));
  BackupJob job(backup.disk, repository, backup.options(SourceState::kLive), backup.clock,
                backup.random, null_log());
  const auto tables = [&] { return value(backup.disk.list("/db/index")).size(); };
  ok(run_to_end(job, [&] {
    if (tables() < 60) {
      backup.builder.write("busy", 1, 800);
      ok(backup.builder.database().transaction_log().flush_checkpoints());
    }
  }));
  const auto& manifest = job.manifest();
  // Its age counts from its checkpoints, not from its end.
  EXPECT_GT(manifest.finished_at.value() - manifest.checkpoints_at.value(), 60 * kTicksPerSecond);
  expect_sound(backup, manifest, "/restored");
  // The session of one that takes long is no abandoned one.
  EXPECT_THAT(value(repository.sessions()), IsEmpty());
}

TEST(BackupTournament, AFileThatWasAddedToTheRepositoryIsNoBackupAndIsNotRestored) {
  BackupCase backup;
  backup.fill(30);
  backup.builder.close();
  const auto manifest = value(backup.back_up(backup.options(SourceState::kStopped)));
  for (const auto* added :
       {"/repository/generations/readme.txt", "/repository/generations/20990101t000000z-00000000",
        "/repository/blobs/00/chunk-000009.000000", "/repository/tmp/left",
        "/repository/sessions/x", "/repository/notes.txt"}) {
    SCOPED_TRACE(added);
    ok(backup.disk.make_directories(Path(added).parent_path()));
    ok(write_file_durably(backup.disk, added, Bytes(100, std::byte{9})));
    const auto listed = value(backup.repository->generations());
    const auto sound =
        std::ranges::count_if(listed, [](const auto& entry) { return entry.manifest.has_value(); });
    EXPECT_EQ(sound, 1) << "what is added is no backup; at most it is named as damaged";
    const auto latest = backup.repository->load("latest");
    if (Path(added).filename() == "20990101t000000z-00000000") {  // named as one, so it says so
      EXPECT_THAT(latest.error().message, HasSubstr("20990101t000000z-00000000"));
    } else {
      EXPECT_EQ(value(latest).id, manifest.id);
    }
    EXPECT_THAT(backup.verify(manifest), IsEmpty());
    const Path directory = fmt::format("/restored-{}", Path(added).filename().string());
    ok(backup.restore(manifest, directory));
    std::set<std::string> expected{"truncate.chk", "verger.lock"};
    for (const auto& file : manifest.files) {
      expected.insert(file.path);
    }
    for (const auto& [path, content] : tree_of(backup.disk, directory)) {
      EXPECT_THAT(expected, Contains(path));
    }
    ok(backup.disk.remove(added));
  }
}

TEST(BackupTournament, ADifferentialWhoseBaseIsGoneReadsAgainWhatIsMissing) {
  BackupCase backup;
  backup.fill(150);
  backup.builder.close();
  auto options = backup.options(SourceState::kStopped);
  const auto base = value(backup.back_up(options));
  // The base is known from before, and the repository was emptied since.
  for (const auto& blob : value(backup.store.list_blobs())) {
    ok(backup.store.remove_blob(blob.name));
  }
  ok(backup.store.remove("generations/" + base.id));
  options.parent = base;
  const auto next = value(backup.back_up(options));
  // Filters of tables may be alike, and are stored once; chunks are not.
  std::uint64_t chunks = 0;
  for (const auto& file : base.files) {
    chunks += file.kind == FileKind::kChunk ? file.size : 0;
  }
  EXPECT_GE(backup.progress.copied, chunks);
  backup.builder.open();
  expect_sound(backup, next, "/restored");
}

TEST(BackupTournament, TwoBackupsOfOneNodeAtATimeAreBothWhole) {
  BackupCase backup;
  backup.fill(120);
  ok(backup.builder.database().transaction_log().flush_checkpoints());
  SeededRandom which(11);
  BackupJob first(backup.disk, *backup.repository, backup.options(SourceState::kLive), backup.clock,
                  backup.random, null_log());
  BackupJob second(backup.disk, *backup.repository, backup.options(SourceState::kLive),
                   backup.clock, backup.random, null_log());
  bool first_done = false;
  bool second_done = false;
  while (!first_done || !second_done) {
    const bool take_first = !first_done && (second_done || which.below(2) == 0);
    auto& job = take_first ? first : second;
    const bool done = value(job.step({.units = 16})).kind == StepOutcome::Kind::kDone;
    (take_first ? first_done : second_done) = done;
    if (which.below(4) == 0 && value(backup.disk.list("/db/index")).size() < 60) {
      backup.builder.write("busy", 1, 400);
      ok(backup.builder.database().transaction_log().flush_checkpoints());
    }
  }
  EXPECT_NE(first.manifest().id, second.manifest().id);
  EXPECT_EQ(value(backup.repository->generations()).size(), 2U);
  EXPECT_THAT(value(backup.repository->sessions()), IsEmpty());
  expect_sound(backup, first.manifest(), "/first");
  expect_sound(backup, second.manifest(), "/second");
}

}  // namespace
}  // namespace verger::backup
