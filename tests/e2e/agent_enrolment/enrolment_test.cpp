#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/stat.h>

#include <nlohmann/json.hpp>

#include "tests/support/fixtures.h"
#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/ports.h"
#include "tests/support/processes/process.h"
#include "tests/support/temp_directory.h"

/// Agents get certificates of vergerd's own authority for one-time tokens: real processes.
namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::Not;

/// One embedded node stands for the server; any number of vergerds and agents beside it.
class Enrolment : public ::testing::Test {
 protected:
  enum Port : std::size_t { kNode, kReplication, kController, kOtherController, kAgent, kAgent2 };

  Enrolment() {
    unpack_fixture("scavenge/server-makes-point/before.tar.zst", directory_.path() / "db");
    node_.emplace(Process::Options{
        .command = {program("verger-agent"), "--role", "node", "--db", path("db"), "--fast-timings",
                    "--node-port", port(kNode), "--replication-port", port(kReplication),
                    "--max-mem-table-size", "200", "--stream-existence-filter-size", "10000",
                    "--end-after-seconds", "300"},
        .environment = {},
        .output = path("node.log")});
    start_controller();
    wait_for_node();
  }
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  std::string port(Port which) const { return std::to_string(ports_[which]); }
  std::string url(Port which, const char* scheme = "http") const {
    return fmt::format("{}://127.0.0.1:{}", scheme, ports_[which]);
  }
  std::vector<std::string> controller_command(const std::string& name, Port where,
                                              const std::vector<std::string>& more) const {
    std::vector<std::string> command{program("vergerd"),
                                     "--data",
                                     path(name),
                                     "--port",
                                     port(where),
                                     "--poll-interval-ms",
                                     "50",
                                     "--request-deadline-ms",
                                     "3000",
                                     "--end-after-seconds",
                                     "300"};
    command.insert(command.end(), more.begin(), more.end());
    return command;
  }
  void start_controller(const std::vector<std::string>& more = {}) {
    controller_.emplace(Process::Options{.command = controller_command("c", kController, more),
                                         .environment = {},
                                         .output = path("c.log")});
    wait_for(kController);
  }
  void wait_for(Port where) {
    ASSERT_TRUE(eventually(seconds(30), [&] {
      const auto answer = HttpsCaller().ask(url(where), {.target = "/api/v1/health"}, false);
      return answer && answer->status == 200;
    })) << logs();
  }
  /// `cluster add` and an agent that enrols query the node's identity.
  void wait_for_node() {
    ASSERT_TRUE(eventually(seconds(30), [&] {
      const auto answer = HttpsCaller().ask(url(kNode), {.target = "/gossip"}, false);
      return answer && answer->status == 200 && answer->body.contains("\"Leader\"");
    })) << logs();
  }
  Finished verger(std::vector<std::string> arguments, Port where = kController) const {
    arguments.insert(arguments.begin(), program("verger"));
    return run(arguments, {{"VERGER_CONTROLLER", url(where)}});
  }
  /// The token in a file.
  std::string token(const std::string& agent, std::vector<std::string> more = {},
                    Port where = kController) const {
    std::vector<std::string> command{"agent", "token", agent};
    command.insert(command.end(), more.begin(), more.end());
    const auto made = verger(command, where);
    EXPECT_EQ(made.status, 0) << made.err;
    EXPECT_THAT(made.out, HasSubstr("vergeragent_"));
    auto name = path("token-" + std::to_string(tokens_++));
    std::ofstream(name) << made.out;
    return name;
  }
  Finished enrol(const std::string& token_file, const std::string& state = "agent",
                 Port where = kController) const {
    return run({program("verger-agent"), "enrol", "--controller", url(where), "--state",
                path(state), "--token-file", token_file});
  }
  void start_agent(std::optional<Process>& agent, const std::string& state, Port where) {
    agent.emplace(Process::Options{
        .command = {program("verger-agent"), "--role", "agent", "--node", url(kNode), "--db",
                    path("db"), "--state", path(state), "--agent-port", port(where),
                    "--controller-token-file", path("c/agents-token"), "--agent-poll-interval-ms",
                    "50", "--end-after-seconds", "300"},
        .environment = {},
        .output = path(state + ".log")});
  }
  Finished add(const std::string& cluster, const std::string& node, Port agent = kAgent,
               const char* scheme = "https", Port where = kController) const {
    return verger({"cluster", "add", cluster, "--node", node + "=" + url(kNode), "--agent",
                   url(agent, scheme)},
                  where);
  }
  /// What the controller says of the node's agent: empty when it hears facts from it.
  std::string agent_problem(const std::string& cluster, Port where = kController) const {
    const auto shown = verger({"cluster", "show", cluster, "-o", "json"}, where);
    const auto parsed = json::parse(shown.out, nullptr, false);
    if (!parsed.is_object()) {
      return "no answer: " + shown.err;
    }
    const auto& node = parsed.at("snapshot").at("nodes").at(0);
    if (node.at("agent_reachable") == true) {
      return "";
    }
    return node.at("problem").is_string() ? node.at("problem").get<std::string>() : "unreachable";
  }
  bool heard_of(const std::string& cluster) const {
    return eventually(seconds(20), [&] { return agent_problem(cluster).empty(); });
  }
  /// The agent's answer to who shows the certificate in `file`; empty when there is none.
  std::string facts_as(const std::string& file) {
    return run({"curl", "-s", "--max-time", "10", "--cacert", path("agent/authority.pem"), "--cert",
                file, "--key", file, url(kAgent, "https") + "/agent/v1/facts"})
        .out;
  }
  std::string logs() const {
    std::string out;
    for (const auto* name : {"c.log", "other.log", "node.log", "agent.log", "agent2.log"}) {
      out += fmt::format("\n--- {}\n{}", name, file_text(path(name)));
    }
    return out;
  }

  TempDirectory directory_;
  PortLease ports_{6};
  std::optional<Process> node_;
  std::optional<Process> controller_;
  std::optional<Process> other_;
  std::optional<Process> agent_;
  std::optional<Process> agent2_;
  mutable int tokens_ = 0;
};

TEST_F(Enrolment, AnAgentEnrolsAndTalksToItsControllerAlone) {
  ASSERT_EQ(add("orders", "n1").status, 0) << logs();
  EXPECT_NE(agent_problem("orders"), "");
  const auto enrolled = enrol(token("orders/n1"));
  ASSERT_EQ(enrolled.status, 0) << enrolled.err << logs();
  EXPECT_THAT(enrolled.out, HasSubstr("enrolled as orders/n1"));
  for (const auto* file : {"c/agents-ca.pem", "c/agents-client.pem", "agent/identity.pem"}) {
    struct stat seen{};
    ASSERT_EQ(::stat(path(file).c_str(), &seen), 0) << file;
    EXPECT_EQ(seen.st_mode & 07777U, 0600U) << file;
  }
  start_agent(agent_, "agent", kAgent);
  EXPECT_TRUE(heard_of("orders")) << agent_problem("orders") << logs();
  const auto list = verger({"agent", "list"});
  EXPECT_THAT(list.out, AllOf(HasSubstr("orders/n1"), HasSubstr("enrolled")));
  EXPECT_THAT(verger({"audit", "export"}).out, HasSubstr("agent-enrolled"));

  // All others are refused: no access without a certificate or without TLS.
  HttpsCaller nobody(path("agent/authority.pem"));
  const auto refused = nobody.ask(url(kAgent, "https"), {.target = "/agent/v1/facts"}, false);
  EXPECT_FALSE(refused.has_value() && refused->status == 200);
  const auto plain = HttpsCaller().ask(url(kAgent), {.target = "/agent/v1/facts"}, false);
  EXPECT_FALSE(plain.has_value() && plain->status == 200);
  // Another agent's certificate, of the same authority, is no client's.
  EXPECT_THAT(verger({"agent", "token", "orders/n2"}).err, HasSubstr("no node n2"));
  ASSERT_EQ(enrol(token("billing/n1", {"--host", "127.0.0.1"}), "agent2").status, 0);
  EXPECT_THAT(facts_as(path("agent2/identity.pem")), Not(HasSubstr("nodeInstanceId")));
  EXPECT_THAT(facts_as(path("c/agents-client.pem")), HasSubstr("nodeInstanceId"));
}

TEST_F(Enrolment, ATokenIsRefusedWithTheReason) {
  const auto good = token("orders/n1", {"--host", "127.0.0.1"});
  auto text = file_text(good);
  text[30] = text[30] == 'a' ? 'b' : 'a';
  std::ofstream(path("wrong")) << text;
  const auto wrong = enrol(path("wrong"));
  EXPECT_EQ(wrong.status, 2) << wrong.err;
  EXPECT_THAT(wrong.err, AllOf(HasSubstr("not known here"), HasSubstr("verger agent token")));
  std::ofstream(path("nonsense")) << "hello\n";
  EXPECT_EQ(enrol(path("nonsense")).status, 64);
  EXPECT_EQ(enrol(path("no-such-file")).status, 64);

  ASSERT_EQ(enrol(good).status, 0);
  const auto used = enrol(good, "agent2");
  EXPECT_EQ(used.status, 2);
  EXPECT_THAT(used.err, AllOf(HasSubstr("used already"), HasSubstr("orders/n1")));
  EXPECT_FALSE(std::filesystem::exists(path("agent2/identity.pem")));

  const auto late = token("orders/n2", {"--host", "127.0.0.1", "--valid-for-seconds", "1"});
  ASSERT_TRUE(eventually(seconds(20),
                         [&] { return verger({"agent", "list"}).out.contains("token expired"); }));
  const auto expired = enrol(late, "agent2");
  EXPECT_EQ(expired.status, 2);
  EXPECT_THAT(expired.err, HasSubstr("has expired"));
  EXPECT_THAT(verger({"agent", "token", "orders/n3"}).err, HasSubstr("--host"));
  EXPECT_THAT(
      run({program("verger-agent"), "enrol", "--state", path("agent2"), "--token", "x"}).err,
      HasSubstr("not taken from the command line"));
}

TEST_F(Enrolment, AnAgentOfAnotherClusterIsNotTakenForThisOnes) {
  ASSERT_EQ(add("orders", "n1").status, 0) << logs();
  // Both have enrolled with the same controller, but at the URL of orders/n1 the other one answers.
  ASSERT_EQ(enrol(token("orders/n1"), "agent").status, 0);
  ASSERT_EQ(enrol(token("billing/n1", {"--host", "127.0.0.1"}), "agent2").status, 0);
  start_agent(agent2_, "agent2", kAgent);
  std::string problem;
  EXPECT_TRUE(eventually(seconds(20),
                         [&] {
                           problem = agent_problem("orders");
                           return problem.contains("not the agent of orders/n1");
                         }))
      << problem << logs();
  EXPECT_THAT(problem, HasSubstr("urn:verger:agent:billing/n1"));
  agent2_->kill();
  start_agent(agent_, "agent", kAgent);
  EXPECT_TRUE(heard_of("orders")) << agent_problem("orders") << logs();

  // Forgotten: its certificate is still of the right authority, and opens nothing.
  ASSERT_EQ(verger({"agent", "forget", "orders/n1"}).status, 0);
  EXPECT_NE(agent_problem("orders"), "");
  ASSERT_EQ(enrol(token("orders/n1"), "again").status, 0);
  EXPECT_TRUE(eventually(seconds(20),
                         [&] {
                           problem = agent_problem("orders");
                           return problem.contains("no longer the current one");
                         }))
      << problem << logs();
  agent_->kill();
  start_agent(agent_, "again", kAgent);
  EXPECT_TRUE(heard_of("orders")) << agent_problem("orders") << logs();
}

TEST_F(Enrolment, AnotherControllersAgentIsRefusedByBothSides) {
  other_.emplace(Process::Options{.command = controller_command("other", kOtherController, {}),
                                  .environment = {},
                                  .output = path("other.log")});
  wait_for(kOtherController);
  const auto foreign = token("orders/n1", {"--host", "127.0.0.1"}, kOtherController);
  const auto unknown = enrol(foreign);
  EXPECT_EQ(unknown.status, 2);
  EXPECT_THAT(unknown.err, HasSubstr("not known here"));
  ASSERT_EQ(enrol(foreign, "agent", kOtherController).status, 0);
  ASSERT_EQ(enrol(token("orders/n1", {"--host", "127.0.0.1"}), "agent2").status, 0);
  start_agent(agent_, "agent", kAgent);
  ASSERT_EQ(add("orders", "n1").status, 0) << logs();
  std::string problem;
  EXPECT_TRUE(eventually(seconds(20),
                         [&] {
                           problem = agent_problem("orders");
                           return problem.contains("is not accepted");
                         }))
      << problem << logs();
  EXPECT_THAT(problem, HasSubstr("issuer CN=Verger agents"));
  // A root would not help.
  EXPECT_THAT(problem, AllOf(HasSubstr("enrolled with another vergerd, as orders/n1"),
                             HasSubstr("enrol it again with a token of: verger agent token"),
                             Not(HasSubstr("add the root"))));
  // Nor does that agent answer who is not its controller.
  EXPECT_THAT(facts_as(path("c/agents-client.pem")), Not(HasSubstr("nodeInstanceId")));
  EXPECT_THAT(facts_as(path("other/agents-client.pem")), HasSubstr("nodeInstanceId"));
}

TEST_F(Enrolment, AfterALostJournalTheAgentsToEnrolAgainAreNamed) {
  ASSERT_TRUE(eventually(seconds(30), [&] { return add("orders", "n1").status == 0; })) << logs();
  // With the agent's own file in place of --state.
  const auto config = path("agent.yaml");
  std::ofstream(config) << "Role: agent\nNode: " << url(kNode) << "\nState: " << path("agent")
                        << '\n';
  const auto enrolled = run({program("verger-agent"), "enrol", "--controller", url(kController),
                             "--config", config, "--token-file", token("orders/n1")});
  ASSERT_EQ(enrolled.status, 0) << enrolled.err;
  start_agent(agent_, "agent", kAgent);
  ASSERT_TRUE(heard_of("orders")) << agent_problem("orders") << logs();
  controller_->signal(SIGTERM);
  ASSERT_EQ(controller_->wait(seconds(10)), 0) << logs();
  for (const auto* file : {"c/journal.db", "c/journal.db-wal", "c/journal.db-shm"}) {
    std::filesystem::remove(path(file));
  }
  start_controller();
  ASSERT_EQ(add("orders", "n1").status, 0) << logs();
  EXPECT_TRUE(eventually(seconds(20), [&] {
    return agent_problem("orders").contains("this journal has no enrolment of orders/n1");
  })) << agent_problem("orders");
  EXPECT_THAT(agent_problem("orders"), HasSubstr("verger agent token orders/n1"));
}

TEST_F(Enrolment, CertificatesAreRenewedBeforeTheyExpireAndOutliveRestarts) {
  controller_->signal(SIGTERM);
  ASSERT_EQ(controller_->wait(seconds(10)), 0) << logs();
  const auto authority = file_text(path("c/agents-ca.pem"));
  start_controller({"--agent-certificate-seconds", "6"});
  EXPECT_EQ(file_text(path("c/agents-ca.pem")), authority);
  ASSERT_EQ(add("orders", "n1").status, 0) << logs();
  ASSERT_EQ(enrol(token("orders/n1")).status, 0);
  start_agent(agent_, "agent", kAgent);
  ASSERT_TRUE(heard_of("orders")) << agent_problem("orders") << logs();
  HttpsCaller caller;
  const auto first = caller.served_serial(url(kAgent, "https"));
  // Twice, so that more than a whole life of the first one has gone by.
  auto shown = first;
  for (int times = 0; times < 2; ++times) {
    const auto before = shown;
    EXPECT_TRUE(eventually(seconds(30), [&] {
      shown = caller.served_serial(url(kAgent, "https"));
      return !shown.empty() && shown != before;
    })) << logs();
  }
  EXPECT_TRUE(heard_of("orders")) << agent_problem("orders") << logs();
  agent_->signal(SIGTERM);
  EXPECT_EQ(agent_->wait(seconds(10)), 0);
  start_agent(agent_, "agent", kAgent);
  EXPECT_TRUE(heard_of("orders")) << agent_problem("orders") << logs();
}

TEST_F(Enrolment, VergerdDoesNotStartOnAnAuthorityThatIsNotPrivateOrBroken) {
  controller_->signal(SIGTERM);
  ASSERT_EQ(controller_->wait(seconds(10)), 0) << logs();
  ASSERT_EQ(::chmod(path("c/agents-ca.pem").c_str(), 0644), 0);
  const auto open = run(controller_command("c", kController, {}));
  EXPECT_EQ(open.status, 2);
  EXPECT_THAT(open.err, AllOf(HasSubstr("agents-ca.pem"), HasSubstr("chmod 600")));
  ASSERT_EQ(::chmod(path("c/agents-ca.pem").c_str(), 0600), 0);
  std::ofstream(path("c/agents-ca.pem")) << "not a key\n";
  const auto broken = run(controller_command("c", kController, {}));
  EXPECT_EQ(broken.status, 1);
  EXPECT_THAT(broken.err, HasSubstr("Restore it from a backup"));
  EXPECT_EQ(file_text(path("c/agents-ca.pem")), "not a key\n");
}

}  // namespace
}  // namespace verger::test
