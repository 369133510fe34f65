// Persistent subscriptions of embedded nodes that die: what is delivered again, and what is not.
#include "nodeagent/node/persistent_subscriptions.h"

#include <algorithm>
#include <event_store/persistent.pb.h>
#include <gtest/gtest.h>

#include "nodeagent/grpc/framing.h"
#include "nodeagent/http/base64.h"
#include "nodeagent/node/detail/core.h"
#include "tests/integration/grpc_replay/replay.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;
namespace groups = event_store::client::persistent_subscriptions;
using Client = std::shared_ptr<MemoryExchange>;

constexpr const char* kService = "persistent_subscriptions.PersistentSubscriptions/";

class PersistentSubscriptionsCase : public ::testing::Test {
 protected:
  explicit PersistentSubscriptionsCase(std::size_t voters = 3)
      : credentials_(voters == 1 ? "" : "admin:changeit"), replay_(voters) {
    replay_.at = *replay_.cluster().leader();
    for (int i = 0; i < 10; ++i) {
      replay_.append("s", {fmt::format("t-{}", i)});
    }
  }

  Client call(const std::string& method, const google::protobuf::Message& request) {
    return replay_.call_path(kService + method, credentials_, {request.SerializeAsString()});
  }
  std::string status_of(const std::string& method, const google::protobuf::Message& request) {
    const auto sent = call(method, request);
    sent->half_close();
    EXPECT_TRUE(replay_.world().run_until([&] { return sent->ended(); }, 20s)) << method;
    return sent->fields().at("grpc-status");
  }
  void create() {
    groups::CreateReq request;
    auto& options = *request.mutable_options();
    options.set_group_name("g");
    options.mutable_stream()->mutable_stream_identifier()->set_stream_name("s");
    options.mutable_stream()->mutable_start();
    auto& settings = *options.mutable_settings();
    settings.set_max_retry_count(5);
    settings.set_min_checkpoint_count(1);
    settings.set_max_checkpoint_count(100);
    settings.set_checkpoint_after_ms(1000);
    settings.set_history_buffer_size(50);
    settings.set_live_buffer_size(50);
    settings.set_read_batch_size(10);
    settings.set_message_timeout_ms(30'000);
    settings.set_consumer_strategy("RoundRobin");
    EXPECT_EQ(status_of("Create", request), "0");
  }
  Client connect() {
    groups::ReadReq request;
    auto& options = *request.mutable_options();
    options.mutable_stream_identifier()->set_stream_name("s");
    options.set_group_name("g");
    options.set_buffer_size(20);
    options.mutable_uuid_option()->mutable_string();
    return call("Read", request);
  }
  /// The events it has got so far, with their retry counts.
  static std::vector<groups::ReadResp::ReadEvent> got(const Client& client) {
    std::vector<groups::ReadResp::ReadEvent> out;
    for (const auto& message : client->messages()) {
      groups::ReadResp response;
      response.ParseFromString(message);
      if (response.has_event()) {
        out.push_back(response.event());
      }
    }
    return out;
  }
  static std::vector<std::string> types(const Client& client) {
    std::vector<std::string> out;
    for (const auto& each : got(client)) {
      out.push_back(each.event().metadata().at("type"));
    }
    return out;
  }
  void wait_for(const Client& client, std::size_t events) {
    EXPECT_TRUE(replay_.world().run_until([&] { return got(client).size() >= events; }, 20s))
        << got(client).size();
  }
  static void acknowledge(const Client& client, const groups::ReadResp::ReadEvent& event) {
    groups::ReadReq request;
    *request.mutable_ack()->add_ids() = event.has_link() ? event.link().id() : event.event().id();
    client->put(grpc::framed(request.SerializeAsString()));
  }
  static void park(const Client& client, const groups::ReadResp::ReadEvent& event) {
    groups::ReadReq request;
    *request.mutable_nack()->add_ids() = event.event().id();
    request.mutable_nack()->set_action(groups::ReadReq::Nack::Park);
    request.mutable_nack()->set_reason("poison");
    client->put(grpc::framed(request.SerializeAsString()));
  }
  Result<http::Response> http(std::size_t node, const std::string& method,
                              const std::string& target) {
    http::Request request{.method = method, .target = target};
    if (!credentials_.empty()) {
      request.headers.set("Authorization", "Basic " + http::base64_encode(credentials_));
    }
    return replay_.cluster().request(node, std::move(request));
  }
  bool ready() {
    const auto leader = replay_.cluster().leader();
    return leader && replay_.core(*leader).subscriptions->ready();
  }

  std::string credentials_;
  Replay replay_;
};

TEST_F(PersistentSubscriptionsCase, AGroupOutlivesItsLeader) {
  create();
  auto first = connect();
  wait_for(first, 10);
  for (int i = 0; i < 3; ++i) {
    acknowledge(first, got(first)[static_cast<std::size_t>(i)]);
  }
  park(first, got(first)[3]);
  replay_.world().run_for(2500ms);  // a checkpoint, on a majority
  first.reset();                    // it belongs to the node's process
  const auto former = replay_.at;
  replay_.cluster().crash(former);
  ASSERT_TRUE(replay_.world().run_until([&] { return ready(); }, 20s));
  replay_.at = *replay_.cluster().leader();
  ASSERT_NE(replay_.at, former);
  replay_.append("s", {"t-10"});
  const auto second = connect();
  wait_for(second, 7);
  EXPECT_EQ(types(second),
            (std::vector<std::string>{"t-4", "t-5", "t-6", "t-7", "t-8", "t-9", "t-10"}));
  // What was parked under the former leader is there, and comes again.
  groups::ReplayParkedReq replay;
  replay.mutable_options()->set_group_name("g");
  replay.mutable_options()->mutable_stream_identifier()->set_stream_name("s");
  replay.mutable_options()->mutable_no_limit();
  EXPECT_EQ(status_of("ReplayParked", replay), "0");
  wait_for(second, 8);
  EXPECT_EQ(types(second).back(), "t-3");
  EXPECT_TRUE(got(second).back().has_link());
  second->cancel();
}

TEST_F(PersistentSubscriptionsCase, HttpShowsThemOnAnyNode) {
  create();
  const auto follower = replay_.at == 0 ? 1U : 0U;
  for (const std::size_t node : {replay_.at, std::size_t{follower}}) {
    const auto answer = http(node, "GET", "/subscriptions");
    ASSERT_TRUE(answer.has_value());
    EXPECT_EQ(answer->status, 200);
    const auto list = nlohmann::json::parse(answer->body);
    ASSERT_EQ(list.size(), 1U);
    EXPECT_EQ(list[0]["eventStreamId"], "s");
    EXPECT_EQ(list[0]["groupName"], "g");
    EXPECT_EQ(list[0]["status"], "Live");
    EXPECT_EQ(list[0]["lastKnownEventNumber"], 9);
    EXPECT_EQ(list[0]["connectionCount"], 0);
  }
  const auto none = http(follower, "GET", "/subscriptions/other");
  EXPECT_EQ(none->status, 404);
  EXPECT_EQ(none->body, "[]");
  const auto shown = http(follower, "GET", "/subscriptions/s/g/info");
  ASSERT_EQ(shown->status, 200);
  const auto details = nlohmann::json::parse(shown->body);
  EXPECT_EQ(details["config"]["maxRetryCount"], 5);
  EXPECT_EQ(details["config"]["startPosition"], "0");
  EXPECT_EQ(details["readBufferCount"], 10);
  EXPECT_EQ(http(follower, "GET", "/subscriptions/s/other/info")->status, 404);
  const auto client = connect();
  wait_for(client, 10);
  EXPECT_EQ(http(follower, "POST", "/subscriptions/restart")->status, 200);
  EXPECT_TRUE(replay_.world().run_until([&] { return client->ended(); }, 5s));
  EXPECT_EQ(client->fields().at("exception"), "persistent-subscription-dropped");
  const auto again = connect();
  wait_for(again, 10);
  again->cancel();
}

TEST_F(PersistentSubscriptionsCase, ManyConsumersShareTheWork) {
  create();
  std::vector<Client> clients;
  for (int i = 0; i < 3; ++i) {
    clients.push_back(connect());
  }
  replay_.world().run_for(20ms);
  for (int i = 10; i < 40; ++i) {
    replay_.append("s", {fmt::format("t-{}", i)});
  }
  // Each acknowledges what it gets, until all is done.
  std::multiset<std::string> seen;
  std::vector<std::size_t> answered(clients.size());
  EXPECT_TRUE(replay_.world().run_until(
      [&] {
        for (std::size_t i = 0; i < clients.size(); ++i) {
          const auto events = got(clients[i]);
          for (; answered[i] < events.size(); ++answered[i]) {
            seen.insert(events[answered[i]].event().metadata().at("type"));
            acknowledge(clients[i], events[answered[i]]);
          }
        }
        return seen.size() == 40;
      },
      20s));
  for (int i = 0; i < 40; ++i) {
    EXPECT_EQ(seen.count(fmt::format("t-{}", i)), 1U) << i;
  }
  EXPECT_TRUE(std::ranges::all_of(answered, [](std::size_t count) { return count >= 10; }));
  for (const auto& client : clients) {
    client->cancel();
  }
  replay_.world().run_for(20ms);
}

class OnOneNode : public PersistentSubscriptionsCase {
 protected:
  OnOneNode() : PersistentSubscriptionsCase(1) {}
};

TEST_F(OnOneNode, AGroupOutlivesARestart) {
  create();
  auto first = connect();
  wait_for(first, 10);
  for (const auto i : {0U, 1U, 2U, 5U}) {
    acknowledge(first, got(first)[i]);
  }
  replay_.world().run_for(2500ms);
  first.reset();
  replay_.cluster().crash(0);
  replay_.boot(0);
  ASSERT_TRUE(replay_.world().run_until([&] { return ready(); }, 20s));
  const auto second = connect();
  wait_for(second, 7);
  // Event 5 was acknowledged, but behind others that were not.
  EXPECT_EQ(types(second),
            (std::vector<std::string>{"t-3", "t-4", "t-5", "t-6", "t-7", "t-8", "t-9"}));
  EXPECT_EQ(got(second)[0].retry_count(), 0);
  second->cancel();
  replay_.world().run_for(20ms);
}

}  // namespace
}  // namespace verger::testing
