#pragma once

#include <chrono>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <optional>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/base/digest.h"
#include "nodeagent/api/agent_certificates.h"
#include "nodeagent/certificates/certificate_details.h"
#include "nodeagent/operations/agent.h"
#include "tests/support/cluster/sim_world.h"
#include "tests/support/kept_log.h"
#include "tests/unit/nodeagent_operations/certificate_case.h"

namespace verger::agent {

inline constexpr std::uint16_t kServersPort = 2113;
inline constexpr std::uint16_t kChangersPort = 2114;

inline std::string serial_of_text(const std::string& certificate) {
  const auto read = certificates::read_details(certificate);
  return read ? read->front().info.serial : "";
}

inline net::awaitable<Result<http::Handshake>> shake_with(const FakeServer* server,
                                                          http::ClientMaterial material) {
  co_return server->shake_hands(material);
}

inline net::awaitable<Result<void>> hang_up(FakeServer* server, int* signals) {
  ++*signals;
  server->reload();
  co_return Result<void>();
}

/// An agent that changes the certificates of a server on another machine of the simulation, which
/// reads them from the agent's disk.
struct CertificateMachine {
  using json = nlohmann::json;
  using milliseconds = std::chrono::milliseconds;
  using Content = std::map<std::string, std::string>;

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
    access->places.users = {"/users", "/user.crt"};
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
  test::KeptLog log_;
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

}  // namespace verger::agent
