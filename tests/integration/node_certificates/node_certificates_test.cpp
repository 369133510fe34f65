#include "nodeagent/daemon/node_certificates.h"

#include <fstream>
#include <gtest/gtest.h>
#include <map>
#include <sys/stat.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/thread_pool.hpp>
#include <nlohmann/json.hpp>

#include "nodeagent/api/agent_certificates.h"
#include "nodeagent/daemon/embedded_node.h"
#include "nodeagent/http/beast_client.h"
#include "nodeagent/operations/agent.h"
#include "tests/support/processes/openssl_authority.h"
#include "tests/support/temp_directory.h"

/// An agent changes the certificates of a real embedded node, with real handshakes and a real disk.
namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
namespace fs = std::filesystem;

/// Keeps where the node serves.
class UrlLog final : public Log {
 public:
  void write(LogLevel /*level*/, std::string_view message,
             std::span<const LogField> fields) override {
    for (const auto& field : fields) {
      if (message == "the node serves" && field.name == "url") {
        url = field.value;
      }
    }
  }
  std::string url;
};

/// Content and mode of each file below a directory.
std::map<std::string, std::string> tree(const fs::path& directory) {
  std::map<std::string, std::string> out;
  for (const auto& entry : fs::recursive_directory_iterator(directory)) {
    if (entry.is_regular_file()) {
      std::ifstream in(entry.path());
      struct stat seen{};
      EXPECT_EQ(::stat(entry.path().c_str(), &seen), 0);
      out[entry.path().string()] =
          fmt::format("{:o} {}", seen.st_mode, std::string(std::istreambuf_iterator<char>(in), {}));
    }
  }
  return out;
}

class NodeCertificates : public ::testing::Test {
 protected:
  NodeCertificates()
      : old_(directory_.path() / "old", "Old root"), new_(directory_.path() / "new", "New root") {
    fs::create_directories(live() / "ca");
    first_serial_ = old_.issue(live() / "node", "node", "IP:127.0.0.1");
    fs::permissions(live() / "node.key", fs::perms::owner_read | fs::perms::group_read);
    fs::copy_file(old_.root(), live() / "ca" / "ca.crt");
    before_ = tree(live());
    options_.role = Role::kBoth;
    options_.init = true;
    options_.node.insecure = false;
    options_.node.database = directory_.path() / "db";
    options_.node.index = directory_.path() / "db" / "index";
    options_.node_ip = "127.0.0.1";
    options_.replication_ip = "127.0.0.1";
    options_.node_port = 0;
    options_.replication_port = 0;
    options_.node_tls = {.certificate = live() / "node.crt",
                         .private_key = live() / "node.key",
                         .trusted_roots = live() / "ca",
                         .check_own_chain = true};
    auto tls = NodeTls::load(options_.node_tls, log_);
    EXPECT_TRUE(tls) << tls.error().message;
    tls_ = *std::move(tls);
    client_ = std::make_unique<http::BeastClient>(context_.get_executor(),
                                                  http::BeastClientOptions{.tls = tls_->calls()});
    const auto reload = [this] {
      net::post(context_, [this] { static_cast<void>(tls_->reload(options_.node_tls)); });
    };
    auto node = EmbeddedNode::start(options_, context_.get_executor(), *client_, jobs_, tls_.get(),
                                    reload, log_);
    EXPECT_TRUE(node) << node.error().message;
    node_ = *std::move(node);
    auto access = certificate_access(options_, context_.get_executor());
    access->signal_server = [reload]() -> net::awaitable<Result<void>> {
      reload();
      return []() -> net::awaitable<Result<void>> { co_return Result<void>(); }();
    };
    auto agent = Agent::open({.journal = directory_.path() / "agent" / "operations.db",
                              .node = *http::parse_endpoint(log_.url),
                              .poll_interval = milliseconds(20)},
                             {.executor = context_.get_executor(),
                              .files = posix_file_system(),
                              .clock = system_clock(),
                              .timers = http::system_timers(),
                              .client = *client_,
                              .jobs = jobs_,
                              .log = log_,
                              .inspection = [this] { return node_->inspection(); },
                              .certificates = std::move(access)});
    EXPECT_TRUE(agent) << agent.error().message;
    agent_ = *std::move(agent);
    agent_->start();
  }
  ~NodeCertificates() override {
    wait([](NodeCertificates* self) -> net::awaitable<void> {
      co_await self->agent_->stop();
      co_await self->node_->stop();
    }(this));
    agent_.reset();
    node_.reset();
    pool_.join();
  }
  NodeCertificates(const NodeCertificates&) = delete;
  NodeCertificates& operator=(const NodeCertificates&) = delete;

  fs::path live() const { return directory_.path() / "live"; }
  fs::path next() const { return directory_.path() / "next"; }

  void wait(net::awaitable<void> work) {
    bool done = false;
    net::co_spawn(context_, std::move(work), [&](const std::exception_ptr& failure) {
      done = true;
      EXPECT_FALSE(failure);
    });
    context_.restart();
    while (!done) {
      context_.run_one();
    }
  }
  json ask(std::string method, std::string target, const std::string& body = {}) {
    http::Response answer;
    wait([](http::Handler handler, http::Request request,
            http::Response& into) -> net::awaitable<void> {
      into = co_await handler(std::move(request));
    }(agent_->handler(), {.method = std::move(method), .target = std::move(target), .body = body},
                                  answer));
    return json::parse(answer.body, nullptr, false);
  }
  json run(const std::string& kind, const std::string& parameters) {
    const auto id = fmt::format("o{}", ++operations_);
    ask("POST", "/agent/v1/permits",
        R"({"controllerEpoch":4,"run":"r","step":"s","validForMs":60000})");
    ask("POST", "/agent/v1/operations",
        json{{"id", id},
             {"run", "r"},
             {"step", "s"},
             {"controllerEpoch", 4},
             {"kind", kind},
             {"parameters", json::parse(parameters)}}
            .dump());
    json status;
    const auto end = std::chrono::steady_clock::now() + std::chrono::seconds(60);
    do {
      wait(http::system_timers().sleep_for(milliseconds(10)));
      status = ask("GET", "/agent/v1/operations/" + id);
    } while (status.value("state", "") != "done" && status.value("state", "") != "failed" &&
             std::chrono::steady_clock::now() < end);
    return status;
  }
  json stage(const fs::path& roots) {
    return run("certificate_stage", api::to_text(api::CertificateStage{
                                        .change = "run-1",
                                        .source = {.certificate_path = next() / "node.crt",
                                                   .key_path = next() / "node.key",
                                                   .roots_path = roots}}));
  }
  json switch_over(api::CertificatePhase phase, api::ReloadBy reload = api::ReloadBy::kRoute) {
    return run("certificate_switch", api::to_text(api::CertificateSwitch{"run-1", phase, reload}));
  }
  json restore(api::CertificatePhase phase) {
    return run("certificate_restore", api::to_text(api::CertificateRestore{"run-1", phase}));
  }
  void expect_as_before() {
    const auto discarded = run("certificate_discard", R"({"change":"run-1"})");
    EXPECT_EQ(discarded.value("state", ""), "done") << discarded;
    EXPECT_EQ(tree(live()), before_);
    EXPECT_EQ(tls_->clients()->certificate().serial, first_serial_);
  }
  /// Whether the node takes itself for a node, in both roles.
  api::PeerHandshake handshake() {
    const auto answer = ask("POST", "/agent/v1/certificates/handshakes",
                            api::to_text(api::HandshakesRequest{.peers = {{"n1", log_.url}}}));
    const auto peers = api::parse_peer_handshakes(answer.dump());
    EXPECT_TRUE(peers) << answer;
    return peers ? peers->front() : api::PeerHandshake{};
  }
  static std::string proven(const json& status) {
    const auto result = api::parse_certificate_switched(status.value("result", json()).dump());
    EXPECT_TRUE(result) << status;
    EXPECT_TRUE(result && result->not_proven.empty()) << status;
    return result ? result->proven : std::string();
  }

  test::TempDirectory directory_;
  test::OpensslAuthority old_;
  test::OpensslAuthority new_;
  std::string first_serial_;
  std::map<std::string, std::string> before_;
  UrlLog log_;
  ProgramOptions options_;
  net::io_context context_{1};
  net::thread_pool pool_{1};
  node::PoolJobRunner jobs_{pool_.get_executor(), http::system_timers()};
  std::unique_ptr<NodeTls> tls_;
  std::unique_ptr<http::BeastClient> client_;
  std::unique_ptr<EmbeddedNode> node_;
  std::unique_ptr<Agent> agent_;
  int operations_ = 0;
};

TEST_F(NodeCertificates, ANewLeafIsShownAndTheOldOneRestoredWithItsMode) {
  fs::create_directories(next());
  const auto serial = old_.issue(next() / "node", "node", "IP:127.0.0.1");
  const auto staged = stage({});
  ASSERT_EQ(staged.value("state", ""), "done") << staged;
  const auto switched = switch_over(api::CertificatePhase::kLeaf, api::ReloadBy::kSignal);
  ASSERT_EQ(switched.value("state", ""), "done") << switched;
  EXPECT_EQ(tls_->clients()->certificate().serial, serial);
  struct stat seen{};
  ASSERT_EQ(::stat((live() / "node.key").c_str(), &seen), 0);
  EXPECT_EQ(seen.st_mode & 07777U, 0440U) << "as the former key";
  const auto shaken = handshake();
  EXPECT_EQ(shaken.serial, serial);
  EXPECT_EQ(shaken.trusted, true) << shaken.not_trusted;
  EXPECT_EQ(shaken.accepted, true) << shaken.not_accepted << shaken.problem;
  ASSERT_EQ(restore(api::CertificatePhase::kLeaf).value("state", ""), "done");
  expect_as_before();
}

TEST_F(NodeCertificates, ANewAuthorityIsProvenInEachPhaseAndOnTheWayBack) {
  fs::create_directories(next() / "ca");
  const auto serial = new_.issue(next() / "node", "node", "IP:127.0.0.1");
  fs::copy_file(new_.root(), next() / "ca" / "ca.crt");
  ASSERT_EQ(stage(next() / "ca").value("state", ""), "done");
  EXPECT_TRUE(
      proven(switch_over(api::CertificatePhase::kTrust)).contains("new certificate is acc"));
  EXPECT_TRUE(proven(switch_over(api::CertificatePhase::kLeaf)).contains(serial));
  EXPECT_TRUE(proven(switch_over(api::CertificatePhase::kDrop)).contains("old certificate is ref"));
  EXPECT_EQ(handshake().accepted, true);
  EXPECT_TRUE(proven(restore(api::CertificatePhase::kDrop)).contains("old certificate is acc"));
  EXPECT_TRUE(proven(restore(api::CertificatePhase::kLeaf)).contains(first_serial_));
  EXPECT_TRUE(proven(restore(api::CertificatePhase::kTrust)).contains("new certificate is ref"));
  expect_as_before();
}

TEST_F(NodeCertificates, ASetThatTheNodeRefusesIsRestored) {
  fs::create_directories(next());
  // Of an authority that the node does not know, with no root beside it.
  new_.issue(next() / "node", "node", "IP:127.0.0.1");
  ASSERT_EQ(stage({}).value("state", ""), "done");
  const auto switched = switch_over(api::CertificatePhase::kLeaf);
  EXPECT_EQ(switched.value("errorCode", ""), "no_effect") << switched;
  expect_as_before();
}

TEST_F(NodeCertificates, ALinkIsFollowed) {
  const auto elsewhere = directory_.path() / "archive";
  fs::create_directories(elsewhere);
  fs::rename(live() / "node.crt", elsewhere / "node1.crt");
  fs::create_symlink(elsewhere / "node1.crt", live() / "node.crt");
  fs::create_directories(next());
  const auto serial = old_.issue(next() / "node", "node", "IP:127.0.0.1");
  ASSERT_EQ(stage({}).value("state", ""), "done");
  ASSERT_EQ(switch_over(api::CertificatePhase::kLeaf).value("state", ""), "done");
  EXPECT_TRUE(fs::is_symlink(live() / "node.crt"));
  EXPECT_EQ(tls_->clients()->certificate().serial, serial);
  ASSERT_EQ(restore(api::CertificatePhase::kLeaf).value("state", ""), "done");
  expect_as_before();
}

TEST_F(NodeCertificates, ACertificateThatIsNoNodesIsNotAccepted) {
  EXPECT_EQ(handshake().accepted, true);
  // It chains, so TLS accepts it; but its common name marks no node.
  const auto serial = old_.issue(directory_.path() / "other", "another", "IP:127.0.0.1");
  for (const auto* part : {".crt", ".key"}) {
    fs::copy_file(directory_.path() / ("other" + std::string(part)),
                  live() / ("node" + std::string(part)), fs::copy_options::overwrite_existing);
  }
  const auto shaken = handshake();
  EXPECT_EQ(shaken.shown_serial, serial);
  EXPECT_EQ(shaken.accepted, false);
  EXPECT_TRUE(shaken.not_accepted.contains("401")) << shaken.not_accepted;
}

}  // namespace
}  // namespace verger::agent
