#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "tests/simulation/full/cluster.h"

namespace verger::sim {

/// A move of the leader counts once it held for this long, in the policy and here.
inline constexpr std::chrono::milliseconds kLeaderHold{2000};

/// What was seen of one node from outside of all programs.
struct NodeHistory {
  std::string instance;
  api::NodeState state = api::NodeState::kUnknown;
  std::optional<std::string> running;      ///< id of the scavenge at work
  std::optional<std::int64_t> unfinished;  ///< number of its point
  std::map<std::int64_t, int> finished;    ///< point -> times its scavenge came to its end
  bool foreign = false;                    ///< the scavenge at work was started by hand
  bool foreign_next = false;               ///< an operator has just requested one by hand
  int starts_asked = 0;                    ///< requests of ours to start one that reached the node
  int resigns_asked = 0;                   ///< that reached it while it led
  /// Ordered to scavenge not long ago: what is left to do may begin and end within one event.
  Monotonic look_until{};
};

/// What the journal showed, in order.
struct JournalHistory {
  std::int64_t last_sequence = 0;
  std::string last_hash;
  std::set<std::string> operations;                 ///< ids of all intents
  std::map<std::string, std::string> open_intents;  ///< step -> operation without outcome
  std::map<std::string, int> attempts;              ///< by step
  std::string run_state;                            ///< as "run-ended" has it
  std::string run_reason;
  int planned_moves = 0;
};

/// Looks at the whole world after each event, as no program can, and compares what the programs
/// claim with what is.
class Watcher {
 public:
  explicit Watcher(Cluster& cluster);
  ~Watcher();

  /// Before each event of the world.
  void look();
  /// A message that reached its receiver.
  void message(const testing::SimMessage& message);

  [[nodiscard]] const std::vector<std::string>& violations() const { return violations_; }
  void violation(std::string text);
  [[nodiscard]] const NodeHistory& node(std::string_view name) const;
  [[nodiscard]] const JournalHistory& journal() const { return journal_; }
  /// The node that leads, as more than half of the nodes have it.
  [[nodiscard]] std::string leader() const;
  [[nodiscard]] std::uint64_t leader_changes() const { return leader_changes_; }

 private:
  void look_at(std::string_view name);
  void look_at_leader();
  void leader_answered();
  void controller_started(controller::Controller& controller);
  void read_journal(controller::Controller& controller);
  void journaled(const controller::JournalEvent& event);
  void claimed_scavenged(const std::string& node, const std::string& result, std::string_view step);

  Cluster& cluster_;
  std::map<std::string, NodeHistory, std::less<>> nodes_;
  JournalHistory journal_;
  controller::Journal::Subscription subscription_;
  bool journal_changed_ = false;
  std::set<std::string> said_;
  std::vector<std::string> violations_;

  /// Leadership: who; and the first move that held after a resignation.
  std::uint64_t leader_changes_ = 0;
  std::string leading_instance_;
  std::string leading_;
  std::string resigned_;  ///< the node that was last ordered to resign while it led
  /// When the leader last answered the controller for the first time: a move that was not visible
  /// does not count.
  std::optional<Monotonic> leader_seen_;
  Monotonic leader_seen_last_{};
  bool moved_ = false;
};

}  // namespace verger::sim
