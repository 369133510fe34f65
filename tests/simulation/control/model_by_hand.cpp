#include "tests/simulation/control/model.h"

// What others do to the cluster: an operator at a node, or the fault injection.
namespace verger::sim {

using api::NodeState;
using std::chrono::milliseconds;

std::string ModelCluster::start_by_hand(std::string_view host, bool sync_only) {
  auto* member = find(host);
  auto* process = member->process;
  if (process == nullptr || process->running_) {
    return "";
  }
  process->running_ =
      ModelScavenge{.id = random_.uuid().to_string(), .sync_only = sync_only, .foreign = true};
  process->tell({.type = "$scavengeStarted", .scavenge_id = process->running_->id});
  if (on_start) {
    on_start(host, /*foreign=*/true);
  }
  return process->running_->id;
}

bool ModelCluster::stop_by_hand(std::string_view host) {
  auto* process = find(host)->process;
  if (process == nullptr || !process->running_) {
    return false;
  }
  process->running_->stopping = true;
  process->running_->stopped_by_hand = true;
  return true;
}

bool ModelCluster::fail_scavenge(std::string_view host) {
  auto* process = find(host)->process;
  if (process == nullptr || !process->running_ || process->running_->stopping) {
    return false;
  }
  // Up to 24.6 errors are called as a restart is.
  process->end_run(options_.version.starts_with("24.6") ? "Interrupted" : "Errored",
                   "Error while scavenging DB: No space left on device.");
  return true;
}

bool ModelCluster::elect_out_of_turn() {
  if (!leader_ || members_[*leader_].process == nullptr) {
    return false;
  }
  members_[*leader_].process->state_ = NodeState::kUnknown;
  leader_.reset();
  election_ = milliseconds(random_.below(1'500));
  return true;
}

void ModelCluster::hold_up(std::string_view host, milliseconds duration) {
  find(host)->held_up_until = world_.now() + duration;
}

}  // namespace verger::sim
