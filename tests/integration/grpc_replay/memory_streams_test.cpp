// The streams that a node has in memory alone, beyond what the recordings show of them.
#include "nodeagent/node/memory_streams.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "nodeagent/grpc/framing.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/node_api.h"
#include "tests/integration/grpc_replay/replay.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;
using ::testing::ElementsAre;
using ::testing::SizeIs;
namespace es = event_store::client;

constexpr const char* kStates = "$mem-node-state";

std::string subscription_to(const char* stream) {
  es::streams::ReadReq request;
  auto& options = *request.mutable_options();
  options.mutable_stream()->mutable_stream_identifier()->set_stream_name(stream);
  options.mutable_stream()->mutable_start();
  options.mutable_subscription();
  options.mutable_no_filter();
  options.mutable_uuid_option()->mutable_string();
  return request.SerializeAsString();
}

/// The data of the events, in order, with their numbers.
std::vector<std::string> events_in(const MemoryExchange& exchange) {
  std::vector<std::string> out;
  for (const auto& message : exchange.messages()) {
    es::streams::ReadResp response;
    response.ParseFromString(message);
    if (response.has_event()) {
      const auto& event = response.event().event();
      out.push_back(fmt::format("{} {}", event.stream_revision(), event.data()));
    }
  }
  return out;
}

TEST(MemoryStreamsOfANode, ASubscriptionFollowsTheStatesOfALeaderThatResigns) {
  Replay replay(3);
  replay.at = *replay.cluster().leader();
  const auto former = replay.at;
  const auto states = replay.call("Read", {subscription_to(kStates)});
  ASSERT_TRUE(replay.world().run_until([&] { return !events_in(*states).empty(); }, 5s));
  const auto first = replay.core(former).memory_streams.last_number(kStates).value();
  ASSERT_THAT(events_in(*states), ElementsAre(fmt::format(R"({} {{"State":"Leader"}})", first)));
  node::resign_lead(replay.core(former));
  // It leads again, or follows the next one.
  ASSERT_TRUE(replay.world().run_until([&] { return events_in(*states).size() == 5; }, 30s));
  const auto seen = events_in(*states);
  EXPECT_EQ(seen[1], fmt::format(R"({} {{"State":"ResigningLeader"}})", first + 1));
  EXPECT_EQ(seen[2], fmt::format(R"({} {{"State":"Unknown"}})", first + 2));
  EXPECT_TRUE(seen[3].starts_with(std::to_string(first + 3) + " ")) << seen[3];
  EXPECT_TRUE(seen[4].starts_with(std::to_string(first + 4) + " ")) << seen[4];
  states->cancel();
  replay.world().run_for(20ms);
}

TEST(MemoryStreamsOfANode, GossipIsAnEventWhereAMemberDiffersAndNotForItsPositions) {
  Replay replay(3);
  replay.at = *replay.cluster().leader();
  replay.world().run_for(3s);
  auto& streams = replay.core(replay.at).memory_streams;
  const auto before = streams.last_number(node::kGossipStream);
  replay.append("s", {"a", "b", "c"});
  replay.world().run_for(5s);
  EXPECT_EQ(streams.last_number(node::kGossipStream), before);
  const std::size_t other = replay.at == 0 ? 1 : 0;
  replay.cluster().crash(other);
  EXPECT_TRUE(replay.world().run_until(
      [&] { return streams.last_number(node::kGossipStream) > before; }, 30s));
  const auto events = streams.events_from(node::kGossipStream, before);
  ASSERT_FALSE(events.empty());
  const auto& data = events.back().data;
  const std::string text(reinterpret_cast<const char*>(data.data()), data.size());
  EXPECT_TRUE(text.contains(R"("IsAlive":false)")) << text;
}

TEST(MemoryStreamsOfANode, NoCallerWritesToThemEvenWithoutRights) {
  Replay replay(1);
  for (const auto* stream : {kStates, "$mem-gossip"}) {
    es::streams::AppendReq options;
    options.mutable_options()->mutable_stream_identifier()->set_stream_name(stream);
    options.mutable_options()->mutable_any();
    es::streams::DeleteReq soft;
    soft.mutable_options()->mutable_stream_identifier()->set_stream_name(stream);
    soft.mutable_options()->mutable_any();
    const auto refused = [&](const char* method, const std::string& message) {
      const auto sent = replay.call(method, {message});
      ASSERT_TRUE(replay.world().run_until([&] { return sent->ended(); }, 5s));
      EXPECT_EQ(sent->fields().at("grpc-status"), "7") << method << " " << stream;
    };
    refused("Append", options.SerializeAsString());
    refused("Delete", soft.SerializeAsString());
    refused("Tombstone", soft.SerializeAsString());
    EXPECT_EQ(replay.core(0).db().last_event_number(stream), kNoStream) << "nothing is in the log";
  }
}

TEST(MemoryStreams, ASlowSubscriberGetsTheNewestThatAreStillThere) {
  SeededRandom random(1);
  node::MemoryStreams streams(random);
  EXPECT_EQ(streams.last_number(kStates), kNoStream);
  EXPECT_EQ(streams.read(kStates, EventNumber(0), false).status, streams::StreamStatus::kNoStream);
  for (int i = 0; i < 50; ++i) {
    streams.state_changed(i % 2 == 0 ? api::NodeState::kLeader : api::NodeState::kFollower,
                          Ticks(i));
  }
  EXPECT_EQ(streams.last_number(kStates), EventNumber(49));
  const auto kept = streams.events_from(kStates, EventNumber(10));
  ASSERT_THAT(kept, SizeIs(32));
  EXPECT_EQ(kept.front().number, EventNumber(18));
  // A read shows the newest alone.
  const auto forwards = streams.read(kStates, EventNumber(0), false);
  ASSERT_THAT(forwards.events, SizeIs(1));
  EXPECT_EQ(forwards.events[0].number, EventNumber(49));
  EXPECT_TRUE(forwards.end_of_stream);
  EXPECT_TRUE(streams.read(kStates, EventNumber(50), false).events.empty());
  EXPECT_THAT(streams.read(kStates, EventNumber(49), true).events, SizeIs(1));
  EXPECT_TRUE(streams.read(kStates, EventNumber(48), true).events.empty());
}

}  // namespace
}  // namespace verger::testing
