#include <filesystem>
#include <fmt/format.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <nlohmann/json.hpp>

#include "engine/backup/backup_job.h"
#include "engine/backup/directory_store.h"
#include "engine/base/memory_file_system.h"
#include "nodeagent/api/backup_operations.h"
#include "nodeagent/api/node.h"
#include "nodeagent/external/child_process.h"
#include "nodeagent/operations/drill/drill_operation.h"
#include "nodeagent/operations/drill/drill_place.h"
#include "nodeagent/operations/drill/drill_reading.h"
#include "nodeagent/operations/jobs/job_control.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/manual_clock.h"
#include "tests/support/processes/process.h"
#include "tests/support/results.h"
#include "tests/support/temp_directory.h"

/// Drills on the real disk. The server is a shell command, and its answers are a test's.
namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using std::chrono::seconds;
using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// A single node that leads, from the moment on that the test says.
class LeaderAnswers final : public http::Client {
 public:
  net::awaitable<Result<http::Response>> send(http::Endpoint, http::Request request,
                                              milliseconds) override {
    if (!leads()) {
      co_return Error{Errc::kUnavailable, "nothing listens"};
    }
    http::Response out;
    out.headers.set("Content-Type", "application/json");
    if (request.target.starts_with("/gossip")) {
      api::Gossip gossip{.members = {}, .server_ip = "127.0.0.1", .server_port = 2113};
      auto& self = gossip.members.emplace_back();
      self.instance_id = "00000000-0000-0000-0000-000000000001";
      self.state = api::NodeState::kLeader;
      self.is_alive = true;
      self.http_ip = "127.0.0.1";
      self.http_port = 2113;
      self.writer_checkpoint = writer;
      out.body = api::to_text(gossip);
    } else {
      out.status = 404;
    }
    co_return out;
  }
  std::function<bool()> leads = [] { return true; };
  std::int64_t writer = 1'000'000'000;
};

class DrillTest : public ::testing::Test {
 protected:
  DrillTest() {
    for (const auto* name : {"source", "repository", "repositories", "scratch"}) {
      std::filesystem::create_directories(path(name));
    }
    ok(write_file_durably(files_, path("repositories") / "main.json",
                          as_bytes(json{{"location", path("repository").string()}}.dump())));
    test::DatabaseBuilder builder(files_, path("source"), {.chunk_size = 32 * 1024});
    for (int i = 0; i < 40; ++i) {
      builder.write(fmt::format("stream-{}", i % 5), 1 + i % 2, 200);
    }
    builder.close();
    settings_ = std::make_shared<DrillSettings>();
    settings_->command = "echo $$ >> " + path("pids").string() + "; exec sleep 600";
    settings_->client = &client_;
  }

  [[nodiscard]] Path path(const std::string& name) const { return directory_.path() / name; }

  backup::Repository repository() {
    return value(backup::Repository::open(store_, backup::Repository::Create::kIfMissing));
  }
  std::string back_up(backup::WantedDigests digests = backup::WantedDigests::kReadable) {
    auto into = repository();
    backup::BackupOptions options;
    options.source.directory = path("source");
    options.node.node = "n1";
    options.digests = digests;
    backup::BackupJob job(files_, into, options, clock_, random_, null_log());
    while (value(job.step({})).kind != StepOutcome::Kind::kDone) {
    }
    clock_.advance_seconds(90);
    return job.manifest().id;
  }

  Observation drill(const std::string& generation) {
    auto access =
        std::make_shared<const BackupAccess>(BackupAccess{.repositories = path("repositories"),
                                                          .scratch = path("scratch"),
                                                          .temporary = path("agent"),
                                                          .files = files_,
                                                          .database = files_,
                                                          .clock = clock_,
                                                          .random = random_,
                                                          .log = null_log(),
                                                          .jobs = runner_,
                                                          .host = "machine"});
    const auto operation =
        make_drill_operation(std::make_shared<const Repositories>(access), settings_);
    control_->touch();  // a controller waits for it
    OperationRecord record;
    record.request.id = "o1";
    record.request.parameters_json =
        json{{"repository", "main"}, {"generation", generation}, {"by", "run r1"}}.dump();
    const LocalNode node{.client = node_client_,
                         .inspection = [] { return nullptr; },
                         .timers = http::system_timers(),
                         .clock = clock_,
                         .log = null_log(),
                         .jobs = &runner_,
                         .control = control_};
    std::optional<Observation> seen;
    net::co_spawn(
        context_,
        [](Operation* kind, LocalNode at, OperationRecord* of,
           std::optional<Observation>* into) -> net::awaitable<void> {
          auto looked = co_await kind->look(at, *of);
          if (!looked) {
            *into = Observation{.kind = Observation::Kind::kFailed,
                                .code = std::string(to_string(looked.error().code)),
                                .text = looked.error().message};
            co_return;
          }
          ok(co_await kind->act(at, *of));
          *into = co_await kind->observe(at, *of);
        }(operation.get(), node, &record, &seen),
        [](const std::exception_ptr& error) { EXPECT_FALSE(error); });
    context_.restart();
    context_.run_for(seconds(60));
    EXPECT_TRUE(seen.has_value());
    return seen.value_or(Observation{});
  }
  api::BackupDrilled drilled(const std::string& generation) {
    const auto seen = drill(generation);
    EXPECT_EQ(seen.kind, Observation::Kind::kDone) << seen.code << ": " << seen.text;
    const auto result = api::parse_backup_result<api::BackupDrilled>(seen.text);
    EXPECT_TRUE(result) << seen.text;
    return result ? *result : api::BackupDrilled{};
  }
  /// All but the lock.
  [[nodiscard]] std::vector<std::string> left_in_scratch() const {
    std::vector<std::string> names;
    for (const auto& entry : std::filesystem::directory_iterator(path("scratch"))) {
      if (entry.path().filename() != "verger-drill.lock") {
        names.push_back(entry.path().filename());
      }
    }
    return names;
  }
  [[nodiscard]] bool servers_are_gone() const {
    std::istringstream pids(test::file_text(path("pids")));
    std::int64_t pid = 0;
    bool gone = true;
    while (pids >> pid) {
      gone = gone && !external::process_with(pid);
    }
    return gone;
  }

  test::TempDirectory directory_;
  FileSystem& files_ = posix_file_system();
  SeededRandom random_{3};
  test::ManualClock clock_;
  net::io_context context_{1};
  node::InlineJobRunner runner_{http::system_timers()};
  backup::DirectoryStore store_{files_, path("repository"), random_};
  LeaderAnswers client_;
  client::NodeClient node_client_{
      client_, {.tls = false, .host = "n1", .port = 2113}, client::SharedCredentials()};
  std::shared_ptr<JobControl> control_ = std::make_shared<JobControl>(clock_);
  std::shared_ptr<DrillSettings> settings_;
};

TEST_F(DrillTest, OfASoundBackupPassesAndLeavesNothingButItsRecord) {
  const auto id = back_up();
  const auto result = drilled(id);
  EXPECT_TRUE(result.passed) << result.summary;
  EXPECT_TRUE(result.logical_equal);
  EXPECT_TRUE(result.readable_equal);
  EXPECT_EQ(result.streams, 5);
  EXPECT_EQ(result.events, 60);
  EXPECT_GE(result.age_ms, 90'000);
  EXPECT_EQ(result.end_position, value(repository().load(id)).positions.end.value());
  EXPECT_THAT(left_in_scratch(), IsEmpty());
  EXPECT_TRUE(servers_are_gone());
  const auto checks = value(repository().checks(id));
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_EQ(checks[0].kind, backup::BackupCheck::Kind::kDrill);
  EXPECT_TRUE(checks[0].passed);
  EXPECT_EQ(checks[0].by, "run r1");
  EXPECT_EQ(checks[0].figures.at("events"), 60);
}

TEST_F(DrillTest, WithoutDigestsInTheManifestComparesWithTheRestoredFiles) {
  const auto result = drilled(back_up(backup::WantedDigests::kNone));
  EXPECT_TRUE(result.passed) << result.summary;
  // A server that changes what it was given is found.
  const auto id = back_up(backup::WantedDigests::kLogical);
  settings_->command =
      "cd \"$VERGER_DRILL_DB\" && chmod u+w chunk-000000.000000 && printf x | dd "
      "of=chunk-000000.000000 bs=1 seek=5000 conv=notrunc 2> /dev/null; touch " +
      path("changed").string() + "; exec sleep 600";
  client_.leads = [this] { return std::filesystem::exists(path("changed")); };
  const auto changed = drilled(id);
  EXPECT_FALSE(changed.passed);
  EXPECT_FALSE(changed.summary.empty());
}

TEST_F(DrillTest, OfADamagedBackupIsDoneAndSaysSo) {
  const auto id = back_up();
  const auto manifest = value(repository().load(id));
  const auto blob = store_.blob_path(manifest.find("chunk-000000.000000")->sha256);
  auto content = value(read_file(files_, blob));
  content[5000] ^= std::byte{1};
  ok(write_file_durably(files_, blob, content));
  const auto result = drilled(id);
  EXPECT_FALSE(result.passed);
  EXPECT_THAT(result.summary, HasSubstr("chunk-000000.000000"));
  EXPECT_THAT(left_in_scratch(), IsEmpty());
  const auto checks = value(repository().checks(id));
  ASSERT_EQ(checks.size(), 1U);
  EXPECT_FALSE(checks[0].passed);
}

TEST_F(DrillTest, WhoseServerDoesNotStartIsDoneAndShowsTheEndOfItsLog) {
  settings_->command = "echo cannot open the database; exit 3";
  client_.leads = [] { return false; };
  const auto result = drilled(back_up());
  EXPECT_FALSE(result.passed);
  EXPECT_THAT(result.summary, HasSubstr("status 3"));
  EXPECT_THAT(result.summary, HasSubstr("cannot open the database"));
  EXPECT_THAT(left_in_scratch(), IsEmpty());
}

TEST_F(DrillTest, StartsTheServerAgainThatEndsInOrderToCutItsLog) {
  settings_->command = "echo $$ >> " + path("pids").string() + "; test -e " + path("cut").string() +
                       " || { touch " + path("cut").string() + "; exit 0; }; touch " +
                       path("up").string() + "; exec sleep 600";
  client_.leads = [this] { return std::filesystem::exists(path("up")); };
  const auto result = drilled(back_up());
  EXPECT_TRUE(result.passed) << result.summary;
  EXPECT_TRUE(servers_are_gone());
}

TEST_F(DrillTest, WhoseServerHasLostTheEndOfTheLogDoesNotPass) {
  client_.writer = 10;
  const auto result = drilled(back_up());
  EXPECT_FALSE(result.passed);
  EXPECT_THAT(result.summary, HasSubstr("is at position 10 only"));
}

TEST_F(DrillTest, RemovesWhatOneLeftThatWasKilled) {
  const auto left = path("scratch") / "drill-20200101t000000z-00000000";
  std::filesystem::create_directories(left / "db" / "index");
  std::filesystem::create_directories(path("scratch") / "drill-of-someone-else");
  ok(write_file_durably(files_, left / "db" / "index" / "indexmap", Bytes(5)));
  auto child = value(external::ChildProcess::start(
      {.command = {"/bin/sh", "-c", "echo $$ >> " + path("pids").string() + "; exec sleep 600"}}));
  ASSERT_TRUE(
      test::eventually(seconds(20), [&] { return !test::file_text(path("pids")).empty(); }));
  const auto process = external::process_with(child->id());
  ASSERT_TRUE(process);
  ok(write_file_durably(
      files_, left / "verger-drill.json",
      as_bytes(json{{"process", process->id}, {"started", process->started}}.dump())));
  EXPECT_TRUE(drilled(back_up()).passed);
  EXPECT_THAT(left_in_scratch(), ElementsAre("drill-of-someone-else"));
  EXPECT_TRUE(test::eventually(seconds(20), [&] { return child->status().has_value(); }));
}

TEST_F(DrillTest, ThatIsCancelledEndsItsServerAndLeavesNothing) {
  int looks = 0;
  client_.leads = [&] {
    if (++looks == 3) {
      control_->cancel(/*keep=*/false);
    }
    return false;
  };
  const auto id = back_up();
  const auto seen = drill(id);
  EXPECT_EQ(seen.kind, Observation::Kind::kFailed);
  EXPECT_EQ(seen.code, "stopped");
  EXPECT_THAT(left_in_scratch(), IsEmpty());
  EXPECT_TRUE(servers_are_gone());
  EXPECT_THAT(value(repository().checks(id)), IsEmpty()) << "nothing was found out";
}

TEST_F(DrillTest, NeedsAScratchDirectoryAndAGenerationAndIsAlone) {
  EXPECT_EQ(drill("latest").code, "invalid_argument");
  EXPECT_EQ(drill("20200101t000000z-00000000").code, "not_found");
  const auto id = back_up();
  {
    const auto lock = value(files_.lock(path("scratch") / "verger-drill.lock"));
    EXPECT_EQ(drill(id).code, "refused");
  }
  std::filesystem::remove_all(path("scratch"));
  EXPECT_EQ(drill(id).code, "not_found");
  settings_ = nullptr;
  EXPECT_EQ(drill(id).code, "unsupported");
}

TEST(DrillPlace, KeepsAReserveOfTheDisk) {
  MemoryFileSystem disk;
  ok(disk.make_directories("/scratch"));
  const auto place = value(DrillPlace::open(disk, "/scratch", "20200101t000000z-00000000"));
  disk.set_free_space(100'000);
  const auto refused = place->check_space(200'000);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::kNoSpace);
  EXPECT_THAT(refused.error().message, HasSubstr("/scratch"));
}

TEST(DrillReading, ReadsEachStreamOnceAndNoDeletedOne) {
  MemoryFileSystem disk;
  test::ManualClock clock;
  SeededRandom random(1);
  test::DatabaseBuilder builder(disk, "/drill/db");
  for (int i = 0; i < 30; ++i) {
    builder.write(fmt::format("s{}", i % 4), 3);
  }
  builder.write("gone", 5);
  builder.hard_delete("gone");
  builder.write("short", 9);
  builder.metadata("short", R"({"$maxCount":2})");
  backup::Manifest manifest;
  manifest.positions.end = builder.database().transaction_log().end();
  builder.write("s0", 1);  // behind the end
  builder.close();
  DrillReading reading("/drill/db", manifest, DrillReading::Scope::kEverything,
                       {.files = disk, .clock = clock, .random = random, .log = null_log()});
  while (value(reading.step({.units = 50})).kind != StepOutcome::Kind::kDone) {
    EXPECT_LE(reading.progress().done, reading.progress().total);
  }
  // s1 to s3, short and its metadata; s0's last event lies behind the end.
  EXPECT_EQ(reading.findings().streams, 5);
  EXPECT_EQ(reading.findings().events, 24 + 21 + 21 + 2 + 1);
}

}  // namespace
}  // namespace verger::agent
