#include "tests/bench/control/tls_fleet.h"

#include <atomic>
#include <ctime>
#include <fmt/format.h>
#include <fstream>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/clock.h"
#include "nodeagent/api/agent_facts.h"
#include "nodeagent/api/node.h"
#include "nodeagent/certificates/authority.h"
#include "nodeagent/http/server.h"
#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/openssl_authority.h"
#include "tests/support/processes/ports.h"
#include "tests/support/processes/process.h"
#include "tests/support/processes/process_figures.h"
#include "tests/support/temp_directory.h"

namespace verger::bench {
namespace {

using nlohmann::json;
using std::chrono::seconds;

constexpr int kNodesOfCluster = 3;
constexpr seconds kScrapeEvery{15};

template <class T>
T must(Result<T> result) {
  if (!result) {
    throw std::runtime_error(result.error().message);
  }
  return *std::move(result);
}

/// What a node and its agent are, and how both are reached.
struct Member {
  std::string cluster;
  std::string name;
  int index = 0;  ///< in its cluster
  std::uint16_t node_port = 0;
  std::uint16_t agent_port = 0;
};

/// Answers for all nodes and agents, on a thread of its own.
class Members {
 public:
  Members(std::filesystem::path directory, int clusters)
      : directory_(std::move(directory)), authority_(directory_ / "nodes", "bench nodes") {
    authority_.issue(directory_ / "node", "verger-node", "IP:127.0.0.1");
    for (int cluster = 0; cluster < clusters; ++cluster) {
      for (int index = 0; index < kNodesOfCluster; ++index) {
        members_.push_back({.cluster = fmt::format("c{}", cluster),
                            .name = fmt::format("n{}", index + 1),
                            .index = index});
      }
    }
  }
  ~Members() {
    work_.reset();
    context_.stop();
    if (thread_.joinable()) {
      thread_.join();
    }
    servers_.clear();
  }
  Members(const Members&) = delete;
  Members& operator=(const Members&) = delete;

  std::vector<Member>& all() { return members_; }
  [[nodiscard]] std::filesystem::path root() const { return authority_.root(); }
  [[nodiscard]] std::filesystem::path identity_of(const Member& member) const {
    return directory_ / fmt::format("{}-{}.pem", member.cluster, member.name);
  }
  [[nodiscard]] std::filesystem::path agents_root() const { return directory_ / "agents-root.pem"; }
  [[nodiscard]] std::int64_t messages() const { return messages_.load(); }

  /// Once the agents have enrolled.
  void listen() {
    const auto of_nodes =
        must(http::TlsContext::server({.certificate = (directory_ / "node.crt").string(),
                                       .private_key = (directory_ / "node.key").string(),
                                       .trusted_roots = root().string()},
                                      http::ClientCertificate::kOptional));
    for (auto& member : members_) {
      member.node_port = serve(of_nodes, member, /*agent=*/false);
      const auto identity = identity_of(member).string();
      member.agent_port =
          serve(must(http::TlsContext::server({.certificate = identity,
                                               .private_key = identity,
                                               .trusted_roots = agents_root().string()},
                                              http::ClientCertificate::kRequired)),
                member, /*agent=*/true);
    }
    work_.emplace(context_.get_executor());
    thread_ = std::thread([this] { context_.run(); });
  }

 private:
  std::uint16_t serve(std::shared_ptr<http::TlsContext> tls, const Member& member, bool agent) {
    const auto* which = &member;  // members_ does not change any more
    auto server = std::make_unique<http::Server>(
        context_.get_executor(), http::ServerOptions{.tls = std::move(tls)},
        [this, which, agent](http::Request request) {
          return answer(this, which, agent, std::move(request));
        },
        null_log());
    const auto at = must(server->listen());
    servers_.push_back(std::move(server));
    return at.port;
  }

  static net::awaitable<http::Response> answer(Members* self, const Member* member, bool agent,
                                               http::Request request) {
    ++self->messages_;
    const auto path = request.target.substr(0, request.target.find('?'));
    http::Response out;
    out.headers.set("Content-Type", "application/json");
    if (agent && path == "/agent/v1/facts") {
      out.body = api::to_text(self->facts_of(*member));
    } else if (!agent && path == "/gossip") {
      out.body = api::to_text(self->gossip_of(*member));
    } else if (!agent && path == "/admin/scavenge/current") {
      out.body = api::to_json(api::CurrentScavenge{}).dump();
    } else {
      out.status = 404;
    }
    co_return out;
  }

  static std::string instance_of(const Member& member) {
    return fmt::format("{}-{}", member.cluster, member.name);
  }
  api::Gossip gossip_of(const Member& asked) const {
    api::Gossip out{.members = {}, .server_ip = "127.0.0.1", .server_port = asked.node_port};
    const auto* first = &asked - asked.index;
    for (int i = 0; i < kNodesOfCluster; ++i) {
      const auto& each = first[i];
      out.members.push_back({.instance_id = instance_of(each),
                             .time_stamp = format_ticks(system_clock().now()),
                             .state = i == 0 ? api::NodeState::kLeader : api::NodeState::kFollower,
                             .is_alive = true,
                             .http_ip = "127.0.0.1",
                             .http_port = each.node_port,
                             .last_commit_position = 1'000'000,
                             .writer_checkpoint = 1'000'000,
                             .chaser_checkpoint = 1'000'000,
                             .epoch_position = 0,
                             .epoch_number = 1,
                             .epoch_id = asked.cluster,
                             .es_version = "24.6.0"});
    }
    return out;
  }
  static api::AgentFacts facts_of(const Member& member) {
    api::AgentFacts out;
    out.agent_version = "0.1.0";
    out.taken_at = format_ticks(system_clock().now());
    out.node_running = true;
    out.node_instance_id = instance_of(member);
    out.node_version = "24.6.0";
    out.writer_checkpoint = 1'000'000;
    out.database_id = "db-" + member.cluster;
    out.disk_total_bytes = std::int64_t{1} << 40U;
    out.disk_free_bytes = std::int64_t{1} << 39U;
    out.database_bytes = std::int64_t{1} << 36U;
    out.chunk_size = out.largest_chunk_bytes = 256 << 20U;
    for (int i = 0; i < 20; ++i) {
      out.points.push_back({i, 1'000 + i, "2024-06-02T00:00:00Z", 0});
    }
    out.last_finished_point = out.points.back();
    return out;
  }

  std::filesystem::path directory_;
  test::OpensslAuthority authority_;
  std::vector<Member> members_;
  net::io_context context_{1};
  std::optional<net::executor_work_guard<net::io_context::executor_type>> work_;
  std::vector<std::unique_ptr<http::Server>> servers_;
  std::thread thread_;
  std::atomic<std::int64_t> messages_ = 0;
};

/// vergerd, and what its first administrator asks of it.
class Vergerd {
 public:
  Vergerd(const std::filesystem::path& directory, const std::filesystem::path& roots)
      : data_(directory / "vergerd"),
        process_({.command = {test::program("vergerd"), "--data", data_.string(), "--port",
                              std::to_string(ports_[0]), "--ca", roots.string(),
                              "--end-after-seconds", "3600"},
                  .environment = {},
                  .output = directory / "vergerd.log"}) {
    const auto answers = [this] {
      const auto health = caller_.ask(url(), {.target = "/api/v1/health"}, false);
      return health && health->status == 200;
    };
    if (!test::eventually(seconds(30), answers)) {
      throw std::runtime_error("vergerd does not answer: " +
                               test::file_text(directory / "vergerd.log"));
    }
    token_ = test::file_text(data_ / "bootstrap-token");
    while (!token_.empty() && token_.back() == '\n') {
      token_.pop_back();
    }
  }
  json post(const std::string& path, const json& body) {
    http::Request request{.method = "POST", .target = "/api/v1" + path, .body = body.dump()};
    request.headers.set("Content-Type", "application/json");
    const auto answer = ask(std::move(request));
    if (answer.status >= 300) {
      throw std::runtime_error(fmt::format("POST {}: {} {}", path, answer.status, answer.body));
    }
    return json::parse(answer.body);
  }
  std::string metrics() { return ask({.target = "/metrics"}).body; }
  [[nodiscard]] pid_t pid() const { return process_.pid(); }

 private:
  std::string url() const { return fmt::format("http://127.0.0.1:{}", ports_[0]); }
  http::Response ask(http::Request request) {
    request.headers.set("Authorization", "Bearer " + token_);
    return must(caller_.ask(url(), std::move(request), false));
  }

  test::PortLease ports_{1};
  std::filesystem::path data_;
  test::Process process_;
  test::HttpsCaller caller_;
  std::string token_;
};

void enrol(Vergerd& vergerd, Members& members) {
  for (const auto& member : members.all()) {
    const auto made = vergerd.post(
        "/agents/tokens",
        {{"cluster", member.cluster}, {"node", member.name}, {"hosts", {"127.0.0.1"}}});
    const auto own = must(certificates::make_key_and_request());
    const auto answer =
        vergerd.post("/agents/enrol", {{"token", made.at("token")}, {"request", own.request}});
    std::ofstream(members.identity_of(member))
        << answer.at("certificate").get<std::string>() << own.key;
    std::ofstream(members.agents_root()) << answer.at("authority").get<std::string>();
  }
}

void register_clusters(Vergerd& vergerd, Members& members) {
  const auto& all = members.all();
  for (std::size_t i = 0; i < all.size(); i += kNodesOfCluster) {
    auto nodes = json::array();
    for (std::size_t k = i; k < i + kNodesOfCluster; ++k) {
      nodes.push_back({{"name", all[k].name},
                       {"node", fmt::format("https://127.0.0.1:{}", all[k].node_port)},
                       {"agent", fmt::format("https://127.0.0.1:{}", all[k].agent_port)}});
    }
    vergerd.post("/clusters", {{"name", all[i].cluster}, {"nodes", nodes}});
  }
}

std::size_t count_in(const std::string& text, std::string_view line, std::string_view ends_with) {
  std::size_t count = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto end = std::min(text.find('\n', at), text.size());
    const auto each = std::string_view(text).substr(at, end - at);
    count += each.starts_with(line) && each.ends_with(ends_with) ? 1 : 0;
    at = end + 1;
  }
  return count;
}

}  // namespace

void tls_fleet(int agents, seconds window) {
  const test::TempDirectory directory;
  const auto clusters = (agents + kNodesOfCluster - 1) / kNodesOfCluster;
  Members members(directory.path(), clusters);
  Vergerd vergerd(directory.path(), members.root());
  fmt::print(stderr, "{} agents enrol ...\n", members.all().size());
  enrol(vergerd, members);
  members.listen();
  fmt::print(stderr, "{} clusters are registered ...\n", clusters);
  register_clusters(vergerd, members);
  const auto up = [&] { return count_in(vergerd.metrics(), "verger_agent_up{", " 1"); };
  if (const auto seen = up(); seen != members.all().size()) {
    throw std::runtime_error(
        fmt::format("vergerd hears {} of {} agents", seen, members.all().size()));
  }
  // The rounds that follow are like each other: the connections are there.
  std::this_thread::sleep_for(seconds(75));
  const auto scrape_before = test::cpu_seconds(vergerd.pid());
  const auto text = vergerd.metrics();
  const auto scrape = test::cpu_seconds(vergerd.pid()) - scrape_before;
  fmt::print(stderr, "measuring for {} s ...\n", window.count());
  const auto messages = members.messages();
  const auto cpu = test::cpu_seconds(vergerd.pid());
  const auto began = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - began < window) {
    static_cast<void>(vergerd.metrics());
    std::this_thread::sleep_for(std::min<std::chrono::steady_clock::duration>(
        kScrapeEvery, began + window - std::chrono::steady_clock::now()));
  }
  const auto took = std::chrono::duration<double>(std::chrono::steady_clock::now() - began).count();
  const auto used = test::cpu_seconds(vergerd.pid()) - cpu;
  fmt::print(
      "{} enrolled agents in {} clusters over TLS, idle, {:.0f} s: {:.1f} % of a core, {:.0f} MiB "
      "(at most {:.0f}); {:.1f} answers a second of nodes and agents; a scrape of {} KiB every "
      "{} s takes {:.0f} ms; {} agents up\n",
      members.all().size(), clusters, took, 100 * used / took, test::resident_mib(vergerd.pid()),
      test::peak_resident_mib(vergerd.pid()),
      static_cast<double>(members.messages() - messages) / took, text.size() / 1024,
      kScrapeEvery.count(), scrape * 1000, up());
}

}  // namespace verger::bench
