// The recordings of a real server's gRPC calls (tests/fixtures/grpc), replayed against embedded
// nodes: each call's status, text, trailers and messages have to be the recorded ones.
#include <gtest/gtest.h>

#include "tests/integration/grpc_replay/replay.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;

// All that were recorded of these services, but for those that are named here.
TEST(GrpcReplay, OneNode) {
  Replay replay(1);
  int same = 0;
  const auto without = [](std::map<int, std::string> not_here) {
    return ReplayPlan{.not_here = std::move(not_here)};
  };
  same += replay.run("01-connect.json",
                     without({{18,
                               "a deadline of 1 ms, which passed there before the first message: "
                               "here no time passes until that"}}));
  same += replay.run("02-append.json");
  same += replay.run("03-delete.json",
                     without({{43, "ours lets no user tombstone a metadata stream"}}));
  const std::string in_memory = "streams in memory are not here";
  same += replay.run("04-read-stream.json", without({{52, in_memory}, {53, in_memory}}));
  same += replay.run("05-read-all.json");
  auto subscriptions = without({{19, in_memory}});
  subscriptions.without_checkpoints = {14};
  // Behind this one 11 begins.
  subscriptions.before[11] = [&replay] {
    replay.append_known("s-2", "0e9f0000-0000-4000-8000-000000002071", "live", R"({"i":0})");
  };
  // The checkpoint of 15 comes with the 32nd event that its filter does not want.
  subscriptions.inside.emplace(15, ReplayPlan::Inside{4, [&](MemoryExchange& client) {
                                                        replay.append(
                                                            "o", std::vector<std::string>(31, "o"));
                                                        replay.world().run_for(100ms);
                                                        EXPECT_EQ(client.messages().size(), 2U);
                                                        replay.append("o", {"o"});
                                                      }});
  same += replay.run("06-subscribe.json", std::move(subscriptions));
  replay.tombstone("b-del");
  // The server ended the call while some of the replies were still to come.
  same += replay.run("07-batch-append.json", {.any_count = {20}});
  EXPECT_EQ(same, 237);
}

}  // namespace
}  // namespace verger::testing
