#include <gtest/gtest.h>
#include <set>

#include "nodeagent/certificates/authority.h"
#include "tests/unit/nodeagent_operations/certificate_machine.h"

namespace verger::agent {
namespace {

using nlohmann::json;

class CertificateOperations : public ::testing::Test, protected CertificateMachine {};

TEST_F(CertificateOperations, ShowTheNewLeafAndRestoreTheOldOneByteByByte) {
  const auto staged = stage(bring(same_root_, old_.root()));
  ASSERT_EQ(staged.value("state", ""), "done") << staged;
  EXPECT_EQ(staged["result"]["serial"], serial_of_text(same_root_.certificate));
  EXPECT_EQ(servers(), before_);
  const auto switched = switch_over(api::CertificatePhase::kLeaf);
  ASSERT_EQ(switched.value("state", ""), "done") << switched;
  EXPECT_EQ(server_.served(), same_root_.certificate);
  const auto result = api::parse_certificate_switched(switched["result"].dump());
  ASSERT_TRUE(result) << switched;
  EXPECT_EQ(result->files, 2);
  EXPECT_EQ(result->serial, serial_of_text(same_root_.certificate));
  EXPECT_EQ(result->serial_before, serial_of_text(old_leaf_.certificate));
  EXPECT_FALSE(result->at.empty());
  const auto shown = ask_json("GET", "/agent/v1/certificates");
  EXPECT_EQ(shown["change"]["phases"][1]["state"], "switched") << shown;
  EXPECT_EQ(shown["served"], same_root_.certificate);
  EXPECT_EQ(run("certificate_discard", R"({"change":"run-1"})").value("errorCode", ""), "conflict");
  const auto restored = restore(api::CertificatePhase::kLeaf);
  ASSERT_EQ(restored.value("state", ""), "done") << restored;
  EXPECT_EQ(server_.served(), old_leaf_.certificate);
  EXPECT_EQ(servers(), before_);
  EXPECT_EQ(restore(api::CertificatePhase::kLeaf).value("state", ""), "done") << "again: nothing";
  ASSERT_EQ(run("certificate_discard", R"({"change":"run-1"})").value("state", ""), "done");
  EXPECT_EQ(node_.content(), before_) << "no copy is left";
}

TEST_F(CertificateOperations, LeaveNoUploadInTheStore) {
  const auto stored = [this] { return ask_json("GET", "/agent/v1/files")["files"].size(); };
  ASSERT_EQ(stage(bring(same_root_, old_.root())).value("state", ""), "done");
  EXPECT_EQ(stored(), 4U) << "certificate, key, root and the set";
  ASSERT_EQ(switch_over(api::CertificatePhase::kLeaf).value("state", ""), "done");
  EXPECT_EQ(stored(), 0U);
  ASSERT_EQ(restore(api::CertificatePhase::kLeaf).value("state", ""), "done")
      << "the way back needs none of it";
  ASSERT_EQ(run("certificate_discard", R"({"change":"run-1"})").value("state", ""), "done");
  EXPECT_EQ(node_.content(), before_);

  ASSERT_EQ(stage(bring(same_root_, old_.root())).value("state", ""), "done");
  world_.run_for(milliseconds(2'000));
  const auto again = bring(same_root_, old_.root());
  ASSERT_EQ(run("certificate_discard", R"({"change":"run-1"})").value("state", ""), "done");
  EXPECT_EQ(stored(), 4U) << "what was brought again since stays";
  EXPECT_EQ(stage(again).value("state", ""), "done");
}

TEST_F(CertificateOperations, NameFilesThatAreMissingByNodeAndRole) {
  auto source = bring(same_root_, old_.root());
  const auto hash = to_hex(sha256(as_bytes(same_root_.key)));
  ask("DELETE", "/agent/v1/files/" + hash + "?controllerEpoch=4");
  const auto staged = stage(source);
  EXPECT_NE(staged.dump().find("the new key of n1"), std::string::npos) << staged;
}

TEST_F(CertificateOperations, ShowTheCertificatesOfUsers) {
  put_file(host_.disk(), "/users/user-ouro/user-ouro.crt", old_leaf_.certificate + old_leaf_.key);
  put_file(host_.disk(), "/users/ca.crt", old_.root());
  put_file(host_.disk(), "/users/broken.pem", "no certificate");
  put_file(host_.disk(), "/users/user-ouro/user-ouro.key", old_leaf_.key);
  const auto seen = ask("GET", "/agent/v1/certificates");
  ASSERT_TRUE(seen);
  const auto shown = api::parse_node_certificates(seen->body);
  ASSERT_TRUE(shown) << seen->body;
  ASSERT_EQ(shown->users.size(), 3U) << seen->body;
  EXPECT_EQ(shown->users[0].path, "/users/broken.pem");
  EXPECT_FALSE(shown->users[0].problem.empty());
  EXPECT_EQ(shown->users[1].path, "/users/user-ouro/user-ouro.crt");
  EXPECT_EQ(shown->users[1].pem, old_leaf_.certificate) << "and no key";
  EXPECT_EQ(shown->users[2].path, "/user.crt");
  EXPECT_FALSE(shown->users[2].problem.empty()) << "it is not there";
}

TEST_F(CertificateOperations, RestoreWhatAServerDoesNotTake) {
  ASSERT_EQ(stage(bring(same_root_, old_.root())).value("state", ""), "done");
  server_.ignores_reloads = true;
  const auto switched = switch_over(api::CertificatePhase::kLeaf);
  EXPECT_EQ(switched.value("state", ""), "failed") << switched;
  EXPECT_EQ(switched.value("errorCode", ""), "no_effect") << switched;
  EXPECT_EQ(servers(), before_);
  EXPECT_EQ(server_.served(), old_leaf_.certificate);
  const auto again = switch_over(api::CertificatePhase::kLeaf);
  EXPECT_EQ(again.value("errorCode", ""), "conflict") << "it has to be staged again: " << again;
}

TEST_F(CertificateOperations, RefuseALeafWhoseRootTheServerDoesNotTrust) {
  // Without the phase trust: the agent insists on the order.
  ASSERT_EQ(stage(bring(new_leaf_, new_.root())).value("state", ""), "done");
  EXPECT_EQ(switch_over(api::CertificatePhase::kLeaf).value("errorCode", ""), "conflict");
  EXPECT_EQ(servers(), before_);
}

TEST_F(CertificateOperations, ProveByClientsWhichRootsAServerUses) {
  ASSERT_EQ(stage(bring(new_leaf_, new_.root())).value("state", ""), "done");
  const auto proven = [&](const json& status) {
    const auto result = api::parse_certificate_switched(status["result"].dump());
    EXPECT_TRUE(result) << status;
    EXPECT_TRUE(result && result->not_proven.empty()) << status;
    return result ? result->proven : std::string();
  };
  EXPECT_TRUE(
      proven(switch_over(api::CertificatePhase::kTrust)).contains("new certificate is acc"));
  EXPECT_EQ(server_.served(), old_leaf_.certificate);
  EXPECT_TRUE(proven(switch_over(api::CertificatePhase::kLeaf)).contains("shown the certificate"));
  EXPECT_TRUE(proven(switch_over(api::CertificatePhase::kDrop)).contains("old certificate is ref"));
  EXPECT_EQ(server_.roots(), new_.root());
  EXPECT_EQ(restore(api::CertificatePhase::kTrust).value("errorCode", ""), "conflict");
  EXPECT_TRUE(proven(restore(api::CertificatePhase::kDrop)).contains("old certificate is acc"));
  EXPECT_TRUE(proven(restore(api::CertificatePhase::kLeaf)).contains("shown the certificate"));
  EXPECT_TRUE(proven(restore(api::CertificatePhase::kTrust)).contains("new certificate is ref"));
  EXPECT_EQ(servers(), before_);
  EXPECT_EQ(server_.roots(), old_.root());
}

TEST_F(CertificateOperations, KeepOldIntermediatesUntilTheOldRootsGo) {
  const auto between = TestAuthority("Between").root();
  put_file(host_.disk(), "/node/node.crt", old_leaf_.certificate + between);
  ASSERT_TRUE(server_.reload());
  ASSERT_EQ(stage(bring(new_leaf_, new_.root())).value("state", ""), "done");
  ASSERT_EQ(switch_over(api::CertificatePhase::kTrust).value("state", ""), "done");
  ASSERT_EQ(switch_over(api::CertificatePhase::kLeaf).value("state", ""), "done");
  EXPECT_EQ(server_.served(), new_leaf_.certificate + between);
  const auto dropped = switch_over(api::CertificatePhase::kDrop);
  ASSERT_EQ(dropped.value("state", ""), "done") << dropped;
  EXPECT_EQ(server_.served(), new_leaf_.certificate);
  for (const auto phase : {api::CertificatePhase::kDrop, api::CertificatePhase::kLeaf,
                           api::CertificatePhase::kTrust}) {
    ASSERT_EQ(restore(phase).value("state", ""), "done");
  }
  EXPECT_EQ(server_.served(), old_leaf_.certificate + between);
  EXPECT_EQ(server_.roots(), old_.root());
}

TEST_F(CertificateOperations, ATrustThatTheServerDoesNotTakeIsNoticedAlthoughItShowsTheSame) {
  ASSERT_EQ(stage(bring(new_leaf_, new_.root())).value("state", ""), "done");
  server_.ignores_reloads = true;
  const auto switched = switch_over(api::CertificatePhase::kTrust);
  EXPECT_EQ(switched.value("errorCode", ""), "no_effect") << switched;
  EXPECT_EQ(servers(), before_);
}

TEST_F(CertificateOperations, DoNothingToAServerThatDoesNotAnswer) {
  ASSERT_EQ(stage(bring(same_root_, old_.root())).value("state", ""), "done");
  server_.down = true;
  EXPECT_EQ(switch_over(api::CertificatePhase::kLeaf).value("errorCode", ""), "unavailable");
  EXPECT_EQ(servers(), before_);
  EXPECT_EQ(restore(api::CertificatePhase::kLeaf).value("state", ""), "done") << "nothing to do";
}

TEST_F(CertificateOperations, PutTheFilesBackOfAServerThatHasDied) {
  ASSERT_EQ(stage(bring(same_root_, old_.root())).value("state", ""), "done");
  ASSERT_EQ(switch_over(api::CertificatePhase::kLeaf).value("state", ""), "done");
  server_.down = true;
  const auto restored = restore(api::CertificatePhase::kLeaf);
  EXPECT_EQ(restored.value("errorCode", ""), "no_answer") << restored;
  EXPECT_EQ(servers(), before_);
}

TEST_F(CertificateOperations, ReloadBySignal) {
  ASSERT_EQ(stage(bring(same_root_, old_.root())).value("state", ""), "done");
  const auto switched = switch_over(api::CertificatePhase::kLeaf, api::ReloadBy::kSignal);
  ASSERT_EQ(switched.value("state", ""), "done") << switched;
  EXPECT_EQ(signals_, 1);
  EXPECT_EQ(server_.reloads, 2) << "the first was at its start";
  ASSERT_EQ(restore(api::CertificatePhase::kLeaf).value("state", ""), "done");
  EXPECT_EQ(signals_, 2) << "as the switch was asked";
}

TEST_F(CertificateOperations, NeedAKeyThatFitsAndFilesThatAreStillThose) {
  EXPECT_EQ(stage({.set = std::string(64, 'a'), .node = "n1"}).value("errorCode", ""), "not_found");
  EXPECT_EQ(
      stage(bring({new_leaf_.certificate, old_leaf_.key}, new_.root())).value("errorCode", ""),
      "invalid_argument");
  const auto changed =
      run("certificate_stage",
          api::to_text(api::CertificateStage{.change = "run-1",
                                             .source = bring(new_leaf_, new_.root()),
                                             .serial = serial_of_text(old_leaf_.certificate)}));
  EXPECT_EQ(changed.value("errorCode", ""), "conflict") << changed;
  EXPECT_EQ(node_.content(), before_);
}

TEST_F(CertificateOperations, FindWhatOnlyTheAgentSeesOfNewFiles) {
  put_file(host_.disk(), "/new/node.crt", new_leaf_.certificate);
  put_file(host_.disk(), "/new/node.key", old_leaf_.key);
  put_file(host_.disk(), "/new/ca/ca.crt", new_.root().substr(0, 200));
  const api::CertificateSource source{
      .certificate_path = "/new/node.crt", .key_path = "/new/node.key", .roots_path = "/new/ca"};
  const auto answer = ask("POST", "/agent/v1/certificates/candidate", api::to_text(source));
  ASSERT_TRUE(answer && answer->status == 200);
  const auto found = api::parse_certificate_files(answer->body);
  ASSERT_TRUE(found) << answer->body;
  EXPECT_EQ(found->chain, new_leaf_.certificate);
  EXPECT_EQ(found->key_matches, false);
  EXPECT_EQ(found->key_type, "ec-p256");
  std::set<std::string> codes;
  for (const auto& finding : found->findings) {
    codes.insert(finding.code);
  }
  EXPECT_TRUE(codes.contains("certificate-truncated")) << answer->body;
  put_file(host_.disk(), "/new/ca/ca.crt", new_.root());
  const auto again = ask("POST", "/agent/v1/certificates/candidate", api::to_text(source));
  ASSERT_TRUE(again);
  EXPECT_TRUE(again->body.contains("key-mismatch")) << again->body;
  EXPECT_NE(api::parse_certificate_files(again->body)->digest, found->digest);
}

TEST_F(CertificateOperations, MakeKeysThatStayOnTheNode) {
  const api::CertificateKeyRequest asked{
      .change = "run-1", .common_name = "node", .dns_names = {"n1"}};
  const auto request =
      ask_json("POST", "/agent/v1/certificates/request", json::parse(api::to_text(asked)))
          .value("request", "");
  ASSERT_TRUE(request.contains("CERTIFICATE REQUEST")) << answers_;
  const auto again =
      ask_json("POST", "/agent/v1/certificates/request", json::parse(api::to_text(asked)))
          .value("request", "");
  EXPECT_EQ(certificates::key_of_request(again).value_or("none"),
            certificates::key_of_request(request).value_or("neither"))
      << "the same key";
  auto other = asked;
  other.key_type = "rsa-2048";
  EXPECT_EQ(ask("POST", "/agent/v1/certificates/request", api::to_text(other))->status, 409);
  api::CertificateSet set;
  set.nodes["n1"] = {.certificate = store(old_.sign(request)), .key_request = "run-1"};
  const auto staged = stage({.set = store(api::to_text(set)), .node = "n1"});
  ASSERT_EQ(staged.value("state", ""), "done") << staged;
  const auto keys = all_files(host_.disk(), "/agent/certificates/keys");
  ASSERT_EQ(keys.size(), 1U);
  ASSERT_EQ(switch_over(api::CertificatePhase::kLeaf).value("state", ""), "done");
  EXPECT_EQ(text_of_file(host_.disk(), "/node/node.key"), keys.begin()->second);
  ASSERT_EQ(restore(api::CertificatePhase::kLeaf).value("state", ""), "done");
  ASSERT_EQ(run("certificate_discard", R"({"change":"run-1"})").value("state", ""), "done");
  EXPECT_TRUE(all_files(host_.disk(), "/agent/certificates/keys").empty());
  EXPECT_FALSE(answers_.contains("PRIVATE KEY"));
}

TEST_F(CertificateOperations, ShowTheNodesCertificateToItsPeers) {
  const auto answer = ask("POST", "/agent/v1/certificates/handshakes",
                          R"({"peers":[{"name":"n2","url":"https://n2:2113"}]})");
  const auto peers = api::parse_peer_handshakes(answer ? answer->body : "");
  ASSERT_TRUE(peers) << answers_;
  EXPECT_EQ(peers->front().serial, serial_of_text(old_leaf_.certificate));
  EXPECT_EQ(peers->front().shown_serial, peers->front().serial);
  EXPECT_EQ(peers->front().trusted, true);
  EXPECT_EQ(peers->front().accepted, true);
  EXPECT_EQ(
      ask("POST", "/agent/v1/certificates/handshakes", R"({"peers":[],"staged":true})")->status,
      404);
  ASSERT_EQ(stage(bring(new_leaf_, new_.root())).value("state", ""), "done");
  const auto staged = ask("POST", "/agent/v1/certificates/handshakes",
                          R"({"peers":[{"name":"n2","url":"https://n2:2113"}],"staged":true})");
  const auto seen = api::parse_peer_handshakes(staged ? staged->body : "");
  ASSERT_TRUE(seen) << answers_;
  EXPECT_EQ(seen->front().accepted, false) << "it does not trust the new root yet";
  EXPECT_EQ(seen->front().shown_serial, serial_of_text(new_leaf_.certificate));
}

TEST_F(CertificateOperations, LeaveNoKeyInJournalLogOrAnswers) {
  ASSERT_EQ(stage(bring(new_leaf_, new_.root())).value("state", ""), "done");
  ask("GET", "/agent/v1/certificates");
  ask("POST", "/agent/v1/certificates/handshakes",
      R"({"peers":[{"name":"n2","url":"https://n2:2113"}],"staged":true})");
  for (const auto phase : {api::CertificatePhase::kTrust, api::CertificatePhase::kLeaf}) {
    ASSERT_EQ(switch_over(phase).value("state", ""), "done");
  }
  server_.ignores_reloads = true;
  EXPECT_EQ(switch_over(api::CertificatePhase::kDrop).value("state", ""), "failed");
  ask("GET", "/agent/v1/facts");
  std::string kept = answers_ + log_.text;
  for (const auto& [path, content] : all_files(host_.disk(), "/agent")) {
    if (!path.starts_with("/agent/files/")) {
      kept += content;
    }
  }
  ASSERT_GT(kept.size(), 10'000U);
  EXPECT_TRUE(kept.contains(serial_of_text(new_leaf_.certificate)));
  for (const auto& key : {old_leaf_.key, new_leaf_.key}) {
    const auto body = key.substr(key.find('\n') + 1, 40);
    EXPECT_FALSE(kept.contains(body));
  }
  EXPECT_FALSE(kept.contains("PRIVATE KEY"));
}

}  // namespace
}  // namespace verger::agent
