#include "nodeagent/api/agent_certificates.h"

#include <gtest/gtest.h>

namespace verger::api {
namespace {

const std::string kSha(64, 'a');

CertificateFiles some_files() {
  return {.certificate = {.path = "/etc/node/node.crt",
                          .target = "/var/node/1.crt",
                          .mode = 0644,
                          .owner = 7},
          .key = {.path = "/etc/node/node.key", .problem = "Permission denied", .mode = 0},
          .chain = "-----BEGIN CERTIFICATE-----\n",
          .serial = "0A1B",
          .not_after = "2027-01-01T00:00:00Z",
          .roots = {{.name = "ca.crt", .file = {.path = "/etc/node/ca/ca.crt"}, .pem = "PEM"}},
          .roots_path = "/etc/node/ca",
          .roots_problem = "one of them",
          .key_matches = false,
          .key_type = "rsa-2048",
          .key_encrypted = true,
          .digest = kSha,
          .findings = {{.severity = FindingSeverity::kWarning,
                        .code = "file-mode",
                        .where = "/etc/node/node.key",
                        .message = "others may read it",
                        .next = "chmod 600"},
                       {.code = "key-mismatch", .message = "of another certificate"}}};
}

CertificateChange some_change() {
  return {.change = "run-1",
          .staged_at = "2026-01-01T00:00:00Z",
          .serial = "0A1B",
          .serial_before = "0A1A",
          .phases = {{.phase = CertificatePhase::kTrust, .state = "switched"},
                     {.phase = CertificatePhase::kLeaf,
                      .state = "staged",
                      .files = 2,
                      .restore_commands = {"mv -f a b", "kill -HUP 7"}},
                     {.phase = CertificatePhase::kDrop, .state = "staged", .files = 1}}};
}

/// What was written reads the same.
template <class T, class Parse>
void expect_read_back(const T& value, Parse parse) {
  const auto text = to_text(value);
  const auto back = parse(text);
  ASSERT_TRUE(back.has_value()) << text << ": " << back.error().message;
  EXPECT_EQ(*back, value) << text;
}

TEST(AgentCertificates, ReadsBackWhatAgentsSay) {
  NodeCertificates node{.live = some_files(),
                        .served = "PEM",
                        .reserved_common_name = "",
                        .loads_ec_keys = true,
                        .server_owner = 0,
                        .users = {{.path = "/users/ouro.crt", .pem = "PEM"},
                                  {.path = "/users/gone.crt", .problem = "it is not there"}},
                        .change = some_change(),
                        .taken_at = "2026-01-01T00:00:00Z"};
  expect_read_back(node, &parse_node_certificates);
  node.reserved_common_name.reset();
  node.change.reset();
  node.server_owner.reset();
  node.served_problem = "it does not answer";
  node.change_problem = "no option";
  node.signal_problem = "no process";
  expect_read_back(node, &parse_node_certificates);
  expect_read_back(some_files(), &parse_certificate_files);
  expect_read_back(
      std::vector<PeerHandshake>{{.name = "n2",
                                  .served = "PEM",
                                  .serial = "1",
                                  .trusted = true,
                                  .accepted = false,
                                  .not_accepted = "alert",
                                  .shown_serial = "2"},
                                 {.name = "n3", .problem = "refused", .not_trusted = "unknown"}},
      &parse_peer_handshakes);
  expect_read_back(CertificateStaged{.serial = "1",
                                     .not_after = "2027-01-01T00:00:00Z",
                                     .digest = kSha,
                                     .change = some_change()},
                   &parse_certificate_staged);
  expect_read_back(CertificateSwitched{.phase = CertificatePhase::kDrop,
                                       .files = 3,
                                       .serial = "1",
                                       .serial_before = "2",
                                       .at = "2026-01-01T00:00:00Z",
                                       .proven = "seen",
                                       .not_proven = "unseen"},
                   &parse_certificate_switched);
  for (
      const auto* bad :
      {"{}", "[]", R"({"live":{}})", R"({"live":{"certificate":{"path":1}}})",
       R"({"live":{"certificate":{"path":""}},"change":{"change":"a","phases":[{"phase":"x","state":""}]}})",
       R"({"live":{"certificate":{"path":""},"findings":[{"severity":"loud","code":"","message":""}]}})"}) {
    const auto read = parse_node_certificates(bad);
    ASSERT_FALSE(read.has_value()) << bad;
    EXPECT_EQ(read.error().code, Errc::kCorruption) << bad;
  }
}

TEST(AgentCertificates, ReadsBackWhatAgentsAreAsked) {
  const CertificateSource set{.set = kSha, .node = "n1"};
  const CertificateSource paths{
      .certificate_path = "/new/n1.crt", .key_path = "/new/n1.key", .roots_path = "/new/ca"};
  expect_read_back(set, &parse_certificate_source);
  expect_read_back(paths, &parse_certificate_source);
  expect_read_back(
      CertificateStage{.change = "run-1", .source = set, .serial = "1", .digest = kSha},
      &parse_certificate_stage);
  expect_read_back(
      CertificateSwitch{
          .change = "run-1", .phase = CertificatePhase::kTrust, .reload = ReloadBy::kSignal},
      &parse_certificate_switch);
  expect_read_back(CertificateRestore{.change = "run-1", .phase = CertificatePhase::kDrop},
                   &parse_certificate_restore);
  expect_read_back(CertificateDiscard{.change = "run-1"}, &parse_certificate_discard);
  expect_read_back(CertificateKeyRequest{.change = "run-1",
                                         .common_name = "node",
                                         .dns_names = {"n1", "*.example.com"},
                                         .ip_addresses = {"127.0.0.1"},
                                         .key_type = "rsa-3072"},
                   &parse_certificate_key_request);
  expect_read_back(
      HandshakesRequest{.peers = {{.name = "n2", .url = "https://n2:2113"}}, .staged = true},
      &parse_handshakes_request);
  CertificateSet both;
  both.nodes["n \"1\""] = {.certificate = kSha, .key = kSha, .roots = {{"ca.crt", kSha}}};
  both.nodes["n_2"] = {.certificate = kSha, .key_request = "run-1"};
  expect_read_back(both, &parse_certificate_set);
}

TEST(AgentCertificates, RefusesASourceThatIsHalfOrBoth) {
  for (const auto& bad :
       {CertificateSource{}, CertificateSource{.set = kSha},
        CertificateSource{.set = "abc", .node = "n1"},
        CertificateSource{.set = kSha, .node = "n1", .key_path = "/a"},
        CertificateSource{.key_path = "/a"}, CertificateSource{.certificate_path = "a.crt"}}) {
    const auto read = parse_certificate_source(to_text(bad));
    ASSERT_FALSE(read.has_value()) << to_text(bad);
    EXPECT_EQ(read.error().code, Errc::kInvalidArgument);
  }
}

TEST(AgentCertificates, RefusesASetThatNamesFilesOutsideTheRoots) {
  const auto of_root = [](const std::string& name) {
    return R"({"nodes":{"n1":{"certificate":")" + kSha + R"(","roots":[{"name":")" + name +
           R"(","sha256":")" + kSha + R"("}]}}})";
  };
  EXPECT_TRUE(parse_certificate_set(of_root("ca.crt")));
  for (const auto* bad : {"../ca.crt", "/ca.crt", ".ca.crt", "", "ca.txt", "a\\u000a.crt"}) {
    EXPECT_FALSE(parse_certificate_set(of_root(bad))) << bad;
  }
  for (const auto* bad : {"{}", R"({"nodes":[]})", R"({"nodes":{"n1":{}}})", "x",
                          R"({"nodes":{"n1":{"certificate":"AB"}}})"}) {
    const auto read = parse_certificate_set(bad);
    ASSERT_FALSE(read.has_value()) << bad;
    EXPECT_EQ(read.error().code, Errc::kInvalidArgument) << bad;
  }
}

TEST(AgentCertificates, RefusesParametersWithoutChangeOrPhase) {
  EXPECT_FALSE(parse_certificate_switch(R"({"change":"a"})"));
  EXPECT_FALSE(parse_certificate_switch(R"({"change":"a","phase":"all"})"));
  EXPECT_FALSE(parse_certificate_switch(R"({"change":"a/b","phase":"leaf"})"));
  EXPECT_FALSE(parse_certificate_switch(R"({"change":"a","phase":"leaf","reload":"kill"})"));
  EXPECT_FALSE(parse_certificate_restore(R"({"phase":"leaf"})"));
  EXPECT_FALSE(parse_certificate_discard(R"({"change":""})"));
  EXPECT_FALSE(parse_certificate_stage(R"({"change":"a"})"));
  EXPECT_FALSE(parse_certificate_key_request(R"({"change":"a"})"));
  EXPECT_FALSE(parse_handshakes_request(R"({"peers":[{"name":"n1"}]})"));
}

}  // namespace
}  // namespace verger::api
