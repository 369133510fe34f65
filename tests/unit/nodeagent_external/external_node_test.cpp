#include "nodeagent/external/external_node.h"

#include <charconv>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <utility>

#include <nlohmann/json.hpp>

#include "engine/base/forwarding_file_system.h"
#include "nodeagent/external/offline_server.h"
#include "nodeagent/external/scavenge_count.h"
#include "tests/support/cluster/sim_world.h"

/// A server that a test plays: its routes are scripted, its files lie on a disk in memory.
namespace verger::external {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr auto kRun = "0f3f0d1c-2a86-4e0b-9d3e-5a7b1a5f8f10";

/// A disk whose directories may cease to tell what is in them.
class Disk final : public ForwardingFileSystem {
 public:
  explicit Disk(FileSystem& base) : ForwardingFileSystem(base) {}
  Result<std::vector<DirectoryEntry>> list(const Path& directory) override {
    if (fails) {
      return Error{Errc::kIo, "the disk does not answer"};
    }
    return below().list(directory);
  }
  bool fails = false;
};

/// A runner whose next job begins late, as when the agent's process, or its machine, stood still.
class LateRunner final : public node::JobRunner {
 public:
  explicit LateRunner(http::Timers& timers) : timers_(timers), below_(timers) {}
  net::awaitable<Result<void>> run(std::shared_ptr<Job> job,
                                   std::shared_ptr<const node::StopFlag> stop) override {
    co_await timers_.sleep_for(std::exchange(delay, milliseconds(0)));
    co_return co_await below_.run(std::move(job), std::move(stop));
  }
  milliseconds delay{0};

 private:
  http::Timers& timers_;
  node::InlineJobRunner below_;
};

class ExternalNodeTest : public ::testing::Test {
 protected:
  ExternalNodeTest()
      : host_(world_.add_host("n1")), runner_(host_timers()), looks_(host_.timers()) {
    host_.serve_http(2113, [this](http::Request request) -> net::awaitable<http::Response> {
      co_return answer(request);
    });
    api::GossipMember self;
    self.instance_id = "00000000-0000-0000-0000-000000000001";
    self.state = api::NodeState::kFollower;
    self.is_alive = true;
    self.http_ip = "10.0.0.1";
    self.http_port = 2113;
    self.es_version = "24.6.0";
    self.writer_checkpoint = 100'000;
    auto other = self;
    other.instance_id = "00000000-0000-0000-0000-000000000002";
    other.http_ip = "10.0.0.2";
    gossip_ = {.members = {self, other}, .server_ip = "10.0.0.1", .server_port = 2113};
    write_position(100'000);
    write("/db/chunk-000000.000000", 1000);
    write("/db/chunk-000001.000002", 500);
    write("/db/chunk-000002.000000", 300);
  }

  http::Timers& host_timers() {
    host_.boot();
    return host_.timers();
  }
  void write(const Path& path, std::size_t size) {
    EXPECT_TRUE(host_.disk().make_directories(path.parent_path()).has_value());
    auto file = host_.disk().open(path, OpenMode::kCreate);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    EXPECT_TRUE((*file)->write_at(0, Bytes(size)).has_value());
  }

  void write_position(std::int64_t position) {
    EXPECT_TRUE(host_.disk().make_directories("/db").has_value());
    auto file = host_.disk().open("/db/writer.chk", OpenMode::kCreate);
    ASSERT_TRUE(file.has_value()) << file.error().message;
    Bytes bytes(8);
    store_le(bytes.data(), position);
    EXPECT_TRUE((*file)->write_at(0, bytes).has_value());
  }

  http::Response answer(const http::Request& request) {
    http::Response out;
    out.headers.set("Content-Type", "application/json");
    if (request.target.starts_with("/gossip")) {
      out.body = api::to_text(gossip_);
    } else if (request.target.starts_with("/info/options")) {
      out.body = json{{{"name", "Db"}, {"value", database_}}}.dump();
    } else if (request.target.starts_with("/info")) {
      out.body = api::to_json(api::NodeInfo{.version = "24.6.0", .state = "follower"}).dump();
    } else if (request.target.starts_with("/admin/scavenge/current") && ++asked_for_current_ > 0 &&
               current_status_ != 200) {
      out.status = current_status_;
      out.headers.set("WWW-Authenticate", "X-Basic realm=\"ESDB\"");
    } else if (request.target.starts_with("/admin/scavenge/current")) {
      out.body = json{{"scavengeId", scavenging_ ? kRun : ""}, {"scavengeLink", ""}}.dump();
    } else if (request.target.starts_with("/streams/$scavenges/")) {
      out.body = page_of_log(request.target);
    } else {
      out.status = 404;
    }
    return out;
  }

  /// As the server does: backward from the number or "head", `count` entries.
  std::string page_of_log(const std::string& target) {
    const auto path = target.substr(0, target.find('?'));
    const auto slash = path.rfind('/');
    const auto before = path.rfind('/', slash - 1);
    const auto count = std::stoll(path.substr(slash + 1));
    const auto from_text = path.substr(before + 1, slash - before - 1);
    const auto from = from_text == "head" ? entries_ - 1 : std::stoll(from_text);
    auto entries = json::array();
    for (auto number = from; number >= 0 && number > from - count; --number) {
      const json data{{"scavengeId", kRun},
                      {"chunkStartNumber", 2 * (number - 1)},
                      {"chunkEndNumber", 2 * (number - 1) + 1},
                      {"spaceSaved", 10}};
      entries.push_back(
          {{"eventType", number == 0 ? "$scavengeStarted" : "$scavengeChunksCompleted"},
           {"eventNumber", number},
           {"data", data.dump()}});
    }
    entries_sent_ += static_cast<std::int64_t>(entries.size());
    return json{{"entries", std::move(entries)}}.dump();
  }

  ExternalNode& start() {
    node_.emplace(
        ExternalOptions{.place = {.database = "/db", .index = {}},
                        .node = {.tls = false, .host = "n1", .port = 2113},
                        .credentials = {},
                        .certificate_file = {},
                        .trusted_roots = {},
                        .poll_interval = milliseconds(100)},
        ExternalEnvironment{
            .executor = host_.executor(),
            .files = disk_,
            .clock = host_.clock(),
            .random = random_,
            .timers = host_.timers(),
            .client = host_.client(),
            .jobs = runner_,
            .looks = looks_,
            .log = null_log(),
            .prove = [this](const ConfiguredDirectories& ours, const NodeDirectories& reported) {
              ++proofs_;
              return ours.place.database == reported.database
                         ? Result<void>()
                         : Error{Errc::kConflict,
                                 ours.place.database.string() + " is not " + reported.database};
            }});
    node_->start();
    EXPECT_TRUE(
        world_.run_until([this] { return node_->inspection() != nullptr; }, milliseconds(5'000)));
    return *node_;
  }
  Result<void> prove() {
    std::optional<Result<void>> out;
    host_.spawn(
        [](node::NodeInspection* node, std::optional<Result<void>>& into) -> net::awaitable<void> {
          into = co_await node->prove_directories();
        }(node_->inspection(), out));
    EXPECT_TRUE(world_.run_until([&] { return out.has_value(); }, milliseconds(5'000)));
    return *out;
  }
  Result<void> refresh() {
    std::optional<Result<void>> out;
    host_.spawn(
        [](node::NodeInspection* node, std::optional<Result<void>>& into) -> net::awaitable<void> {
          into = co_await node->refresh();
        }(node_->inspection(), out));
    EXPECT_TRUE(world_.run_until([&] { return out.has_value(); }, milliseconds(5'000)));
    return *out;
  }
  std::string files_problem() {
    api::AgentFacts facts;
    node_->complete(facts);
    return facts.files_problem;
  }

  testing::SimWorld world_{1};
  testing::SimHost& host_;
  Disk disk_{host_.disk()};
  SeededRandom random_{1};
  node::InlineJobRunner runner_;
  LateRunner looks_;
  std::optional<ExternalNode> node_;
  api::Gossip gossip_;
  std::string database_ = "/db";  ///< as the server reports it
  int proofs_ = 0;
  bool scavenging_ = false;
  int current_status_ = 200;
  int asked_for_current_ = 0;
  std::int64_t entries_ = 0;
  std::int64_t entries_sent_ = 0;
};

TEST(ServedCertificate, ThatIsNotTheOneOnDiskIsAWarning) {
  const http::CertificateInfo old{
      .serial = "0A", .fingerprint = "aa", .not_after = "2026-12-01T00:00:00Z"};
  const http::CertificateInfo fresh{
      .serial = "0B", .fingerprint = "bb", .not_after = "2027-12-01T00:00:00Z"};
  EXPECT_EQ(not_reloaded(old, old, "node.crt"), "");
  const auto warning = not_reloaded(old, fresh, "node.crt");
  EXPECT_THAT(warning, HasSubstr("the certificate 0A (valid until 2026-12-01T00:00:00Z)"));
  EXPECT_THAT(warning, HasSubstr("node.crt holds 0B (valid until 2027-12-01T00:00:00Z)"));
  EXPECT_THAT(warning, HasSubstr("/admin/reloadconfig"));
}

TEST_F(ExternalNodeTest, ADirectoryThatCannotBeListedIsAProblemAndNotAnEmptyOne) {
  auto& node = start();
  EXPECT_EQ(node.inspection()->chunks().total_bytes, 1800);
  EXPECT_EQ(node.inspection()->chunks().last_chunk, 2);
  EXPECT_EQ(node.inspection()->chunks().problem, "");
  disk_.fails = true;
  EXPECT_FALSE(refresh().has_value());
  EXPECT_EQ(node.inspection()->chunks().total_bytes, 1800);
  EXPECT_THAT(node.inspection()->chunks().problem, HasSubstr("does not answer"));
  EXPECT_THAT(files_problem(), HasSubstr("does not answer"));
  disk_.fails = false;
  EXPECT_TRUE(refresh().has_value());
  EXPECT_EQ(node.inspection()->chunks().problem, "");
}

TEST_F(ExternalNodeTest, AfterItStoodStillItSoonSeesTheFilesAgain) {
  auto& node = start();
  world_.run_for(milliseconds(1'000));
  looks_.delay = milliseconds(90'000);
  ASSERT_TRUE(
      world_.run_until([this] { return looks_.delay == milliseconds(0); }, milliseconds(5'000)));
  world_.run_for(milliseconds(91'000));
  write("/db/chunk-000003.000000", 200);
  world_.run_for(milliseconds(61'000));
  EXPECT_EQ(node.inspection()->chunks().total_bytes, 2000)
      << "a rest in proportion to the time that it stood still would be half an hour";
}

TEST_F(ExternalNodeTest, AStateDatabaseThatCannotBeReadIsReported) {
  auto& node = start();
  EXPECT_TRUE(refresh().has_value()) << "there is none: nothing was ever scavenged";
  write("/db/index/scavenging/scavenging.db", 5000);
  EXPECT_FALSE(refresh().has_value());
  EXPECT_THAT(files_problem(), HasSubstr("scavenging.db"));
  EXPECT_FALSE(node.inspection()->last_finished_point().has_value());
}

TEST_F(ExternalNodeTest, AServerThatDoesNotLetItsAgentOperateItIsReported) {
  const auto node_problem = [this] {
    api::AgentFacts facts;
    node_->complete(facts);
    return facts.node_problem;
  };
  scavenging_ = true;
  auto& node = start();
  const auto seen = [&] { return node.inspection()->running_scavenge().has_value(); };
  EXPECT_TRUE(world_.run_until(seen, milliseconds(5'000)));
  current_status_ = 503;
  world_.run_for(milliseconds(1'000));
  EXPECT_TRUE(seen()) << "what cannot be seen has not stopped";
  EXPECT_EQ(node_problem(), "") << "that passes";
  current_status_ = 401;
  world_.run_for(milliseconds(1'000));
  EXPECT_THAT(node_problem(), HasSubstr("the user or the password is wrong"));
  current_status_ = 200;
  scavenging_ = false;
  world_.run_for(milliseconds(1'000));
  EXPECT_EQ(node_problem(), "");
  EXPECT_FALSE(seen());
}

TEST_F(ExternalNodeTest, TellsNothingOfADirectoryThatIsNotItsNodes) {
  database_ = "/srv/n3";
  auto& node = start();
  EXPECT_THAT(files_problem(), HasSubstr("/db is not /srv/n3"));
  EXPECT_EQ(node.inspection()->chunks().total_bytes, 0);
  EXPECT_FALSE(node.inspection()->scavenge_points().has_value());
  EXPECT_FALSE(node.inspection()->make_digest_job(0).has_value());
  const auto asked = proofs_;
  world_.run_for(milliseconds(10'000));
  EXPECT_LE(proofs_, asked + 1) << "not with each look: each is a line in the server's log";
  database_ = "/db";
  EXPECT_TRUE(prove().has_value()) << "before each operation it is looked anew";
  EXPECT_EQ(node.inspection()->chunks().total_bytes, 1800);
}

TEST_F(ExternalNodeTest, ALogThatDoesNotMoveWithTheNodeIsNotItsOwn) {
  auto& node = start();
  EXPECT_EQ(files_problem().find("position"), std::string::npos);
  gossip_.members[0].writer_checkpoint = 200'000;
  world_.run_for(milliseconds(1'000));
  const auto behind = prove();
  ASSERT_FALSE(behind.has_value());
  EXPECT_EQ(behind.error().code, Errc::kConflict);
  EXPECT_THAT(behind.error().message, HasSubstr("100000"));
  write_position(300'000);
  world_.run_for(milliseconds(11'000));
  EXPECT_TRUE(prove().has_value()) << "gossip may be older than the file";
  EXPECT_EQ(node.inspection()->chunks().total_bytes, 1800);
  world_.run_for(milliseconds(11'000));
  const auto ahead = prove();
  ASSERT_FALSE(ahead.has_value()) << "but not by so much";
  EXPECT_THAT(ahead.error().message, HasSubstr("300000"));
}

TEST_F(ExternalNodeTest, AServerThatDoesNotScavengeIsSeldomAskedWhetherItDoes) {
  auto& node = start();
  world_.run_for(milliseconds(1'000));
  asked_for_current_ = 0;
  world_.run_for(milliseconds(120'000));
  EXPECT_LE(asked_for_current_, 4) << "each question is a line in the server's log";
  EXPECT_GE(asked_for_current_, 3);
  scavenging_ = true;
  node.inspection()->expect_scavenge();
  EXPECT_TRUE(world_.run_until([&] { return node.inspection()->running_scavenge().has_value(); },
                               milliseconds(1'000)))
      << "what our own operation has started is seen soon";
}

TEST_F(ExternalNodeTest, CountsALongScavengeWholeAndReadsEachEntryOnce) {
  scavenging_ = true;
  entries_ = 1001;  // $scavengeStarted, then 1,000 of two chunks each
  auto& node = start();
  const auto running = [&] { return node.inspection()->running_scavenge(); };
  ASSERT_TRUE(world_.run_until([&] { return running().has_value(); }, milliseconds(5'000)));
  EXPECT_EQ(running()->chunks_done, 2000);
  EXPECT_EQ(running()->bytes_saved, 10'000);
  EXPECT_EQ(running()->chunks_total, 2) << "the chunks before the newest";
  entries_sent_ = 0;
  entries_ += 3;
  world_.run_for(milliseconds(2'000));
  EXPECT_EQ(running()->chunks_done, 2006);
  EXPECT_EQ(running()->bytes_saved, 10'030);
  EXPECT_LE(entries_sent_, 10 * 21) << "a small page a look";
}

}  // namespace
}  // namespace verger::external
