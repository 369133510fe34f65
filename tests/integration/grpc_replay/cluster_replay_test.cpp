// The recordings of a cluster: rights and users on its leader, a follower, the last node of three,
// and a leader that resigns. Replayed are all calls of Users and PersistentSubscriptions in them.
#include <event_store/persistent.pb.h>
#include <event_store/streams.pb.h>
#include <event_store/users.pb.h>
#include <gtest/gtest.h>

#include "nodeagent/grpc/framing.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/node_api.h"
#include "tests/integration/grpc_replay/replay.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;

/// The message of an Append with `size` bytes of data.
std::string appended_bytes(const std::string& id, std::size_t size) {
  event_store::client::streams::AppendReq request;
  auto& out = *request.mutable_proposed_message();
  out.mutable_id()->set_string("0e9f0000-0000-4000-8000-" + id);
  (*out.mutable_metadata())["type"] = "t";
  (*out.mutable_metadata())["content-type"] = "application/json";
  out.set_data(std::string(size, 'x'));
  return request.SerializeAsString();
}

TEST(GrpcReplay, AFollower) {
  Replay replay(3);
  replay.at = *replay.cluster().leader() == 0 ? 1 : 0;
  EXPECT_EQ(replay.run("12-follower.json"), 36);
}

TEST(GrpcReplay, RightsAndUsers) {
  Replay replay(3);
  replay.at = *replay.cluster().leader();
  const std::string cached =
      "the server takes the old password, and not the new one, for up to a second";
  const std::string between = "a service between nodes, which ours do not have";
  ReplayPlan plan{
      .not_here = {{75, cached}, {76, cached}, {70, between}, {71, between}, {72, between}}};
  // The server still took an older password of this user.
  plan.credentials[81] = "u1:secret-4";
  // The recording has the beginning of these; the rest is their data.
  plan.last_message[91] = appended_bytes("00000001000d", 1048577);
  plan.last_message[92] = appended_bytes("00000001000e", 1048576);
  EXPECT_EQ(replay.run("11-auth.json", std::move(plan)), 87);
}

TEST(GrpcReplay, TheLastNodeOfThree) {
  Replay replay(3);
  const auto leader = *replay.cluster().leader();
  replay.at = leader == 0 ? 1 : 0;
  for (std::size_t i = 0; i < 3; ++i) {
    if (i != replay.at) {
      replay.cluster().crash(i);
    }
  }
  EXPECT_TRUE(replay.world().run_until(
      [&] { return replay.core(replay.at).election->state() != api::NodeState::kFollower; }, 10s));
  EXPECT_EQ(replay.run_only("13-no-quorum.json", {10, 11, 12}), 3);
}

TEST(GrpcReplay, ALeaderThatResigns) {
  namespace groups = event_store::client::persistent_subscriptions;
  Replay replay(3);
  replay.at = *replay.cluster().leader();
  const auto append = [&](const char* id, const char* type, const char* data) {
    replay.append_known("l-1", fmt::format("0e9f0000-0000-4000-8000-{}", id), type, data);
  };
  append("000000040001", "t", "{}");
  append("000000040002", "t", "");
  append("000000040008", "t", "");
  append("000000040009", "after", "{}");
  append("0000000493e1", "t", "{}");
  groups::CreateReq create;
  auto& options = *create.mutable_options();
  options.set_group_name("g");
  options.mutable_stream()->mutable_stream_identifier()->set_stream_name("l-1");
  options.mutable_stream()->mutable_start();
  options.mutable_settings()->set_history_buffer_size(20);
  options.mutable_settings()->set_read_batch_size(10);
  options.mutable_settings()->set_message_timeout_ms(30000);
  const auto created = replay.call_path("persistent_subscriptions.PersistentSubscriptions/Create",
                                        "admin:changeit", {create.SerializeAsString()});
  created->half_close();
  ASSERT_TRUE(replay.world().run_until([&] { return created->ended(); }, 10s));
  // The leader resigns while a client reads from the group.
  ReplayPlan plan{.inner = {8}};
  plan.inside.emplace(13, ReplayPlan::Inside{7, [&](MemoryExchange&) {
                                               node::resign_lead(replay.core(replay.at));
                                               replay.run_one(8);
                                             }});
  EXPECT_EQ(replay.run_only("14-leader-change.json", {2, 8, 13}, std::move(plan)), 3);
}

}  // namespace
}  // namespace verger::testing
