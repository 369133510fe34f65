// Backups of what real servers wrote, and of a database that another thread writes to.
#include <algorithm>
#include <atomic>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <thread>

#include "engine/backup/backup_job.h"
#include "engine/backup/directory_store.h"
#include "engine/backup/restore_job.h"
#include "engine/backup/verify_job.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/fixtures.h"
#include "tests/support/results.h"
#include "tests/support/temp_directory.h"

namespace verger::backup {
namespace {

using ::testing::IsEmpty;

void run_all(Job& job) {
  while (value(job.step({.units = 65'536})).kind != StepOutcome::Kind::kDone) {
  }
}

struct Databases {
  test::TempDirectory directory;
  SeededRandom random{5};
  Path source = directory.path() / "source";
  Path target = directory.path() / "target";
  DirectoryStore store{posix_file_system(), directory.path() / "repository", random};
  Repository repository = value(Repository::open(store, Repository::Create::kIfMissing));

  Result<Manifest> back_up(BackupOptions options, scavenge::ParallelRunner& runner) {
    options.source.directory = source;
    options.node.node = "n1";
    options.lanes = 3;
    BackupJob job(posix_file_system(), repository, std::move(options), system_clock(), random,
                  null_log(), runner);
    for (;;) {
      VERGER_TRY(const auto outcome, job.step({}));
      if (outcome.kind == StepOutcome::Kind::kDone) {
        return job.manifest();
      }
    }
  }
  void restore(const Manifest& manifest, scavenge::ParallelRunner& runner) {
    RestoreOptions options;
    options.directory = target;
    options.lanes = 3;
    RestoreJob job(posix_file_system(), store, manifest, options, system_clock(), random,
                   null_log(), runner);
    run_all(job);
  }
  /// Of the log below `end`, as of that end.
  std::string digest_of(const Path& database_directory, LogPosition end) {
    streams::DatabaseOptions options;
    const auto database =
        value(streams::Database::open(posix_file_system(), database_directory, options, true,
                                      system_clock(), random, null_log()));
    streams::DigestJob job(*database, end, test::kTestTime);
    run_all(job);
    return to_hex(job.digest().logical) + to_hex(job.digest().readable);
  }
};

std::vector<std::string> archives() {
  std::vector<std::string> found;
  for (const auto& entry :
       std::filesystem::recursive_directory_iterator(test::fixtures_directory())) {
    const auto path = entry.path().lexically_relative(test::fixtures_directory()).string();
    if (path.ends_with(".tar.zst") &&
        (path.starts_with("plain/") || path.starts_with("scavenge/"))) {
      found.push_back(path);
    }
  }
  std::ranges::sort(found);
  return found;
}

class OfAServer : public ::testing::TestWithParam<std::string> {};

TEST_P(OfAServer, IsRestoredFileForFile) {
  Databases databases;
  test::unpack_fixture(GetParam(), databases.source);
  const auto runner = scavenge::make_thread_runner(3);
  const auto manifest = value(databases.back_up({}, *runner));
  VerifyBytesJob verify(databases.store, manifest, 2, *runner);
  run_all(verify);
  EXPECT_THAT(verify.damage(), IsEmpty());
  databases.restore(manifest, *runner);
  const auto end = manifest.positions.end;
  EXPECT_EQ(databases.digest_of(databases.target, end), databases.digest_of(databases.source, end));
  for (const auto& file : manifest.files) {
    if (file.path == "epoch.chk") {
      continue;
    }
    const auto source =
        value(read_file(posix_file_system(), databases.source / file.path, 1U << 30U));
    auto restored = value(read_file(posix_file_system(), databases.target / file.path, 1U << 30U));
    ASSERT_GE(restored.size(), file.size);
    EXPECT_TRUE(same_bytes(ByteView(restored).first(file.size), ByteView(source).first(file.size)))
        << file.path;
    EXPECT_TRUE(std::ranges::all_of(ByteView(restored).subspan(file.size),
                                    [](std::byte byte) { return byte == std::byte{0}; }));
  }
  // A differential of the same files copies checkpoints, filter, state and the last chunk alone.
  BackupOptions again;
  again.parent = manifest;
  const auto second = value(databases.back_up(again, *runner));
  EXPECT_EQ(second.files, manifest.files);
}

INSTANTIATE_TEST_SUITE_P(Each, OfAServer, ::testing::ValuesIn(archives()), [](const auto& info) {
  auto name = info.param.substr(0, info.param.size() - std::string_view(".tar.zst").size());
  std::ranges::replace_if(name, [](unsigned char c) { return std::isalnum(c) == 0; }, '_');
  return name;
});

TEST(BackupBesideAWriter, IsRestoredWithTheDigestOfItsEnd) {
  for (int round = 0; round < 20; ++round) {
    SCOPED_TRACE(round);
    Databases databases;
    test::DatabaseBuilder builder(posix_file_system(), databases.source,
                                  {.chunk_size = 64 * 1024,
                                   .max_mem_table_size = 50,
                                   .seed = 40U + static_cast<unsigned>(round)});
    for (int i = 0; i < 200; ++i) {
      builder.write(fmt::format("stream-{}", i % 9), 2, 400);
    }
    std::atomic<bool> stop = false;
    std::atomic<int> written = 0;
    std::jthread writer([&] {
      while (!stop) {
        builder.write(fmt::format("busy-{}", written++ % 5), 3, 700);
      }
    });
    const auto runner = scavenge::make_thread_runner(2);
    BackupOptions options;
    options.source.state = SourceState::kLive;
    options.whole_log = round % 2 == 0;
    while (written < 5) {
      std::this_thread::yield();
    }
    const auto manifest = databases.back_up(options, *runner);
    stop = true;
    writer.join();
    ASSERT_TRUE(manifest) << manifest.error().message;
    databases.restore(*manifest, *runner);
    EXPECT_EQ(databases.digest_of(databases.target, manifest->positions.end),
              databases.digest_of(databases.source, manifest->positions.end));
  }
}

}  // namespace
}  // namespace verger::backup
