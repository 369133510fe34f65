#include <algorithm>
#include <fmt/format.h>
#include <fstream>
#include <functional>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/fixtures.h"
#include "tests/support/processes/ports.h"
#include "tests/support/processes/process.h"
#include "tests/support/temp_directory.h"
#include "tests/support/tree_hash.h"

/// What a person gets to see who starts the daemons in a wrong way: one sentence, and the exit code
/// that says what kind of fault it is.
namespace verger::test {
namespace {

using std::chrono::seconds;
using ::testing::AllOf;
using ::testing::HasSubstr;

/// The programs log to stderr too: what they say at last is the line behind their name.
std::string sentence_of(const Finished& finished, const std::string& name) {
  const auto at = finished.err.rfind(name + ": ");
  auto text = at == std::string::npos ? finished.err : finished.err.substr(at);
  EXPECT_EQ(std::ranges::count(text, '\n'), 1) << finished.err;
  return text;
}

class Daemons : public ::testing::Test {
 protected:
  static Finished start(std::vector<std::string> command) {
    command[0] = program(command[0]);
    return run(command, {}, seconds(30));
  }
  std::string path(const std::string& name) const { return (directory_.path() / name).string(); }
  std::string file(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }
  /// For an agent that is started before its vergerd.
  std::string agents_token() const {
    auto name = file("agents-token", "a token of the tests, as long as one has to be\n");
    std::filesystem::permissions(name, std::filesystem::perms(0600));
    return name;
  }
  std::string port(std::size_t index) const { return std::to_string(ports_[index]); }
  std::vector<std::string> node_command(const std::string& database, std::size_t first_port) const {
    return {"verger-agent",
            "--role",
            "node",
            "--db",
            path(database),
            "--init",
            "--node-port",
            port(first_port),
            "--replication-port",
            port(first_port + 1),
            "--chunk-size",
            "1048576",
            "--fast-timings",
            "--stream-existence-filter-size",
            "10000",
            "--end-after-seconds",
            "300"};
  }
  /// A node that keeps running; the object ends it.
  Process running(std::vector<std::string> command) {
    command[0] = program(command[0]);
    Process process({.command = std::move(command), .environment = {}, .output = path("log")});
    EXPECT_TRUE(eventually(seconds(30), [&] {
      return file_text(path("log")).find("serv") != std::string::npos;
    })) << file_text(path("log"));
    return process;
  }
  Finished verger(std::vector<std::string> arguments, std::size_t controller_port) const {
    arguments.insert(arguments.begin(), program("verger"));
    return run(arguments, {{"VERGER_CONTROLLER", "http://127.0.0.1:" + port(controller_port)}});
  }
  TempDirectory directory_;
  PortLease ports_{5};
};

TEST_F(Daemons, UnknownOptionsAreRefusedWithTheNearest) {
  const auto flag = start({"vergerd", "--data", path("c"), "--prot", "1"});
  EXPECT_EQ(flag.status, 64);
  EXPECT_THAT(sentence_of(flag, "vergerd"), HasSubstr("did you mean --port?"));
  const auto agent = start({"verger-agent", "--cluster-siez", "3"});
  EXPECT_EQ(agent.status, 64);
  EXPECT_THAT(sentence_of(agent, "verger-agent"), HasSubstr("did you mean --cluster-size?"));
  const auto key = start({"verger-agent", "--config", file("a.yaml", "ClusterSise: 3\n")});
  EXPECT_EQ(key.status, 64);
  EXPECT_THAT(sentence_of(key, "verger-agent"),
              AllOf(HasSubstr("a.yaml:1"), HasSubstr("did you mean ClusterSize?")));
}

TEST_F(Daemons, SayWhatIsMissing) {
  const auto data = start({"vergerd"});
  EXPECT_EQ(data.status, 64);
  EXPECT_THAT(sentence_of(data, "vergerd"), HasSubstr("--data"));
  const auto database = start({"verger-agent", "--role", "node"});
  EXPECT_EQ(database.status, 64);
  EXPECT_THAT(sentence_of(database, "verger-agent"), HasSubstr("--db"));
  const auto config = start({"verger-agent", "--config", path("nowhere.yaml")});
  EXPECT_EQ(config.status, 1);
  EXPECT_THAT(sentence_of(config, "verger-agent"), HasSubstr("nowhere.yaml"));
}

TEST_F(Daemons, OptionsOfAPairThatDoNotGoTogetherAreRefused) {
  const std::vector<std::pair<std::vector<std::string>, const char*>> cases = {
      {{"--journal-etcd", "etcd1:2379"}, "write it as http://HOST:PORT"},
      {{"--journal-etcd", "http://192.0.2.1"}, "plain HTTP is for this machine alone"},
      {{"--journal-etcd", "https://192.0.2.1"}, "needs --journal-etcd-ca"},
      {{"--journal-etcd", "http://127.0.0.1", "--journal-etcd-certificate-file", path("x")},
       "belong together"},
      {{"--journal-etcd", "http://127.0.0.1", "--journal-etcd-lease-seconds", "1"}, "2 to 300"}};
  for (const auto& [options, why] : cases) {
    std::vector<std::string> command{"vergerd", "--data", path("c")};
    command.insert(command.end(), options.begin(), options.end());
    const auto refused = start(command);
    EXPECT_EQ(refused.status, 64);
    EXPECT_THAT(sentence_of(refused, "vergerd"), HasSubstr(why));
  }
}

TEST_F(Daemons, AMistypedDatabasePathMakesNoDatabase) {
  auto command = node_command("dta", 0);
  std::erase(command, "--init");
  const auto missing = start(command);
  EXPECT_EQ(missing.status, 64);
  EXPECT_THAT(sentence_of(missing, "verger-agent"),
              AllOf(HasSubstr(path("dta")), HasSubstr("--init")));
  EXPECT_FALSE(std::filesystem::exists(path("dta")));
  std::filesystem::create_directory(path("dta"));
  const auto node = running(command);
  EXPECT_TRUE(std::filesystem::exists(path("dta/chunk-000000.000000")));
}

TEST_F(Daemons, CertificatesThatCannotBeUsedAreNamed) {
  const auto agent_with = [&](const std::string& certificate) {
    auto command = node_command("db", 0);
    command.insert(command.end(),
                   {"--certificate-file", certificate, "--certificate-private-key-file",
                    path("no.key"), "--trusted-root-certificates-path", path("ca")});
    return start(command);
  };
  const auto missing = agent_with(path("no.crt"));
  EXPECT_EQ(missing.status, 1);
  EXPECT_THAT(sentence_of(missing, "verger-agent"), HasSubstr("no.crt: cannot open: No such file"));
  const auto directory = agent_with(path("."));
  EXPECT_EQ(directory.status, 1);
  EXPECT_THAT(sentence_of(directory, "verger-agent"), HasSubstr("Is a directory"));
  const auto controller =
      start({"vergerd", "--data", path("c"), "--ca", file("ca.crt", "not a certificate")});
  EXPECT_EQ(controller.status, 64);
  EXPECT_THAT(sentence_of(controller, "vergerd"), HasSubstr("ca.crt"));
}

TEST_F(Daemons, APortInUseIsNamed) {
  const auto first = running(node_command("first", 0));
  auto same_node_port = node_command("second", 0);
  const auto node = start(same_node_port);
  EXPECT_EQ(node.status, 2);
  EXPECT_THAT(sentence_of(node, "verger-agent"), HasSubstr(port(0) + ": the port is in use"));

  const auto replication = start(node_command("third", 1));  // its node port is the other's second
  EXPECT_EQ(replication.status, 2);
  EXPECT_THAT(sentence_of(replication, "verger-agent"),
              HasSubstr(port(1) + ": the port is in use"));

  auto both = node_command("fourth", 2);
  both[2] = "both";
  both.insert(both.end(), {"--state", path("agent"), "--agent-port", port(0),
                           "--controller-token-file", agents_token()});
  const auto agent = start(both);
  EXPECT_EQ(agent.status, 2);
  EXPECT_THAT(sentence_of(agent, "verger-agent"), HasSubstr(port(0) + ": the port is in use"));

  const auto controller = start({"vergerd", "--data", path("c"), "--port", port(0)});
  EXPECT_EQ(controller.status, 2);
  EXPECT_THAT(sentence_of(controller, "vergerd"), HasSubstr(port(0) + ": the port is in use"));
}

TEST_F(Daemons, ADatabaseThatARunningNodeHoldsIsRefused) {
  const auto first = running(node_command("db", 0));
  const auto second = start(node_command("db", 2));
  EXPECT_EQ(second.status, 2);
  EXPECT_THAT(sentence_of(second, "verger-agent"), HasSubstr(path("db")));
}

TEST_F(Daemons, ADamagedDatabaseIsRefusedAndLeftAsItIs) {
  const std::filesystem::path database = path("db");
  const auto change = [&](const char* name, std::int64_t offset, char value) {
    std::fstream file(database / name, std::ios::in | std::ios::out | std::ios::binary);
    file.seekp(offset, offset < 0 ? std::ios::end : std::ios::beg);
    file.put(value);
    ASSERT_TRUE(file.flush()) << name;
  };
  struct Case {
    const char* what;
    std::function<void()> damage;
    std::vector<std::string> words;
    const char* chunk_size = "262144";
    int code = 1;
  };
  const char* const chunk = "chunk-000001.000000";
  const std::vector<Case> cases{
      {"truncated chunk",
       [&] { std::filesystem::resize_file(database / chunk, 5000); },
       {chunk, "verger-db verify", "backup"}},
      {"missing chunk", [&] { std::filesystem::remove(database / chunk); }, {"1"}},
      {"damaged header", [&] { change(chunk, 8, '\x77'); }, {chunk}},
      {"damaged footer", [&] { change(chunk, -120, '\x77'); }, {chunk}},
      {"newer chunk format", [&] { change(chunk, 1, '\x09'); }, {chunk, "9"}},
      {"other chunk size", [] {}, {"262144", "1048576"}, "1048576", 64},
      {"old writer.chk", [&] { change("writer.chk", 2, '\0'); }, {"writer.chk"}},
  };
  for (const auto& each : cases) {
    SCOPED_TRACE(each.what);
    std::filesystem::remove_all(database);
    unpack_fixture("scavenge/basic-limits/before.tar.zst", database);
    for (const auto& entry : std::filesystem::recursive_directory_iterator(database)) {
      std::filesystem::permissions(entry.path(), std::filesystem::perms::owner_write,
                                   std::filesystem::perm_options::add);
    }
    each.damage();
    const auto before = tree_hash(database);
    auto command = node_command("db", 0);
    *(std::ranges::find(command, "--chunk-size") + 1) = each.chunk_size;
    const auto node = start(command);
    EXPECT_EQ(node.status, each.code);
    for (const auto& word : each.words) {
      EXPECT_THAT(sentence_of(node, "verger-agent"), HasSubstr(word));
    }
    EXPECT_EQ(tree_hash(database), before);
  }
}

TEST_F(Daemons, ANodeThatIsNotTheOneRegisteredIsLeftAlone) {
  const auto command = [&](const std::string& database) {
    auto both = node_command(database, 0);
    both[2] = "both";
    both.insert(both.end(), {"--state", path(database + "-agent"), "--agent-port", port(2),
                             "--controller-token-file", agents_token()});
    return both;
  };
  auto registered = running(command("db"));
  const Process controller(
      {.command = {program("vergerd"), "--data", path("c"), "--port", port(4),
                   "--agents-token-file", agents_token(), "--end-after-seconds", "300"},
       .environment = {},
       .output = path("controller-log")});
  ASSERT_TRUE(eventually(seconds(30), [&] { return verger({"cluster", "list"}, 4).status == 0; }));
  const auto added = verger({"cluster", "add", "orders", "--node", "http://127.0.0.1:" + port(0),
                             "--agent", "http://127.0.0.1:" + port(2)},
                            4);
  ASSERT_EQ(added.status, 0) << added.err;
  Finished plan;
  ASSERT_TRUE(eventually(seconds(30), [&] {  // it leads, and so its database has an identity
    plan = verger({"plan", "scavenge", "orders"}, 4);
    return plan.status == 0;
  })) << plan.err;
  registered.kill();
  std::filesystem::rename(path("log"), path("first-log"));
  const auto other = running(command("other"));
  ASSERT_TRUE(eventually(seconds(30), [&] {
    plan = verger({"plan", "scavenge", "orders"}, 4);
    return plan.err.find("registered was") != std::string::npos;
  })) << plan.err;
  EXPECT_EQ(plan.status, 2);
  EXPECT_THAT(plan.err, HasSubstr("add it with the right URLs"));
}

TEST_F(Daemons, ClustersThatCannotBeRegisteredAreRefused) {
  const auto nobody = verger({"cluster", "list"}, 4);
  EXPECT_EQ(nobody.status, 1);
  EXPECT_THAT(sentence_of(nobody, "verger"), HasSubstr("is vergerd running?"));

  auto node_process = running(node_command("db", 0));
  Process controller({.command = {program("vergerd"), "--data", path("c"), "--port", port(4),
                                  "--end-after-seconds", "300", "--request-deadline-ms", "3000"},
                      .environment = {},
                      .output = path("controller-log")});
  ASSERT_TRUE(eventually(seconds(30), [&] { return verger({"cluster", "list"}, 4).status == 0; }));
  const auto url = "http://127.0.0.1:" + port(0);

  const auto absent =
      verger({"cluster", "add", "orders", "--node", "http://127.0.0.1:" + port(3)}, 4);
  EXPECT_EQ(absent.status, 1);
  EXPECT_THAT(sentence_of(absent, "verger"),
              AllOf(HasSubstr("no node of cluster orders answered"), HasSubstr(port(3)),
                    HasSubstr("nothing was registered")));

  const auto twice = verger(
      {"cluster", "add", "orders", "--node", url, "--node", "http://localhost:" + port(0)}, 4);
  EXPECT_EQ(twice.status, 2);
  EXPECT_THAT(sentence_of(twice, "verger"), HasSubstr("are the same node"));

  const auto no_password =
      verger({"cluster", "add", "orders", "--node", url, "--credentials", "nobody"}, 4);
  EXPECT_EQ(no_password.status, 1);
  EXPECT_THAT(sentence_of(no_password, "verger"),
              AllOf(HasSubstr("credentials \"nobody\""), HasSubstr("c/credentials/nobody"),
                    HasSubstr("nothing was registered")));

  const auto added = verger({"cluster", "add", "orders", "--node", url}, 4);
  EXPECT_EQ(added.status, 0) << added.err;
  const auto same_name = verger({"cluster", "add", "orders", "--node", url}, 4);
  EXPECT_EQ(same_name.status, 2);
  EXPECT_THAT(sentence_of(same_name, "verger"), HasSubstr("there is a cluster orders already"));
  const auto same_node = verger({"cluster", "add", "bills", "--node", url}, 4);
  EXPECT_EQ(same_node.status, 2);
  EXPECT_THAT(sentence_of(same_node, "verger"), HasSubstr("belongs to the cluster orders"));

  const auto unknown = verger({"cluster", "show", "nowhere"}, 4);
  EXPECT_EQ(unknown.status, 1);
  EXPECT_THAT(sentence_of(unknown, "verger"), HasSubstr("there are: orders"));
}

TEST_F(Daemons, TheAnnotatedFilesAreAccepted) {
  const auto examples =
      std::filesystem::path(VERGER_TEST_FIXTURES).parent_path().parent_path() / "examples";
  const auto controller = start({"vergerd", "--config", (examples / "vergerd.yaml").string(),
                                 "--data", path("c"), "--port", "0", "--end-after-seconds", "1"});
  EXPECT_EQ(controller.status, 0) << controller.err;
  auto command = node_command("db", 0);
  command.back() = "1";
  command.insert(command.end(), {"--config", (examples / "verger-agent.yaml").string()});
  const auto node = start(command);
  EXPECT_EQ(node.status, 0) << node.err;
  for (const auto* name : {"vergerd", "verger-agent"}) {
    const auto help = start({name, "--help"});
    EXPECT_EQ(help.status, 0);
    EXPECT_THAT(help.out, HasSubstr("VERGER_"));
  }
}

}  // namespace
}  // namespace verger::test
