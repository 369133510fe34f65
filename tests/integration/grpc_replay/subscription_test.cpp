// Subscriptions over gRPC: what is delivered, and what a checkpoint is worth.
#include <algorithm>
#include <gtest/gtest.h>

#include "tests/integration/grpc_replay/replay.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;
namespace es = event_store::client;

/// What a subscription has sent so far.
struct Received {
  std::vector<std::string> types;  ///< of events
  std::vector<std::pair<std::uint64_t, std::uint64_t>> checkpoints;
  int caught_up = 0;
};
Received received(const MemoryExchange& exchange) {
  Received out;
  for (const auto& message : exchange.messages()) {
    es::streams::ReadResp response;
    response.ParseFromString(message);
    if (response.has_event()) {
      out.types.push_back(response.event().event().metadata().at("type"));
    } else if (response.has_checkpoint()) {
      out.checkpoints.emplace_back(response.checkpoint().commit_position(),
                                   response.checkpoint().prepare_position());
    }
    out.caught_up += response.has_caught_up() ? 1 : 0;
  }
  return out;
}

std::string filtered_subscription(std::optional<std::pair<std::uint64_t, std::uint64_t>> from) {
  es::streams::ReadReq request;
  auto& options = *request.mutable_options();
  if (from) {
    options.mutable_all()->mutable_position()->set_commit_position(from->first);
    options.mutable_all()->mutable_position()->set_prepare_position(from->second);
  } else {
    options.mutable_all()->mutable_start();
  }
  options.mutable_subscription();
  options.mutable_filter()->mutable_event_type()->add_prefix("wanted-");
  options.mutable_filter()->set_max(4);
  options.mutable_filter()->set_checkpointintervalmultiplier(2);
  options.mutable_uuid_option()->mutable_string();
  return request.SerializeAsString();
}

TEST(GrpcSubscription, ResumedFromAnyCheckpointItLosesNothing) {
  Replay replay(1);
  std::vector<std::string> wanted;
  const auto append_some = [&](int from, int to) {
    for (int i = from; i < to; ++i) {
      const bool match = i % 5 == 0 || i % 7 == 0;
      const auto type = fmt::format("{}-{}", match ? "wanted" : "other", i);
      replay.append("s-" + std::to_string(i % 3), {type});
      if (match) {
        wanted.push_back(type);
      }
    }
  };
  append_some(0, 60);
  const auto whole = replay.call("Read", {filtered_subscription(std::nullopt)});
  ASSERT_TRUE(replay.world().run_until([&] { return received(*whole).caught_up == 1; }, 10s));
  const auto behind = received(*whole).checkpoints.size();
  EXPECT_GT(behind, 5U);
  append_some(60, 120);
  ASSERT_TRUE(replay.world().run_until(
      [&] { return received(*whole).types.size() == wanted.size(); }, 10s));
  const auto all = received(*whole);
  EXPECT_EQ(all.types, wanted);
  EXPECT_GT(all.checkpoints.size(), behind + 5);
  EXPECT_TRUE(std::ranges::is_sorted(all.checkpoints));
  EXPECT_EQ(std::ranges::adjacent_find(all.checkpoints), all.checkpoints.end());

  for (const auto& checkpoint : all.checkpoints) {
    // What it had got before the checkpoint, and what it gets from there on.
    std::set<std::string> got;
    for (const auto& message : whole->messages()) {
      es::streams::ReadResp response;
      response.ParseFromString(message);
      if (response.has_checkpoint() &&
          response.checkpoint().commit_position() == checkpoint.first) {
        break;
      }
      if (response.has_event()) {
        got.insert(response.event().event().metadata().at("type"));
      }
    }
    const auto resumed = replay.call("Read", {filtered_subscription(checkpoint)});
    ASSERT_TRUE(replay.world().run_until([&] { return received(*resumed).caught_up == 1; }, 10s));
    const auto rest = received(*resumed).types;
    got.insert(rest.begin(), rest.end());
    EXPECT_EQ(got, std::set<std::string>(wanted.begin(), wanted.end()))
        << checkpoint.first << "/" << checkpoint.second;
    resumed->cancel();
  }
  whole->cancel();
  replay.world().run_for(20ms);
}

TEST(GrpcSubscription, MoreThanTheServerHoldsAreDeliveredOnceAndInOrder) {
  Replay replay(1);
  es::streams::ReadReq request;
  auto& options = *request.mutable_options();
  options.mutable_stream()->mutable_stream_identifier()->set_stream_name("many");
  options.mutable_stream()->mutable_end();
  options.mutable_subscription();
  options.mutable_no_filter();
  options.mutable_uuid_option()->mutable_string();
  const auto subscription = replay.call("Read", {request.SerializeAsString()});
  ASSERT_TRUE(
      replay.world().run_until([&] { return received(*subscription).caught_up == 1; }, 10s));
  std::vector<std::string> types;
  for (int i = 0; i < 100; ++i) {
    types.push_back(fmt::format("t-{}", i));
  }
  replay.append("many", types);
  ASSERT_TRUE(
      replay.world().run_until([&] { return received(*subscription).caught_up == 2; }, 10s));
  EXPECT_EQ(received(*subscription).types, types);
  subscription->cancel();
  replay.world().run_for(20ms);
}

}  // namespace
}  // namespace verger::testing
