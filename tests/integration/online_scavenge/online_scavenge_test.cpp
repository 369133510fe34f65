// The agent's operation online_scavenge beside an embedded node that serves, over its Unix socket.
#include <fstream>
#include <future>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <nlohmann/json.hpp>

#include "engine/base/failpoint.h"
#include "engine/online/installation.h"
#include "engine/online/prepared_chunks.h"
#include "engine/online/shadow.h"
#include "nodeagent/external/online_access.h"
#include "nodeagent/operations/jobs/job_control.h"
#include "nodeagent/operations/online_scavenge/online_scavenge_work.h"
#include "nodeagent/operations/scavenge/scavenge_operations.h"
#include "tests/integration/online_scavenge/failpoint_action.h"
#include "tests/support/database/database_builder.h"
#include "tests/support/filling_disk.h"
#include "tests/support/results.h"
#include "tests/support/scavenge/run.h"
#include "tests/support/scavenge/snapshot.h"
#include "tests/support/socket_node/socket_node.h"

namespace verger::agent {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

constexpr std::int32_t kChunkSize = 4096;
constexpr std::uint64_t kTableEntries = 16;

/// A hundredth of the time.
class QuickTimers final : public http::Timers {
 public:
  net::awaitable<void> sleep_for(std::chrono::milliseconds duration) override {
    return http::system_timers().sleep_for(std::max(duration / 100, 1ms));
  }
};

/// Chunks, index and state as of the point, in words.
struct Scavenged {
  std::vector<std::string> chunks;  ///< ranges of files
  std::map<std::int64_t, std::string> records;
  std::vector<index::IndexEntry> entries;
  test::StateRows state;
};

class OnlineScavenge : public test::SocketNode {
 public:
  OnlineScavenge() {
    fill();
    open();
  }
  ~OnlineScavenge() override {
    set_failpoint_hook(nullptr);
    at_failpoint() = {};
    failpoint_name().clear();
    run(stop());
  }

  void fill() {
    test::BuilderOptions options;
    options.chunk_size = kChunkSize;
    options.max_mem_table_size = kTableEntries;
    options.seconds_per_write = 60;
    test::DatabaseBuilder builder(posix_file_system(), database(), options);
    builder.metadata("count", R"({"$maxCount":2})");
    builder.metadata("age", R"({"$maxAge":900})");
    for (int n = 0; n < 10; ++n) {
      builder.write("count", 2);
      builder.write("age");
      builder.write("plain");
      builder.write("gone");
    }
    builder.hard_delete("gone");
    point_ = builder.point();
    builder.write("plain");
    builder.close();
    ok(before_.import_tree(posix_file_system(), database(), "/db"));
    entries_before_ = test::take_snapshot(before_, "/db").entries;
    ASSERT_FALSE(entries_before_.empty());
    auto own = before_.clone();
    test::ScavengeRun how;
    how.chunk_size = kChunkSize;
    how.max_mem_table_size = kTableEntries;
    value(test::run_scavenge(*own, "/db", how));
    whole_ = of(*own, "/db");
  }

  void open() {
    node::NodeOptions options;
    options.chunk_size = kChunkSize;
    options.max_mem_table_size = kTableEntries;
    SocketNode::open(options);
    node_client_.emplace(client_, endpoint_, client::SharedCredentials());
    run(become_leader());
  }

  net::awaitable<void> own_scavenge() {
    while (co_await send("POST", "/admin/scavenge?syncOnly=true") != 200) {
      co_await pause();  // the lock's connection is just ending
    }
    co_await scavenge_ends();
  }

  /// The operation as the agent acts it, with the record's memory. Throws AgentEnded.
  net::awaitable<void> act() {
    control_ = std::make_shared<JobControl>(system_clock());
    LocalNode local{.client = *node_client_,
                    .inspection = [this]() -> node::NodeInspection* {
                      return node_ ? &node_->inspection() : nullptr;
                    },
                    .timers = timers_,
                    .clock = system_clock(),
                    .log = null_log()};
    local.online = &access_;
    local.jobs = &agent_jobs_;
    local.control = control_;
    local.remember = [this](const std::string& memory) { record_.memory_json = memory; };
    record_.request.parameters_json = json{{"point", wanted_}, {"threads", threads_}}.dump();
    const auto operation =
        make_online_scavenge_operation(query_settings_of(client_, endpoint_, nullptr, 10s));
    const auto looked = co_await operation->look(local, record_);
    EXPECT_TRUE(looked) << looked.error().message;
    ok(co_await operation->act(local, record_));
    seen_ = co_await operation->observe(local, record_);
  }
  void act_once() { run(act()); }
  json result() const {
    EXPECT_EQ(seen_.kind, Observation::Kind::kDone) << seen_.code << ": " << seen_.text;
    return seen_.kind == Observation::Kind::kDone ? json::parse(seen_.text) : json::object();
  }

  /// What is there below the point.
  Scavenged of(FileSystem& files, const Path& directory) const {
    Scavenged out;
    auto snapshot = test::take_snapshot(files, directory);
    const auto last = point_.position.value() / kChunkSize;
    for (auto& chunk : snapshot.chunks) {
      EXPECT_EQ(chunk.problem, "");
      if (chunk.start <= last) {
        out.chunks.push_back(fmt::format("{}-{} v{} {} bytes{}", chunk.start, chunk.end,
                                         chunk.version, chunk.file_size,
                                         chunk.scavenged ? " scavenged" : ""));
        out.records.merge(chunk.records);
      }
    }
    // What was only in memory then may have come into a table since, thinned or not.
    for (const auto& entry : snapshot.entries) {
      if (entry.position < point_.position && std::ranges::binary_search(entries_before_, entry)) {
        out.entries.push_back(entry);
      }
    }
    out.state = std::move(snapshot.state);
    return out;
  }
  /// The node's files against those that one scavenge of the same start gives. Not `once`: a chunk
  /// may have been executed again, and time stamps accumulated from what was left in it.
  void expect_scavenged(bool once = true) {
    run(stop());
    const auto found = of(posix_file_system(), database());
    if (once) {
      EXPECT_EQ(found.chunks, whole_.chunks);
      EXPECT_EQ(found.state, whole_.state);
    }
    EXPECT_TRUE(found.records == whole_.records);
    EXPECT_TRUE(found.entries == whole_.entries);
    EXPECT_THAT(left_over(), IsEmpty());
    open();
  }
  /// What an online scavenge may leave in the database directory.
  std::vector<std::string> left_over() {
    std::vector<std::string> names;
    for (const auto& entry : value(posix_file_system().list(database()))) {
      if (entry.name.ends_with(".tmp") || entry.name.starts_with(".verger")) {
        names.push_back(entry.name);
      }
    }
    return names;
  }
  /// Of the node's scavenge state.
  std::string checkpoint() {
    const auto rows = test::read_state(posix_file_system(), database() / "index")["Checkpoint"];
    return rows.empty() ? "" : rows.front();
  }
  void at(std::string name, std::function<void()> action) {
    failpoint_name() = std::move(name);
    at_failpoint() = std::move(action);
    set_failpoint_hook(&on_failpoint);
  }

  MemoryFileSystem before_;
  streams::ScavengePoint point_;
  std::vector<index::IndexEntry> entries_before_;  ///< of its tables
  Scavenged whole_;
  net::thread_pool agent_pool_{1};
  QuickTimers timers_;
  node::PoolJobRunner agent_jobs_{agent_pool_.get_executor(), timers_};
  std::optional<client::NodeClient> node_client_;
  test::FillingDisk disk_{posix_file_system()};  ///< as the agent has it
  external::OnlineAccess access_{{.database = database(), .index = {}},
                                 {disk_, system_clock(), system_random(), null_log()},
                                 http::system_timers(),
                                 [] { return std::string("24.6.0"); }};
  std::shared_ptr<JobControl> control_;
  OperationRecord record_;
  std::int64_t wanted_ = 0;
  int threads_ = 1;
  Observation seen_;
};

TEST(OnlineParameters, AreAPointAndThreads) {
  const auto parsed = value(parse_online_parameters(R"({"point":3,"threads":4})"));
  EXPECT_EQ(parsed.point, 3);
  EXPECT_EQ(parsed.threads, 4);
  EXPECT_EQ(value(parse_online_parameters(R"({"point":0})")).threads, 1);
  for (const auto* text : {"{}", "[]", R"({"point":"0"})", R"({"point":0,"threads":5})",
                           R"({"point":0,"threads":0})"}) {
    EXPECT_EQ(parse_online_parameters(text).error().code, Errc::kInvalidArgument) << text;
  }
}

TEST(OnlineSettings, AreReadAsServersWriteThem) {
  const auto settings = value(parse_scavenge_settings(
      R"([{"name":"ScavengeBackendPageSize","value":"8192"},{"name":"UnsafeIgnoreHardDelete","value":"True"}])"));
  EXPECT_EQ(settings.page_size, 8192);
  EXPECT_TRUE(settings.ignores_hard_deletes);
  const auto others = value(parse_scavenge_settings(
      R"([{"name":"ScavengeBackendPageSize","value":4096},{"name":"UnsafeIgnoreHardDelete","value":false},1,{}])"));
  EXPECT_EQ(others.page_size, 4096);
  EXPECT_FALSE(others.ignores_hard_deletes);
  EXPECT_EQ(parse_scavenge_settings("{}").error().code, Errc::kCorruption);
}

TEST_F(OnlineScavenge, GivesWhatOneScavengeGivesBesideWrites) {
  threads_ = 2;
  int written = 0;
  int not_written = 0;
  run([](OnlineScavenge* test, int& good, int& bad) -> net::awaitable<void> {
    const auto writing = std::make_shared<bool>(true);
    const auto write = [](OnlineScavenge* at, std::shared_ptr<bool> on, int* one,
                          int* other) -> net::awaitable<void> {
      while (*on) {
        const auto status = co_await at->send("POST", "/streams/orders", R"({"n":2})");
        (status == 201 ? *one : *other) += 1;
        co_await http::system_timers().sleep_for(5ms);
      }
    };
    net::co_spawn(test->context_, write(test, writing, &good, &bad),
                  [&bad](const std::exception_ptr& failure) { bad += failure ? 1 : 0; });
    co_await test->act();
    *writing = false;
  }(this, written, not_written));
  EXPECT_GT(written, 0);
  EXPECT_EQ(not_written, 0);
  const auto told = result();
  EXPECT_EQ(told["point"]["number"], 0);
  EXPECT_GE(told["chunksSwitched"], 2);
  EXPECT_EQ(told["chunksLeft"], 0);
  EXPECT_GT(told["recordsRemoved"], 10);
  EXPECT_FALSE(told["scavengeId"].get<std::string>().empty());
  EXPECT_EQ(control_->progress().phase, "server");
  expect_scavenged();
}

class InterruptedOnline : public OnlineScavenge,
                          public ::testing::WithParamInterface<const char*> {};

TEST_P(InterruptedOnline, IsContinuedByTheNextAgent) {
  at(GetParam(), [] {
    failpoint_name().clear();
    throw AgentEnded("here");
  });
  EXPECT_THROW(act_once(), AgentEnded) << "not reached";
  act_once();
  EXPECT_EQ(result()["point"]["number"], 0);
  expect_scavenged();
}

TEST_P(InterruptedOnline, IsFinishedByTheServerAlone) {
  at(GetParam(), [] {
    failpoint_name().clear();
    throw AgentEnded("here");
  });
  EXPECT_THROW(act_once(), AgentEnded) << "not reached";
  run(scavenge_ends());
  run(own_scavenge());
  ok(online_scavenge::remove_shadow(posix_file_system(), database()));
  // Chunks that were switched without their state are executed once more.
  expect_scavenged(/*once=*/false);
}

INSTANTIATE_TEST_SUITE_P(At, InterruptedOnline,
                         ::testing::Values("online.lock.taken", "online.shadow.made",
                                           "online.native.before-prepared", "online.native.done",
                                           "online.compare.done", "online.switch.offered",
                                           "online.switch.answered", "online.state.before-install",
                                           "online.state.after-install", "online.state.remembered",
                                           "online.server.started", "online.server.done"),
                         [](const auto& parameter) {
                           std::string name(parameter.param);
                           std::ranges::replace_if(
                               name, [](char c) { return c == '.' || c == '-'; }, '_');
                           return name;
                         });

/// Where the disk becomes full, and how many chunks are switched then; -1: all.
struct FullFrom {
  const char* name;
  const char* failpoint;
  int switched;
};

class OnlineOnFullDisk : public OnlineScavenge, public ::testing::WithParamInterface<FullFrom> {
 protected:
  void expect_switched(int wanted) {
    auto& files = posix_file_system();
    int nth = 0;
    for (const auto& chunk : value(online_scavenge::load_preparation(files, database())).chunks) {
      EXPECT_EQ(value(online_scavenge::standing_of(files, database(), chunk)),
                wanted < 0 || nth++ < wanted ? online_scavenge::Standing::kSwitched
                                             : online_scavenge::Standing::kWaiting);
    }
  }
};

TEST_P(OnlineOnFullDisk, EndsWithTheReasonAndTheNextRunDoesTheRest) {
  int reached = 0;
  at(GetParam().failpoint, [this, &reached] {
    const auto all = value(online_scavenge::load_preparation(posix_file_system(), database()));
    disk_.full = disk_.full || ++reached >= (GetParam().switched < 0 ? std::ssize(all.chunks) : 1);
  });
  for (const bool again : {false, true}) {  // still no room: nothing more happens
    SCOPED_TRACE(again);
    record_ = {};
    act_once();
    EXPECT_EQ(seen_.code, "no_space");
    EXPECT_THAT(seen_.text, HasSubstr(database().string()));
    EXPECT_THAT(seen_.text, HasSubstr(again ? "0 bytes are free" : "no space left on device"));
    expect_switched(GetParam().switched);
    EXPECT_EQ(checkpoint(), "") << "a state that is not that of the chunks";
  }
  run([](OnlineScavenge* test) -> net::awaitable<void> {
    EXPECT_EQ(co_await test->send("POST", "/streams/plain", R"({"n":1})"), 201);
  }(this));
  at("", {});
  disk_.full = false;
  record_ = {};
  act_once();
  EXPECT_GE(result()["chunksSwitched"], 2);
  EXPECT_EQ(result()["chunksLeft"], 0);
  expect_scavenged();
}

INSTANTIATE_TEST_SUITE_P(
    At, OnlineOnFullDisk,
    ::testing::Values(FullFrom{"BeforeTheFirstSwitch", "online.compare.done", 0},
                      FullFrom{"WhileAChunkIsOffered", "online.switch.offered", 1},
                      FullFrom{"BetweenTwoSwitches", "online.switch.answered", 1},
                      FullFrom{"BeforeTheState", "online.switch.answered", -1}),
    [](const auto& parameter) { return std::string(parameter.param.name); });

TEST_F(OnlineScavenge, StopsBetweenTwoChunksAndLeavesTheRestToTheServer) {
  at("online.switch.answered", [this] { control_->cancel(/*keep=*/false); });
  act_once();
  EXPECT_EQ(seen_.kind, Observation::Kind::kFailed);
  EXPECT_EQ(seen_.code, "stopped");
  EXPECT_THAT(left_over(), IsEmpty());
  EXPECT_THAT(checkpoint(), HasSubstr("ExecutingChunks"));
  run(own_scavenge());
  expect_scavenged();
}

TEST_F(OnlineScavenge, AStopBeforeTheFirstSwitchLeavesAllAsItWas) {
  const auto before = chunk_files();
  at("online.native.done", [this] { control_->cancel(/*keep=*/false); });
  act_once();
  EXPECT_EQ(seen_.code, "stopped");
  EXPECT_THAT(left_over(), IsEmpty());
  EXPECT_EQ(chunk_files(), before);
  EXPECT_EQ(checkpoint(), "");
  // The lock is free.
  run(own_scavenge());
  expect_scavenged();
}

TEST_F(OnlineScavenge, FinishesAnOlderPointFirst) {
  at("online.switch.answered", [this] { control_->cancel(/*keep=*/false); });
  act_once();
  ASSERT_EQ(seen_.code, "stopped");
  at("", {});
  record_ = {};
  run([](OnlineScavenge* test) -> net::awaitable<void> {
    EXPECT_EQ(co_await test->send("POST", "/streams/$scavengePoints", "{}", "$scavengePoint"), 201);
  }(this));
  wanted_ = 1;
  act_once();
  EXPECT_EQ(result()["point"]["number"], 1);
}

TEST_F(OnlineScavenge, AChunkThatTheServerRefusesIsExecutedByTheServer) {
  // The file is altered between the comparison and the switch.
  at("online.compare.done", [this] {
    const auto prepared = value(online_scavenge::load_preparation(posix_file_system(), database()));
    const auto path =
        online_scavenge::shadow_directory(database()) / prepared.chunks.at(0).made.name;
    ok(posix_file_system().set_read_only(path, false));
    std::fstream file(path, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(200);
    file.put('\x5a');
    file.flush();
    EXPECT_TRUE(file.good());
  });
  act_once();
  const auto told = result();
  EXPECT_EQ(told["chunksLeft"], 1);
  EXPECT_GE(told["chunksSwitched"], 1);
  expect_scavenged();
}

TEST_F(OnlineScavenge, GivesUpWhileAnotherHasTheChunkLock) {
  const auto before = chunk_files();
  run([](OnlineScavenge* test) -> net::awaitable<void> {
    const auto other = value(test->access_.connect(test->context_.get_executor()));
    {
      const auto held = to_result(co_await other->lock());
      EXPECT_TRUE(held);
      co_await test->act();
    }
  }(this));
  EXPECT_EQ(seen_.code, "lock_held");
  EXPECT_THAT(seen_.text, HasSubstr("a scavenge or another redaction has the chunk lock"));
  EXPECT_EQ(chunk_files(), before);
  EXPECT_THAT(left_over(), IsEmpty());
}

TEST_F(OnlineScavenge, GivesUpWhileAScavengeOfTheServerHasTheChunkLock) {
  std::promise<void> may_end;
  at("scavenge.accumulate.before-commit", [end = may_end.get_future().share()] { end.wait(); });
  run([](OnlineScavenge* test) -> net::awaitable<void> {
    EXPECT_EQ(co_await test->send("POST", "/admin/scavenge?syncOnly=true"), 200);
    co_await test->act();
  }(this));
  EXPECT_EQ(seen_.code, "lock_held") << seen_.text;
  EXPECT_THAT(left_over(), IsEmpty());
  may_end.set_value();
  run(scavenge_ends());
  record_ = {};
  act_once();
  EXPECT_EQ(result()["chunksSwitched"], 0) << "there is nothing left to do";
  expect_scavenged();
}

TEST_F(OnlineScavenge, AScavengeThatIsRequestedMeanwhileIsRefused) {
  int status = 0;
  at("online.compare.done", [this, &status] {
    net::co_spawn(
        context_,
        [](OnlineScavenge* test, int* into) -> net::awaitable<void> {
          *into = co_await test->send("POST", "/admin/scavenge");
        }(this, &status),
        [](const std::exception_ptr&) {});
  });
  act_once();
  EXPECT_EQ(status, 400);
  EXPECT_EQ(result()["chunksLeft"], 0);
  expect_scavenged();
}

TEST_F(OnlineScavenge, SaysWhatIsNotSupported) {
  wanted_ = 7;
  act_once();
  EXPECT_EQ(seen_.code, "not_supported");
  EXPECT_THAT(seen_.text, HasSubstr("7"));
  record_ = {};
  wanted_ = 0;
  std::filesystem::rename(database() / "eventstore.sock", database() / "moved.sock");
  act_once();
  EXPECT_EQ(seen_.code, "not_supported");
  EXPECT_THAT(seen_.text, HasSubstr("EnableUnixSocket"));
  std::filesystem::rename(database() / "moved.sock", database() / "eventstore.sock");
  record_ = {};
  act_once();
  EXPECT_EQ(result()["point"]["number"], 0);
  // Again: there is nothing to do.
  const auto files = chunk_files();
  record_ = {};
  act_once();
  EXPECT_EQ(result()["chunksSwitched"], 0);
  EXPECT_EQ(chunk_files(), files);
}

}  // namespace
}  // namespace verger::agent
