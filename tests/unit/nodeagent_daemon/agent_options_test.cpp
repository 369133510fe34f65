#include "nodeagent/daemon/agent_options.h"

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "tests/support/temp_directory.h"

namespace verger::agent {
namespace {

using ::testing::HasSubstr;

Result<ProgramOptions> options_of(std::vector<std::string> arguments,
                                  const std::map<std::string, std::string>& environment = {}) {
  OptionParser parser;
  VERGER_RETURN_IF_ERROR(parser.parse(arguments, environment));
  return parser.finish();
}

std::string refusal(std::vector<std::string> arguments) {
  const auto options = options_of(std::move(arguments));
  EXPECT_FALSE(options.has_value());
  if (options.has_value()) {
    return "";
  }
  EXPECT_EQ(options.error().code, Errc::kInvalidArgument);
  return options.error().message;
}

const std::vector<std::string> kNode{"--role", "node", "--db", "/db"};
std::vector<std::string> node_with(std::vector<std::string> more) {
  more.insert(more.begin(), kNode.begin(), kNode.end());
  return more;
}
const std::vector<std::string> kCertificates{"--certificate-file",
                                             "n.crt",
                                             "--certificate-private-key-file",
                                             "n.key",
                                             "--trusted-root-certificates-path",
                                             "ca"};
std::vector<std::string> secure_node_with(std::vector<std::string> more) {
  more.insert(more.begin(), kCertificates.begin(), kCertificates.end());
  return node_with(std::move(more));
}

TEST(AgentOptions, WithoutTlsOnlyThisMachineIsListenedAndTalkedTo) {
  EXPECT_THAT(refusal(node_with({"--node-ip", "10.0.0.1"})), HasSubstr("--certificate-file"));
  EXPECT_THAT(refusal(node_with({"--insecure", "--host", "0.0.0.0"})), HasSubstr("loopback only"));
  EXPECT_THAT(refusal(node_with({"--cluster-size", "3", "--gossip-seed", "10.0.0.2:2113"})),
              HasSubstr("loopback only"));
  EXPECT_THAT(refusal({"--role", "agent", "--state", "/s", "--db", "/db", "--node",
                       "http://10.0.0.1:2113", "--controller-token-file", "/t"}),
              HasSubstr("use https"));
  EXPECT_TRUE(options_of(secure_node_with(
      {"--node-ip", "10.0.0.1", "--cluster-size", "3", "--gossip-seed", "10.0.0.2:2113,n3:2113"})));
}

TEST(AgentOptions, DrillsNeedRepositories) {
  std::vector<std::string> arguments{"--role",
                                     "agent",
                                     "--state",
                                     "/s",
                                     "--db",
                                     "/db",
                                     "--node",
                                     "http://127.0.0.1:2113",
                                     "--controller-token-file",
                                     "/t",
                                     "--backup-scratch",
                                     "/drills"};
  EXPECT_THAT(refusal(arguments), HasSubstr("--backup-repositories"));
  arguments.insert(arguments.end(), {"--backup-repositories", "/repositories"});
  const auto options = options_of(arguments);
  ASSERT_TRUE(options.has_value()) << options.error().message;
  EXPECT_EQ(options->backup_repositories, "/repositories");
  EXPECT_EQ(options->backup_scratch, "/drills");
}

TEST(AgentOptions, CertificatesComeWholeOrNotAtAll) {
  EXPECT_THAT(refusal(node_with({"--certificate-file", "n.crt"})), HasSubstr("belong together"));
  EXPECT_THAT(refusal(node_with(
                  {"--certificate-file", "n.crt", "--certificate-private-key-file", "n.key"})),
              HasSubstr("--trusted-root-certificates-path"));
  EXPECT_THAT(refusal({"--role", "agent", "--state", "/s", "--db", "/db", "--node",
                       "https://n1:2113", "--controller-token-file", "/t"}),
              HasSubstr("--trusted-root-certificates-path"));
}

TEST(AgentOptions, TheAgentShowsTheNodesCertificateUnlessItHasItsOwn) {
  auto arguments = secure_node_with({"--state", "/s", "--agent-trusted-roots", "controllers",
                                     "--agent-controller-name", "verger-1"});
  arguments[1] = "both";
  const auto shared = options_of(arguments);
  ASSERT_TRUE(shared.has_value()) << shared.error().message;
  EXPECT_EQ(shared->agent_tls.certificate, "n.crt");
  EXPECT_EQ(shared->agent_tls.trusted_roots, "controllers");
  EXPECT_EQ(shared->controller_name, "verger-1");
  EXPECT_TRUE(shared->node.gossip_seeds.empty());
  arguments.insert(arguments.end(), {"--agent-certificate-file", "a.crt",
                                     "--agent-certificate-private-key-file", "a.key"});
  const auto own = options_of(arguments);
  ASSERT_TRUE(own.has_value());
  EXPECT_EQ(own->agent_tls.certificate, "a.crt");
}

TEST(AgentOptions, APasswordOfAKeyComesFromAFileThatOthersCannotRead) {
  const test::TempDirectory directory;
  const auto file = (directory.path() / "password").string();
  std::ofstream(file) << "secret\n";
  const auto arguments = secure_node_with({"--certificate-private-key-password-file", file});
  std::filesystem::permissions(file, std::filesystem::perms(0644));
  const auto open_to_all = options_of(arguments);
  ASSERT_FALSE(open_to_all.has_value());
  EXPECT_EQ(open_to_all.error().code, Errc::kRefused);
  EXPECT_THAT(open_to_all.error().message, HasSubstr(file));
  std::filesystem::permissions(file, std::filesystem::perms(0600));
  const auto options = options_of(arguments);
  ASSERT_TRUE(options.has_value()) << options.error().message;
  EXPECT_EQ(options->node_tls.private_key_password, "secret");
  const auto by_variable = options_of(
      secure_node_with({}), {{"VERGER_NODE_CERTIFICATE_PRIVATE_KEY_PASSWORD_FILE", file}});
  ASSERT_TRUE(by_variable.has_value()) << by_variable.error().message;
  EXPECT_EQ(by_variable->node_tls.private_key_password, "secret");
  const auto twice =
      options_of(arguments, {{"VERGER_NODE_CERTIFICATE_PRIVATE_KEY_PASSWORD", "secret"}});
  ASSERT_FALSE(twice.has_value());
  EXPECT_THAT(twice.error().message, HasSubstr("give one of them"));
  std::ofstream(file) << "\n";
  EXPECT_THAT(refusal(arguments), HasSubstr("is empty"));
}

TEST(AgentOptions, CertificatesOfUsersAreAList) {
  const auto options = options_of(node_with({"--user-certificates", "/a.crt,,/users"}));
  ASSERT_TRUE(options.has_value()) << options.error().message;
  EXPECT_THAT(options->user_certificates, ::testing::ElementsAre("/a.crt", "/users"));
}

TEST(AgentOptions, WhoMayActAsTheControllerHasToBeSaid) {
  auto arguments = secure_node_with({"--state", "/s"});
  arguments[1] = "both";
  EXPECT_THAT(refusal(arguments), HasSubstr("--agent-trusted-roots is missing"))
      << "the node's roots are no default: each node could act as the controller";
  arguments.insert(arguments.end(), {"--agent-trusted-roots", "controllers"});
  EXPECT_THAT(refusal(arguments), HasSubstr("--agent-controller-name is missing"));
  const std::vector<std::string> plain{"--state", "/s",    "--db",   "/db",
                                       "--role",  "agent", "--node", "http://127.0.0.1:2113"};
  EXPECT_THAT(refusal(plain), HasSubstr("--controller-token-file is missing"));
  auto with_token = plain;
  with_token.insert(with_token.end(), {"--controller-token-file", "/token"});
  EXPECT_TRUE(options_of(with_token).has_value());
}

TEST(AgentOptions, RoutesCanBeLeftOut) {
  const auto none = options_of(node_with({}));
  ASSERT_TRUE(none.has_value());
  EXPECT_FALSE(none->node.disable_admin_ui || none->node.disable_stats_on_http ||
               none->node.disable_gossip_on_http);
  const auto all = options_of(node_with({"--disable-admin-ui", "--disable-gossip-on-http"}),
                              {{"VERGER_NODE_DISABLE_STATS_ON_HTTP", "true"}});
  ASSERT_TRUE(all.has_value()) << all.error().message;
  EXPECT_TRUE(all->node.disable_admin_ui && all->node.disable_stats_on_http &&
              all->node.disable_gossip_on_http);
}

TEST(AgentOptions, DetoursNameTwoPlacesEach) {
  const auto options =
      options_of(node_with({"--detours", "127.0.0.1:1=127.0.0.1:2,127.0.0.1:3=localhost:4"}));
  ASSERT_TRUE(options.has_value()) << options.error().message;
  const auto at = [](std::string host, std::uint16_t port) {
    return http::Endpoint{.tls = false, .host = std::move(host), .port = port};
  };
  EXPECT_EQ(options->detours, (Detours{{at("127.0.0.1", 1), at("127.0.0.1", 2)},
                                       {at("127.0.0.1", 3), at("localhost", 4)}}));
  for (const auto* wrong : {"127.0.0.1:1", "=", "127.0.0.1:1=", ","}) {
    EXPECT_THAT(refusal(node_with({"--detours", wrong})), HasSubstr("--detours")) << wrong;
  }
}

TEST(AgentOptions, InsecureLeavesTheCertificatesAside) {
  const auto options = options_of(secure_node_with({"--insecure"}));
  ASSERT_TRUE(options.has_value());
  EXPECT_FALSE(options->node_has_tls());
  EXPECT_EQ(options->warnings.size(), 1U);
}

TEST(AgentOptions, WithTlsEverybodyHasToSayWhoHeIs) {
  const auto plain = options_of(node_with({}));
  ASSERT_TRUE(plain.has_value());
  EXPECT_TRUE(plain->node.insecure);
  const auto loopback = options_of(secure_node_with({}));
  ASSERT_TRUE(loopback.has_value());
  EXPECT_FALSE(loopback->node.insecure);
  EXPECT_EQ(loopback->node.default_admin_password, "changeit");
  EXPECT_EQ(loopback->warnings.size(), 1U) << "for the well-known password";
  // Elsewhere a new database needs passwords of its own.
  const auto reachable = options_of(secure_node_with({"--node-ip", "10.0.0.1"}));
  ASSERT_TRUE(reachable.has_value()) << reachable.error().message;
  EXPECT_TRUE(reachable->node.default_admin_password.empty());
  const auto configured = options_of(
      secure_node_with({"--node-ip", "10.0.0.1"}),
      {{"VERGER_NODE_DEFAULT_ADMIN_PASSWORD", "a"}, {"VERGER_NODE_DEFAULT_OPS_PASSWORD", "o"}});
  ASSERT_TRUE(configured.has_value()) << configured.error().message;
  EXPECT_EQ(configured->node.default_admin_password, "a");
  EXPECT_EQ(configured->node.default_ops_password, "o");
  EXPECT_TRUE(configured->warnings.empty());
  EXPECT_FALSE(options_of(node_with({"--default-admin-password", "x"})).has_value())
      << "never from a flag";
}

TEST(AgentOptions, TellsTheNodeWhatItsOptionsAreAndWhereTheyCameFrom) {
  const auto options = options_of(node_with({"--chunk-size", "1048576"}),
                                  {{"VERGER_NODE_NODE_PRIORITY", "7"},
                                   {"VERGER_NODE_CERTIFICATE_PRIVATE_KEY_PASSWORD", "geheim"}});
  ASSERT_TRUE(options.has_value());
  const auto find = [&](std::string_view name) {
    const auto found =
        std::ranges::find(options->node.effective, name, &node::EffectiveOption::name);
    return found == options->node.effective.end() ? node::EffectiveOption{} : *found;
  };
  EXPECT_EQ(find("ChunkSize").value, "1048576");
  EXPECT_EQ(find("ChunkSize").source, "Command Line");
  EXPECT_EQ(find("ChunkSize").type, "integer");
  EXPECT_EQ(find("NodePriority").source, "Environment Variables");
  EXPECT_EQ(find("ClusterSize").source, "<DEFAULT>");
  EXPECT_EQ(find("ReadOnlyReplica").value, "False");
  EXPECT_EQ(find("CertificatePrivateKeyPassword").value, "********");
  EXPECT_FALSE(find("AlwaysKeepScavenged").deprecation.empty());
  EXPECT_TRUE(find("State").name.empty()) << "the agent's options are not the node's";
}

TEST(AgentOptions, TakesDeprecatedOptionsWithAWarning) {
  const auto options = options_of(
      node_with({"--always-keep-scavenged", "--discover-via-dns", "false", "--log", "/logs"}));
  ASSERT_TRUE(options.has_value()) << options.error().message;
  EXPECT_EQ(options->warnings.size(), 3U);
}

TEST(AgentOptions, ThePageSizeOfTheScavengeStateIsInBytesOrKib) {
  const auto size_of = [](const char* given) {
    const auto options = options_of(node_with({"--scavenge-backend-page-size", given}));
    EXPECT_TRUE(options.has_value()) << options.error().message;
    const auto shown = std::ranges::find(options->node.effective, "ScavengeBackendPageSize",
                                         &node::EffectiveOption::name);
    EXPECT_EQ(shown->value, std::to_string(options->node.scavenge_backend_page_size));
    return options->node.scavenge_backend_page_size;
  };
  EXPECT_EQ(size_of("16"), 16384U);
  EXPECT_EQ(size_of("64"), 65536U);
  EXPECT_EQ(size_of("512"), 512U);
  EXPECT_EQ(size_of("4096"), 4096U);
  for (const auto* wrong : {"0", "3", "100", "1000", "131072"}) {
    EXPECT_THAT(refusal(node_with({"--scavenge-backend-page-size", wrong})),
                HasSubstr("a power of two"));
  }
}

TEST(AgentOptions, HistoryIsKeptForADayOrLonger) {
  EXPECT_TRUE(options_of(node_with({"--scavenge-history-max-age", "1"})));
  for (const auto* wrong : {"0", "-1"}) {
    EXPECT_THAT(refusal(node_with({"--scavenge-history-max-age", wrong})), HasSubstr("1 or more"));
  }
}

TEST(AgentOptions, SaysWhatIsMissing) {
  EXPECT_THAT(refusal({"--role", "node"}), HasSubstr("--db is missing"));
  EXPECT_THAT(refusal({"--db", "/db"}), HasSubstr("--state is missing"));
  EXPECT_THAT(refusal({"--role", "agent", "--state", "/s", "--controller-token-file", "/t"}),
              HasSubstr("--node is missing"));
  EXPECT_THAT(refusal(node_with({"--cluster-size", "3"})), HasSubstr("--gossip-seed"));
  EXPECT_THAT(refusal(node_with({"--cluster-size", "0"})), HasSubstr("at least 1"));
  EXPECT_THAT(refusal(node_with({"--index", "/db"})), HasSubstr("different directories"));
}

}  // namespace
}  // namespace verger::agent
