// The recordings of a cluster: rights and users on its leader, a follower, the last node of three,
// a leader that resigns, and a node that is shut down.
#include <event_store/persistent.pb.h>
#include <event_store/streams.pb.h>
#include <gtest/gtest.h>

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
  replay.run("12-follower.json");
}

TEST(GrpcReplay, RightsAndUsers) {
  Replay replay(3);
  replay.at = *replay.cluster().leader();
  ReplayPlan plan;
  // The server still took an older password of this user.
  plan.credentials[81] = "u1:secret-4";
  // The recording has the beginning of these; the rest is their data.
  plan.last_message[91] = appended_bytes("00000001000d", 1048577);
  plan.last_message[92] = appended_bytes("00000001000e", 1048576);
  replay.run("11-auth.json", std::move(plan));
}

TEST(GrpcReplay, TheLastNodeOfThree) {
  Replay replay(3);
  const auto leader = *replay.cluster().leader();
  replay.at = leader;
  replay.append_known("a-1", "0e9f0000-0000-4000-8000-000000010001", "t", "{}");
  replay.append_known("a-1", "0e9f0000-0000-4000-8000-000000010002", "t", "{}");
  EXPECT_TRUE(replay.cluster().run_until_level());
  replay.at = leader == 0 ? 1 : 0;
  // A subscription was there before the leader went, and outlives all of it.
  std::set<int> meanwhile;
  for (int number = 1; number <= 16; ++number) {
    if (number != 2 && number != 15) {
      meanwhile.insert(number);
    }
  }
  ReplayPlan plan{.inner = meanwhile};
  constexpr std::size_t kCaughtUp = 6;  // step of its timeline
  plan.inside.emplace(15, ReplayPlan::Inside{kCaughtUp, [&](MemoryExchange&) {
                                               for (std::size_t i = 0; i < 3; ++i) {
                                                 if (i != replay.at) {
                                                   replay.cluster().crash(i);
                                                 }
                                               }
                                               for (const int number : meanwhile) {
                                                 replay.run_one(number);
                                               }
                                             }});
  replay.run("13-no-quorum.json", std::move(plan));
}

/// The stream and the group of the last recording, as they were at its beginning.
void prepare_leader_change(Replay& replay) {
  namespace groups = event_store::client::persistent_subscriptions;
  const auto append = [&](const char* id, const char* type, const char* data) {
    replay.append_known("l-1", fmt::format("0e9f0000-0000-4000-8000-{}", id), type, data);
  };
  append("000000040001", "t", "{}");
  append("000000040002", "t", "");
  append("000000040008", "t", "");
  append("000000040009", "after", "{}");
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
}

TEST(GrpcReplay, ALeaderThatResigns) {
  Replay replay(3);
  replay.at = *replay.cluster().leader();
  prepare_leader_change(replay);
  // Open meanwhile, each within the one before: a subscription, a batch append, a reader of the
  // group; then the leader resigns.
  ReplayPlan plan{.at_once = {4, 8, 6}, .inner = {3, 4, 5, 6, 7, 8, 9, 10, 11, 13, 14}};
  const auto exchange = [&](int number) {
    return [&replay, number](MemoryExchange&) { replay.run_one(number); };
  };
  constexpr std::size_t kCaughtUp = 9;      // of the subscription
  constexpr std::size_t kFirstReply = 2;    // of the batch append
  constexpr std::size_t kAllDelivered = 7;  // to the reader
  plan.inside.emplace(12, ReplayPlan::Inside{kCaughtUp, exchange(14)});
  plan.inside.emplace(14, ReplayPlan::Inside{kFirstReply, exchange(13)});
  plan.inside.emplace(13, ReplayPlan::Inside{kAllDelivered, [&](MemoryExchange&) {
                                               const auto former = replay.at;
                                               // Here it has resigned at once: what is asked
                                               // then comes in another order.
                                               for (const int number : {3, 4, 8, 6, 5, 7}) {
                                                 replay.run_one(number);
                                               }
                                               const auto moved = [&] {
                                                 const auto now = replay.cluster().leader();
                                                 return now && *now != former;
                                               };
                                               EXPECT_TRUE(replay.world().run_until(moved, 30s));
                                               EXPECT_TRUE(replay.cluster().run_until_level());
                                               replay.at = *replay.cluster().leader();
                                               replay.run_one(9);
                                               replay.at = former;
                                               EXPECT_TRUE(replay.cluster().run_until_level());
                                               replay.run_one(10);
                                               replay.run_one(11);
                                             }});
  replay.run("14-leader-change.json", std::move(plan));
}

TEST(GrpcReplay, ANodeThatIsShutDown) {
  Replay replay(3);
  replay.at = *replay.cluster().leader();
  prepare_leader_change(replay);
  replay.append_known("l-1", "0e9f0000-0000-4000-8000-0000000493e1", "t", "{}");
  replay.append_known("l-1", "0e9f0000-0000-4000-8000-0000000493e2", "t", "");
  replay.append_known("l-1", "0e9f0000-0000-4000-8000-0000000493e9", "after", "{}");
  ReplayPlan plan{.inner = {15}};
  constexpr std::size_t kCaughtUp = 11;
  plan.inside.emplace(16,
                      ReplayPlan::Inside{kCaughtUp, [&](MemoryExchange&) { replay.run_one(15); }});
  replay.run("14-leader-change.json", std::move(plan));
}

}  // namespace
}  // namespace verger::testing
