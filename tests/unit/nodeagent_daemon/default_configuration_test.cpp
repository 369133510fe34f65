// The file that the package installs as /etc/verger/verger-agent.yaml.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "engine/settings/daemon_call.h"
#include "nodeagent/daemon/agent_options.h"
#include "tests/support/annotated_file.h"

namespace verger::agent {
namespace {

/// As packaging/make_files.sh has it made.
const std::vector<std::string> kOfThePackage{"--role",
                                             "agent",
                                             "--node",
                                             "http://127.0.0.1:2113",
                                             "--db",
                                             "/var/lib/eventstore",
                                             "--state",
                                             "/var/lib/verger-agent",
                                             "--controller-token-file",
                                             "/etc/verger/agents-token"};

std::string agent_file(const std::vector<std::string>& arguments) {
  OptionParser parser;
  return settings::defaults_of(parser.settings(), arguments, "verger-agent").value_or("");
}

TEST(AgentConfiguration, OfThePackageIsAccepted) {
  const test::FileOfDefaults file(agent_file(kOfThePackage), {});
  OptionParser parser;
  const auto parsed = parser.parse({"--config", file.path().string()}, {});
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  const auto options = parser.finish();
  ASSERT_TRUE(options.has_value()) << options.error().message;
  EXPECT_EQ(options->role, Role::kAgent);
  EXPECT_EQ(options->node_url, "http://127.0.0.1:2113");
  EXPECT_EQ(options->agent_ip, "127.0.0.1");
  EXPECT_THAT(options->warnings, ::testing::IsEmpty());
}

TEST(AgentConfiguration, HasEveryOptionWithItsDefault) {
  OptionParser parser;
  const test::FileOfDefaults file(agent_file(kOfThePackage), parser.settings().effective());
  EXPECT_GT(file.count(), 60);
  const auto parsed = parser.parse({"--config", file.path().string()}, {});
  ASSERT_TRUE(parsed.has_value()) << parsed.error().message;
  const auto options = parser.finish();
  ASSERT_TRUE(options.has_value()) << options.error().message;
  EXPECT_EQ(options->node_port, 2113);
  for (const auto& option : parser.settings().effective()) {
    if (!option.hidden && !option.secret && option.deprecated.empty() && option.name != "Config") {
      EXPECT_NE(option.source, settings::Source::kDefault) << option.name;
    }
  }
}

}  // namespace
}  // namespace verger::agent
