// Another cluster size in the configuration file of a server: in virtual time, beside a server that
// reads the file at each start.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/base/directories.h"
#include "nodeagent/api/json_answer.h"
#include "nodeagent/external/config_text.h"
#include "nodeagent/operations/resize/server_config_access.h"
#include "tests/support/results.h"
#include "tests/unit/nodeagent_operations/follower_answers.h"
#include "tests/unit/nodeagent_operations/mortal_agent_case.h"
#include "tests/unit/nodeagent_operations/still_node.h"

namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using ::testing::HasSubstr;

constexpr const char* kServerFile = "/etc/server.conf";
constexpr std::string_view kFormerText =
    "# a server\nClusterSize: 3  # voters\nGossipSeed: n2:2113,n3:2113\nDb: /db\n";
constexpr std::string_view kNewText =
    "# a server\nClusterSize: 5  # voters\nGossipSeed: n2:2113,n3:2113,n4:2113,n5:2113\nDb: /db\n";

class SizeCase : public MortalAgentCase {
 public:
  SizeCase() : server_(world_.add_host("server")) {
    ok(make_directories_durably(host_.disk(), "/etc"));
    ok(make_directories_durably(host_.disk(), "/db"));
    write(kFormerText);
    host_.set_disk(host_.disk().clone());
    open();
    start_server();
  }

  /// A new process of the agent, on the disk as it is.
  void open() {
    open_agent(
        {.start = [this] { return set_running(true); },
         .stop = [this] { return set_running(false); },
         .runs = [this] { return server_.up(); }},
        "server", [this]() -> node::NodeInspection* { return server_.up() ? &node_ : nullptr; },
        [this](AgentEnvironment& environment) {
          environment.server_config = std::make_shared<const ServerConfigAccess>(ServerConfigAccess{
              .file = kServerFile, .access = file_access_, .started_with = [this] {
                return started_with();
              }});
        });
  }

  void start_server() {
    server_.boot();
    const auto lines = external::read_cluster_lines(text());
    reports = fixed_size > 0 ? fixed_size : lines ? lines->size : 0;
    server_.serve_http(2113, [this](http::Request request) { return answer_of_server(request); });
    ++starts;
  }

  static json to_five() {
    return {{"change", "run-1"},
            {"from", 3},
            {"to", 5},
            {"addSeeds", {"n4:2113", "n5:2113"}},
            {"serviceDeadlineMs", 600'000}};
  }
  static json back() { return {{"change", "run-1"}, {"serviceDeadlineMs", 600'000}}; }

  MemoryFileSystem& disk() { return host_.disk(); }
  std::string text() {
    const auto bytes = value(read_file(host_.disk(), kServerFile));
    return std::string(as_text(bytes));
  }
  void write(std::string_view content) {
    ok(write_file_durably(host_.disk(), kServerFile, as_bytes(content)));
  }

  testing::SimHost& server_;
  int reports = 0;     ///< by the running server
  int fixed_size = 0;  ///< instead of the one in its file
  bool leads = false;
  bool does_not_start = false;
  int resigned = 0;
  int starts = 0;
  external::StartOptions started{};

 private:
  net::awaitable<Result<void>> set_running(bool wanted) {
    if (wanted && does_not_start) {
      co_return Error{Errc::kIo, "it ended at once"};
    }
    if (wanted && !server_.up()) {
      start_server();
    } else if (!wanted && server_.up()) {
      server_.crash(/*power=*/false);
    }
    co_return Result<void>();
  }
  net::awaitable<Result<std::optional<external::StartOptions>>> started_with() {
    co_return server_.up() ? std::optional(started) : std::nullopt;
  }
  net::awaitable<http::Response> answer_of_server(http::Request request) {
    if (request.target.starts_with("/info/options")) {
      co_return json_response(json::array({{{"name", "Db"}, {"value", "/db"}},
                                           {{"name", "ClusterSize"},
                                            {"value", std::to_string(reports)},
                                            {"configurationSource", "Yaml"}}}));
    }
    if (request.target.starts_with("/gossip")) {
      auto gossip = gossip_of_follower();
      gossip.members[0].state = leads ? api::NodeState::kLeader : api::NodeState::kFollower;
      co_return api::json_text_answer(200, api::to_text(gossip));
    }
    if (request.target == "/admin/node/resign") {
      ++resigned;
      leads = false;
    }
    co_return json_response({{"esVersion", "24.10.0"}, {"state", "follower"}});
  }

  external::FileAccess file_access_;
  StillNode node_;
};

TEST(ServerSize, ChangesTheFileAndRestartsTheServer) {
  SizeCase agent;
  const auto done = agent.run("server_size", SizeCase::to_five());
  EXPECT_EQ(done.value("state", ""), "done") << done;
  EXPECT_EQ(agent.text(), kNewText);
  EXPECT_EQ(agent.reports, 5);
  EXPECT_EQ(agent.starts, 2);
  EXPECT_EQ(done.at("result").value("size", 0), 5) << done;
  EXPECT_EQ(done.at("result").value("seeds", ""), "changed") << done;
  const auto back = agent.run("server_size_restore", SizeCase::back());
  EXPECT_EQ(back.value("state", ""), "done") << back;
  EXPECT_EQ(agent.text(), kFormerText) << "every byte";
  EXPECT_EQ(agent.reports, 3);
}

TEST(ServerSize, HealsTheFilterWhileTheServerIsStoppedWhereThatIsWanted) {
  const Path checkpoint = "/db/index/stream-existence/streamExistenceFilter.chk";
  for (const bool heals : {true, false}) {
    SizeCase agent;
    ok(make_directories_durably(agent.disk(), checkpoint.parent_path()));
    ok(write_file_durably(agent.disk(), checkpoint, as_bytes("12345678")));
    auto asked = SizeCase::to_five();
    asked["healFilter"] = heals;
    EXPECT_EQ(agent.run("server_size", asked).value("state", ""), "done");
    EXPECT_EQ(value(agent.disk().exists(checkpoint)), !heals);
  }
}

TEST(ServerSize, ALeaderResignsFirst) {
  SizeCase agent;
  agent.leads = true;
  EXPECT_EQ(agent.run("server_size", SizeCase::to_five()).value("state", ""), "done");
  EXPECT_EQ(agent.resigned, 1);
}

TEST(LeavingServer, ThatLeadsResignsBeforeItIsStoppedWhereThatIsWanted) {
  SizeCase agent;
  agent.leads = true;
  const auto wrong = agent.run("stop_server", {{"resignFirst", 1}});
  EXPECT_EQ(wrong.value("errorCode", ""), "invalid_argument") << wrong;
  EXPECT_EQ(agent.run("stop_server", {{"resignFirst", true}}).value("state", ""), "done");
  EXPECT_EQ(agent.resigned, 1);
  agent.run("start_service");
  agent.leads = true;
  EXPECT_EQ(agent.run("stop_server").value("state", ""), "done");
  EXPECT_EQ(agent.resigned, 1);
}

TEST(ServerSize, TheFormerFileIsThereAlready) {
  SizeCase agent;
  EXPECT_EQ(agent.run("server_size_restore", SizeCase::back()).value("state", ""), "done");
  EXPECT_EQ(agent.starts, 1) << "nothing is restarted for that";
}

TEST(ServerSize, RefusesWhatTheFileAloneDoesNotSay) {
  SizeCase agent;
  agent.started.arguments = {"--config", kServerFile, "--cluster-size", "3"};
  auto seen = agent.run("server_size", SizeCase::to_five());
  EXPECT_EQ(seen.value("state", ""), "failed") << seen;
  EXPECT_THAT(seen.value("error", ""), HasSubstr("started with --cluster-size 3"));
  agent.started.arguments = {"--config=/etc/other.conf"};
  EXPECT_THAT(agent.run("server_size", SizeCase::to_five()).value("error", ""),
              HasSubstr("/etc/other.conf"));
  agent.started = {.arguments = {}, .environment = {"EVENTSTORE_CLUSTER_SIZE=3"}};
  EXPECT_THAT(agent.run("server_size", SizeCase::to_five()).value("error", ""),
              HasSubstr("EVENTSTORE_CLUSTER_SIZE=3"));
  agent.started = {};
  agent.reports = 7;
  EXPECT_THAT(agent.run("server_size", SizeCase::to_five()).value("error", ""),
              HasSubstr("ClusterSize is 3, but the server reports 7"));
  agent.reports = 3;
  agent.write("ClusterSize: 5\nDb: /db\n");
  agent.reports = 5;
  EXPECT_THAT(agent.run("server_size", SizeCase::to_five()).value("error", ""),
              HasSubstr("ClusterSize is 5, not 3"));
  EXPECT_EQ(agent.starts, 1);
}

TEST(ServerSize, AServerThatReportsTheFormerSizeGetsItsFileBack) {
  SizeCase agent;
  agent.fixed_size = 3;
  const auto seen = agent.run("server_size", SizeCase::to_five());
  EXPECT_EQ(seen.value("errorCode", ""), "no_effect") << seen;
  EXPECT_EQ(agent.text(), kFormerText);
  EXPECT_TRUE(agent.server_.up());
}

TEST(ServerSize, AServerThatDoesNotStartIsRestoredWithItsFormerFile) {
  SizeCase agent;
  agent.does_not_start = true;
  auto asked = SizeCase::to_five();
  asked["serviceDeadlineMs"] = 5'000;
  EXPECT_EQ(agent.run("server_size", asked).value("errorCode", ""), "no_answer");
  EXPECT_FALSE(agent.server_.up());
  agent.does_not_start = false;
  const auto back = agent.run("server_size_restore", SizeCase::back());
  EXPECT_EQ(back.value("state", ""), "done") << back;
  EXPECT_EQ(agent.text(), kFormerText);
  EXPECT_EQ(agent.reports, 3);
}

TEST(ServerSize, AFileThatSomeoneElseHasChangedIsLeftAlone) {
  SizeCase agent;
  EXPECT_EQ(agent.run("server_size", SizeCase::to_five()).value("state", ""), "done");
  const auto foreign = std::string(kNewText) + "MaxAppendSize: 1\n";
  agent.write(foreign);
  const auto back = agent.run("server_size_restore", SizeCase::back());
  EXPECT_EQ(back.value("errorCode", ""), "conflict") << back;
  EXPECT_EQ(agent.text(), foreign);
  EXPECT_TRUE(agent.server_.up());
}

TEST(ServerSize, TheFileAndTheServerAreShown) {
  SizeCase agent;
  EXPECT_EQ(agent.status("GET", "/agent/v1/server-config"), 200);
  EXPECT_EQ(agent.answer.value("clusterSize", 0), 3) << agent.answer;
  EXPECT_EQ(agent.answer.value("reported", 0), 3);
  EXPECT_EQ(agent.answer.value("problem", ""), "");
  agent.started.arguments = {"--gossip-seed", "n2:2113"};
  agent.status("GET", "/agent/v1/server-config");
  EXPECT_EQ(agent.answer.value("seedsFrom", ""), "--gossip-seed n2:2113");
}

/// The agent, or its machine with the agent, dies at an operation on its disk. False: it never came
/// to that many.
bool size_agent_dies_at(std::uint64_t nth, bool power) {
  SizeCase agent;
  auto& disk = agent.host_.disk();
  disk.reset_count();
  bool reached = false;
  disk.set_fault_hook([&, nth](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.number < nth || reached) {
      return reached ? std::optional(Error{Errc::kIo, "dead"}) : std::nullopt;
    }
    reached = true;
    agent.host_.die(power, power ? std::optional(nth) : std::nullopt);
    return Error{Errc::kIo, "dead"};
  });
  const auto id = agent.begin("server_size", SizeCase::to_five());
  agent.world_.run_for(milliseconds(2'000));
  disk.set_fault_hook(nullptr);
  if (reached) {
    agent.open();
  }
  const auto seen = agent.ended(id);
  const bool done = seen.value("state", "") == "done";
  EXPECT_TRUE(agent.server_.up()) << seen;
  EXPECT_EQ(agent.text(), done ? kNewText : kFormerText) << seen;
  EXPECT_EQ(agent.reports, done ? 5 : 3) << seen;
  // However it ended: again it is done, and undone again.
  const auto again = agent.run("server_size", SizeCase::to_five());
  EXPECT_EQ(again.value("state", ""), "done") << again;
  EXPECT_EQ(agent.text(), kNewText);
  const auto back = agent.run("server_size_restore", SizeCase::back());
  EXPECT_EQ(back.value("state", ""), "done") << back;
  EXPECT_EQ(agent.text(), kFormerText);
  EXPECT_EQ(agent.reports, 3);
  return reached;
}

TEST(ServerSizeDeaths, AtEachOperationOnTheDiskTheServerRunsAsItsFileSays) {
  for (const bool power : {false, true}) {
    std::uint64_t nth = 1;
    for (; size_agent_dies_at(nth, power) && !::testing::Test::HasFailure(); ++nth) {
    }
    EXPECT_GT(nth, 20U) << "power " << power;
  }
}

}  // namespace
}  // namespace verger::agent
