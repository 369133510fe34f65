#include "nodeagent/client/node_client.h"

#include <deque>
#include <gtest/gtest.h>

#include <boost/asio/co_spawn.hpp>
#include <boost/asio/io_context.hpp>

#include "nodeagent/client/agent_client.h"
#include "nodeagent/http/base64.h"

namespace verger::client::test {
namespace {

constexpr auto kRunId = "0f3f0d1c-2a86-4e0b-9d3e-5a7b1a5f8f10";

/// Gives prepared answers and keeps the requests.
class ScriptedClient final : public http::Client {
 public:
  net::awaitable<Result<http::Response>> send(http::Endpoint, http::Request request,
                                              std::chrono::milliseconds) override {
    asked.push_back(std::move(request));
    if (answers.empty()) {
      co_return Error{Errc::kUnavailable, "nobody listens"};
    }
    auto answer = std::move(answers.front());
    answers.pop_front();
    co_return answer;
  }
  std::vector<http::Request> asked;
  std::deque<Result<http::Response>> answers;
};

template <class T>
T run(net::awaitable<T> work) {
  net::io_context context{1};
  std::optional<T> out;
  net::co_spawn(context, std::move(work), [&](std::exception_ptr failure, T value) {
    if (failure) {
      std::rethrow_exception(failure);
    }
    out = std::move(value);
  });
  context.run();
  return *std::move(out);
}

class NodeClientTest : public testing::Test {
 public:
  NodeClient node(NodeDialect dialect = {}) {
    return NodeClient(http, http::Endpoint{false, "n1", 2113}, Credentials{"ops", "secret"},
                      dialect);
  }
  std::string last_asked() const {
    return http.asked.empty() ? "" : http.asked.back().method + " " + http.asked.back().target;
  }
  ScriptedClient http;
};

http::Response text(int status, std::string body = {}) {
  return http::Response{.status = status, .body = std::move(body)};
}

TEST_F(NodeClientTest, ReadsGossipWithoutCredentialsWhenTheyAreWrong) {
  http.answers = {
      http::Response{.status = 401, .headers = {{"WWW-Authenticate", "X-Basic realm=\"ESDB\""}}},
      text(200, R"({"members":[],"serverIp":"n1","serverPort":2113})")};
  const auto outcome = run(node().gossip());
  EXPECT_TRUE(outcome.done());
  EXPECT_TRUE(outcome.credentials_refused);
  ASSERT_EQ(http.asked.size(), 2U);
  EXPECT_EQ(http.asked[0].headers.get("Authorization"), http::basic_authorization("ops", "secret"));
  EXPECT_EQ(http.asked[1].headers.get("Authorization"), std::nullopt);
}

TEST_F(NodeClientTest, TheLogOfARunThatHasJustStartedIsNoMissingRole) {
  const std::string id = "0f3f0d1c-2a86-4e0b-9d3e-5a7b1a5f8f10";
  http.answers = {
      http::Response{.status = 401}, http::Response{.status = 401},
      http::Response{.status = 401, .headers = {{"WWW-Authenticate", "X-Basic realm=\"ESDB\""}}}};
  const auto young = run(node().scavenge_log(id, 20));
  EXPECT_EQ(young.code, "not_ready");
  EXPECT_EQ(young.why.find("role"), std::string::npos) << young.why;
  EXPECT_EQ(run(node().scavenges()).code, "lacks_role") << "of all runs, that stream is there";
  EXPECT_EQ(run(node().scavenge_log(id, 20)).code, "bad_credentials");
}

TEST_F(NodeClientTest, NeverRepeatsACommandWithoutCredentials) {
  http.answers = {
      http::Response{.status = 401, .headers = {{"WWW-Authenticate", "X-Basic realm=\"ESDB\""}}}};
  EXPECT_EQ(run(node().resign()).code, "bad_credentials");
  EXPECT_EQ(http.asked.size(), 1U);
}

TEST_F(NodeClientTest, DistinguishesNotSentFromNotAnswered) {
  http.answers = {Error{Errc::kUnavailable, "refused"}, Error{Errc::kUnknownOutcome, "lost"}};
  const auto unreachable = run(node().resign());
  EXPECT_TRUE(unreachable.refused());
  EXPECT_EQ(unreachable.code, "unreachable");
  const auto lost = run(node().resign());
  EXPECT_TRUE(lost.unknown());
  EXPECT_EQ(lost.code, "no_answer");
  EXPECT_EQ(http.asked.size(), 2U);
}

TEST_F(NodeClientTest, AsksOnlyWhatTheVersionHas) {
  const auto v5 = NodeDialect::of({5, 0, 11});
  EXPECT_EQ(run(node(v5).resign()).code, "unsupported_version");
  EXPECT_EQ(run(node(v5).reload()).code, "unsupported_version");
  EXPECT_EQ(run(node(v5).current_scavenge()).code, "unsupported_version");
  EXPECT_EQ(run(node(v5).start_scavenge({.sync_only = true})).code, "unsupported_version");
  EXPECT_EQ(run(node().last_scavenge()).code, "unsupported_version");
  EXPECT_TRUE(run(node().auto_scavenge()).done());
  EXPECT_TRUE(http.asked.empty());
}

TEST_F(NodeClientTest, SendsEachCallAsTheInterfaceHasIt) {
  auto client = node(NodeDialect::of({25, 0, 0}));
  const auto sends = [&](auto work, std::string_view expected) {
    run(std::move(work));
    EXPECT_EQ(last_asked(), expected);
    EXPECT_EQ(http.asked.back().headers.get("Accept").has_value(), expected != "GET /metrics");
  };
  sends(client.info(), "GET /info");
  sends(client.ping(), "GET /ping");
  sends(client.live(), "GET /health/live");
  sends(client.login(), "GET /admin/login");
  sends(client.metrics(), "GET /metrics");
  sends(client.stats(), "GET /stats");
  sends(client.start_scavenge({}), "POST /admin/scavenge");
  sends(client.start_scavenge({.threads = 2, .threshold = -1, .sync_only = true}),
        "POST /admin/scavenge?threads=2&threshold=-1&syncOnly=true");
  sends(client.current_scavenge(), "GET /admin/scavenge/current");
  sends(client.last_scavenge(), "GET /admin/scavenge/last");
  sends(client.stop_scavenge(kRunId), std::string("DELETE /admin/scavenge/") + kRunId);
  sends(client.stop_current_scavenge(), "DELETE /admin/scavenge/current");
  sends(client.scavenges(), "GET /streams/$scavenges?embed=body");
  sends(client.scavenge_log(kRunId, 5),
        fmt::format("GET /streams/$scavenges/{}/head/5?embed=body", kRunId));
  sends(client.scavenge_log(kRunId, 5, 9),
        fmt::format("GET /streams/$scavenges/{}/9/5?embed=body", kRunId));
  sends(client.resign(), "POST /admin/node/resign");
  sends(client.set_priority(-1), "POST /admin/node/priority/-1");
  sends(client.reload(), "POST /admin/reloadconfig");
  sends(client.shutdown(), "POST /admin/shutdown");
  sends(client.merge_indexes(), "POST /admin/mergeindexes");
  sends(client.auto_scavenge(), "GET /auto-scavenge/status");
  sends(client.pause_auto_scavenge(), "POST /auto-scavenge/pause");
  sends(client.resume_auto_scavenge(), "POST /auto-scavenge/resume");
  sends(client.read_forward("a/b", 0, 10), "GET /streams/a%2Fb/0/forward/10?embed=body");
  sends(client.read_backward("a", std::nullopt, 10), "GET /streams/a/head/backward/10?embed=body");
  sends(client.append("a", {{.id = kRunId, .type = "t", .data_json = R"({"n":1})"}}, kNoStream),
        "POST /streams/a");
  EXPECT_EQ(http.asked.back().body,
            fmt::format(R"([{{"data":{{"n":1}},"eventId":"{}","eventType":"t"}}])", kRunId));
  EXPECT_EQ(http.asked.back().headers.get("ES-ExpectedVersion"), "-1");
}

TEST_F(NodeClientTest, RefusesWhatAServerWouldMisunderstand) {
  EXPECT_EQ(run(node().start_scavenge({.threads = 6})).code, "invalid");
  EXPECT_EQ(run(node().start_scavenge({.threads = 0})).code, "invalid");
  EXPECT_EQ(run(node().start_scavenge({.throttle_percent = 101})).code, "invalid");
  EXPECT_EQ(run(node().start_scavenge({.threads = 2, .throttle_percent = 50})).code, "invalid");
  EXPECT_EQ(run(node().stop_scavenge("../shutdown")).code, "invalid");
  EXPECT_EQ(run(node().scavenge_log("x", 1)).code, "invalid");
  EXPECT_EQ(run(node().append("a", {{.id = kRunId, .type = "t"}}, -3)).code, "invalid");
  EXPECT_EQ(run(node().append("a", {{.id = kRunId, .type = "t", .data_json = "{"}})).code,
            "invalid");
  EXPECT_TRUE(http.asked.empty());
}

TEST_F(NodeClientTest, TalksToAnAgent) {
  const AgentClient agent(http, http::Endpoint{false, "n1", 2114});
  http.answers = {text(204), text(202, R"({"id":"r:1","kind":"scavenge","state":"accepted"})"),
                  text(200, R"({"id":"r:1","state":"unknown"})"),
                  Error{Errc::kUnknownOutcome, "x"}};
  EXPECT_TRUE(run(agent.permit({.controller_epoch = 1})).done());
  EXPECT_EQ(last_asked(), "POST /agent/v1/permits");
  EXPECT_TRUE(run(agent.start({.id = "r:1", .controller_epoch = 1, .kind = "scavenge"})).done());
  EXPECT_EQ(http.asked.back().headers.get("Content-Type"), "application/json");
  EXPECT_TRUE(api::parse_operation_request(http.asked.back().body).has_value());
  EXPECT_EQ(run(agent.operation("r:1")).value->state, api::OperationState::kUnknown);
  EXPECT_EQ(last_asked(), "GET /agent/v1/operations/r%3A1");
  EXPECT_EQ(run(agent.cancel("r:1")).code, "no_answer");
  EXPECT_EQ(last_asked(), "POST /agent/v1/operations/r%3A1/cancel");
  EXPECT_EQ(run(agent.cancel("r:1", /*keep=*/true)).code, "unreachable");
  EXPECT_EQ(last_asked(), "POST /agent/v1/operations/r%3A1/cancel?keep=true");
}

TEST_F(NodeClientTest, ThrottlesAndBringsFilesToAnAgent) {
  const AgentClient agent(http, http::Endpoint{false, "n1", 2114});
  const std::string hash =
      "2e0e95285f08a07dea17e7ee111b21c8"
      "45e9b3b7d0b9f1a5d6c7ff5e6a1d6c2f";
  http.answers = {text(200, R"({"id":"r:1","state":"acting","throttle":{"percent":5}})"),
                  text(200, fmt::format(R"({{"sha256":"{}","bytes":5}})", hash)),
                  text(503, R"({"code":"unavailable","detail":"the store is full"})")};
  EXPECT_EQ(run(agent.throttle("r:1", {.percent = 5})).value->throttle->percent, 5);
  EXPECT_EQ(last_asked(), "POST /agent/v1/operations/r%3A1/throttle");
  EXPECT_TRUE(run(agent.put_file("a key", 4)).done());
  EXPECT_TRUE(last_asked().starts_with("PUT /agent/v1/files/"));
  EXPECT_TRUE(last_asked().ends_with("?controllerEpoch=4"));
  EXPECT_EQ(http.asked.back().body, "a key");
  const auto full = run(agent.put_file("zebra", 4));
  EXPECT_TRUE(full.refused());
  EXPECT_FALSE(full.why.contains("zebra")) << full.why;
}

TEST_F(NodeClientTest, TurnsAnOutcomeIntoAResult) {
  EXPECT_EQ(to_result(refused<int>("unreachable", "x")).error().code, Errc::kUnavailable);
  EXPECT_EQ(to_result(refused<int>("bad_credentials", "x")).error().code, Errc::kUnauthorized);
  EXPECT_EQ(to_result(refused<int>("stale_epoch", "x")).error().code, Errc::kRefused);
  EXPECT_EQ(to_result(unknown<int>("not_found", "x")).error().code, Errc::kUnknownOutcome);
  EXPECT_EQ(*to_result(done(5)), 5);
}

TEST_F(NodeClientTest, AsksAnAgentAboutItsNodesCertificates) {
  const AgentClient agent(http, http::Endpoint{false, "n1", 2114});
  http.answers = {
      text(200, R"({"live":{"certificate":{"path":"/node.crt"}},"served":"PEM"})"),
      text(200, R"({"certificate":{"path":"/new.crt"},"serial":"0A"})"),
      text(404, R"({"title":"Not Found","code":"not_found","detail":"file a is not stored here"})"),
      text(200, R"({"request":"CSR"})"),
      text(200, R"({"peers":[{"name":"n2","trusted":true}]})"),
      text(200, R"({"peers":1})")};
  EXPECT_EQ(run(agent.certificates()).value->served, "PEM");
  EXPECT_EQ(last_asked(), "GET /agent/v1/certificates");
  const api::CertificateSource source{.certificate_path = "/new.crt"};
  EXPECT_EQ(run(agent.certificate_candidate(source)).value->serial, "0A");
  EXPECT_EQ(http.asked.back().body, R"({"source":{"certificatePath":"/new.crt"}})");
  const auto missing = run(agent.certificate_candidate(source));
  EXPECT_TRUE(missing.refused());
  EXPECT_EQ(missing.code, "not_found");
  EXPECT_EQ(*run(agent.certificate_key_request({.change = "run-1", .common_name = "node"})).value,
            "CSR");
  EXPECT_EQ(last_asked(), "POST /agent/v1/certificates/request");
  const api::HandshakesRequest peers{.peers = {{.name = "n2", .url = "https://n2:2113"}}};
  EXPECT_EQ(run(agent.handshakes(peers)).value->front().trusted, true);
  EXPECT_EQ(last_asked(), "POST /agent/v1/certificates/handshakes");
  EXPECT_TRUE(run(agent.handshakes(peers)).unknown());
}

}  // namespace
}  // namespace verger::client::test
