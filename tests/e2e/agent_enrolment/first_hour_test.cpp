#include <filesystem>
#include <fmt/format.h>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "tests/support/fixtures.h"
#include "tests/support/processes/https_caller.h"
#include "tests/support/processes/ports.h"
#include "tests/support/processes/process.h"
#include "tests/support/temp_directory.h"

/// The first hour of an operator: from an empty directory to a plan, over https, as the commands
/// say themselves.
namespace verger::test {
namespace {

using nlohmann::json;
using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

class FirstHour : public ::testing::Test {
 protected:
  enum Port : std::size_t { kNode, kReplication, kController, kAgent };

  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  std::string port(Port which) const { return std::to_string(ports_[which]); }
  std::map<std::string, std::string> home() const { return {{"XDG_CONFIG_HOME", path("home")}}; }
  Finished verger(std::vector<std::string> arguments) const {
    arguments.insert(arguments.begin(), program("verger"));
    return run(arguments, home());
  }
  Finished shell(const std::string& line) const {
    const auto bin = std::filesystem::path(program("verger")).parent_path().string();
    return run({"bash", "-c", fmt::format("set -o pipefail; PATH={}:$PATH; {}", bin, line)},
               home());
  }
  void start_node() {
    unpack_fixture("scavenge/server-makes-point/before.tar.zst", directory_.path() / "db");
    node_.emplace(Process::Options{
        .command = {program("verger-agent"), "--role", "node", "--db", path("db"), "--fast-timings",
                    "--node-port", port(kNode), "--replication-port", port(kReplication),
                    "--max-mem-table-size", "200", "--stream-existence-filter-size", "10000",
                    "--end-after-seconds", "300"},
        .environment = {},
        .output = path("node.log")});
    ASSERT_TRUE(eventually(seconds(30), [&] {
      const auto answer =
          HttpsCaller().ask("http://127.0.0.1:" + port(kNode), {.target = "/gossip"}, false);
      return answer && answer->status == 200 && answer->body.contains("\"Leader\"");
    })) << file_text(path("node.log"));
  }
  std::string logs() const {
    return file_text(path("c.log")) + file_text(path("node.log")) + file_text(path("agent.log"));
  }
  /// The line of `text` that has `part`.
  static std::string line_with(const std::string& text, const std::string& part) {
    const auto at = text.find(part);
    const auto begin = at == std::string::npos ? 0 : text.rfind('\n', at) + 1;
    return at == std::string::npos ? "" : text.substr(begin, text.find('\n', at) - begin);
  }
  static std::string replaced(std::string text, const std::string& from, const std::string& to) {
    for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
      text.replace(at, from.size(), to);
    }
    return text;
  }

  TempDirectory directory_;
  PortLease ports_{4};
  std::optional<Process> node_;
  std::optional<Process> controller_;
  std::optional<Process> agent_;
};

TEST_F(FirstHour, EachCommandSaysTheNextOne) {
  const auto prepared =
      run({program("vergerd"), "init", "--data", path("c"), "--file", path("etc/vergerd.yaml"),
           "--api-names", "localhost", "--port", port(kController)});
  ASSERT_EQ(prepared.status, 0) << prepared.err;
  start_node();
  controller_.emplace(
      Process::Options{.command = {program("vergerd"), "--config", path("etc/vergerd.yaml"),
                                   "--host", "127.0.0.1", "--end-after-seconds", "300"},
                       .environment = {},
                       .output = path("c.log")});
  const auto login = replaced(line_with(prepared.out, "verger login"), "sudo ", "");
  EXPECT_THAT(login, AllOf(HasSubstr("--ca-fingerprint"), HasSubstr("--token-file -")));
  ASSERT_TRUE(eventually(seconds(30), [&] { return shell(login).status == 0; }))
      << shell(login).err << logs();
  const auto versions = verger({"version"});
  EXPECT_EQ(versions.status, 0) << versions.err;
  // Nothing is open: neither without a token, nor by the bootstrap token that never was.
  EXPECT_FALSE(std::filesystem::exists(path("c/bootstrap-token")));
  // Another root under that name is not taken.
  const auto other = shell(replaced(login, "--ca-fingerprint ", "--ca-fingerprint 00"));
  EXPECT_EQ(other.status, 1) << other.out;
  EXPECT_THAT(other.err, HasSubstr("shows no root with the fingerprint"));

  // The agent enrols before the cluster is registered, so that it is found.
  std::ofstream(path("agent.yaml")) << "State: " << path("agent") << '\n';
  const auto paste = verger(
      {"agent", "enrol", "orders/n1", "--host", "127.0.0.1", "--agent-config", path("agent.yaml")});
  ASSERT_EQ(paste.status, 0) << paste.err;
  const auto line = replaced(
      replaced(paste.out, " && sudo systemctl enable --now verger-agent", ""), "sudo ", "");
  const auto enrolled = shell(line);
  ASSERT_EQ(enrolled.status, 0) << enrolled.err << line;
  EXPECT_THAT(enrolled.out, HasSubstr("enrolled as orders/n1"));
  agent_.emplace(Process::Options{
      .command = {program("verger-agent"), "--role", "agent", "--node",
                  "http://127.0.0.1:" + port(kNode), "--db", path("db"), "--state", path("agent"),
                  "--agent-port", port(kAgent), "--end-after-seconds", "300"},
      .environment = {},
      .output = path("agent.log")});

  std::string command;
  ASSERT_TRUE(eventually(seconds(30),
                         [&] {
                           const auto found =
                               verger({"cluster", "discover", "http://127.0.0.1:" + port(kNode),
                                       "--name", "orders", "--agent-port", port(kAgent)});
                           command = found.out.substr(
                               std::min(found.out.size(), found.out.find("verger cluster add")));
                           return command.contains("--agent n1=https://127.0.0.1:" + port(kAgent));
                         }))
      << command << logs();
  const auto added = shell(command);
  ASSERT_EQ(added.status, 0) << added.err << command;
  EXPECT_EQ(added.err, "") << "no warning: it is all there";
  std::ofstream(path("policy.yaml")) << "name: nightly\nclusters: [orders]\n";
  const auto applied = verger({"policy", "apply", path("policy.yaml")});
  ASSERT_EQ(applied.status, 0) << applied.err;
  const auto doctor = verger({"doctor", "orders", "-o", "json"});
  EXPECT_EQ(doctor.status, 0) << doctor.out;
  EXPECT_THAT(doctor.out, HasSubstr("verger-agent"));
  const auto plan = verger({"plan", "scavenge", "orders"});
  EXPECT_EQ(plan.status, 0) << plan.err << logs();
}

}  // namespace
}  // namespace verger::test
