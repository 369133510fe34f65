// The recorded life of persistent subscriptions (tests/fixtures/grpc/08-persistent.json), with what
// other clients did meanwhile, and with the groups' ticks where the recording has them.
#include <event_store/persistent.pb.h>
#include <gtest/gtest.h>

#include "nodeagent/grpc/framing.h"
#include "tests/integration/grpc_replay/replay.h"

namespace verger::testing {
namespace {

using namespace std::chrono_literals;
namespace groups = event_store::client::persistent_subscriptions;

std::string event_id(int last) { return fmt::format("0e9f0000-0000-4000-8000-{:012}", last); }

TEST(GrpcReplay, PersistentSubscriptions) {
  Replay replay(1);
  auto& world = replay.world();
  replay.append("earlier", std::vector<std::string>(60, "e"));  // the server had lived for a while
  for (int i = 0; i < 6; ++i) {
    replay.append_known("p-1", event_id(5001 + i), "e", fmt::format(R"({{"i":{}}})", i));
  }
  const auto exchange = [&](int number) {
    return [&replay, number](MemoryExchange&) { replay.run_one(number); };
  };
  ReplayPlan plan{.inner = {37, 38, 39, 58, 60, 65, 70}};
  const auto tick_in = [&](std::chrono::milliseconds ahead) {
    return [&replay, ahead] { replay.run_until_tick_is(ahead); };
  };
  // The first checkpoint of group ga says that it has seen its own creation, and nothing later.
  plan.before[19] = [&] {
    world.run_for(50ms);
    replay.run_until_tick_is(1000ms);
  };
  plan.before[40] = [&] {
    world.run_for(50ms);
    replay.run_until_tick_is(1000ms);
    replay.run_until_tick_is(240ms);
  };
  plan.inside.emplace(40, ReplayPlan::Inside{2, exchange(37)});
  plan.inside.emplace(40, ReplayPlan::Inside{18, exchange(38)});
  plan.inside.emplace(40, ReplayPlan::Inside{18, exchange(39)});
  plan.inside.emplace(40, ReplayPlan::Inside{21, [&](MemoryExchange&) {
                                               world.run_for(2531ms);
                                               replay.append_known("p-1", event_id(4001), "live",
                                                                   R"({"i":0})");
                                             }});
  // The server never delivered this one again, though its client had gone without an answer.
  plan.inside.emplace(
      40, ReplayPlan::Inside{22, [&](MemoryExchange& client) {
                               groups::ReadReq request;
                               request.mutable_ack()->add_ids()->set_string(event_id(4001));
                               client.put(grpc::framed(request.SerializeAsString()));
                               world.run_for(2ms);
                             }});
  plan.before[41] = [&] { world.run_for(2200ms); };
  plan.before[48] = [&] {
    replay.run_until_tick_is(800ms);
    replay.append_known("p-all-1", event_id(4002), "e", R"({"i":0})");
    replay.append_known("p-oth-1", event_id(4003), "e", R"({"i":0})");
    replay.append_known("p-all-2", event_id(4004), "e", R"({"i":0})");
  };
  plan.inside.emplace(59, ReplayPlan::Inside{4, exchange(58)});
  plan.inside.emplace(61, ReplayPlan::Inside{2, exchange(60)});
  plan.before[66] = [&] { world.run_for(1100ms); };  // group g-to writes its checkpoint
  plan.inside.emplace(66, ReplayPlan::Inside{6, exchange(65)});
  plan.before[71] = tick_in(300ms);
  plan.inside.emplace(71, ReplayPlan::Inside{7, [&](MemoryExchange&) {
                                               world.run_for(350ms);
                                               replay.run_one(70);
                                             }});
  replay.run("08-persistent.json", std::move(plan));
}

}  // namespace
}  // namespace verger::testing
