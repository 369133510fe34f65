#include <gtest/gtest.h>

#include "election_model.h"

namespace verger::node::testing {
namespace {

using namespace std::chrono_literals;
using api::NodeState;

void boot_all(ElectionModel& model) {
  for (std::size_t i = 0; i < model.nodes.size(); ++i) {
    model.boot(i);
  }
}

TEST(Election, ASingleNodeElectsItself) {
  ElectionModel model(1, 1);
  boot_all(model);
  ASSERT_TRUE(model.run_until_leader(10ms));
  EXPECT_EQ(model.nodes[0].term, EpochNumber(0));
}

TEST(Election, ThreeNodesSettleOnOneLeaderInOneTerm) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    ElectionModel model(3, seed);
    boot_all(model);
    ASSERT_TRUE(model.run_until_leader(300ms));
    EXPECT_EQ(model.leaders_seen, 1U);
  }
}

TEST(Election, ALeaderIsReplacedWithin300MsAfterItDies) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    ElectionModel model(3, seed);
    boot_all(model);
    ASSERT_TRUE(model.run_until_leader(300ms));
    const auto old = *model.leader();
    model.crash(old);
    ASSERT_TRUE(model.run_until_leader(300ms));
    EXPECT_NE(*model.leader(), old);
  }
}

TEST(Election, ARestartedNodeJoinsTheLivingLeader) {
  ElectionModel model(3, 7);
  boot_all(model);
  ASSERT_TRUE(model.run_until_leader(300ms));
  const auto term = model.nodes[*model.leader()].machine->term();
  const auto follower = (*model.leader() + 1) % 3;
  model.crash(follower);
  model.run_for(50ms);
  model.boot(follower);
  ASSERT_TRUE(model.run_until_leader(300ms));
  EXPECT_EQ(model.nodes[*model.leader()].machine->term(), term);
}

TEST(Election, WithoutAMajorityNoNodeLeads) {
  ElectionModel model(3, 3);
  boot_all(model);
  ASSERT_TRUE(model.run_until_leader(300ms));
  const auto leader = *model.leader();
  model.crash((leader + 1) % 3);
  model.crash((leader + 2) % 3);
  model.run_for(200ms);
  EXPECT_EQ(model.nodes[leader].machine->state(), NodeState::kUnknown);
}

TEST(Election, AResigningLeaderOfPriorityMinusOneIsNotElectedAgain) {
  for (std::uint64_t seed = 0; seed < 50; ++seed) {
    SCOPED_TRACE(seed);
    ElectionModel model(3, seed);
    boot_all(model);
    ASSERT_TRUE(model.run_until_leader(300ms));
    const auto old = *model.leader();
    model.writing = false;  // all caught up: only the priority decides
    model.nodes[old].machine->set_priority(-1);
    auto all_equal = [&] {
      return model.nodes[0].log == model.nodes[1].log && model.nodes[1].log == model.nodes[2].log;
    };
    while (!all_equal()) {
      model.run_for(1ms);
    }
    model.apply(old, model.nodes[old].machine->resign(model.now));
    while (model.nodes[old].machine->state() == NodeState::kLeader) {
      model.run_for(1ms);
    }
    ASSERT_TRUE(model.run_until_leader(400ms));
    EXPECT_NE(*model.leader(), old);
  }
}

TEST(Election, AVoterThatForgotWhomItVotedForVotesForNoNodeInThatTerm) {
  ElectionConfig config;
  config.self = "n1";
  config.cluster_size = 3;
  Election machine(config, EpochNumber(4), LogState{}, Uuid{});
  static_cast<void>(machine.start(Monotonic(0)));
  const auto ask = [&](std::int32_t term) {
    const auto effects = machine.receive(
        Monotonic(1), {"n2", "n1", message::RequestVote{EpochNumber(term), Uuid{}, LogState{}}});
    for (const auto& effect : effects) {
      if (const auto* send = std::get_if<effect::Send>(&effect)) {
        return std::get<message::Vote>(send->message.payload).granted;
      }
    }
    return false;
  };
  EXPECT_FALSE(ask(4));
  EXPECT_TRUE(ask(5));
  EXPECT_TRUE(ask(5)) << "the same candidate may ask again";
}

TEST(Election, AVoteIsDurableBeforeItIsAnswered) {
  ElectionConfig config;
  config.self = "n1";
  config.cluster_size = 3;
  Election machine(config, EpochNumber(-1), LogState{}, Uuid{});
  static_cast<void>(machine.start(Monotonic(0)));
  const auto effects = machine.receive(
      Monotonic(1), {"n2", "n1", message::RequestVote{EpochNumber(0), Uuid{}, LogState{}}});
  ASSERT_GE(effects.size(), 2U);
  EXPECT_TRUE(std::holds_alternative<effect::PersistTerm>(effects.front()));
  EXPECT_TRUE(std::holds_alternative<effect::Send>(effects.back()));
}

TEST(Election, AVoterRefusesACandidateWhoseLogIsBehind) {
  struct Row {
    std::int32_t epoch;
    std::int64_t writer;
    bool granted;
  };
  for (const auto& row : {Row{3, 100, true}, Row{3, 101, true}, Row{4, 1, true}, Row{3, 99, false},
                          Row{2, 500, false}}) {
    ElectionConfig config;
    config.self = "n1";
    config.cluster_size = 3;
    LogState own;
    own.last_epoch = EpochNumber(3);
    own.writer = LogPosition(100);
    Election machine(config, EpochNumber(3), own, Uuid{});
    static_cast<void>(machine.start(Monotonic(0)));
    LogState theirs;
    theirs.last_epoch = EpochNumber(row.epoch);
    theirs.writer = LogPosition(row.writer);
    const auto effects = machine.receive(
        Monotonic(1), {"n2", "n1", message::RequestVote{EpochNumber(9), Uuid{}, theirs}});
    const auto* send = std::get_if<effect::Send>(&effects.back());
    ASSERT_NE(send, nullptr);
    EXPECT_EQ(std::get<message::Vote>(send->message.payload).granted, row.granted)
        << row.epoch << " " << row.writer;
  }
}

TEST(Election, ReadOnlyReplicasDoNotVote) {
  ElectionConfig config;
  config.self = "n4";
  config.cluster_size = 3;
  config.read_only = true;
  Election machine(config, EpochNumber(-1), LogState{}, Uuid{});
  static_cast<void>(machine.start(Monotonic(0)));
  EXPECT_TRUE(machine
                  .receive(Monotonic(1),
                           {"n2", "n4", message::RequestVote{EpochNumber(5), Uuid{}, LogState{}}})
                  .empty());
}

TEST(ElectionSimulation, OneLeaderPerTermAndNoCommittedEntryIsLost) {
  std::uint64_t leaders = 0, crashes = 0, lost = 0, duplicated = 0, resigns = 0, committed = 0;
  for (std::uint64_t seed = 1; seed <= 300; ++seed) {
    SCOPED_TRACE(seed);
    ElectionModel model(seed % 4 == 0 ? 5 : 3, seed,
                        {.lose = static_cast<unsigned>(seed % 5) * 60,
                         .duplicate = 50,
                         .crash = seed % 3 == 0 ? 0U : 80U,
                         .resign = 2,
                         .max_delay = std::chrono::milliseconds(1 + seed % 40)});
    boot_all(model);
    model.run_for(3s);
    ASSERT_FALSE(::testing::Test::HasFailure());
    // When the faults end, the cluster finds together again.
    model.faults = {};
    for (std::size_t i = 0; i < model.nodes.size(); ++i) {
      if (!model.nodes[i].machine) {
        model.boot(i);
      }
    }
    ASSERT_TRUE(model.run_until_leader(3s));
    leaders += model.leaders_seen;
    crashes += model.crashes;
    lost += model.lost;
    duplicated += model.duplicated;
    resigns += model.resigns;
    committed += model.committed.size();
  }
  RecordProperty("leaders", std::to_string(leaders));
  EXPECT_GT(leaders, 600U);
  EXPECT_GT(crashes, 300U);
  EXPECT_GT(lost, 1000U);
  EXPECT_GT(duplicated, 1000U);
  EXPECT_GT(resigns, 100U);
  EXPECT_GT(committed, 5'000U);
}

}  // namespace
}  // namespace verger::node::testing
