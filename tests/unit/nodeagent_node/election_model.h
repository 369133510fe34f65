#pragma once

#include <deque>
#include <gtest/gtest.h>
#include <map>
#include <memory>
#include <queue>
#include <vector>

#include "nodeagent/node/election.h"

namespace verger::node::testing {

struct ModelFaults {
  unsigned lose = 0, duplicate = 0, crash = 0, resign = 0;  ///< per mille
  Monotonic max_delay = std::chrono::milliseconds(5);
};

/// A few election machines over a model of a log: an entry is the term that wrote it. Messages are
/// lost, doubled, delayed and reordered; nodes crash between any two effects and come back with
/// what was durable. Checks as it goes: one leader per term, no committed entry lost.
class ElectionModel {
 public:
  ElectionModel(int nodes, std::uint64_t seed, ModelFaults faults = {});

  void run_for(std::chrono::milliseconds duration);
  bool run_until_leader(std::chrono::milliseconds limit);
  void crash(std::size_t node);
  void boot(std::size_t node);
  void write(std::size_t node);
  void apply(std::size_t node, const Effects& effects);

  struct Node {
    NodeId id;
    std::unique_ptr<Election> machine;
    int boots = 0;
    std::int32_t priority = 0;
    // Durable.
    EpochNumber term{-1};
    std::vector<std::int32_t> log;
    // Of the process.
    Uuid instance;
    std::map<NodeId, std::size_t> acknowledged;  ///< as leader: entries its followers have
    std::optional<LeaderInfo> follows;
    bool linked = false;
    bool draining = false;
    std::size_t committed = 0;
  };
  std::vector<Node> nodes;
  Monotonic now{0};
  ModelFaults faults;
  bool writing = true;                  ///< leaders append now and then
  std::vector<std::int32_t> committed;  ///< of the whole cluster
  std::uint64_t lost = 0, duplicated = 0, crashes = 0, resigns = 0, leaders_seen = 0;

  std::optional<std::size_t> leader() const;
  std::size_t index(const NodeId& id) const;

 private:
  struct Packet {
    Monotonic at{};
    std::uint64_t sequence = 0;
    ElectionMessage message;
    friend bool operator<(const Packet& a, const Packet& b) {
      return a.at != b.at ? a.at > b.at : a.sequence > b.sequence;
    }
  };
  void step();
  void replicate(Node& leader);
  void unlink(Node& node);
  void post(ElectionMessage message);
  void refresh(Node& node);
  void note_commit(Node& leader);

  SeededRandom random_;
  std::uint64_t sequence_ = 0;
  std::priority_queue<Packet> packets_;
  std::map<std::int32_t, NodeId> leader_of_term_;
  std::map<std::int32_t, Uuid> instance_of_term_;
};

}  // namespace verger::node::testing
