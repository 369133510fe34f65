#include "controller/cluster/registry.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "controller/cluster/credentials.h"
#include "engine/base/memory_file_system.h"
#include "tests/support/manual_clock.h"
#include "tests/support/temp_directory.h"

namespace verger::controller {
namespace {

using ::testing::HasSubstr;

class RegistryTest : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(disk_.make_directories("/state").has_value());
    auto opened = open_sqlite_journal(disk_, "/state/journal.db", system_clock());
    ASSERT_TRUE(opened.has_value());
    journal_ = std::move(*opened);
    start();
  }
  void start() {
    registry_ = std::make_unique<Registry>(*journal_, *journal_->begin_epoch("test"));
    ASSERT_TRUE(registry_->load().has_value());
  }
  static ClusterConfig config(const std::string& name, const std::string& host) {
    ClusterConfig out;
    out.name = name;
    out.credentials = "ops";
    out.nodes = {{"", "http://" + host + ":2113", "http://" + host + ":2114"},
                 {"b", "http://" + host + ":3113", ""}};
    return out;
  }
  MemoryFileSystem disk_;
  std::unique_ptr<Journal> journal_;
  std::unique_ptr<Registry> registry_;
};

TEST_F(RegistryTest, RemembersClustersOverAStart) {
  ASSERT_TRUE(registry_->add(config("prod", "10.0.0.1")).has_value());
  ASSERT_TRUE(registry_->set_identity("prod", "db-1").has_value());
  ASSERT_TRUE(registry_->set_paused("prod", true, "audit").has_value());
  start();
  const auto found = registry_->find("prod");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->nodes[0].name, "10.0.0.1:2113");
  EXPECT_EQ(found->nodes[1].name, "b");
  EXPECT_EQ(found->identity, "db-1");
  EXPECT_TRUE(found->paused);
  EXPECT_EQ(found->pause_reason, "audit");
}

TEST_F(RegistryTest, KnowsThePortsOfNodesAndAgents) {
  auto without_ports = config("prod", "10.0.0.1");
  without_ports.nodes = {{"a", "https://n1.example.com", "https://n1.example.com"}};
  ASSERT_TRUE(registry_->add(without_ports).has_value());
  const auto found = registry_->find("prod").value();
  EXPECT_EQ(found.nodes[0].url, "https://n1.example.com:2113");
  EXPECT_EQ(found.nodes[0].agent_url, "https://n1.example.com:2114");
}

TEST_F(RegistryTest, ChangesMembersInOneEventAndOnce) {
  ASSERT_TRUE(registry_->add(config("prod", "10.0.0.1")).has_value());
  const std::vector<ClusterNode> joined{
      {.name = "c", .url = "http://10.0.0.9:2113", .agent_url = "http://10.0.0.9:2114"}};
  for (int i = 0; i < 2; ++i) {
    ASSERT_TRUE(registry_->change_members("prod", joined, {"b"}).has_value());
    const auto found = registry_->find("prod").value();
    ASSERT_EQ(found.nodes.size(), 2U);
    EXPECT_EQ(found.nodes[1], joined.front());
    EXPECT_EQ(journal_->read("cluster/prod")->size(), 2U);
  }
  const auto taken = registry_->change_members(
      "prod", {{.name = "d", .url = "http://10.0.0.9:2113", .agent_url = ""}}, {});
  EXPECT_FALSE(taken.has_value()) << "the URL is that of c";
}

TEST_F(RegistryTest, RefusesTwoClustersWithOneNameUntilTheFirstIsRemoved) {
  ASSERT_TRUE(registry_->add(config("prod", "10.0.0.1")).has_value());
  const auto second = registry_->add(config("prod", "10.0.0.2"));
  ASSERT_FALSE(second.has_value());
  EXPECT_EQ(second.error().code, Errc::kExists);
  ASSERT_TRUE(registry_->remove("prod").has_value());
  EXPECT_TRUE(registry_->add(config("prod", "10.0.0.2")).has_value());
  start();
  EXPECT_EQ(registry_->find("prod")->nodes[0].url, "http://10.0.0.2:2113");
}

TEST_F(RegistryTest, RefusesANodeOfAnotherCluster) {
  ASSERT_TRUE(registry_->add(config("prod", "10.0.0.1")).has_value());
  const auto other = registry_->add(config("test", "10.0.0.1"));
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().code, Errc::kConflict);
  EXPECT_THAT(other.error().message, HasSubstr("belongs to the cluster prod"));
}

TEST_F(RegistryTest, NamesTheAgentThatIsOfAnotherCluster) {
  ASSERT_TRUE(registry_->add(config("prod", "10.0.0.1")).has_value());
  auto test = config("test", "10.0.0.2");
  test.nodes[0].agent_url = "http://10.0.0.1:2114";
  const auto other = registry_->add(test);
  ASSERT_FALSE(other.has_value());
  EXPECT_EQ(other.error().message,
            "cluster test: http://10.0.0.1:2114 belongs to the cluster prod");
}

TEST_F(RegistryTest, RefusesWhatCannotBeACluster) {
  auto twice = config("prod", "10.0.0.1");
  twice.nodes[1].url = twice.nodes[0].url;
  EXPECT_EQ(registry_->add(twice).error().code, Errc::kInvalidArgument);
  auto nameless = config("a b/c", "10.0.0.1");
  EXPECT_EQ(registry_->add(nameless).error().code, Errc::kInvalidArgument);
  auto strange = config("prod", "10.0.0.1");
  strange.nodes[0].url = "ftp://10.0.0.1";
  EXPECT_EQ(registry_->add(strange).error().code, Errc::kInvalidArgument);
  EXPECT_TRUE(registry_->list().empty());
}

TEST_F(RegistryTest, SaysWhichClustersThereAre) {
  ASSERT_TRUE(registry_->add(config("prod", "10.0.0.1")).has_value());
  const auto missing = registry_->find("prd");
  ASSERT_FALSE(missing.has_value());
  EXPECT_EQ(missing.error().code, Errc::kNotFound);
  EXPECT_THAT(missing.error().message, HasSubstr("there are: prod"));
}

TEST_F(RegistryTest, KeepsNoSecretInTheJournal) {
  ASSERT_TRUE(registry_->add(config("prod", "10.0.0.1")).has_value());
  for (const auto& event : *journal_->read_all(Sequence(0))) {
    EXPECT_THAT(event.data, ::testing::Not(HasSubstr("password")));
  }
}

TEST(ClusterText, IsReadInTheNamesOfOlderJournalsToo) {
  const auto older = parse_cluster_config(
      R"({"name":"a","nodes":[{"name":"n1","url":"http://n1:2113","agentUrl":"http://n1:2114"}],)"
      R"("credentials":"c","trustedRoots":"r.crt","identity":"i"})");
  ASSERT_TRUE(older.has_value());
  EXPECT_EQ(older->nodes.front().agent_url, "http://n1:2114");
  EXPECT_EQ(older->trusted_roots, "r.crt");
  EXPECT_TRUE(parse_cluster_config(to_json_text(*older)).value() == *older);
  EXPECT_EQ(to_json_text(*older).find("Url"), std::string::npos);
}

TEST(CredentialDirectoryTest, ReadsUserAndPassword) {
  MemoryFileSystem disk;
  ASSERT_TRUE(disk.make_directories("/c").has_value());
  ASSERT_TRUE(write_file_durably(disk, "/c/ops", as_bytes("ops\nse cret\n")).has_value());
  ASSERT_TRUE(write_file_durably(disk, "/c/half", as_bytes("ops\n")).has_value());
  CredentialDirectory store(disk, "/c");
  const auto found = store.find("ops");
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->user, "ops");
  EXPECT_EQ(found->password, "se cret");
  EXPECT_EQ(store.find("half").error().code, Errc::kInvalidArgument);
  EXPECT_EQ(store.find("../c/ops").error().code, Errc::kInvalidArgument);
  const auto none = store.find("none");
  EXPECT_EQ(none.error().code, Errc::kNotFound);
  EXPECT_THAT(none.error().message, ::testing::AllOf(HasSubstr("/c/none"), HasSubstr("first line")))
      << "where, and what to do";
}

TEST(CredentialDirectoryTest, KnowsTheHostsThatAPasswordIsFor) {
  MemoryFileSystem disk;
  ASSERT_TRUE(disk.make_directories("/c").has_value());
  const auto keep = [&](const char* name, const char* hosts) {
    const auto text = std::string("ops\nsecret\n") + hosts;
    ASSERT_TRUE(write_file_durably(disk, Path("/c") / name, as_bytes(text)).has_value());
  };
  keep("orders",
       "n1.db.example.com, *.orders.example.com\n# comment\n127.0.0.1:2111 [fd00::7]:*\n");
  keep("none", "");
  CredentialDirectory store(disk, "/c");
  const auto orders = store.find("orders").value();
  for (const auto* url :
       {"https://n1.db.example.com:2113", "https://N1.DB.example.com",
        "https://x.orders.example.com", "http://127.0.0.1:2111", "https://[fd00::7]:1"}) {
    EXPECT_TRUE(orders.are_for(http::parse_endpoint(url).value())) << url;
  }
  for (const auto* url : {"http://127.0.0.1:9999", "https://n1.db.example.com:2114",
                          "https://n2.db.example.com", "https://orders.example.com",
                          "https://a.b.orders.example.com", "https://n1.db.example.com.evil.org"}) {
    const auto endpoint = http::parse_endpoint(url).value();
    EXPECT_FALSE(orders.are_for(endpoint)) << url;
    EXPECT_EQ(check_host(orders, "orders", endpoint).error().code, Errc::kUnauthorized);
  }
  const auto unbound = check_host(store.find("none").value(), "none",
                                  http::parse_endpoint("https://n1.db.example.com").value());
  ASSERT_FALSE(unbound.has_value());
  EXPECT_THAT(unbound.error().message,
              ::testing::AllOf(HasSubstr("names no hosts"),
                               HasSubstr("add the line n1.db.example.com:2113")));
  for (const auto* wrong : {"*\n", "*:2113\n", "a.*.com\n", "https://n1\n", "n1:x\n", "n1:\n"}) {
    keep("wrong", wrong);
    EXPECT_THAT(store.find("wrong").error().message, HasSubstr("line 3")) << wrong;
  }
}

TEST(CredentialDirectoryTest, ReadsAFileAgainAfterFiveSecondsOnly) {
  MemoryFileSystem disk;
  test::ManualClock clock;
  ASSERT_TRUE(disk.make_directories("/c").has_value());
  CredentialDirectory store(disk, "/c", null_log(), clock);
  EXPECT_FALSE(store.find("ops").has_value());
  ASSERT_TRUE(write_file_durably(disk, "/c/ops", as_bytes("ops\nold\n")).has_value());
  EXPECT_EQ(store.find("ops").value().password, "old") << "what is missing is looked for each time";
  ASSERT_TRUE(write_file_durably(disk, "/c/ops", as_bytes("ops\nnew\n")).has_value());
  int opened = 0;
  disk.set_fault_hook([&opened](const DiskOperation&) {
    ++opened;
    return std::optional<Error>();
  });
  clock.advance_seconds(4);
  EXPECT_EQ(store.find("ops").value().password, "old");
  EXPECT_EQ(opened, 0) << "the disk was asked";
  clock.advance_seconds(1);
  EXPECT_EQ(store.find("ops").value().password, "new");
  ASSERT_TRUE(disk.remove("/c/ops").has_value());
  clock.advance_seconds(5);
  EXPECT_FALSE(store.find("ops").has_value());
}

TEST(CredentialDirectoryTest, WarnsOfAPasswordThatEverybodyMayRead) {
  const test::TempDirectory directory;
  const auto path = directory.path() / "ops";
  std::ofstream(path) << "ops\nsecret\n";
  std::filesystem::permissions(path, std::filesystem::perms(0644));
  test::ManualClock clock;
  CredentialDirectory store(posix_file_system(), directory.path(), null_log(), clock);
  EXPECT_THAT(store.find("ops").value().warning, HasSubstr("chmod 600 " + path.string()));
  std::filesystem::permissions(path, std::filesystem::perms(0600));
  clock.advance_seconds(5);
  EXPECT_EQ(store.find("ops").value().warning, "");
}

}  // namespace
}  // namespace verger::controller
