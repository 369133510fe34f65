#pragma once

#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <optional>
#include <signal.h>
#include <string>
#include <vector>

#include <nlohmann/json.hpp>

#include "engine/base/private_file.h"
#include "tests/support/fixtures.h"
#include "tests/support/member_case.h"
#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/openssl_authority.h"
#include "tests/support/processes/ports.h"
#include "tests/support/processes/process.h"
#include "tests/support/processes/service_scripts.h"
#include "tests/support/temp_directory.h"

namespace verger::test {

using nlohmann::json;
using std::chrono::seconds;

/// An agent beside a server that is another process. An embedded node with TLS stands for it.
class ExternalAgent : public ::testing::Test {
 protected:
  ExternalAgent()
      : authority_(directory_.path() / "authority", "Verger test root"),
        caller_(authority_.root()) {
    unpack_fixture("scavenge/server-makes-point/before.tar.zst", directory_.path() / "db");
    serial_ = renew();
    std::ofstream(path("credentials")) << "admin\nchangeit\n";
    const auto token =
        write_private_file(path("agents-token"), std::string(kToken) + '\n', IfThere::kReplace);
    EXPECT_TRUE(token.has_value());
    start_server();
    start_agent();
  }
  static constexpr const char* kToken = "a-token-of-the-tests-long-enough";
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  std::string renew() const {
    return authority_.issue(directory_.path() / "node", "verger-node", "IP:127.0.0.1");
  }
  std::string node_url() const { return fmt::format("https://127.0.0.1:{}", ports_[0]); }
  std::string agent_url() const { return fmt::format("http://127.0.0.1:{}", ports_[2]); }
  std::vector<std::string> server_command() const {
    std::vector<std::string> command{program("verger-agent"), "--role", "node", "--db", path("db"),
                                     "--fast-timings"};
    const std::vector<std::pair<std::string, std::string>> options{
        {"--node-port", std::to_string(ports_[0])},
        {"--replication-port", std::to_string(ports_[1])},
        {"--max-mem-table-size", "200"},
        {"--stream-existence-filter-size", "10000"},
        {"--certificate-file", path("node.crt")},
        {"--certificate-private-key-file", path("node.key")},
        {"--trusted-root-certificates-path", authority_.root().string()},
        {"--end-after-seconds", "300"}};
    for (const auto& [name, value] : options) {
      command.insert(command.end(), {name, value});
    }
    return command;
  }
  void start_server() {
    server_.emplace(Process::Options{
        .command = server_command(), .environment = {}, .output = path("server.log")});
  }
  /// start.sh and stop.sh, with which an agent starts and stops the server.
  void write_commands(const std::string& environment = {}) const {
    write_service_scripts({.start = path("start.sh"),
                           .stop = path("stop.sh"),
                           .pid = path("server.pid"),
                           .log = path("server.log"),
                           .command = server_command(),
                           .environment = environment});
  }
  void start_agent(const std::vector<std::string>& more = {},
                   const std::map<std::string, std::string>& environment = {}) {
    std::vector<std::string> command{program("verger-agent"), "--role", "agent"};
    const std::vector<std::pair<std::string, std::string>> options{
        {"--node", node_url()},
        {"--db", path("db")},
        {"--state", path("agent")},
        {"--agent-port", std::to_string(ports_[2])},
        {"--certificate-file", path("node.crt")},
        {"--trusted-root-certificates-path", authority_.root().string()},
        {"--credentials-file", path("credentials")},
        {"--controller-token-file", path("agents-token")},
        {"--agent-poll-interval-ms", "50"},
        {"--end-after-seconds", "300"}};
    for (const auto& [name, value] : options) {
      command.insert(command.end(), {name, value});
    }
    command.insert(command.end(), more.begin(), more.end());
    agent_.emplace(Process::Options{
        .command = std::move(command), .environment = environment, .output = path("agent.log")});
  }
  static std::string bearer() { return std::string("Bearer ") + kToken; }
  json facts() {
    const auto answer =
        caller_.ask(agent_url(),
                    {.target = "/agent/v1/facts", .headers = {{"Authorization", bearer()}}}, false);
    const auto seen = answer && answer->status == 200 ? json::parse(answer->body) : json::object();
    EXPECT_THAT(not_camel_case(seen), ::testing::IsEmpty());
    return seen;
  }
  template <class Condition>
  json facts_when(Condition condition) {
    json seen;
    EXPECT_TRUE(eventually(seconds(30),
                           [&] {
                             seen = facts();
                             return !seen.empty() && condition(seen);
                           }))
        << seen.dump(1) << file_text(path("agent.log")) << file_text(path("server.log"));
    return seen;
  }
  static bool complete(const json& facts) {
    return facts.value("nodeRunning", false) && facts.value("databaseId", "") != "" &&
           facts.value("nodeState", "") == "Leader";
  }
  http::Response ask(const std::string& method, const std::string& target,
                     const std::string& body = {}) {
    const auto answer =
        caller_.ask(agent_url(),
                    {.method = method,
                     .target = target,
                     .headers = {{"Content-Type", "application/json"}, {"Authorization", bearer()}},
                     .body = body},
                    false);
    return answer ? *answer : http::Response{.status = 0, .body = answer.error().message};
  }
  http::Response post(const std::string& target, const json& body) {
    return ask("POST", target, body.dump());
  }
  json status_of(const std::string& id) {
    const auto answer = ask("GET", "/agent/v1/operations/" + id);
    auto status = answer.status == 200 ? json::parse(answer.body) : json::object();
    EXPECT_THAT(not_camel_case(status), ::testing::IsEmpty());
    return status;
  }
  template <class Condition>
  json status_when(const std::string& id, Condition condition) {
    json status;
    EXPECT_TRUE(eventually(seconds(40),
                           [&] {
                             status = status_of(id);
                             return !status.empty() && condition(status);
                           }))
        << status.dump(1) << file_text(path("agent.log"));
    return status;
  }
  static bool has_ended(const json& status) { return status.contains("finishedAt"); }
  void begin(const std::string& id, const std::string& kind, const json& parameters) {
    EXPECT_EQ(post("/agent/v1/permits",
                   {{"controllerEpoch", 1}, {"run", "r"}, {"step", id}, {"validForMs", 60'000}})
                  .status,
              204);
    const auto accepted = post("/agent/v1/operations", {{"id", id},
                                                        {"kind", kind},
                                                        {"controllerEpoch", 1},
                                                        {"run", "r"},
                                                        {"step", id},
                                                        {"parameters", parameters}});
    EXPECT_EQ(accepted.status, 202) << accepted.body;
  }
  /// Ends agent and server, and starts both again so that the agent stops and starts the server by
  /// commands; with `environment` the agent alone.
  /// Meanwhile the state of former scavenges is forgotten with `forget_scavenge`.
  void make_a_service_of_the_server(const std::map<std::string, std::string>& environment = {},
                                    bool forget_scavenge = false) {
    agent_->signal(SIGTERM);
    EXPECT_EQ(agent_->wait(seconds(10)), 0);
    server_->signal(SIGTERM);
    EXPECT_EQ(server_->wait(seconds(10)), 0);
    if (forget_scavenge) {
      std::filesystem::remove_all(path("db/index/scavenging"));
    }
    write_commands();
    ASSERT_EQ(run({"/bin/sh", path("start.sh")}).status, 0);
    start_agent(service_commands(), environment);
  }
  std::vector<std::string> service_commands() const {
    return {"--start-command", "/bin/sh " + path("start.sh"), "--stop-command",
            "/bin/sh " + path("stop.sh")};
  }
  /// A scavenge point in the log that no scavenge has reached: its own is stopped.
  int leave_a_point_unfinished() {
    facts_when(complete);
    EXPECT_EQ(caller_.post(node_url(), "/admin/scavenge?throttlePercent=1")->status, 200);
    facts_when([](const json& now) { return now.contains("unfinished"); });
    const auto stopped =
        caller_.ask(node_url(), {.method = "DELETE", .target = "/admin/scavenge/current"});
    EXPECT_TRUE(stopped.has_value() && stopped->status == 200);
    const auto seen = facts_when([](const json& now) {
      return now.contains("unfinished") && !now.contains("running") && !now.at("points").empty();
    });
    return seen.at("unfinished").at("point").at("number").get<int>();
  }
  /// The operation's end.
  json operate(const std::string& id, const std::string& kind, const json& parameters) {
    begin(id, kind, parameters);
    return status_when(id, has_ended);
  }

  TempDirectory directory_;
  PortLease ports_{3};
  OpensslAuthority authority_;
  HttpsCaller caller_;
  std::string serial_;
  std::optional<Process> server_;
  std::optional<Process> agent_;
};

}  // namespace verger::test
