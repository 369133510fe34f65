// Every byte of a small backup, changed: each change is found, and the file is named.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <map>
#include <set>

#include "engine/backup/backup_job.h"
#include "engine/backup/directory_store.h"
#include "engine/backup/verify_job.h"
#include "engine/base/memory_file_system.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/results.h"

namespace verger::backup {
namespace {

class BackupDamageTest : public ::testing::Test {
 protected:
  BackupDamageTest() {
    test::DatabaseBuilder builder(disk, "/db", {.chunk_size = 4096, .max_mem_table_size = 20});
    for (int i = 0; i < 30; ++i) {
      builder.write(fmt::format("stream-{}", i % 3), 1, 150);
    }
    builder.close();
    ok(disk.make_directories("/db/index/scavenging"));
    ok(write_file_durably(disk, "/db/index/scavenging/scavenging.db", Bytes(512, std::byte{7})));
    auto repository = value(Repository::open(store, Repository::Create::kIfMissing));
    BackupOptions options;
    options.source.directory = "/db";
    options.node.node = "n1";
    BackupJob job(disk, repository, options, system_clock(), random, null_log());
    while (value(job.step({})).kind != StepOutcome::Kind::kDone) {
    }
    manifest = job.manifest();
  }

  void flip(const Path& path, std::uint64_t at, std::byte bits) {
    const auto file = value(disk.open(path, OpenMode::kReadWrite));
    std::byte one[1];
    ok(file->read_exact(at, one));
    one[0] ^= bits;
    ok(file->write_at(at, one));
  }
  std::vector<BackupDamage> verify(const Manifest& of) {
    VerifyBytesJob job(store, of);
    while (value(job.step({.units = 65'536})).kind != StepOutcome::Kind::kDone) {
    }
    return job.damage();
  }
  /// What the manifest says of the files with this content alone.
  Manifest only(const Sha256Digest& content) {
    auto part = manifest;
    std::erase_if(part.files, [&](const BackedUpFile& file) { return file.sha256 != content; });
    return part;
  }

  MemoryFileSystem disk;
  SeededRandom random{4};
  DirectoryStore store{disk, "/repository", random};
  Manifest manifest;
};

TEST_F(BackupDamageTest, OfEachByteOfEachKindOfFileIsFound) {
  std::map<FileKind, std::uint64_t> positions;
  std::uint64_t flips = 0;
  std::set<Sha256Digest> seen;
  for (const auto& file : manifest.files) {
    if (!seen.insert(file.sha256).second) {
      continue;
    }
    const auto path = store.blob_path(file.sha256);
    const auto part = only(file.sha256);
    for (std::uint64_t at = 0; at < file.size; ++at) {
      for (const auto bits :
           {std::byte{1}, std::byte{2}, std::byte{0x10}, std::byte{0x40}, std::byte{0x80}}) {
        flip(path, at, bits);
        const auto damage = verify(part);
        ASSERT_EQ(damage.size(), 1U) << file.path << " at " << at;
        ASSERT_EQ(damage.front().path, part.files.front().path);
        flip(path, at, bits);
        ++flips;
      }
      ++positions[file.kind];
    }
  }
  EXPECT_TRUE(verify(manifest).empty());
  EXPECT_GE(flips, 100'000U);
  for (const auto kind :
       {FileKind::kIndexMap, FileKind::kTable, FileKind::kBloomFilter, FileKind::kExistenceFilter,
        FileKind::kScavengeState, FileKind::kCheckpoint, FileKind::kChunk}) {
    EXPECT_GT(positions[kind], 0U) << to_string(kind);
  }
}

TEST_F(BackupDamageTest, OfTheManifestAndTheMarkIsFound) {
  const auto repository = value(Repository::open(store, Repository::Create::kNo));
  const Path path = Path("/repository/generations") / manifest.id;
  const auto size = value(disk.file_size(path));
  for (std::uint64_t at = 0; at < size; ++at) {
    flip(path, at, std::byte{0x20});
    ASSERT_FALSE(repository.load(manifest.id)) << at;
    flip(path, at, std::byte{0x20});
  }
  // Another backup's manifest under this one's name.
  auto other = manifest;
  other.id = make_generation_id(Ticks(manifest.started_at.value() + kTicksPerSecond), 1);
  ok(store.put("generations/" + manifest.id, as_bytes(encode_manifest(other))));
  EXPECT_EQ(repository.load(manifest.id).error().code, Errc::kCorruption);
}

TEST_F(BackupDamageTest, ThatCutsOrRemovesContentIsFound) {
  for (const auto& file : manifest.files) {
    const auto path = store.blob_path(file.sha256);
    const auto content = value(read_file(disk, path));
    const auto part = only(file.sha256);
    for (const auto size : {content.size() + 1, content.size() / 2, std::size_t{0}}) {
      if (size != content.size()) {
        auto changed = content;
        changed.resize(size);
        ok(write_file_durably(disk, path, changed));
        EXPECT_EQ(verify(part).size(), 1U) << file.path << " " << size;
      }
    }
    ok(disk.remove(path));
    EXPECT_EQ(verify(part).size(), 1U) << file.path;
    ok(write_file_durably(disk, path, content));
  }
  EXPECT_TRUE(verify(manifest).empty());
}

}  // namespace
}  // namespace verger::backup
