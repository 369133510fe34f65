#include <gtest/gtest.h>
#include <set>

#include <nlohmann/json.hpp>

#include "engine/base/digest.h"
#include "nodeagent/api/agent_certificates.h"
#include "nodeagent/certificates/authority.h"
#include "nodeagent/certificates/certificate_details.h"
#include "nodeagent/operations/agent.h"
#include "tests/support/cluster/sim_world.h"
#include "tests/unit/nodeagent_operations/certificate_case.h"

/// An agent that changes the certificates of a server on another machine of the simulation, which
/// reads them from the agent's disk.
namespace verger::agent {
namespace {

using nlohmann::json;
using std::chrono::milliseconds;
using Content = std::map<std::string, std::string>;

constexpr std::uint16_t kServersPort = 2113;
constexpr std::uint16_t kChangersPort = 2114;

std::string serial_of_text(const std::string& certificate) {
  const auto read = certificates::read_details(certificate);
  return read ? read->front().info.serial : "";
}

/// Keeps all that is logged.
class KeptLog final : public Log {
 public:
  void write(LogLevel /*level*/, std::string_view message,
             std::span<const LogField> fields) override {
    text += message;
    for (const auto& field : fields) {
      text += fmt::format(" {}={}", field.name, field.value);
    }
    text += '\n';
  }
  std::string text;
};

net::awaitable<Result<http::Handshake>> shake_with(const FakeServer* server,
                                                   http::ClientMaterial material) {
  co_return server->shake_hands(material);
}

net::awaitable<Result<void>> hang_up(FakeServer* server, int* signals) {
  ++*signals;
  server->reload();
  co_return Result<void>();
}

struct CertificateMachine {
  CertificateMachine()
      : host_(world_.add_host("n1")),
        server_host_(world_.add_host("server")),
        asker_(world_.add_host("p")) {
    server_host_.boot();
    server_host_.serve_http(kServersPort,
                            [this](http::Request request) -> net::awaitable<http::Response> {
                              if (request.target == "/admin/reloadconfig") {
                                server_.reload();
                              }
                              co_return http::Response{.status = 200};
                            });
    asker_.boot();
    node_.write(old_leaf_, {{"ca.crt", old_.root()}});
    EXPECT_TRUE(server_.reload());
    before_ = node_.content();
    boot();
  }

  void boot() {
    host_.boot();
    runner_ = std::make_unique<node::InlineJobRunner>(host_.timers());
    auto access = std::make_shared<CertificateAccess>();
    access->places = NodeDirectory::places();
    access->places.loads_ec_keys = true;
    access->access = &access_;
    access->shake_hands = [this](http::Endpoint, http::ClientMaterial material, std::string,
                                 milliseconds) {
      return shake_with(&server_, std::move(material));
    };
    access->signal_server = [this] { return hang_up(&server_, &signals_); };
    access->signal_problem = signal_problem_;
    auto opened = Agent::open({.journal = "/agent/journal.db",
                               .node = {.tls = true, .host = "server", .port = kServersPort},
                               .poll_interval = milliseconds(100)},
                              {.executor = host_.executor(),
                               .files = host_.disk(),
                               .clock = host_.clock(),
                               .timers = host_.timers(),
                               .client = host_.client(),
                               .jobs = *runner_,
                               .log = log_,
                               .inspection = []() -> node::NodeInspection* { return nullptr; },
                               .certificates = std::move(access)});
    ASSERT_TRUE(opened) << opened.error().message;
    std::shared_ptr<Agent> agent = *std::move(opened);
    host_.keep(agent);
    host_.serve_http(kChangersPort, agent->handler());
    agent->start();
  }

  /// nullopt: no answer.
  std::optional<http::Response> ask(std::string method, std::string target, std::string body = {}) {
    std::optional<Result<http::Response>> answer;
    asker_.spawn([](CertificateMachine& self, http::Request request,
                    std::optional<Result<http::Response>>& into) -> net::awaitable<void> {
      into = co_await self.asker_.client().send({.tls = false, .host = "n1", .port = kChangersPort},
                                                std::move(request), milliseconds(2'000));
    }(*this, {.method = std::move(method), .target = std::move(target), .body = std::move(body)},
                                                                 answer));
    EXPECT_TRUE(world_.run_until([&] { return answer.has_value(); }, milliseconds(5'000)));
    if (!answer || !*answer) {
      return std::nullopt;
    }
    answers_ += (*answer)->body + "\n";
    return **answer;
  }
  json ask_json(std::string method, std::string target, const json& body = {}) {
    const auto answer =
        ask(std::move(method), std::move(target), body.is_null() ? "" : body.dump());
    return answer ? json::parse(answer->body, nullptr, false) : json();
  }

  /// The id of an operation that was begun.
  std::string begin(const std::string& kind, const std::string& parameters) {
    auto id = fmt::format("o{}", ++operations_);
    ask("POST", "/agent/v1/permits",
        R"({"controllerEpoch":4,"run":"r","step":"s","validForMs":60000})");
    ask_json("POST", "/agent/v1/operations",
             {{"id", id},
              {"run", "r"},
              {"step", "s"},
              {"controllerEpoch", 4},
              {"kind", kind},
              {"parameters", json::parse(parameters)}});
    return id;
  }
  json ended(const std::string& id) {
    json status;
    for (int looks = 0; looks < 2'000; ++looks) {
      status = ask_json("GET", "/agent/v1/operations/" + id);
      if (!status.is_object() || status.value("state", "") == "done" ||
          status.value("state", "") == "failed" || status.contains("code")) {
        break;
      }
      world_.run_for(milliseconds(100));
    }
    return status;
  }
  json run(const std::string& kind, const std::string& parameters) {
    return ended(begin(kind, parameters));
  }
  json switch_over(api::CertificatePhase phase, api::ReloadBy reload = api::ReloadBy::kRoute) {
    return run("certificate_switch", api::to_text(api::CertificateSwitch{"run-1", phase, reload}));
  }
  json restore(api::CertificatePhase phase) {
    return run("certificate_restore", api::to_text(api::CertificateRestore{"run-1", phase}));
  }

  std::string store(const std::string& content) {
    const auto hash = to_hex(sha256(as_bytes(content)));
    const auto answer = ask("PUT", "/agent/v1/files/" + hash + "?controllerEpoch=4", content);
    EXPECT_EQ(answer ? answer->status : 0, 200);
    return hash;
  }
  /// Brings a set for the node "n1" to the agent.
  api::CertificateSource bring(const TestAuthority::Leaf& leaf, const std::string& root) {
    api::CertificateSet set;
    set.nodes["n1"] = {.certificate = store(leaf.certificate),
                       .key = store(leaf.key),
                       .roots = {{.name = "ca.crt", .sha256 = store(root)}}};
    return {.set = store(api::to_text(set)), .node = "n1"};
  }
  json stage(const api::CertificateSource& source) {
    return run("certificate_stage",
               api::to_text(api::CertificateStage{.change = "run-1", .source = source}));
  }
  Content servers() {
    auto out = node_.content();
    std::erase_if(out, [](const auto& each) { return each.first.contains(".verger-"); });
    return out;
  }

  testing::SimWorld world_{1};
  testing::SimHost& host_;
  testing::SimHost& server_host_;
  testing::SimHost& asker_;
  external::FileAccess access_;
  NodeDirectory node_{host_.disk()};
  FakeServer server_{host_.disk()};
  KeptLog log_;
  std::unique_ptr<node::JobRunner> runner_;
  std::string answers_;
  std::string signal_problem_;
  int operations_ = 0;
  int signals_ = 0;

  const TestAuthority& old_ = authority("old");
  const TestAuthority& new_ = authority("new");
  const TestAuthority::Leaf& old_leaf_ = leaf_of_authority("old", "1");
  const TestAuthority::Leaf& same_root_ = leaf_of_authority("old", "2");
  const TestAuthority::Leaf& new_leaf_ = leaf_of_authority("new", "1");
  Content before_;

  /// Made once for all tests.
  static const TestAuthority& authority(const std::string& name) {
    static std::map<std::string, TestAuthority> made;
    return made.try_emplace(name, name).first->second;
  }
  static const TestAuthority::Leaf& leaf_of_authority(const std::string& name,
                                                      const std::string& number) {
    static std::map<std::string, TestAuthority::Leaf> made;
    auto& leaf = made[name + number];
    if (leaf.key.empty()) {
      leaf = authority(name).leaf();
    }
    return leaf;
  }
};

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

/// What became of a switch whose agent, or whose whole machine, died at an operation on its disk.
std::string outcome_of_death(std::uint64_t nth, bool power, api::CertificatePhase phase,
                             bool& reached) {
  CertificateMachine machine;
  const bool trust = phase != api::CertificatePhase::kLeaf;
  EXPECT_EQ(machine
                .stage(machine.bring(trust ? machine.new_leaf_ : machine.same_root_,
                                     trust ? machine.new_.root() : machine.old_.root()))
                .value("state", ""),
            "done");
  auto& disk = machine.host_.disk();
  disk.reset_count();
  reached = false;
  disk.set_fault_hook([&, nth, power](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.number < nth || reached) {
      return reached ? std::optional(Error{Errc::kIo, "dead"}) : std::nullopt;
    }
    reached = true;
    machine.host_.die(power, power ? std::optional(nth) : std::nullopt);
    return Error{Errc::kIo, "dead"};
  });
  const auto id =
      machine.begin("certificate_switch", api::to_text(api::CertificateSwitch{"run-1", phase}));
  machine.world_.run_for(milliseconds(1'000));
  disk.set_fault_hook(nullptr);
  if (reached) {
    EXPECT_FALSE(machine.host_.up());
    machine.boot();
  }
  auto status = machine.ended(id);
  const auto state = status.value("state", "never arrived");
  const bool is_done = state == "done";
  EXPECT_TRUE(is_done || state == "failed" || status.value("code", "") == "not_found") << status;
  EXPECT_NE(status.value("errorCode", ""), "not_restored") << status;
  if (!is_done) {
    EXPECT_EQ(machine.servers(), machine.before_) << status;
    EXPECT_EQ(machine.server_.served(), machine.old_leaf_.certificate) << status;
    EXPECT_EQ(machine.server_.roots(), machine.old_.root()) << status;
  } else {
    EXPECT_NE(machine.servers(), machine.before_);
    EXPECT_EQ(machine.server_.served(),
              trust ? machine.old_leaf_.certificate : machine.same_root_.certificate);
    EXPECT_EQ(machine.server_.roots() == machine.old_.root(), !trust);
  }
  return is_done ? "done" : status.value("errorCode", "not_found");
}

/// The same of a restore; false: nothing was reached, it ran to its end.
bool restore_with_death(std::uint64_t nth) {
  CertificateMachine machine;
  EXPECT_EQ(
      machine.stage(machine.bring(machine.same_root_, machine.old_.root())).value("state", ""),
      "done");
  EXPECT_EQ(machine.switch_over(api::CertificatePhase::kLeaf).value("state", ""), "done");
  auto& disk = machine.host_.disk();
  disk.reset_count();
  bool reached = false;
  disk.set_fault_hook([&, nth](const DiskOperation& operation) -> std::optional<Error> {
    if (operation.number == nth && !reached) {
      reached = true;
      machine.host_.die(/*power=*/true, nth);
    }
    return reached ? std::optional(Error{Errc::kIo, "dead"}) : std::nullopt;
  });
  const auto id =
      machine.begin("certificate_restore",
                    api::to_text(api::CertificateRestore{"run-1", api::CertificatePhase::kLeaf}));
  machine.world_.run_for(milliseconds(1'000));
  disk.set_fault_hook(nullptr);
  if (reached) {
    machine.boot();
  }
  auto status = machine.ended(id);
  if (status.value("state", "") != "done") {
    // It had not acted yet; a controller requests it again.
    EXPECT_TRUE(status.value("errorCode", "") == "not_happened" ||
                status.value("code", "") == "not_found")
        << status;
    status = machine.restore(api::CertificatePhase::kLeaf);
  }
  EXPECT_EQ(status.value("state", ""), "done") << status;
  EXPECT_EQ(machine.servers(), machine.before_);
  EXPECT_EQ(machine.server_.served(), machine.old_leaf_.certificate);
  EXPECT_EQ(machine.run("certificate_discard", R"({"change":"run-1"})").value("state", ""), "done");
  EXPECT_EQ(machine.node_.content(), machine.before_) << "no copy is left";
  return reached;
}

TEST(CertificateRestore, OfAnAgentThatDiesAnywhereIsFinishedByTheNext) {
  std::uint64_t nth = 0;
  for (; restore_with_death(nth); ++nth) {
    ASSERT_FALSE(::testing::Test::HasFailure()) << nth;
    ASSERT_LT(nth, 500U);
  }
  EXPECT_GT(nth, 10U);
}

TEST(CertificateSwitch, OfAnAgentThatDiesAnywhereEndsOnOneSideOrTheOther) {
  for (const auto phase : {api::CertificatePhase::kTrust, api::CertificatePhase::kLeaf}) {
    std::map<std::string, int> outcomes;
    for (const bool power : {true, false}) {
      bool reached = true;
      for (std::uint64_t nth = 0; reached; ++nth) {
        SCOPED_TRACE(fmt::format("{} {} {}", api::to_string(phase), power ? "power" : "kill", nth));
        ++outcomes[outcome_of_death(nth, power, phase, reached)];
        ASSERT_FALSE(::testing::Test::HasFailure());
        ASSERT_LT(nth, 500U);
      }
    }
    EXPECT_GT(outcomes["done"], 1) << "some died after the proof could be had";
    EXPECT_GT(outcomes["interrupted"], 1) << "some in the middle";
  }
}

}  // namespace
}  // namespace verger::agent
