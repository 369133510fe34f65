// Certificates that `verger cert` makes, in real handshakes: with the project's own server and
// client, and with the openssl program.
#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sstream>
#include <thread>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/detached.hpp>
#include <boost/asio/executor_work_guard.hpp>
#include <boost/asio/io_context.hpp>
#include <boost/asio/use_future.hpp>
#include <nlohmann/json.hpp>

#include "controller/cli/commands.h"
#include "engine/base/log.h"
#include "nodeagent/http/beast_client.h"
#include "nodeagent/http/server.h"
#include "nodeagent/http/tls.h"
#include "tests/support/processes/process.h"
#include "tests/support/temp_directory.h"

namespace verger::cli {
namespace {

namespace fs = std::filesystem;
using http::ClientCertificate;
using http::TlsContext;
using http::TlsFiles;
using nlohmann::json;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// A node as far as `verger cert` looks at one: TLS, /gossip and /info. Says who calls.
class ServingNode {
 public:
  explicit ServingNode(std::shared_ptr<TlsContext> tls) {
    server_ = std::make_unique<http::Server>(
        context_.get_executor(), http::ServerOptions{.tls = std::move(tls)},
        [this](http::Request request) -> net::awaitable<http::Response> {
          co_return http::Response{.body = answer(request)};
        },
        null_log());
    endpoint_ = server_->listen().value();
    thread_ = std::jthread([this] { context_.run(); });
  }
  ~ServingNode() {
    net::co_spawn(context_, server_->stop(std::chrono::seconds(1)), net::use_future).get();
    context_.stop();
  }
  ServingNode(const ServingNode&) = delete;
  ServingNode& operator=(const ServingNode&) = delete;
  const http::Endpoint& endpoint() const { return endpoint_; }

 private:
  std::string answer(const http::Request& request) const {
    if (request.target == "/gossip") {
      return json{
          {"members", {{{"httpEndPointIp", "127.0.0.1"}, {"httpEndPointPort", endpoint_.port}}}}}
          .dump();
    }
    if (request.target == "/info") {
      return R"({"esVersion":"24.6.0"})";
    }
    return fmt::format("{} {}", request.peer.certificate_common_name.value_or("no certificate"),
                       request.peer.certificate_is_node ? "node" : "other");
  }
  net::io_context context_{1};
  net::executor_work_guard<net::io_context::executor_type> busy_{context_.get_executor()};
  std::unique_ptr<http::Server> server_;
  http::Endpoint endpoint_;
  std::jthread thread_;
};

class CertHandshakes : public ::testing::Test {
 protected:
  CertHandshakes() {
    cert({"create-ca", "--out", at("root"), "--key-type", "ec-p256"});
    cert({"create-ca", "--out", at("between"), "--ca-certificate", at("root/ca.crt"), "--ca-key",
          at("root/ca.key"), "--key-type", "ec-p256"});
    make("node", "certs/n1", {"--key-type", "rsa-2048"});
    make("user", "user", {"--key-type", "ec-p256"});
    fs::create_directories(at("certs/ca"));
    fs::copy_file(at("root/ca.crt"), at("certs/ca/root.crt"));
  }
  void make(const std::string& kind, const std::string& out, std::vector<std::string> more,
            const std::string& by = "between") {
    std::vector<std::string> words{"create-" + kind, "--ca-certificate", at(by + "/ca.crt"),
                                   "--ca-key",       at(by + "/ca.key"), "--out",
                                   at(out),          "--name",           kind};
    if (kind == "node") {
      words.insert(words.end(), {"--ip-addresses", "127.0.0.1", "--dns-names", "localhost"});
    } else {
      words.insert(words.end(), {"--username", "ouro"});
    }
    words.insert(words.end(), more.begin(), more.end());
    cert(words);
  }
  int try_cert(std::vector<std::string> words) {
    words.insert(words.begin(), {"verger", "cert"});
    std::vector<const char*> argv;
    for (const auto& word : words) {
      argv.push_back(word.c_str());
    }
    out_.str("");
    err_.str("");
    return run_verger(static_cast<int>(argv.size()), argv.data(), out_, err_);
  }
  void cert(const std::vector<std::string>& words) { ASSERT_EQ(try_cert(words), 0) << err_.str(); }
  std::string at(const std::string& name) const { return (directory_.path() / name).string(); }
  TlsFiles files(const std::string& folder, const std::string& name = "node",
                 const std::string& root = "root") const {
    return {.certificate = at(folder + "/" + name + ".crt"),
            .private_key = at(folder + "/" + name + ".key"),
            .trusted_roots = at(root + "/ca.crt"),
            .check_own_chain = name == "node"};
  }
  /// As a server's node does: its own chain is checked, clients may show a certificate.
  Result<std::shared_ptr<TlsContext>> node_tls(const TlsFiles& of) const {
    return TlsContext::server(of, ClientCertificate::kOptional);
  }
  static Result<std::string> call(const http::Endpoint& to, const TlsFiles& as) {
    VERGER_TRY(auto tls, TlsContext::client(as));
    net::io_context context{1};
    http::BeastClient client(context.get_executor(), {.tls = std::move(tls)});
    auto answer = net::co_spawn(
        context, client.send(to, http::Request{.target = "/"}, std::chrono::seconds(10)),
        net::use_future);
    context.run();
    VERGER_TRY(const auto response, answer.get());
    return response.body;
  }
  test::Finished openssl(std::vector<std::string> words) const {
    words.insert(words.begin(), "openssl");
    return test::run(words);
  }
  test::TempDirectory directory_;
  std::ostringstream out_;
  std::ostringstream err_;
};

TEST_F(CertHandshakes, AreAcceptedInBothRoles) {
  const ServingNode node(node_tls(files("certs/n1")).value());
  EXPECT_EQ(call(node.endpoint(), files("certs/n1")).value_or("refused"), "eventstoredb-node node");
  EXPECT_EQ(call(node.endpoint(), files("user", "user")).value_or("refused"), "ouro other");
  // The openssl program as a client with the node's certificate.
  const auto connected = test::run(
      {"bash", "-c",
       fmt::format(
           "printf 'GET / HTTP/1.0\\r\\n\\r\\n' | openssl s_client -brief -ign_eof -connect "
           "127.0.0.1:{} -CAfile {} -verify_ip 127.0.0.1 -verify_return_error -cert {} "
           "-cert_chain {} -key {}",
           node.endpoint().port, at("root/ca.crt"), at("certs/n1/node.crt"),
           at("certs/n1/node.crt"), at("certs/n1/node.key"))});
  EXPECT_THAT(connected.out, HasSubstr("eventstoredb-node node")) << connected.err;
  EXPECT_THAT(connected.err, HasSubstr("Verification: OK"));
  for (const auto* purpose : {"sslserver", "sslclient"}) {
    const auto verified =
        openssl({"verify", "-purpose", purpose, "-x509_strict", "-CAfile", at("root/ca.crt"),
                 "-untrusted", at("between/ca.crt"), at("certs/n1/node.crt")});
    EXPECT_EQ(verified.status, 0) << verified.err;
  }
}

TEST_F(CertHandshakes, OfAnotherRootOrWithoutTheIntermediateAreRefused) {
  const ServingNode node(node_tls(files("certs/n1")).value());
  cert({"create-ca", "--out", at("stranger"), "--key-type", "ec-p256"});
  make("node", "foreign", {"--key-type", "ec-p256"}, "stranger");
  auto foreign = files("foreign");
  foreign.check_own_chain = false;
  EXPECT_FALSE(call(node.endpoint(), foreign).has_value()) << "as a client";
  EXPECT_FALSE(node_tls(files("foreign")).has_value()) << "at the node's own start";
  const auto verified = openssl({"verify", "-CAfile", at("root/ca.crt"), at("foreign/node.crt")});
  EXPECT_NE(verified.status, 0);
  // The leaf alone, as it stands first in its file.
  fs::copy(at("certs/n1"), at("alone"));
  const auto whole = test::file_text(at("alone/node.crt"));
  std::ofstream(at("alone/node.crt")) << whole.substr(0, whole.find("-----BEGIN", 10));
  EXPECT_FALSE(node_tls(files("alone")).has_value());
  auto unchecked = files("alone");
  unchecked.check_own_chain = false;
  const ServingNode lacking(node_tls(unchecked).value());
  EXPECT_FALSE(call(lacking.endpoint(), {.trusted_roots = at("root/ca.crt")}).has_value());
}

TEST_F(CertHandshakes, InspectAndLintLookAtARunningNode) {
  const ServingNode node(node_tls(files("certs/n1")).value());
  const auto url = fmt::format("https://127.0.0.1:{}", node.endpoint().port);
  cert({"inspect", "--node", url, "-o", "json"});
  std::istringstream lines(out_.str());
  std::string line;
  ASSERT_TRUE(std::getline(lines, line));
  EXPECT_EQ(json::parse(line).at("common_name"), "eventstoredb-node");
  ASSERT_TRUE(std::getline(lines, line)) << "its intermediate";
  EXPECT_TRUE(json::parse(line).at("authority").get<bool>());

  // New files of the same CA, beside those that it shows.
  make("node", "certs/n1", {"--force"});
  EXPECT_EQ(try_cert({"lint", at("certs"), "--node", "n1=" + url}), 0) << out_.str() << err_.str();
  EXPECT_THAT(out_.str(), HasSubstr("passed"));
  EXPECT_EQ(err_.str(), "") << "gossip and version were read";
  cert({"create-node", "--ca-certificate", at("between/ca.crt"), "--ca-key", at("between/ca.key"),
        "--out", at("certs/n1"), "--force", "--dns-names", "elsewhere.example.com"});
  EXPECT_EQ(try_cert({"lint", at("certs"), "--node", "n1=" + url, "-o", "json"}), 2);
  const auto report = json::parse(out_.str());
  EXPECT_EQ(report.at("findings").at(0).at("code"), "san-lacks-address");
  EXPECT_THAT(report.at("findings").at(0).at("message").get<std::string>(), HasSubstr("127.0.0.1"));
}

TEST_F(CertHandshakes, LintShowsWhatANewCaNeeds) {
  const ServingNode first(node_tls(files("certs/n1")).value());
  make("node", "certs/n2", {});
  const ServingNode second(node_tls(files("certs/n2")).value());
  cert({"create-ca", "--out", at("fresh"), "--key-type", "ec-p256"});
  for (const auto* name : {"certs/n1", "certs/n2"}) {
    make("node", name, {"--force"}, "fresh");
  }
  const auto lint = [&](std::vector<std::string> more) {
    std::vector<std::string> words{"lint",
                                   at("certs"),
                                   "--trusted-roots",
                                   at("fresh/ca.crt"),
                                   "--node",
                                   fmt::format("n1=https://127.0.0.1:{}", first.endpoint().port),
                                   "--node",
                                   fmt::format("n2=https://127.0.0.1:{}", second.endpoint().port)};
    words.insert(words.end(), more.begin(), more.end());
    return try_cert(words);
  };
  EXPECT_EQ(lint({"--current-roots", at("root/ca.crt")}), 2);
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("trust-gap"), HasSubstr("stage \"switch\""),
                                HasSubstr("NO"), HasSubstr("--trust-first")));
  EXPECT_EQ(lint({"--current-roots", at("root/ca.crt"), "--trust-first"}), 0) << out_.str();
  EXPECT_THAT(out_.str(), AllOf(HasSubstr("stage \"drop the old roots\""), Not(HasSubstr("NO"))));
}

}  // namespace
}  // namespace verger::cli
