#include "tests/simulation/control/operation_fates.h"

#include <algorithm>
#include <fmt/format.h>

#include "controller/executor/events.h"
#include "tests/simulation/control/tournament.h"

namespace verger::sim {

using std::chrono::duration_cast;
using std::chrono::hours;
using std::chrono::milliseconds;
namespace events = controller::events;

namespace {

constexpr milliseconds kSeenLate{35'000};

}  // namespace

bool is_scavenge_step(std::string_view step) {
  return step.starts_with("scavenge-") || step.starts_with("adopt-") || step.starts_with("finish-");
}

std::string node_of_step(const std::string& step) {
  const auto dash = step.rfind('-');
  return dash == std::string::npos ? "" : step.substr(dash + 1);
}

OperationFates::OperationFates(Site& site, const Scenario& scenario, const Rulings& rulings)
    : site_(site), scenario_(scenario), rulings_(rulings) {}

OperationFates::Fate* OperationFates::open_one(const std::string& step) {
  const auto found = open_.find(step);
  return found == open_.end() ? nullptr : &fates_[found->second];
}

OperationFates::Fate* OperationFates::at_work(const std::string& node) {
  const auto found = scavenging_.find(node);
  return found == scavenging_.end() ? nullptr : &fates_[found->second];
}

OperationFates::Fate* OperationFates::of_running(const std::string& node) {
  const auto found = running_.find(node);
  return found == running_.end() ? nullptr : &fates_[found->second];
}

OperationFates::Fate* OperationFates::resigning() {
  for (const auto& [step, operation] : open_) {
    if (step.starts_with("resign-") && fates_[operation].resigned) {
      return &fates_[operation];
    }
  }
  return nullptr;
}

bool OperationFates::down_for(const std::string& node, milliseconds duration) const {
  const auto gone = gone_at_.find(node);
  return site_.model().node(node) == nullptr && gone != gone_at_.end() &&
         site_.world().now() - gone->second > duration;
}

bool OperationFates::restarted_within(const std::string& node, milliseconds duration) const {
  const auto gone = gone_at_.find(node);
  return gone != gone_at_.end() && site_.world().now() - gone->second <= duration;
}

void OperationFates::wrong(const Fate& fate, const Claim& claim, std::string_view why) {
  rulings_.violation(fmt::format("{} of {} is claimed to have ended {}{}{}: {}", claim.step,
                                 fate.node, claim.type, claim.outcome.empty() ? "" : " ",
                                 claim.outcome, why));
}

// --- what is claimed

void OperationFates::intended(const std::string& operation, const std::string& step,
                              const std::string& adopted, controller::ControllerEpoch epoch) {
  if (pausing_) {
    rulings_.violation(fmt::format("{} is intended while the run is paused", step));
  }
  auto& fate = fates_[operation];
  fate = {.step = step, .node = node_of_step(step), .adopted = adopted, .epoch = epoch};
  open_[step] = operation;
  if (is_scavenge_step(step)) {
    scavenging_[fate.node] = operation;
  }
}

void OperationFates::closed(const Claim& claim) {
  auto* fate = open_one(claim.step);
  if (fate == nullptr) {
    return;
  }
  fate->open = false;
  open_.erase(claim.step);
  if (claim.type == events::kStepSkipped || claim.type == events::kStepUndone) {
    return;  // by an operator's request, regardless of its outcome
  }
  if (fate->acted && claim.epoch > fate->epoch) {
    rulings_.met(fate->controller_gone ? row::kControllerKilled : row::kTwoControllers);
  }
  if (is_scavenge_step(claim.step)) {
    judge_scavenge(*fate, claim);
  } else if (claim.step.starts_with("resign-")) {
    judge_resign(*fate, claim);
  }
}

void OperationFates::judge_scavenge(const Fate& fate, const Claim& claim) {
  const bool done = claim.type == events::kStepDone;
  if (claim.outcome == "errored") {
    if (!fate.errored) {
      wrong(fate, claim, "no scavenge of it failed");
    }
    rulings_.met(scenario_.site.model.version.starts_with("24.6") ? row::kErroredAsInterrupted
                                                                  : row::kErrored);
  } else if (claim.outcome == "stopped-by-someone") {
    if (!fate.stopped) {
      wrong(fate, claim, "it was not stopped");
    }
    if (fate.stopped_by_hand) {
      rulings_.met(row::kStoppedByHand);
    }
  } else if (claim.outcome == "interrupted") {
    const auto* process = site_.model().node(fate.node);
    if (!fate.restarted && process != nullptr && process->running() &&
        !process->running()->foreign) {
      wrong(fate, claim, "it is still at work");
    }
    if (fate.restarted_amid) {
      rulings_.met(row::kNodeRestarts);
    }
  } else if (claim.outcome == "adopted-ended") {
    if (!foreign_ended_.contains(fate.adopted)) {
      wrong(fate, claim, "what it adopted has not ended");
    }
    rulings_.met(row::kAdoptedEnds);
  } else if (done && !fate.adopted.empty()) {
    if (!foreign_ended_.contains(fate.adopted)) {
      wrong(fate, claim, "what it adopted has not ended");
    }
    rulings_.met(row::kAdopted);
  }
  const bool nothing_begun = claim.outcome == "gate_closed" || !claim.counts;
  if (nothing_begun && fate.begun > 0 && fate.adopted.empty()) {
    wrong(fate, claim, "a scavenge was begun by it");
  }
  if (nothing_begun && fate.died_before) {
    rulings_.met(row::kDiesBeforeAct);
  }
  if (fate.begun > 0 && site_.has_agents() && down_for(fate.node, kSeenLate)) {
    wrong(fate, claim, "no program can have seen that, its node has been down for long");
  }
  if (done && fate.reply_lost && fate.wrote_point) {
    rulings_.met(row::kReplyLost);
  }
  if (fate.restarted && fate.longest_down > hours(24)) {
    if (!fate.unknown_while_down) {
      wrong(fate, claim, "that was not called unknown while its node was down");
    }
    rulings_.met(row::kDownForDays);
  }
}

void OperationFates::judge_resign(const Fate& fate, const Claim& claim) {
  if (claim.type == events::kStepDone) {
    if (fate.resigned && !fate.moved && !claim.not_needed) {
      wrong(fate, claim, "no other node was elected since");
    }
    if (fate.leader_gone) {
      rulings_.met(row::kLeaderCrashes);
    }
  } else if (claim.type == events::kStepRetry && fate.won_again && !fate.moved) {
    rulings_.met(row::kWinsAgain);
  } else if (claim.type == events::kStepFailed && claim.code == "deadline") {
    const auto lasted =
        duration_cast<milliseconds>(site_.world().now() - stage_started_at_).count();
    // After a restart only the wall clock knows how long the stage has been under way; even so
    // at least a minute is left.
    constexpr std::int64_t kLeftAfterRestart = 60'000;
    const auto deadline = scenario_.site.policy.limits.move_deadline_ms;
    const bool by_wall_clock = controller_clock_set_ && claim.epoch > fate.epoch;
    if (lasted < (by_wall_clock ? std::min(deadline, kLeftAfterRestart) : deadline)) {
      wrong(fate, claim, fmt::format("its deadline is not over: it has lasted {} ms", lasted));
    }
    if (fate.resigned && !fate.moved && !fate.won_again) {
      rulings_.met(row::kNoNewLeader);
    }
  }
}

void OperationFates::unknown(const std::string& step) {
  if (auto* fate = open_one(step); fate != nullptr && down_for(fate->node, milliseconds(0))) {
    fate->unknown_while_down = true;
  }
}

void OperationFates::pausing(bool drains) {
  pausing_ = !drains;
  for (const auto& [step, operation] : open_) {
    const auto& fate = fates_[operation];
    paused_over_dead_node_ = paused_over_dead_node_ || (is_scavenge_step(step) && fate.begun > 0 &&
                                                        down_for(fate.node, milliseconds(0)));
  }
}

void OperationFates::paused() {
  for (const auto& [step, operation] : open_) {
    if (!skipped_nodes_.contains(fates_[operation].node)) {
      rulings_.violation(
          fmt::format("the run is called paused, but the end of {} has not been seen", step));
    }
  }
  if (paused_over_dead_node_) {
    rulings_.met(row::kPausedOverDeadNode);
    paused_over_dead_node_ = false;
  }
}

// --- what happens

void OperationFates::acted(const std::string& node, const std::string& kind,
                           const std::string& operation) {
  if (kind == "scavenge") {
    acting_[node] = operation;
  }
  if (const auto found = fates_.find(operation); found != fates_.end()) {
    found->second.acted = true;
  }
}

void OperationFates::started(const std::string& node, bool foreign) {
  if (foreign) {
    return;
  }
  const auto& asked = site_.has_agents() ? acting_ : scavenging_;
  if (const auto found = asked.find(node); found != asked.end()) {
    running_[node] = found->second;
    auto& fate = fates_[found->second];
    fate.acted = true;
    ++fate.begun;
  }
}

void OperationFates::ended(const std::string& node, const ModelScavenge& scavenge,
                           const ModelEnd& end) {
  if (scavenge.foreign) {
    foreign_ended_.insert(scavenge.id);
    return;
  }
  auto* fate = of_running(node);
  if (fate == nullptr) {
    return;
  }
  fate->errored = fate->errored || end.failed;
  fate->stopped = fate->stopped || end.result == "Stopped";
  fate->stopped_by_hand = fate->stopped_by_hand || scavenge.stopped_by_hand;
  if (end.failed) {
    errored_.insert(node);
  }
}

void OperationFates::gone(const std::string& node, const std::optional<ModelScavenge>& running) {
  gone_at_[node] = site_.world().now();
  if (running && running->foreign) {
    foreign_ended_.insert(running->id);
  } else if (auto* fate = at_work(node); fate != nullptr && fate->open) {
    if (fate->begun > 0) {
      fate->restarted = true;
      fate->restarted_amid = fate->restarted_amid || running.has_value();
    } else {
      fate->died_before = true;
    }
  }
  if (auto* fate = resigning(); fate != nullptr && fate->node == node && !fate->moved) {
    fate->leader_gone = true;
  }
}

void OperationFates::back(const std::string& node) {
  const auto gone = gone_at_.find(node);
  if (auto* fate = at_work(node); fate != nullptr && fate->open && gone != gone_at_.end()) {
    fate->longest_down = std::max(fate->longest_down,
                                  duration_cast<milliseconds>(site_.world().now() - gone->second));
  }
}

void OperationFates::resigned(const std::string& node) {
  for (const auto& [step, operation] : open_) {
    auto& fate = fates_[operation];
    if (step.starts_with("resign-") && fate.node == node) {
      fate.resigned = true;
      fate.acted = true;
      fate.won_again = false;
      const auto leader = site_.model().leader();
      fate.moved = fate.moved || (!leader.empty() && leader != node);
    }
  }
  const auto limit = scenario_.site.policy.limits.resign_attempts;
  if (++resigns_ > limit && site_.has_agents()) {
    rulings_.violation(fmt::format("{} resignations were asked for, {} may be", resigns_, limit));
  }
}

void OperationFates::elected(const std::string& node, bool again) {
  if (auto* fate = resigning(); fate != nullptr) {
    fate->won_again = fate->won_again || again;
    fate->moved = fate->moved || node != fate->node;
  }
}

void OperationFates::point_written(std::int64_t point, bool foreign) {
  if (foreign) {
    our_points_.erase(point);
    return;
  }
  for (auto& [node, operation] : scavenging_) {
    const auto* process = site_.model().node(node);
    if (process != nullptr && process->running() && !process->running()->foreign &&
        process->running()->wants_point == point) {
      fates_[operation].wrote_point = true;
    }
  }
  // What was lost with a leader is written again under the same number; where the first node is
  // left out and no agent tells of points, the next one makes another.
  if (our_points_.insert(point).second && our_points_.size() > 1 &&
      (site_.has_agents() || skipped_nodes_.empty())) {
    rulings_.violation("the run has written a second scavenge point");
  }
}

void OperationFates::answer_lost(const std::string& node) {
  if (auto* fate = at_work(node); fate != nullptr && fate->open) {
    fate->reply_lost = true;
  }
}

void OperationFates::controller_gone() {
  for (const auto& [step, operation] : open_) {
    auto& fate = fates_[operation];
    fate.controller_gone = fate.controller_gone || fate.acted;
  }
}

}  // namespace verger::sim
