// The lines of a server's configuration file that an agent changes.
#include "nodeagent/external/config_text.h"

#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include "nodeagent/external/start_options.h"
#include "tests/support/temp_directory.h"

namespace verger::external {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

struct Change {
  const char* name;
  std::string_view before;
  std::string_view after;
};

std::string changed(std::string_view text, std::vector<std::string> add = {"d:4", "e:5"},
                    std::vector<std::string> remove = {}) {
  const auto out = change_cluster_lines(
      text, {.from = 3, .to = 5, .add_seeds = std::move(add), .remove_seeds = std::move(remove)});
  return out ? *out : "error: " + out.error().message;
}

TEST(ConfigText, EveryOtherByteStays) {
  constexpr Change kChanges[] = {
      {"plain", "ClusterSize: 3\n", "ClusterSize: 5\n"},
      {"no end of line", "Db: /db\nClusterSize: 3", "Db: /db\nClusterSize: 5"},
      {"windows", "ClusterSize: 3\r\nDb: x\r\n", "ClusterSize: 5\r\nDb: x\r\n"},
      {"comments", "# ClusterSize: 7\nClusterSize:   3   # ClusterSize: 9\n",
       "# ClusterSize: 7\nClusterSize:   5   # ClusterSize: 9\n"},
      {"quoted", "ClusterSize: '3'\n", "ClusterSize: '5'\n"},
      {"other spelling", "cluster-size: \"3\"\n", "cluster-size: \"5\"\n"},
      {"below another key", "Sub:\n  ClusterSize: 3\nClusterSize: 3\n",
       "Sub:\n  ClusterSize: 3\nClusterSize: 5\n"},
      {"one seed", "GossipSeed: a:1\nClusterSize: 3\n",
       "GossipSeed: a:1,d:4,e:5\nClusterSize: 5\n"},
      {"seeds", "ClusterSize: 3\nGossipSeed: a:1, b:2 # here\n",
       "ClusterSize: 5\nGossipSeed: a:1, b:2, d:4, e:5 # here\n"},
      {"in quotes", "ClusterSize: 3\nGossipSeed: \"a:1,b:2\"\n",
       "ClusterSize: 5\nGossipSeed: \"a:1,b:2,d:4,e:5\"\n"},
      {"in brackets", "ClusterSize: 3\nGossipSeed: ['a:1','b:2']\n",
       "ClusterSize: 5\nGossipSeed: ['a:1','b:2','d:4','e:5']\n"},
      {"as lines", "GossipSeed:\n  - a:1\n\n  - 'b:2' # second\nClusterSize: 3\n",
       "GossipSeed:\n  - a:1\n\n  - 'b:2' # second\n  - 'd:4'\n  - 'e:5'\nClusterSize: 5\n"},
      {"last line", "ClusterSize: 3\nGossipSeed:\n- a:1",
       "ClusterSize: 5\nGossipSeed:\n- a:1\n- d:4\n- e:5"},
      {"one is there", "ClusterSize: 3\nGossipSeed: a:1,e:5\n",
       "ClusterSize: 5\nGossipSeed: a:1,e:5,d:4\n"},
  };
  for (const auto& each : kChanges) {
    EXPECT_EQ(changed(each.before), each.after) << each.name;
  }
}

TEST(ConfigText, SeedsGo) {
  EXPECT_EQ(changed("ClusterSize: 3\nGossipSeed: a:1, b:2, c:3\n", {}, {"b:2"}),
            "ClusterSize: 5\nGossipSeed: a:1, c:3\n");
  EXPECT_EQ(changed("ClusterSize: 3\nGossipSeed: ['a:1', 'b:2']\n", {}, {"a:1"}),
            "ClusterSize: 5\nGossipSeed: ['b:2']\n");
  EXPECT_EQ(changed("GossipSeed:\n  - a:1\n  - b:2\nClusterSize: 3\n", {}, {"b:2", "x:9"}),
            "GossipSeed:\n  - a:1\nClusterSize: 5\n");
  EXPECT_THAT(changed("ClusterSize: 3\nGossipSeed: a:1\n", {}, {"a:1"}),
              HasSubstr("would name no node"));
}

TEST(ConfigText, RefusesWhatItDoesNotUnderstand) {
  for (const auto* text :
       {"ClusterSize: three\n", "ClusterSize: 3\nClusterSize: 3\n", "ClusterSize: &a 3\n",
        "ClusterSize: [3]\n", "ClusterSize: 3\nGossipSeed: [a:1,\n  b:2]\n",
        "ClusterSize: 3\nGossipSeed: {a: 1}\n", "ClusterSize: 3\nGossipSeed:\n", "Db: /db\n",
        "ClusterSize: 7\n", "ClusterSize:\n"}) {
    EXPECT_THAT(changed(text), HasSubstr("error: ")) << text;
  }
}

TEST(ConfigText, ReadsWhatItSays) {
  const auto lines = read_cluster_lines("ClusterSize: 3\nGossipSeed: [a:1, \"b:2\"]\n");
  ASSERT_TRUE(lines);
  EXPECT_EQ(lines->size, 3);
  EXPECT_THAT(lines->seeds, ElementsAre("a:1", "b:2"));
  EXPECT_EQ(read_cluster_lines("Db: x\n")->size, 0);
}

TEST(StartOptionsOfAProcess, AreThoseOfProc) {
  test::TempDirectory proc;
  const auto process = proc.path() / "42";
  std::filesystem::create_directories(process);
  std::ofstream(process / "cmdline")
      << std::string("server\0--config\0node.conf\0--ClusterSize=3\0", 42);
  std::ofstream(process / "environ") << std::string("HOME=/\0KURRENTDB_GOSSIP_SEED=a:1\0", 33);
  std::filesystem::create_directory_symlink("/srv/db", process / "cwd");
  const auto seen = start_options_of(42, proc.path());
  ASSERT_TRUE(seen) << seen.error().message;
  EXPECT_EQ(given_at_start(*seen, "cluster-size"), "--ClusterSize=3");
  EXPECT_EQ(given_at_start(*seen, "gossip-seed"), "KURRENTDB_GOSSIP_SEED=a:1");
  EXPECT_EQ(given_at_start(*seen, "node-port"), "");
  EXPECT_EQ(config_file_given(*seen), "/srv/db/node.conf");
  EXPECT_FALSE(start_options_of(43, proc.path()));
  const auto own = start_options_of(::getpid());
  ASSERT_TRUE(own) << own.error().message;
  EXPECT_EQ(own->directory, std::filesystem::current_path());
}

}  // namespace
}  // namespace verger::external
