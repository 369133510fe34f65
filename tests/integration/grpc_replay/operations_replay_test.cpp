// The recorded calls of Operations and Gossip by a client library, on a single node and on the
// leader of three (tests/fixtures/node-interface/grpc-operations.json).
#include <event_store/gossip.pb.h>
#include <event_store/operations.pb.h>
#include <event_store/users.pb.h>
#include <fstream>
#include <google/protobuf/util/json_util.h>
#include <gtest/gtest.h>

#include "nodeagent/http/base64.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/scavenger.h"
#include "tests/integration/grpc_replay/replay.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;
using google::protobuf::Message;
using nlohmann::json;
namespace ops = event_store::client::operations;

std::unique_ptr<Message> empty_request(const std::string& call) {
  if (call.ends_with("StartScavenge")) {
    return std::make_unique<ops::StartScavengeReq>();
  }
  if (call.ends_with("StopScavenge")) {
    return std::make_unique<ops::StopScavengeReq>();
  }
  if (call.ends_with("SetNodePriority")) {
    return std::make_unique<ops::SetNodePriorityReq>();
  }
  return std::make_unique<event_store::client::Empty>();
}

std::string hex_of(const json& readable, Message& message) {
  google::protobuf::util::JsonParseOptions options;
  options.ignore_unknown_fields = true;  // the recorder's marks of the member of a oneof
  const auto parsed =
      google::protobuf::util::JsonStringToMessage(readable.dump(), &message, options);
  EXPECT_TRUE(parsed.ok()) << readable;
  std::string out;
  for (const char byte : message.SerializeAsString()) {
    out += fmt::format("{:02x}", static_cast<unsigned char>(byte));
  }
  return out;
}

/// The calls of one cluster in the shape of the other recordings, numbered from 1.
json calls_of(const std::string& cluster) {
  std::ifstream file(std::string(VERGER_TEST_FIXTURES) + "/node-interface/grpc-operations.json");
  json exchanges = json::array();
  for (const auto& recorded : json::parse(file)) {
    if (recorded["cluster"] != cluster) {
      continue;
    }
    std::string call = recorded["call"];
    call.replace(call.rfind('.'), 1, "/");
    json head = {{":method", "POST"},
                 {":path", "/event_store.client." + call},
                 {"content-type", "application/grpc"}};
    const std::string user = recorded["credentials"];
    const bool wrong = recorded["title"].get<std::string>().contains("wrong password");
    if (user != "none") {
      const auto* const password = wrong ? "wrong" : user == "admin" ? "changeit" : "secret-1";
      head["authorization"] = "Basic " + http::base64_encode(user + ":" + password);
    }
    json responses = json::array();
    json timeline = {{0, "send", "message", 0}, {0, "send", "half_close"}};
    if (recorded.contains("reply")) {
      responses.push_back({{"hex", hex_of(recorded["reply"], *empty_response(call))}});
      timeline.push_back({0, "recv", "message", 0});
    }
    exchanges.push_back(
        {{"n", exchanges.size() + 1},
         {"title", recorded["title"]},
         {"call", call},
         {"request_headers", head},
         {"requests", {{{"hex", hex_of(recorded["request"], *empty_request(call))}}}},
         {"response_headers", {{":status", 200}}},
         {"responses", responses},
         {"status", recorded["status"]},
         {"detail", recorded.value("details", json())},
         {"trailers", recorded.value("trailers", json::object())},
         {"ended_by", "status"},
         {"timeline", timeline}});
  }
  return {{"exchanges", exchanges}};
}

/// Here a scavenge takes milliseconds: a call during one waits until a slow one runs, and a call
/// that starts one waits until none runs.
class RecordedOperations {
 public:
  explicit RecordedOperations(std::size_t voters) : replay(voters) {
    replay.at = *replay.cluster().leader();
    for (const int number : {5, 6, 7, 8}) {
      plan.before[number] = [this] { run_slowly(); };
    }
    plan.before[3] = plan.before[12] = [this] { end(); };
  }

  Replay replay;
  ReplayPlan plan;

 private:
  node::Scavenger& scavenger() { return *replay.core(replay.at).scavenger; }
  bool runs() { return !scavenger().current().empty(); }
  void run_slowly() {
    if (!runs()) {
      EXPECT_TRUE(scavenger().start({.threads = 1, .throttle_percent = 1}).has_value());
    }
  }
  void end() {
    EXPECT_TRUE(replay.world().run_until([&] { return !runs(); }, 60s));
  }
};

TEST(GrpcReplay, OperationsOfOneNode) {
  RecordedOperations here(1);
  here.plan.not_here[8] = "the recorder gave up waiting after 15 s: a status of its library";
  EXPECT_EQ(here.replay.run_recorded(calls_of("single"), "grpc-operations.json, single",
                                     std::move(here.plan)),
            11);
}

TEST(GrpcReplay, OperationsOfALeader) {
  RecordedOperations here(3);
  auto& replay = here.replay;
  event_store::client::users::CreateReq create;
  create.mutable_options()->set_login_name("alice");
  create.mutable_options()->set_password("secret-1");
  create.mutable_options()->set_full_name("Alice");
  const auto created =
      replay.call_path("users.Users/Create", "admin:changeit", {create.SerializeAsString()});
  created->half_close();
  ASSERT_TRUE(replay.world().run_until([&] { return created->ended(); }, 10s));
  ASSERT_EQ(created->fields().at("grpc-status"), "0");
  here.plan.before[16] = here.plan.before[12];
  here.plan.before.erase(12);
  EXPECT_EQ(
      replay.run_recorded(calls_of("tls3"), "grpc-operations.json, tls3", std::move(here.plan)),
      16);
}

}  // namespace
}  // namespace verger::testing
