#include "engine/settings/settings.h"

#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_directory.h"

namespace verger::settings {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

class SettingsTest : public ::testing::Test {
 protected:
  SettingsTest() {
    all_.add("cluster-size", size_, "Number of voting nodes", {.prefix = "VERGER_NODE_"});
    all_.add("node-port", port_, "Port", {.prefix = "VERGER_NODE_", .aliases = {"http-port"}});
    all_.add("insecure", insecure_, "No TLS", {.prefix = "VERGER_NODE_"});
    all_.add("gossip-seed", seeds_, "Others", {.prefix = "VERGER_NODE_"});
    all_.add("key-password", password_, "Of the key", {.prefix = "VERGER_NODE_", .secret = true});
    all_.add("role", role_, "What it is", {.choices = {"node", "agent"}});
    all_.add("always-keep", keep_, "Old", {.prefix = "VERGER_NODE_", .deprecated = "ignored"});
  }
  std::string file(const std::string& text) const {
    const auto path = (directory_.path() / "test.yaml").string();
    std::ofstream(path) << text;
    return path;
  }
  std::string refusal(const std::vector<std::string>& arguments,
                      const std::map<std::string, std::string>& environment = {}) {
    const auto parsed = all_.parse(arguments, environment);
    EXPECT_FALSE(parsed.has_value());
    return parsed.has_value() ? "" : parsed.error().message;
  }
  Effective effective(std::string_view name) const {
    for (const auto& option : all_.effective()) {
      if (option.name == name) {
        return option;
      }
    }
    return {};
  }
  test::TempDirectory directory_;
  int size_ = 1;
  std::uint16_t port_ = 2113;
  bool insecure_ = false;
  bool keep_ = false;
  std::string seeds_;
  std::string password_;
  std::string role_ = "node";
  Settings all_{"program", "does things"};
};

TEST_F(SettingsTest, FlagBeatsEnvironmentBeatsFileBeatsDefault) {
  const auto path = file("ClusterSize: 7\nNodePort: 1\nInsecure: true\n");
  ASSERT_TRUE(all_.parse({"--config", path, "--cluster-size", "3"},
                         {{"VERGER_NODE_CLUSTER_SIZE", "5"}, {"VERGER_NODE_NODE_PORT", "2"}}));
  EXPECT_EQ(size_, 3);
  EXPECT_EQ(port_, 2);
  EXPECT_TRUE(insecure_);
  EXPECT_EQ(effective("ClusterSize").source, Source::kFlag);
  EXPECT_EQ(effective("NodePort").source, Source::kEnvironment);
  EXPECT_EQ(effective("Insecure").source, Source::kFile);
  EXPECT_THAT(effective("Insecure").where, HasSubstr("test.yaml:3"));
  EXPECT_EQ(effective("GossipSeed").source, Source::kDefault);
}

TEST_F(SettingsTest, TakesTheFormsOfTheServer) {
  ASSERT_TRUE(all_.parse({"--insecure", "--cluster-size=3", "--http-port", "2111"}, {}));
  EXPECT_TRUE(insecure_);
  EXPECT_EQ(size_, 3);
  EXPECT_EQ(port_, 2111);
  ASSERT_TRUE(all_.parse({"--insecure", "false"}, {}));
  EXPECT_FALSE(insecure_);
}

TEST_F(SettingsTest, JoinsAListOfTheFile) {
  ASSERT_TRUE(all_.parse({"--config", file("GossipSeed: [a:1, b:2]\n")}, {}));
  EXPECT_EQ(seeds_, "a:1,b:2");
}

TEST_F(SettingsTest, RefusesUnknownKeysWithTheNearest) {
  EXPECT_THAT(refusal({"--cluster-siez", "3"}), HasSubstr("did you mean --cluster-size?"));
  EXPECT_THAT(refusal({"--config", file("\nClusterSise: 3\n")}),
              HasSubstr("test.yaml:2: ClusterSise is not known; did you mean ClusterSize?"));
  EXPECT_THAT(refusal({"--quite-something-else", "3"}), Not(HasSubstr("did you mean")));
  EXPECT_THAT(refusal({"node"}), HasSubstr("an option is expected"));
  all_.set_commands({{.words = "init [--data DIR]"}, {.words = "config check [--config FILE]"}});
  EXPECT_THAT(refusal({"iniit"}), HasSubstr("did you mean init?"));
  EXPECT_THAT(refusal({"confg", "check"}), HasSubstr("did you mean config?"));
  EXPECT_THAT(refusal({"frobnicate"}), Not(HasSubstr("did you mean")));
}

TEST_F(SettingsTest, NamesWhatGaveAWrongValue) {
  EXPECT_THAT(refusal({"--cluster-size", "many"}), HasSubstr("--cluster-size: \"many\""));
  EXPECT_THAT(refusal({}, {{"VERGER_NODE_NODE_PORT", "70000"}}),
              HasSubstr("VERGER_NODE_NODE_PORT: \"70000\""));
  EXPECT_THAT(refusal({"--config", file("Insecure: perhaps\n")}), HasSubstr("true or false"));
  EXPECT_THAT(refusal({"--role", "king"}), HasSubstr("one of node, agent"));
  EXPECT_THAT(refusal({"--cluster-size"}), HasSubstr("its value is missing"));
  EXPECT_THAT(refusal({"--config", "/nowhere/file.yaml"}), HasSubstr("/nowhere/file.yaml"));
  EXPECT_THAT(refusal({"--config", file("ClusterSize: 3\nClusterSize: 5\n")}),
              HasSubstr("there twice"));
}

TEST_F(SettingsTest, KeepsSecretsOffTheCommandLineAndOutOfSight) {
  EXPECT_THAT(refusal({"--key-password", "geheim"}),
              ::testing::AllOf(HasSubstr("VERGER_NODE_KEY_PASSWORD"), Not(HasSubstr("geheim"))));
  ASSERT_TRUE(all_.parse({}, {{"VERGER_NODE_KEY_PASSWORD", "geheim"}}));
  EXPECT_EQ(password_, "geheim");
  EXPECT_EQ(effective("KeyPassword").value, "********");
  EXPECT_THAT(all_.help(), Not(HasSubstr("geheim")));
}

TEST_F(SettingsTest, WarnsOfWhatHasNoEffect) {
  ASSERT_TRUE(all_.parse({"--always-keep"}, {{"VERGER_NODE_CLUSTER_SISE", "3"}}));
  EXPECT_THAT(all_.warnings(), ElementsAre(HasSubstr("--always-keep: ignored"),
                                           HasSubstr("VERGER_NODE_CLUSTER_SISE")));
}

TEST_F(SettingsTest, HelpNamesFlagVariableAndDefault) {
  EXPECT_EQ(*all_.parse({"--help"}, {}), Settings::Action::kHelp);
  EXPECT_THAT(all_.help(), HasSubstr("--cluster-size  VERGER_NODE_CLUSTER_SIZE\n"
                                     "      Number of voting nodes [1]"));
  EXPECT_THAT(all_.warnings(), IsEmpty());
}

}  // namespace
}  // namespace verger::settings
