// The recordings of a real server's gRPC calls (tests/fixtures/grpc), replayed against embedded
// nodes: each call's status, text, trailers and messages have to be the recorded ones.
#include <gtest/gtest.h>

#include "tests/integration/grpc_replay/replay.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;

/// Records of $all from there on.
std::size_t count_from(Replay& replay, std::uint64_t position) {
  const LogPosition from(static_cast<std::int64_t>(position));
  const auto slice = replay.core(0).db().read_all_forward({from, from}, 1000);
  EXPECT_TRUE(slice.has_value() && slice->end);
  return slice ? slice->events.size() : 0;
}

TEST(GrpcReplay, OneNode) {
  Replay replay(1);
  replay.run("01-connect.json");
  replay.run("02-append.json");
  replay.run("03-delete.json");
  replay.run("04-read-stream.json");
  replay.run("05-read-all.json");
  const auto others = [&replay](std::size_t count) {
    return [&replay, count](MemoryExchange&) {
      replay.append("o", std::vector<std::string>(count, "o"));
      replay.world().run_for(100ms);
    };
  };
  ReplayPlan subscriptions;
  // The filtered subscription 14 looks at four records at a time: 18 lie before the first of its
  // stream, which 10 appends, and its checkpoints are where the pages began.
  subscriptions.before[10] = [&replay] {
    constexpr std::uint64_t kStart = 26559;
    const auto there = count_from(replay, replay.own_position(kStart));
    ASSERT_LE(there, 18U);
    if (there < 18) {
      replay.append("o", std::vector<std::string>(18 - there, "o"));
    }
  };
  // Behind this one 11 begins.
  subscriptions.before[11] = [&replay] {
    replay.append_known("s-2", "0e9f0000-0000-4000-8000-000000002071", "live", R"({"i":0})");
  };
  subscriptions.inside.emplace(14, ReplayPlan::Inside{14, others(4)});
  subscriptions.inside.emplace(14, ReplayPlan::Inside{15, others(2)});
  subscriptions.inside.emplace(14, ReplayPlan::Inside{16, others(1)});
  subscriptions.inside.emplace(14, ReplayPlan::Inside{17, others(4)});
  // The checkpoint of 15 comes with the 32nd event that its filter does not want.
  subscriptions.inside.emplace(15, ReplayPlan::Inside{4, [&](MemoryExchange& client) {
                                                        others(31)(client);
                                                        EXPECT_EQ(client.messages().size(), 2U);
                                                        replay.append("o", {"o"});
                                                      }});
  replay.run("06-subscribe.json", std::move(subscriptions));
  replay.tombstone("b-del");
  // The server saw the end of the client's messages after its first reply, and ended with the next.
  ReplayPlan batches;
  batches.inside.emplace(
      20, ReplayPlan::Inside{0, [&](MemoryExchange& client) {
                               EXPECT_TRUE(replay.world().run_until(
                                   [&] { return client.messages().size() == 1; }, 1s));
                             }});
  replay.run("07-batch-append.json", std::move(batches));
}

}  // namespace
}  // namespace verger::testing
