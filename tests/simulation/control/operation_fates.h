#pragma once

#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>

#include "controller/journal/journal.h"
#include "tests/simulation/control/scenario.h"

namespace verger::sim {

/// "n2" of "scavenge-n2".
std::string node_of_step(const std::string& step);
bool is_scavenge_step(std::string_view step);

/// Where what was seen goes to.
struct Rulings {
  std::function<void(std::string_view row)> met;
  std::function<void(std::string text)> violation;
};

/// What truly became of each operation of a run, at the nodes; and whether what the journal says of
/// its end is that.
class OperationFates {
 public:
  OperationFates(Site& site, const Scenario& scenario, const Rulings& rulings);

  // --- what is claimed
  struct Claim {  ///< of a step's end
    std::string_view type{};
    std::string step{};
    std::string outcome{};
    std::string code{};
    bool counts = true;
    bool not_needed = false;
    controller::ControllerEpoch epoch{0};
  };
  void intended(const std::string& operation, const std::string& step, const std::string& adopted,
                controller::ControllerEpoch epoch);
  void closed(const Claim& claim);
  void unknown(const std::string& step);
  void pausing(bool drains);
  void paused();
  void resumed() { pausing_ = false; }
  void stage_started() { stage_started_at_ = site_.world().now(); }
  void skipped(const std::string& node) { skipped_nodes_.insert(node); }
  /// From now on a controller after a restart may count a stage's time wrongly.
  void controller_clock_set() { controller_clock_set_ = true; }

  // --- what happens
  void acted(const std::string& node, const std::string& kind, const std::string& operation);
  void started(const std::string& node, bool foreign);
  void ended(const std::string& node, const ModelScavenge& scavenge, const ModelEnd& end);
  void gone(const std::string& node, const std::optional<ModelScavenge>& running);
  void back(const std::string& node);
  void resigned(const std::string& node);
  void elected(const std::string& node, bool again);
  void point_written(std::int64_t point, bool foreign);
  void answer_lost(const std::string& node);
  void controller_gone();
  /// The process of this node has been down for longer than `duration`.
  [[nodiscard]] bool down_for(const std::string& node, std::chrono::milliseconds duration) const;
  [[nodiscard]] bool restarted_within(const std::string& node,
                                      std::chrono::milliseconds duration) const;
  [[nodiscard]] bool errored_at(const std::string& node) const { return errored_.contains(node); }

 private:
  struct Fate {
    std::string step{};
    std::string node{};
    std::string adopted{};  ///< id of the foreign scavenge that it took over
    controller::ControllerEpoch epoch{0};
    bool open = true;
    bool acted = false;
    int begun = 0;  ///< scavenges
    bool errored = false;
    bool stopped = false;  ///< by any client
    bool stopped_by_hand = false;
    bool restarted = false;  ///< its node, since a scavenge of it began
    bool restarted_amid = false;
    bool died_before = false;  ///< its node, before anything was begun
    bool reply_lost = false;
    bool wrote_point = false;
    bool controller_gone = false;
    bool unknown_while_down = false;
    std::chrono::milliseconds longest_down{0};
    bool resigned = false;
    bool won_again = false;
    bool moved = false;  ///< another one leads, since it resigned
    bool leader_gone = false;
  };
  Fate* open_one(const std::string& step);
  Fate* at_work(const std::string& node);     ///< the newest one there, open or not
  Fate* of_running(const std::string& node);  ///< whose scavenge began last there
  Fate* resigning();
  void judge_scavenge(const Fate& fate, const Claim& claim);
  void judge_resign(const Fate& fate, const Claim& claim);
  void wrong(const Fate& fate, const Claim& claim, std::string_view why);

  Site& site_;
  const Scenario& scenario_;
  const Rulings& rulings_;
  std::map<std::string, Fate> fates_;              ///< by operation
  std::map<std::string, std::string> open_;        ///< step -> operation
  std::map<std::string, std::string> acting_;      ///< node -> the one that its agent is about
  std::map<std::string, std::string> running_;     ///< node -> whose scavenge began last there
  std::map<std::string, std::string> scavenging_;  ///< node -> the newest operation there
  std::map<std::string, Monotonic> gone_at_;       ///< by node; also of one that is back
  Monotonic stage_started_at_{};
  bool controller_clock_set_ = false;
  std::set<std::string> errored_;        ///< nodes
  std::set<std::string> foreign_ended_;  ///< ids of scavenges
  std::set<std::string> skipped_nodes_;
  std::set<std::int64_t> our_points_;
  int resigns_ = 0;
  bool pausing_ = false;
  bool paused_over_dead_node_ = false;
};

}  // namespace verger::sim
