#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>

#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/real_cluster.h"
#include "tests/support/processes/steady_writer.h"

/// Certificates and roots are replaced under running nodes (node-interface.md, 4.4 to 4.6).
namespace verger::test {
namespace {

using std::chrono::milliseconds;
using std::chrono::seconds;

constexpr milliseconds kLifetime{700};

RealCluster::Options options() {
  return {.with_agents = false,
          .role = "node",
          .tls = true,
          .agent_arguments = {"--connection-lifetime-ms", std::to_string(kLifetime.count())}};
}

void put(const std::filesystem::path& from, const std::filesystem::path& to) {
  std::filesystem::copy_file(from, to, std::filesystem::copy_options::overwrite_existing);
}

TEST(TlsReload, CertificatesAndRootsAreReplacedWhileWritesGoOn) {
  RealCluster cluster(options());
  cluster.start_all();
  cluster.register_cluster();
  const TempDirectory directory;
  const OpensslAuthority second(directory.path() / "second", "Second root");
  const auto both = directory.path() / "both.crt";
  std::ofstream(both) << file_text(cluster.authority().root()) << file_text(second.root());
  HttpsCaller caller(both);
  SteadyWriter writer(cluster, both);
  ASSERT_TRUE(writer.wait_for(5)) << cluster.logs();

  // The second root beside the first, on every node; nothing else changes.
  for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
    put(second.root(), cluster.certificates_of(i) / "roots" / "second.crt");
    const auto answer = caller.post(cluster.node_url(i), "/admin/reloadconfig");
    ASSERT_TRUE(answer.has_value()) << answer.error().message;
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, "");
  }
  // New leaves of the second root, node by node, by the route and by the signal.
  for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
    const auto before = caller.served_serial(cluster.node_url(i));
    const auto serial = cluster.issue_for_node(i, second);
    ASSERT_NE(serial, before);
    if (i == 1) {
      cluster.node(i).signal(SIGHUP);
    } else {
      ASSERT_TRUE(caller.post(cluster.node_url(i), "/admin/reloadconfig").has_value());
    }
    EXPECT_TRUE(eventually(seconds(10), [&] {
      return caller.served_serial(cluster.node_url(i)) == serial;
    })) << cluster.logs();
    EXPECT_TRUE(writer.wait_for(5)) << cluster.logs();
  }
  // Without the first root nothing old is accepted, once connections are made anew.
  for (std::size_t i = 0; i < RealCluster::kNodes; ++i) {
    std::filesystem::remove(cluster.certificates_of(i) / "roots" / "ca.crt");
    cluster.node(i).signal(SIGHUP);
  }
  const auto renewed = std::chrono::steady_clock::now() + 3 * kLifetime;
  while (std::chrono::steady_clock::now() < renewed) {
    ASSERT_TRUE(writer.wait_for(1)) << cluster.logs();
  }
  EXPECT_TRUE(eventually(seconds(10), [&] { return all_alive_everywhere(cluster, caller); }))
      << cluster.logs();
  EXPECT_TRUE(writer.wait_for(5)) << cluster.logs();
  writer.stop();
  EXPECT_EQ(writer.failed(), 0);

  // What was acknowledged is there, once each and in order; a follower may have it a moment later.
  const auto newest = fmt::format("{}@written-steadily", writer.written() - 1);
  std::string last;
  EXPECT_TRUE(eventually(seconds(10),
                         [&] {
                           const auto answer = caller.get(
                               cluster.node_url(0), "/streams/written-steadily/head/backward/1");
                           last = answer ? answer->body : answer.error().message;
                           return last.find(newest) != std::string::npos;
                         }))
      << newest << " is not the newest: " << last;
}

TEST(TlsReload, ASetThatDoesNotHoldIsRefusedAsAWhole) {
  RealCluster cluster(options());
  cluster.start_node(0);
  const TempDirectory directory;
  const OpensslAuthority stranger(directory.path() / "stranger", "Another root");
  HttpsCaller caller(cluster.authority().root());
  const auto url = cluster.node_url(0);
  const auto files = cluster.certificates_of(0);
  std::string good;
  ASSERT_TRUE(eventually(seconds(20), [&] {
    good = caller.served_serial(url);
    return !good.empty();
  })) << cluster.logs();
  const auto keep = directory.path() / "keep";
  std::filesystem::copy(files, keep, std::filesystem::copy_options::recursive);
  const auto errors = [&] {
    const auto log = file_text(files.parent_path().parent_path() / "n1.log");
    std::size_t count = 0;
    for (auto at = log.find("An error has occurred"); at != std::string::npos;
         at = log.find("An error has occurred", at + 1)) {
      ++count;
    }
    return count;
  };
  std::size_t refused = 0;
  const auto refuse = [&](const char* what) {
    SCOPED_TRACE(what);
    cluster.node(0).signal(SIGHUP);
    ++refused;
    EXPECT_TRUE(eventually(seconds(10), [&] { return errors() >= refused; })) << cluster.logs();
    EXPECT_EQ(caller.served_serial(url), good);
    std::filesystem::remove_all(files / "roots");
    std::filesystem::copy(keep, files,
                          std::filesystem::copy_options::recursive |
                              std::filesystem::copy_options::overwrite_existing);
  };
  std::filesystem::remove(files / "node.key");
  refuse("no key");
  std::ofstream(files / "node.crt") << "";
  refuse("an empty certificate");
  stranger.issue(directory.path() / "foreign", "verger-node", "IP:127.0.0.1");
  put(directory.path() / "foreign.key", files / "node.key");
  refuse("another certificate's key");
  stranger.issue(files / "node", "verger-node", "IP:127.0.0.1");
  refuse("a certificate of an authority that is not among the roots");
  put(keep / "node.crt", files / "roots" / "leaf.pem");
  refuse("a leaf among the roots");
  std::filesystem::remove(files / "roots" / "ca.crt");
  refuse("no root");

  // A stray text file among the roots is no certificate and does no harm.
  std::ofstream(files / "roots" / "note.txt") << "hello";
  const auto renewed = cluster.issue_for_node(0, cluster.authority());
  cluster.node(0).signal(SIGHUP);
  EXPECT_TRUE(eventually(seconds(10), [&] { return caller.served_serial(url) == renewed; }))
      << cluster.logs();
}

TEST(TlsReload, WhatVergerCertMakesIsTakenAndABundleWithoutItsIntermediateIsNot) {
  RealCluster cluster(options());
  const TempDirectory directory;
  const auto at = [&](const std::string& name) { return (directory.path() / name).string(); };
  const auto cert = [](std::vector<std::string> words) {
    words.insert(words.begin(), {program("verger"), "cert"});
    const auto done = run(words);
    EXPECT_EQ(done.status, 0) << done.err;
  };
  cert({"create-ca", "--out", at("root"), "--key-type", "ec-p256"});
  cert({"create-ca", "--out", at("between"), "--key-type", "ec-p256", "--ca-certificate",
        at("root/ca.crt"), "--ca-key", at("root/ca.key")});
  const auto issue = [&](const std::string& out) {
    cert({"create-node", "--out", out, "--force", "--ca-certificate", at("between/ca.crt"),
          "--ca-key", at("between/ca.key"), "--ip-addresses", "127.0.0.1", "--key-type",
          "ec-p256"});
  };
  // At the start.
  const auto files = cluster.certificates_of(0);
  issue(files.string());
  std::filesystem::remove_all(files / "roots");
  std::filesystem::create_directory(files / "roots");
  put(at("root/ca.crt"), files / "roots" / "root.crt");
  cluster.start_node(0);
  HttpsCaller caller(at("root/ca.crt"));
  const auto url = cluster.node_url(0);
  std::string first;
  ASSERT_TRUE(eventually(seconds(20), [&] {
    first = caller.served_serial(url);
    return !first.empty();
  })) << cluster.logs();
  // By a reload: the leaf alone is refused, the whole bundle taken.
  issue(files.string());
  const auto whole = file_text(files / "node.crt");
  std::ofstream(files / "node.crt") << whole.substr(0, whole.find("-----BEGIN", 10));
  cluster.node(0).signal(SIGHUP);
  const auto log = files.parent_path().parent_path() / "n1.log";
  EXPECT_TRUE(eventually(seconds(10), [&] {
    return file_text(log).contains("An error has occurred");
  })) << cluster.logs();
  EXPECT_EQ(caller.served_serial(url), first);
  std::ofstream(files / "node.crt") << whole;
  cluster.node(0).signal(SIGHUP);
  EXPECT_TRUE(eventually(seconds(10), [&] {
    const auto served = caller.served_serial(url);
    return !served.empty() && served != first;
  })) << cluster.logs();
}

}  // namespace
}  // namespace verger::test
