// Copies of disk snapshots that a program makes. The programs are real ones, on the machine's disk.
#include "engine/backup/disk_snapshots.h"

#include <fcntl.h>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <sys/file.h>
#include <sys/stat.h>
#include <thread>

#include "engine/base/unique_fd.h"
#include "tests/support/temp_directory.h"
#include "tests/unit/engine_backup/backup_case.h"

namespace verger::backup {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
namespace fs = std::filesystem;

/// What all programs of these tests begin with.
constexpr const char* kProgramHead = R"(#!/bin/sh
set -eu
here=$(dirname "$0")
echo "$1 $VERGER_SNAPSHOT_VOLUME" >> "$here/calls"
snapshot=$here/snapshots/$VERGER_SNAPSHOT_ID
mkdir -p "$here/snapshots"
)";
constexpr const char* kCopies = R"(case $1 in
  create)
    mkdir "$snapshot"
    if [ "$VERGER_SNAPSHOT_VOLUME" != database ]; then
      cp -r "$VERGER_SNAPSHOT_INDEX" "$snapshot/index"
      echo "index=$snapshot/index"
    fi
    if [ "$VERGER_SNAPSHOT_VOLUME" != index ]; then
      cp -r "$VERGER_SNAPSHOT_DATABASE" "$snapshot/db"
      echo "database=$snapshot/db"
    fi ;;
  delete) rm -rf "$snapshot" ;;
esac
)";

class DiskSnapshotsTest : public ::testing::Test {
 protected:
  DiskSnapshotsTest() {
    for (int i = 0; i < 60; ++i) {
      builder_.write(fmt::format("stream-{}", i % 5), 1 + i % 3, 150);
    }
    builder_.close();
    program(kCopies);
  }

  Path place(const std::string& name) const { return directory_.path() / name; }
  void program(const std::string& text) {
    std::ofstream(place("program")) << kProgramHead << text;
    ASSERT_EQ(::chmod(place("program").c_str(), 0755), 0);
  }
  std::vector<std::string> calls() const {
    std::vector<std::string> out;
    std::ifstream lines(place("calls"));
    for (std::string line; std::getline(lines, line);) {
      out.push_back(line);
    }
    return out;
  }
  /// Of the program, and what is on its disk.
  std::vector<std::string> in(const std::string& name) const {
    std::vector<std::string> out;
    if (fs::exists(place(name))) {
      for (const auto& entry : fs::directory_iterator(place(name))) {
        out.push_back(entry.path().filename().string());
      }
    }
    return out;
  }
  std::vector<std::string> notes() const {
    auto out = in("state");
    std::erase_if(out, [](const std::string& name) { return !name.ends_with(".json"); });
    return out;
  }

  Result<std::unique_ptr<DiskSnapshots>> open(Clock& clock = system_clock()) {
    return DiskSnapshots::open(posix_file_system(),
                               {.program = place("program"), .state = place("state")}, clock,
                               random_, null_log());
  }
  static Result<void> wait_for(Job& job) {
    return run_to_end(job, [] { std::this_thread::yield(); });
  }
  static Result<void> delete_all(DiskSnapshots& snapshots) {
    for (;;) {
      VERGER_TRY(const auto outcome, snapshots.step_delete());
      if (outcome.kind == StepOutcome::Kind::kDone) {
        return {};
      }
      std::this_thread::yield();
    }
  }
  Result<void> make(DiskSnapshots& snapshots, Path index = {}) {
    MakeSnapshotsJob job(snapshots, place("db"), index.empty() ? place("db") / "index" : index);
    return wait_for(job);
  }

  Result<Manifest> back_up(BackupSource source) {
    VERGER_TRY(auto repository, Repository::open(store_, Repository::Create::kIfMissing));
    BackupOptions options;
    options.source = std::move(source);
    options.node.node = "n1";
    BackupJob job(posix_file_system(), repository, std::move(options), system_clock(), random_,
                  null_log());
    VERGER_RETURN_IF_ERROR(run_to_end(job));
    return job.manifest();
  }
  Result<void> restore(const Manifest& manifest) {
    RestoreOptions how;
    how.directory = place("restored");
    RestoreJob job(posix_file_system(), store_, manifest, how, system_clock(), random_, null_log());
    return run_to_end(job);
  }
  std::string digest_of(const Path& directory, LogPosition end) {
    const auto database = value(
        streams::Database::open(posix_file_system(), directory,
                                test::database_options(builder_.options(), log::Access::kWrite),
                                /*commit_all=*/true, clock_, random_, null_log()));
    streams::DigestJob job(*database, end, test::kTestTime);
    ok(run_to_end(job, {}, Budget{}));
    return to_hex(job.digest().logical) + to_hex(job.digest().readable);
  }

  test::TempDirectory directory_;
  test::DatabaseBuilder builder_{posix_file_system(), place("db"), {}};
  SeededRandom random_{5};
  test::ManualClock clock_;
  DirectoryStore store_{posix_file_system(), place("repository"), random_};
};

TEST_F(DiskSnapshotsTest, OfOneVolumeIsOneThatIsCopiedAndDeleted) {
  const auto snapshots = value(open());
  ok(make(*snapshots));
  EXPECT_EQ(notes().size(), 1U);
  const auto source = snapshots->source();
  EXPECT_EQ(source.state, SourceState::kFrozen);
  EXPECT_NE(source.directory, place("db"));
  const auto manifest = value(back_up(source));
  ok(delete_all(*snapshots));
  EXPECT_THAT(calls(), ElementsAre("create both", "delete both"));
  EXPECT_THAT(in("snapshots"), IsEmpty());
  EXPECT_THAT(notes(), IsEmpty());
  EXPECT_EQ(manifest.source.state, "frozen");
  EXPECT_EQ(manifest.positions.end, manifest.positions.writer);
  ok(restore(manifest));
  EXPECT_EQ(digest_of(place("restored"), manifest.positions.end),
            digest_of(place("db"), manifest.positions.end));
}

TEST_F(DiskSnapshotsTest, OfTwoVolumesTheIndexComesFirst) {
  std::error_code error;
  const Path elsewhere = "/dev/shm/verger-" + directory_.path().filename().string();
  struct stat one{};
  struct stat other{};
  if (::stat("/dev/shm", &one) != 0 || ::stat(directory_.path().c_str(), &other) != 0 ||
      one.st_dev == other.st_dev || !fs::create_directory(elsewhere, error)) {
    GTEST_SKIP() << "this machine has no second file system to write to";
  }
  fs::copy(place("db") / "index", elsewhere / "index", fs::copy_options::recursive);
  const auto snapshots = value(open());
  ok(make(*snapshots, elsewhere / "index"));
  EXPECT_EQ(notes().size(), 2U);
  const auto manifest = value(back_up(snapshots->source()));
  ok(delete_all(*snapshots));
  fs::remove_all(elsewhere);
  EXPECT_THAT(calls(),
              ElementsAre("create index", "create database", "delete database", "delete index"));
  ok(restore(manifest));
  EXPECT_EQ(digest_of(place("restored"), manifest.positions.end),
            digest_of(place("db"), manifest.positions.end));
}

TEST_F(DiskSnapshotsTest, AreCopiedDuringAScavenge) {
  fs::create_directories(place("db") / "index/scavenging");
  for (const auto* name : {"index/scavenging/scavenging.db", "index/scavenging/scavenging.db-wal",
                           "0a1b2c3d-0000-0000-0000-000000000000.scavenge.tmp", "kurrent.ddb"}) {
    std::ofstream(place("db") / name) << "content of " << name;
  }
  BackupSource beside;
  beside.directory = place("db");
  beside.state = SourceState::kLive;
  const auto live = back_up(beside);
  ASSERT_FALSE(live);
  EXPECT_EQ(live.error().code, Errc::kRefused);
  const auto snapshots = value(open());
  ok(make(*snapshots));
  const auto manifest = value(back_up(snapshots->source()));
  ok(delete_all(*snapshots));
  ok(restore(manifest));
  const auto restored = place("restored");
  EXPECT_TRUE(fs::exists(restored / "index/scavenging/scavenging.db-wal"));
  EXPECT_TRUE(fs::exists(restored / "kurrent.ddb"));
  EXPECT_FALSE(fs::exists(restored / "0a1b2c3d-0000-0000-0000-000000000000.scavenge.tmp"));
}

TEST_F(DiskSnapshotsTest, ThatCouldNotBeMadeSayWhyAndAreDeleted) {
  program(R"([ $1 = delete ] || { mkdir "$snapshot"; echo "volume group is full" >&2; exit 5; }
rm -rf "$snapshot"
)");
  const auto snapshots = value(open());
  const auto made = make(*snapshots);
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::kUnavailable);
  EXPECT_THAT(made.error().message, HasSubstr("status 5"));
  EXPECT_THAT(made.error().message, HasSubstr("volume group is full"));
  EXPECT_EQ(in("snapshots").size(), 1U);
  ok(delete_all(*snapshots));
  EXPECT_THAT(in("snapshots"), IsEmpty());
}

TEST_F(DiskSnapshotsTest, OfAProcessThatDiedAreDeletedBeforeTheNext) {
  {
    const auto died = value(open());
    ok(make(*died));
  }
  EXPECT_EQ(in("snapshots").size(), 1U);
  const auto before = in("snapshots");
  const auto snapshots = value(open());
  ok(make(*snapshots));
  EXPECT_THAT(calls(), ElementsAre("create both", "delete both", "create both"));
  EXPECT_EQ(in("snapshots").size(), 1U);
  EXPECT_NE(in("snapshots"), before);
  ok(delete_all(*snapshots));
}

TEST_F(DiskSnapshotsTest, ThatCannotBeDeletedAreNamedAndHoldTheNextOff) {
  auto snapshots = value(open());
  ok(make(*snapshots));
  const auto id = in("snapshots").front();
  program("echo 'device is busy' >&2\nexit 1\n");
  const auto deleted = delete_all(*snapshots);
  ASSERT_FALSE(deleted);
  EXPECT_THAT(deleted.error().message, HasSubstr(id));
  EXPECT_THAT(deleted.error().message, HasSubstr("device is busy"));
  snapshots.reset();
  snapshots = value(open());
  const auto next = make(*snapshots);
  ASSERT_FALSE(next);
  EXPECT_THAT(next.error().message, HasSubstr(id));
  EXPECT_THAT(calls(), ElementsAre("create both", "delete both", "delete both"));
  program(kCopies);
  ok(delete_all(*snapshots));
  EXPECT_THAT(in("snapshots"), IsEmpty());
}

TEST_F(DiskSnapshotsTest, OfAProgramThatDoesNotEndAreDeletedOnceItIsKilled) {
  program(R"([ $1 = delete ] || { mkdir "$snapshot"; sleep 1000; }
rm -rf "$snapshot"
)");
  const auto snapshots = value(open(clock_));
  MakeSnapshotsJob job(*snapshots, place("db"), place("db") / "index");
  Result<void> made;
  made = run_to_end(job, [&] {
    std::this_thread::yield();
    if (!in("snapshots").empty()) {
      clock_.advance_seconds(601);
    }
  });
  ASSERT_FALSE(made);
  EXPECT_EQ(made.error().code, Errc::kTimeout);
  ok(delete_all(*snapshots));
  EXPECT_THAT(in("snapshots"), IsEmpty());
}

TEST_F(DiskSnapshotsTest, ThatAreStillBeingMadeAreDeletedAfterwards) {
  program(R"(if [ $1 = create ]; then
  until [ -e "$here/enough" ]; do :; done
  mkdir "$snapshot"
  echo "database=$snapshot"
else
  [ ! -e "$snapshot" ] || touch "$here/was-there"
  rm -rf "$snapshot"
fi
)");
  const auto snapshots = value(open());
  MakeSnapshotsJob job(*snapshots, place("db"), place("db") / "index");
  while (calls().empty()) {
    value(job.step({}));
  }
  value(snapshots->step_delete());
  std::ofstream(place("enough")) << "";
  ok(delete_all(*snapshots));
  EXPECT_TRUE(fs::exists(place("was-there")));
  EXPECT_THAT(in("snapshots"), IsEmpty());
}

TEST_F(DiskSnapshotsTest, WaitForAProgramOfAProcessThatDied) {
  fs::create_directories(place("state"));
  UniqueFd held(::open(place("state/running").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600));
  ASSERT_EQ(::flock(held.get(), LOCK_EX), 0);
  const auto snapshots = value(open(clock_));
  MakeSnapshotsJob job(*snapshots, place("db"), place("db") / "index");
  for (int i = 0; i < 5; ++i) {
    EXPECT_NE(value(job.step({})).kind, StepOutcome::Kind::kDone);
  }
  EXPECT_THAT(calls(), IsEmpty());
  held.reset();
  ok(wait_for(job));
  EXPECT_THAT(calls(), ElementsAre("create both"));
  ok(delete_all(*snapshots));
}

TEST_F(DiskSnapshotsTest, AreOfOneBackupAtATime) {
  const auto snapshots = value(open());
  const auto second = open();
  ASSERT_FALSE(second);
  EXPECT_EQ(second.error().code, Errc::kUnavailable);
}

TEST_F(DiskSnapshotsTest, AreNotWhatTheServerWorksOn) {
  struct Answer {
    const char* says;
    const char* error;
  };
  for (const auto& answer :
       {Answer{"database=$VERGER_SNAPSHOT_DATABASE", "the directory that the server works on"},
        Answer{"database=somewhere", "printed no line"}, Answer{"", "printed no line"},
        Answer{"database=$here", "writer.chk"}, Answer{"database=$here/none", "none"}}) {
    SCOPED_TRACE(answer.says);
    program(fmt::format("echo \"{}\"\n", answer.says));
    const auto snapshots = value(open());
    const auto made = make(*snapshots);
    ASSERT_FALSE(made);
    EXPECT_THAT(made.error().message, HasSubstr(answer.error));
    ok(delete_all(*snapshots));
  }
}

TEST_F(DiskSnapshotsTest, AreMadeByAProgramOfOursAlone) {
  ASSERT_EQ(::chmod(place("program").c_str(), 0777), 0);
  EXPECT_THAT(open().error().message, HasSubstr("others than its owner can change it"));
  ASSERT_EQ(::chmod(place("program").c_str(), 0755), 0);
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0777), 0);
  EXPECT_THAT(open().error().message, HasSubstr("others than its owner can change it"));
  ASSERT_EQ(::chmod(directory_.path().c_str(), 0700), 0);
  fs::remove(place("program"));
  EXPECT_EQ(open().error().code, Errc::kNotFound);
  EXPECT_THAT(calls(), IsEmpty());
}

TEST_F(DiskSnapshotsTest, TheExampleThatCopiesDoes) {
  fs::copy_file(fs::path(VERGER_TEST_FIXTURES) / "../../examples/snapshots/copy.sh",
                place("program"), fs::copy_options::overwrite_existing);
  ASSERT_EQ(::chmod(place("program").c_str(), 0755), 0);
  auto snapshots = value(open());
  ok(make(*snapshots));
  EXPECT_EQ(in("verger-copies").size(), 1U);
  const auto manifest = value(back_up(snapshots->source()));
  ok(delete_all(*snapshots));
  EXPECT_THAT(in("verger-copies"), IsEmpty());
  ok(restore(manifest));
  EXPECT_EQ(digest_of(place("restored"), manifest.positions.end),
            digest_of(place("db"), manifest.positions.end));
  // Not during a scavenge: it is none of one moment.
  fs::create_directories(place("db") / "index/scavenging");
  std::ofstream(place("db") / "index/scavenging/scavenging.db-wal") << "state";
  snapshots.reset();
  snapshots = value(open());
  const auto made = make(*snapshots);
  ASSERT_FALSE(made);
  EXPECT_THAT(made.error().message, HasSubstr("a scavenge runs"));
  ok(delete_all(*snapshots));
}

}  // namespace
}  // namespace verger::backup
