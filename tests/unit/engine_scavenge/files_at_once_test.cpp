// How many new chunk files are under way at once, in which order they are switched in, and that
// it makes no difference to a merge which run has written its sources.
#include <algorithm>
#include <gtest/gtest.h>

#include "engine/base/forwarding_file_system.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/results.h"
#include "tests/support/scavenge/run.h"

namespace verger::test {
namespace {

constexpr std::int32_t kChunkSize = 8192;

/// Counts new chunk files that are not in their place yet, on a disk with as much room as it says.
class CountedFiles final : public ForwardingFileSystem {
 public:
  CountedFiles(FileSystem& below, std::uint64_t room) : ForwardingFileSystem(below), room_(room) {}

  Result<DiskSpace> space(const Path& path) override {
    VERGER_TRY(auto space, ForwardingFileSystem::space(path));
    space.available = room_;
    return space;
  }

  Result<std::unique_ptr<File>> open(const Path& path, OpenMode mode) override {
    if (mode == OpenMode::kCreateNew && path.extension() == ".tmp" &&
        path.filename().string().find(".scavenge.") != std::string::npos) {
      most = std::max(most, ++under_way_);
    }
    return ForwardingFileSystem::open(path, mode);
  }
  Result<void> rename(const Path& from, const Path& to) override {
    if (from.filename().string().ends_with(".scavenge.tmp")) {
      --under_way_;
      switched.push_back(to.filename().string());
    }
    return ForwardingFileSystem::rename(from, to);
  }

  int most = 0;
  std::vector<std::string> switched;

 private:
  std::uint64_t room_;
  int under_way_ = 0;
};

class FilesAtOnce : public testing::Test {
 protected:
  FilesAtOnce() {
    BuilderOptions options;
    options.chunk_size = kChunkSize;
    DatabaseBuilder builder(disk_, "/db", options);
    builder.metadata("a", R"({"$maxCount":3})");
    builder.metadata("b", R"({"$maxCount":20})");
    while (builder.write("a").end < LogPosition(12 * kChunkSize)) {
      builder.write("b");
      builder.write("c");
    }
    run_.chunk_size = kChunkSize;
    run_.point = builder.point();
    builder.write("a");
    run_.options.hash_in_background = true;
    run_.options.merge_chunks = false;
    run_.step_units = 5;
  }
  /// Scavenges a copy of the database.
  CountedFiles scavenge() {
    copy_ = disk_.clone();
    CountedFiles counted(*copy_, room_);
    const auto runner = scavenge::make_thread_runner(run_.options.threads);
    run_.runner = runner.get();
    const auto result = run_scavenge(counted, "/db", run_);
    run_.runner = nullptr;
    if (!result) {
      ADD_FAILURE() << result.error().message;
    } else {
      EXPECT_GT(result->progress.chunks_executed, 8U);
    }
    return counted;
  }

  MemoryFileSystem disk_;
  std::unique_ptr<MemoryFileSystem> copy_;
  ScavengeRun run_;
  std::uint64_t room_ = 16 * kChunkSize;
};

TEST_F(FilesAtOnce, AreSixAlsoWithOneThreadAndTwoThatAreFinished) {
  const auto files = scavenge();
  EXPECT_GE(files.most, 6);
  EXPECT_LE(files.most, 8);
  EXPECT_TRUE(std::ranges::is_sorted(files.switched)) << "in the order of the log";
}

TEST_F(FilesAtOnce, AreOneForEachThreadWhereThereIsNotAmpleRoom) {
  room_ = 16 * kChunkSize - 1;
  EXPECT_EQ(scavenge().most, 1);
  run_.options.threads = 2;
  EXPECT_EQ(scavenge().most, 2);
}

TEST_F(FilesAtOnce, IsOneWithAThrottle) {
  run_.options.throttle_percent = 99;
  EXPECT_EQ(scavenge().most, 1);
}

TEST_F(FilesAtOnce, IsOneWhereNothingHashesInTheBackground) {
  run_.options.hash_in_background = false;
  EXPECT_EQ(scavenge().most, 1);
}

TEST_F(FilesAtOnce, AreMergedAlikeWhicheverRunHasWrittenThem) {
  run_.options.merge_chunks = true;
  scavenge();
  const auto of_one_run = std::move(copy_);
  run_.options.last_stage = scavenge::Stage::kExecutingChunks;
  scavenge();
  run_.options.last_stage.reset();
  const auto later = run_scavenge(*copy_, "/db", run_);
  ASSERT_TRUE(later) << later.error().message;
  EXPECT_GT(later->progress.groups_merged, 0U);
  EXPECT_EQ(later->progress.chunks_executed, 0U);
  std::vector<std::string> names;
  for (const auto& entry : value(copy_->list("/db"))) {
    if (!entry.is_directory && entry.name.starts_with("chunk-")) {
      names.push_back(entry.name);
      // The id of each new file is another one; all that follows is the same but the checksum.
      auto one = value(read_file(*of_one_run, Path("/db") / entry.name));
      auto other = value(read_file(*copy_, Path("/db") / entry.name));
      ASSERT_EQ(one.size(), other.size()) << entry.name;
      const auto middle = [](const Bytes& file) {
        return ByteView(file).subspan(log::kChunkHeaderSize,
                                      file.size() - log::kChunkHeaderSize - sizeof(Md5Digest));
      };
      EXPECT_TRUE(same_bytes(middle(one), middle(other))) << entry.name;
    }
  }
  EXPECT_GT(names.size(), 2U);
}

}  // namespace
}  // namespace verger::test
