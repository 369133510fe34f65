#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>

#include <nlohmann/json.hpp>

#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/npm_packages.h"
#include "tests/support/processes/openssl_authority.h"
#include "tests/support/processes/ports.h"
#include "tests/support/processes/process.h"
#include "tests/support/temp_directory.h"

/// The vendor's gRPC client, from the npm registry, against an embedded node.
namespace verger::test {
namespace {

using std::chrono::seconds;
using ::testing::HasSubstr;
namespace fs = std::filesystem;

class NpmGrpcClient : public ::testing::Test {
 protected:
  void SetUp() override {
    packages_ = directory_.path() / "client";
    const auto problem = install_npm_packages(VERGER_NPM_GRPC_CLIENT, packages_);
    ASSERT_TRUE(problem.empty()) << problem;
    // Modules are looked for beside the script.
    for (const auto* script : {"client.js", "failover.js"}) {
      fs::copy_file(fs::path(VERGER_NPM_GRPC_CLIENT) / script, packages_ / script);
    }
  }

  std::vector<std::string> node_command(const PortLease& ports) const {
    return {program("verger-agent"),
            "--role",
            "node",
            "--db",
            (directory_.path() / "db").string(),
            "--init",
            "--node-port",
            std::to_string(ports[0]),
            "--replication-port",
            std::to_string(ports[1]),
            "--fast-timings",
            "--url-file",
            url_file().string(),
            "--end-after-seconds",
            "300"};
  }
  [[nodiscard]] fs::path url_file() const { return directory_.path() / "url"; }
  [[nodiscard]] fs::path log() const { return directory_.path() / "node.log"; }

  /// Runs the client until it has something to say of the node; a node that is about to lead is
  /// not ready yet.
  void expect_all_good(const PortLease& ports, const std::string& suffix, bool secure) const {
    ASSERT_TRUE(eventually(seconds(30), [&] {
      return fs::exists(url_file()) && file_text(log()).contains("Leader");
    })) << file_text(log());
    const auto reported = run({"node", (packages_ / "client.js").string()},
                              {{"NODE_ADDRESS", fmt::format("127.0.0.1:{}", ports[0])},
                               {"NODE_SUFFIX", suffix},
                               {"NODE_SECURE", secure ? "yes" : "no"}},
                              seconds(60));
    EXPECT_EQ(reported.status, 0) << reported.out << reported.err << file_text(log());
    EXPECT_THAT(reported.out, HasSubstr("all good"));
  }

  TempDirectory directory_;
  fs::path packages_;
};

TEST_F(NpmGrpcClient, WorksWithoutTls) {
  const PortLease ports(2);
  auto command = node_command(ports);
  command.emplace_back("--insecure");
  Process node({.command = command, .environment = {}, .output = log()});
  expect_all_good(ports, "?tls=false", false);
  // What is no call has the routes of HTTP, over HTTP/2 too.
  const auto url = fmt::format("http://127.0.0.1:{}", ports[0]);
  const auto info =
      run({"curl", "-sS", "--http2-prior-knowledge", "-w", " by %{http_version}", url + "/info"});
  EXPECT_EQ(info.status, 0) << info.err;
  EXPECT_THAT(info.out, ::testing::AllOf(HasSubstr("\"esVersion\""), HasSubstr(" by 2")));
}

TEST_F(NpmGrpcClient, WorksOverTlsWithCredentials) {
  const OpensslAuthority authority(directory_.path() / "authority", "Verger test root");
  authority.issue(directory_.path() / "node", "verger-node", "IP:127.0.0.1");
  const auto base = (directory_.path() / "node").string();
  const PortLease ports(2);
  auto command = node_command(ports);
  command.insert(command.end(),
                 {"--certificate-file", base + ".crt", "--certificate-private-key-file",
                  base + ".key", "--trusted-root-certificates-path", authority.root().string()});
  Process node({.command = command, .environment = {}, .output = log()});
  expect_all_good(ports, "?tlsCAFile=" + authority.root().string(), true);
}

/// The index of the node that leads, as node `asked` has it.
std::optional<std::size_t> leader_of(const PortLease& ports, std::size_t asked,
                                     const fs::path& roots) {
  HttpsCaller caller(roots);
  const auto answer =
      caller.get(fmt::format("https://127.0.0.1:{}", ports[asked]), "/gossip?format=json");
  const auto gossip = answer ? nlohmann::json::parse(answer->body, nullptr, false)
                             : nlohmann::json(nlohmann::json::value_t::discarded);
  if (!gossip.is_object()) {
    return std::nullopt;
  }
  for (const auto& member : gossip["members"]) {
    for (std::size_t i = 0; i < 3; ++i) {
      if (member["state"] == "Leader" && member["isAlive"] == true &&
          member["httpEndPointPort"] == ports[i]) {
        return i;
      }
    }
  }
  return std::nullopt;
}

TEST_F(NpmGrpcClient, LosesNothingWhenTheLeaderIsKilled) {
  const OpensslAuthority authority(directory_.path() / "authority", "Verger test root");
  const PortLease ports(6);
  std::vector<Process> nodes;
  for (std::size_t i = 0; i < 3; ++i) {
    const auto base = directory_.path() / fmt::format("n{}", i);
    authority.issue(base, "verger-node", "IP:127.0.0.1");
    nodes.emplace_back(
        Process::Options{.command = {program("verger-agent"),
                                     "--role",
                                     "node",
                                     "--db",
                                     base.string() + "-db",
                                     "--init",
                                     "--cluster-size",
                                     "3",
                                     "--gossip-seed",
                                     fmt::format("127.0.0.1:{},127.0.0.1:{}", ports[(i + 1) % 3],
                                                 ports[(i + 2) % 3]),
                                     "--node-port",
                                     std::to_string(ports[i]),
                                     "--replication-port",
                                     std::to_string(ports[3 + i]),
                                     "--certificate-file",
                                     base.string() + ".crt",
                                     "--certificate-private-key-file",
                                     base.string() + ".key",
                                     "--trusted-root-certificates-path",
                                     authority.root().string(),
                                     "--fast-timings",
                                     "--end-after-seconds",
                                     "300"},
                         .environment = {},
                         .output = base.string() + ".log"});
  }
  const auto logs = [&] {
    std::string out;
    for (auto& node : nodes) {
      out += file_text(node.options().output);
    }
    return out;
  };
  std::optional<std::size_t> leader;
  ASSERT_TRUE(eventually(seconds(30), [&] {
    leader = leader_of(ports, 0, authority.root());
    return leader.has_value();
  })) << logs();
  const auto report = directory_.path() / "client.log";
  const auto killed = directory_.path() / "killed";
  Process client(
      {.command = {"node", (packages_ / "failover.js").string()},
       .environment = {{"CLUSTER",
                        fmt::format("esdb://admin:changeit@127.0.0.1:{},127.0.0.1:{},127.0.0.1:{}"
                                    "?tlsCAFile={}",
                                    ports[0], ports[1], ports[2], authority.root().string())},
                       {"KILLED", killed.string()},
                       {"VERBOSE", "yes"}},
       .output = report});
  ASSERT_TRUE(eventually(seconds(60),
                         [&] { return file_text(report).contains("ready") || !client.running(); }))
      << file_text(report) << logs();
  leader = leader_of(ports, *leader, authority.root());
  ASSERT_TRUE(leader.has_value()) << logs();
  nodes[*leader].kill();
  std::ofstream(killed) << *leader;
  EXPECT_EQ(client.wait(seconds(90)), 0) << file_text(report) << logs();
  EXPECT_THAT(file_text(report), HasSubstr("all good"));
}

}  // namespace
}  // namespace verger::test
