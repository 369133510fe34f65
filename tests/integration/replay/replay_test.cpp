// Every recorded HTTP exchange with a real server, in its file's order, sent to embedded nodes in
// the same setting (tests/fixtures/node-interface/README.md). What is not HTTP stands in
// not_http.h.
#include <fstream>
#include <functional>
#include <gtest/gtest.h>

#include "tests/integration/replay/not_http.h"
#include "tests/integration/replay/setting.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;
using nlohmann::json;

json recorded(const std::string& file) {
  std::ifstream in(std::string(VERGER_TEST_FIXTURES) + "/node-interface/" + file);
  EXPECT_TRUE(in.good()) << file;
  return json::parse(in);
}

bool is_http(const json& element) {
  return element.contains("request") && element["request"].is_object() &&
         element["request"].contains("method") && element.contains("response");
}

/// A file's exchanges, one after the other.
class Replay {
 public:
  explicit Replay(std::string file) : file_(std::move(file)) {}

  /// Where an exchange goes; what has to happen before it.
  std::function<Setting&(const json&)> setting;
  std::function<std::size_t(Setting&, const json&)> node = [](Setting& s, const json& exchange) {
    const auto word = exchange["node"].get<std::string>();
    return word == "follower" ? s.follower() : word == "leader" ? s.leader() : 0U;
  };
  std::function<void(Setting&, const json&)> before = [](Setting&, const json&) {};
  std::function<void(const json&, http::Request&)> alter = [](const json&, http::Request&) {};
  std::function<void(const json&, const http::Response&)> after = [](const json&,
                                                                     const http::Response&) {};

  /// Runs them all: each must match, and there must be `least`.
  void run(std::size_t least) {
    std::size_t total = 0;
    std::size_t matched = 0;
    for (const auto& exchange : recorded(file_)) {
      if (!is_http(exchange)) {
        continue;
      }
      ++total;
      const auto title = exchange["title"].get<std::string>();
      auto& at = setting(exchange);
      before(at, exchange);
      const auto target = node(at, exchange);
      auto request = request_of(exchange, target, names_);
      alter(exchange, request);
      const auto answer = at.send(target, request);
      learn(exchange, answer);
      after(exchange, answer);
      const auto found = differences(exchange, answer, names_);
      at.world.run_for(20ms);
      if (found.empty()) {
        ++matched;
      } else {
        ADD_FAILURE() << file_ << ": " << title << " (" << exchange["credentials"]
                      << "): " << request.method << " " << request.target << "\n  "
                      << fmt::format("{}", fmt::join(found, "\n  "));
      }
    }
    EXPECT_GE(matched, least) << "of " << total;
    std::printf("replay: %-26s %zu of %zu matched\n", file_.c_str(), matched, total);
  }

 private:
  /// Scavenge ids: the recording's and ours.
  void learn(const json& exchange, const http::Response& answer) {
    const auto id = [](const json& body) -> std::string {
      constexpr std::string_view label = "ScavengeId: ";
      if (body.is_object() && body.contains("scavengeId")) {
        return body["scavengeId"].get<std::string>();
      }
      const auto text = body.is_string() ? body.get<std::string>() : std::string();
      return text.starts_with(label) ? text.substr(label.size(), 36) : std::string();
    };
    if (exchange["request"]["method"] != "POST") {
      return;
    }
    const auto parsed = json::parse(answer.body, nullptr, false);
    const auto theirs = id(exchange["response"]["body"]);
    const auto ours = id(parsed.is_discarded() ? json(answer.body) : parsed);
    if (!theirs.empty() && !ours.empty()) {
      names_.learn(theirs, ours);
    }
  }

  std::string file_;
  Names names_;
};

std::string target_of(const json& exchange) { return exchange["request"]["path"]; }
std::string title_of(const json& exchange) { return exchange["title"]; }

bool starts_a_scavenge(const json& exchange) {
  return exchange["request"]["method"] == "POST" &&
         target_of(exchange).starts_with("/admin/scavenge") &&
         exchange["response"]["status"] == 200;
}
bool reads_a_finished_run(const json& exchange) {
  const auto target = target_of(exchange);
  return target.starts_with("/streams/$scavenges/") || title_of(exchange) == "all runs" ||
         title_of(exchange) == "scavenge points" || title_of(exchange) == "points";
}

/// A run continues until the next one is requested, or its log.
void wait_for_runs(Setting& setting, const json& exchange) {
  if (starts_a_scavenge(exchange) || reads_a_finished_run(exchange)) {
    for (std::size_t i = 0; i < setting.cluster.size(); ++i) {
      if (setting.cluster.node(i) != nullptr) {
        setting.wait_until_idle(i);
      }
    }
  }
}

void on_single(Replay& replay, Setting& single) {
  replay.setting = [&single](const json&) -> Setting& { return single; };
}

TEST(Replay, ScavengeValidation) {
  const auto single = single_node();
  Replay replay("scavenge-validation.json");
  on_single(replay, *single);
  replay.run(39);
}

TEST(Replay, ScavengeLifecycle) {
  // What was recorded within milliseconds of a stop.
  const auto single = single_node({.stop_lingers = 100ms});
  single->fill(10, 30);
  Replay replay("scavenge-lifecycle.json");
  on_single(replay, *single);
  replay.before = wait_for_runs;
  replay.run(22);
}

TEST(Replay, ScavengeResults) {
  const auto single = single_node();
  single->fill(10, 30);
  Replay replay("scavenge-results.json");
  on_single(replay, *single);
  replay.before = [](Setting& setting, const json& exchange) {
    const auto title = title_of(exchange);
    if (title == "killed during a slow run: its log" ||
        title == "SIGTERM during a slow run: its log") {
      setting.restart(0);
    }
    if (title.ends_with(": its log") || starts_a_scavenge(exchange)) {
      setting.wait_until_idle(0);
    }
    if (starts_a_scavenge(exchange)) {
      setting.fill(6, 24);  // something to do for it
    }
  };
  replay.run(25);
}

TEST(Replay, ScavengeRolling) {
  const auto secure = secure_cluster();
  secure->fill(10, 30);
  EXPECT_TRUE(secure->cluster.run_until_level());
  const auto last = secure->leader();
  Replay replay("scavenge-rolling.json");
  on_single(replay, *secure);
  replay.before = [](Setting& setting, const json& exchange) {
    EXPECT_TRUE(setting.cluster.run_until_settled());
    wait_for_runs(setting, exchange);
    EXPECT_TRUE(setting.cluster.run_until_level());
  };
  replay.node = [last](Setting& setting, const json& exchange) -> std::size_t {
    const auto title = title_of(exchange);
    return title == "scavenge node 1 of 3"   ? (last + 1) % 3
           : title == "scavenge node 2 of 3" ? (last + 2) % 3
           : title == "scavenge node 3 of 3" ? last
                                             : setting.leader();
  };
  replay.run(8);
}

TEST(Replay, Auth) {
  const auto secure = secure_cluster();
  secure->create_users(true);
  Replay replay("auth.json");
  on_single(replay, *secure);
  replay.alter = [](const json& exchange, http::Request& request) {
    const auto title = title_of(exchange);
    if (title == "malformed Authorization header") {
      request.headers.set("Authorization", "Basic this is not base64");
    } else if (title == "unsupported scheme") {
      request.headers.set("Authorization", "Digest username=\"admin\"");
    } else if (title == "Basic without colon") {
      request.headers.set("Authorization", "Basic YWRtaW4=");
    }
  };
  replay.run(114);
}

TEST(Replay, Users) {
  const auto secure = secure_cluster();
  Replay replay("users.json");
  on_single(replay, *secure);
  std::string password = "secret1";
  std::string former;
  replay.before = [](Setting& setting, const json&) {
    EXPECT_TRUE(setting.cluster.run_until_level());
  };
  replay.node = [](Setting& setting, const json& exchange) {
    return exchange["node"] == "follower" ? setting.follower() : setting.leader();
  };
  replay.alter = [&](const json& exchange, http::Request& request) {
    if (exchange["credentials"] == "fiona") {
      const bool old = title_of(exchange).starts_with("old password");
      request.headers.set("Authorization",
                          http::basic_authorization("fiona", old ? former : password));
    }
  };
  replay.after = [&](const json& exchange, const http::Response& answer) {
    const auto& body = exchange["request"]["body"];
    if (answer.status == 200 && body.is_object() && body.contains("newPassword")) {
      former = password;
      password = body["newPassword"];
    }
  };
  replay.run(33);
}

/// Some exchanges of the file went to a single node, the others to a cluster.
void on_both(Replay& replay, Setting& single, Setting& secure) {
  replay.setting = [&](const json& exchange) -> Setting& {
    return exchange["cluster"] == "single" ? single : secure;
  };
  replay.node = [&secure](Setting& setting, const json& exchange) -> std::size_t {
    const auto word = exchange["node"].get<std::string>();
    if (&setting != &secure) {
      return 0;
    }
    return word == "leader" ? setting.leader() : setting.follower();
  };
}

TEST(Replay, NodeFacts) {
  const auto single = single_node();
  const auto secure = secure_cluster();
  Replay replay("node-facts.json");
  on_both(replay, *single, *secure);
  replay.run(47);
}

TEST(Replay, NodeCommands) {
  const auto single = single_node();
  const auto secure = secure_cluster();
  Replay replay("node-commands.json");
  on_both(replay, *single, *secure);
  replay.before = [](Setting& setting, const json&) {
    EXPECT_TRUE(setting.cluster.run_until_settled());
  };
  replay.run(16);
}

TEST(Replay, Certificates) {
  const auto secure = secure_cluster();
  Replay replay("certificates.json");
  on_single(replay, *secure);
  replay.run(25);
}

TEST(Replay, Redaction) {
  const auto single = single_node();
  single->fill(10, 30, 30);
  single->redact(0, "load-1-4", 5);
  const auto locked = single_node({.chunk_lock_held = true});
  Replay replay("redaction.json");
  replay.setting = [&](const json& exchange) -> Setting& {
    const bool while_it_redacts = title_of(exchange).contains("holds the chunk lock");
    return while_it_redacts ? *locked : *single;
  };
  replay.before = wait_for_runs;
  replay.run(8);
}

std::size_t by_role(Setting& setting, const json& exchange) {
  const auto word = exchange["node"].get<std::string>();
  return word.starts_with("read-only replica") ? 3
         : word == "leader"                    ? setting.leader()
                                               : setting.follower();
}

TEST(Replay, ReadOnlyReplica) {
  const auto setting = cluster_with_replica();
  setting->fill(4, 20);
  EXPECT_TRUE(setting->cluster.run_until_level());
  // The syncOnly run of the recording found a stream of points, but none to be done.
  Replay replay("read-only-replica.json");
  on_single(replay, *setting);
  replay.node = by_role;
  replay.before = wait_for_runs;
  replay.run(15);
}

TEST(Replay, Leaderless) {
  const auto setting = cluster_with_replica();
  http::Request append{.method = "POST", .target = "/streams/via-follower"};
  append.headers.set("Content-Type", "application/vnd.eventstore.events+json");
  append.body = R"([{"eventId":"00000000-0000-4000-8003-000000000002","eventType":"t","data":{}}])";
  EXPECT_EQ(setting->send(setting->leader(), append).status, 201);
  EXPECT_TRUE(setting->cluster.run_until_level());
  const auto left = setting->follower();
  for (std::size_t i = 0; i < 3; ++i) {
    if (i != left) {
      setting->cluster.crash(i);
    }
  }
  setting->world.run_for(2s);
  Replay replay("leaderless.json");
  on_single(replay, *setting);
  replay.node = [left](Setting&, const json& exchange) -> std::size_t {
    return exchange["node"].get<std::string>().starts_with("read-only replica") ? 3 : left;
  };
  replay.before = [](Setting& at, const json& exchange) {
    if (title_of(exchange) == "current 16 s later") {
      at.world.run_for(16s);
    }
  };
  replay.run(14);
}

TEST(Replay, Atom) {
  const auto single = single_node();
  Replay replay("atom.json");
  on_single(replay, *single);
  replay.run(54);
}

TEST(Replay, Starting) {
  // Opened, but not started: the servers listen before a node joins its cluster.
  SimWorld world(1);
  NodeClusterOptions defaults;
  auto& host = world.add_host("n1");
  host.boot();
  SimLog log(world, "n1");
  SeededRandom random(1);
  node::InlineJobRunner jobs(host.timers(), Budget{16}, 1ms);
  auto options = defaults.node;
  options.database = "/data";
  auto opened = node::Node::open(options, {.executor = host.executor(),
                                           .files = host.disk(),
                                           .clock = host.clock(),
                                           .random = random,
                                           .timers = host.timers(),
                                           .client = host.client(),
                                           .frames = host.frames(),
                                           .jobs = jobs,
                                           .log = log});
  ASSERT_TRUE(opened.has_value());
  const std::shared_ptr<node::Node> node = *std::move(opened);
  host.keep(node);
  host.serve_http(NodeCluster::kHttpPort, node->http_handler());
  auto& client = world.add_host("client");
  client.boot();
  std::size_t matched = 0;
  for (const auto& exchange : recorded("starting.json")) {
    const auto answer = std::make_shared<std::optional<Result<http::Response>>>();
    const auto ask =
        [](SimHost& from, http::Request request,
           std::shared_ptr<std::optional<Result<http::Response>>> out) -> net::awaitable<void> {
      out->emplace(co_await from.client().send({false, "n1", NodeCluster::kHttpPort},
                                               std::move(request), 10s));
    };
    client.spawn(ask(client, request_of(exchange, 0, {}), answer));
    ASSERT_TRUE(world.run_until([&] { return answer->has_value(); }, 11s));
    ASSERT_TRUE((*answer)->has_value());
    EXPECT_EQ(differences(exchange, ***answer, {}), std::vector<std::string>());
    ++matched;
  }
  EXPECT_EQ(matched, 1U);
}

TEST(Replay, EveryRecordingHasItsPlace) {
  std::size_t http = 0;
  std::map<std::string, std::size_t> others;
  for (const char* file :
       {"atom.json", "auth.json", "certificates.json", "grpc-operations.json", "leaderless.json",
        "node-commands.json", "node-facts.json", "read-only-replica.json", "redaction.json",
        "resign.json", "scavenge-lifecycle.json", "scavenge-results.json", "scavenge-rolling.json",
        "scavenge-validation.json", "starting.json", "transitions.json", "users.json"}) {
    for (const auto& element : recorded(file)) {
      if (is_http(element)) {
        ++http;
      } else {
        ++others[file];
      }
    }
  }
  EXPECT_EQ(http, 421U);
  EXPECT_EQ(others.size(), kNotHttp.size());
  for (const auto& one : kNotHttp) {
    EXPECT_EQ(others[std::string(one.file)], one.elements) << one.file;
  }
}

}  // namespace
}  // namespace verger::testing
