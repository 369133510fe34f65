#include "tests/simulation/control/model.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

#include "engine/scavenge/start_decision.h"

namespace verger::sim {

using api::NodeState;
using std::chrono::milliseconds;

namespace {

constexpr milliseconds kQuorumLoss{1'500};
constexpr milliseconds kHeartbeatLoss{1'500};
constexpr milliseconds kReadBack{12'000};
constexpr std::int64_t kLastStage = static_cast<std::int64_t>(scavenge::Stage::kCleaning);

bool is_settled_state(NodeState state) {
  return state == NodeState::kLeader || state == NodeState::kFollower ||
         state == NodeState::kReadOnlyReplica;
}

}  // namespace

ModelCluster::ModelCluster(testing::SimWorld& world, ModelOptions options, std::uint64_t seed)
    : world_(world),
      options_(std::move(options)),
      random_(seed),
      database_(random_.uuid().to_string()),
      epoch_id_(database_) {
  for (const auto& host : options_.voters) {
    members_.push_back({.host = host});
  }
  for (const auto& host : options_.replicas) {
    members_.push_back({.host = host, .votes = false});
  }
}

void ModelCluster::begin() {
  world_.schedule_for_hosts(options_.tick, [this] {
    tick();
    begin();
  });
}

std::shared_ptr<ModelNode> ModelCluster::boot(std::string_view host) {
  auto* member = find(host);
  const auto index = static_cast<std::size_t>(member - members_.data());
  auto process = std::make_shared<ModelNode>(*this, index);
  member->process = process.get();
  member->ghost = false;
  if (on_boot) {
    on_boot(host);
  }
  return process;
}

void ModelCluster::power_cut(std::string_view host) {
  auto* member = find(host);
  member->disk = member->synced;
}

void ModelCluster::replace(std::string_view host, bool by_stranger) {
  auto* member = find(host);
  member->stranger = by_stranger;
  if (member->other_database.empty()) {
    member->other_database = random_.uuid().to_string();
  }
}

ModelCluster::Member* ModelCluster::find(std::string_view host) {
  const auto found = std::ranges::find(members_, host, &Member::host);
  if (found == members_.end()) {
    throw std::logic_error("no such node: " + std::string(host));
  }
  return &*found;
}
const ModelCluster::Member* ModelCluster::find(std::string_view host) const {
  return const_cast<ModelCluster*>(this)->find(host);
}

// --- what is

ModelNode* ModelCluster::node(std::string_view host) const { return find(host)->process; }
const ModelDatabase& ModelCluster::database(std::string_view host) const {
  return find(host)->disk;
}
int ModelCluster::digest_steps(std::string_view host) const { return *find(host)->digest_steps; }
std::string ModelCluster::leader() const { return leader_ ? members_[*leader_].host : ""; }
std::vector<std::string> ModelCluster::hosts() const {
  std::vector<std::string> out;
  for (const auto& member : members_) {
    out.push_back(member.host);
  }
  return out;
}
bool ModelCluster::is_voter(std::string_view host) const { return find(host)->votes; }
Monotonic ModelCluster::last_settled(std::string_view host) const {
  return find(host)->last_settled;
}

bool ModelCluster::called_alive(std::string_view host) const {
  const auto index = static_cast<std::size_t>(find(host) - members_.data());
  return std::ranges::any_of(members_, [&](const Member& member) {
    return member.process != nullptr && !member.stranger && member.host != host &&
           member.process->seen_[index].alive;
  });
}

std::int64_t ModelCluster::newest_point(std::string_view host) const {
  const auto point = latest_point(visible(*find(host)));
  return point ? point->number.value() : -1;
}

std::int64_t ModelCluster::points() const {
  return std::ranges::count_if(log_, [](const Entry& entry) { return entry.point.has_value(); });
}

bool ModelCluster::settled() const {
  return leader_ && std::ranges::all_of(members_, [this](const Member& member) {
           return member.process != nullptr && is_settled_state(member.process->state_) &&
                  member.disk.length == log_.size();
         });
}

bool ModelCluster::connected(std::size_t a, std::size_t b) const {
  return a == b || (members_[a].process != nullptr && members_[b].process != nullptr &&
                    !members_[a].stranger && !members_[b].stranger &&
                    world_.connected(members_[a].host, members_[b].host));
}

std::size_t ModelCluster::reach(std::size_t from) const {
  std::size_t voters = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    voters += members_[i].votes && members_[i].process != nullptr && !members_[i].stranger &&
                      connected(from, i)
                  ? 1U
                  : 0U;
  }
  return voters;
}

std::size_t ModelCluster::visible(const Member& member) const {
  return std::min({member.disk.length, committed_, log_.size()});
}

std::optional<streams::ScavengePoint> ModelCluster::latest_point(std::size_t length) const {
  for (auto i = length; i > 0; --i) {
    if (log_[i - 1].point) {
      return log_[i - 1].point;
    }
  }
  return std::nullopt;
}

// --- time

void ModelCluster::tick() {
  ++ticks_;
  check_leader();
  if (!leader_) {
    elect();
  }
  follow();
  take_outboxes();
  replicate();
  for (auto& member : members_) {
    if (member.process != nullptr && member.process->running_) {
      scavenge(member);
    }
  }
  if (ticks_ % 2 == 0) {
    spread_gossip();
  }
  for (auto& member : members_) {
    if (member.process != nullptr) {
      // A sync now and then, not with each change.
      if (random_.below(2) == 0) {
        member.synced = member.disk;
      }
      member.process->gossip_.clear();
      if (is_settled_state(member.process->state_) && !member.stranger) {
        member.last_settled = world_.now();
      }
    }
  }
}

void ModelCluster::check_leader() {
  if (!leader_) {
    return;
  }
  auto& member = members_[*leader_];
  auto* process = member.process;
  if (process == nullptr || process->instance_ != leader_instance_) {
    if (process == nullptr) {
      resigned_.clear();
    }
    leader_.reset();
    election_ = milliseconds(500 + random_.below(2'000));
    return;
  }
  lonely_ = reach(*leader_) < quorum() ? lonely_ + options_.tick : milliseconds(0);
  if (lonely_ >= kQuorumLoss) {
    process->state_ = NodeState::kUnknown;
    leader_.reset();
    election_ = milliseconds(500 + random_.below(1'000));
    return;
  }
  if (process->state_ == NodeState::kResigningLeader) {
    if (reach(*leader_) < quorum()) {
      process->state_ = NodeState::kLeader;  // none agreed; none is notified
      return;
    }
    process->state_ = NodeState::kUnknown;
    leader_.reset();
    resigned_ = process->instance_;
    election_ = milliseconds(random_.below(1'500)) + std::exchange(slow_election_, milliseconds(0));
    // One resignation can take several epochs.
    more_elections_ = random_.below(4) == 0 ? static_cast<int>(random_.below(4)) : 0;
  }
}

void ModelCluster::elect() {
  election_ -= options_.tick;
  if (election_ > milliseconds(0)) {
    return;
  }
  std::optional<std::size_t> best;
  const auto better = [this](std::size_t a, std::size_t b) {
    const auto& x = members_[a];
    const auto& y = members_[b];
    return x.disk.length != y.disk.length ? x.disk.length > y.disk.length
                                          : x.process->priority_ > y.process->priority_;
  };
  std::size_t equals = 0;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    if (!members_[i].votes || members_[i].process == nullptr || members_[i].stranger ||
        reach(i) < quorum()) {
      continue;
    }
    if (!best || better(i, *best)) {
      best = i;
      equals = 1;
    } else if (!better(*best, i) && random_.below(++equals) == 0) {
      best = i;  // equally good: any of them
    }
  }
  if (!best) {
    return;
  }
  const auto resigner = std::ranges::find_if(members_, [this](const Member& member) {
    return member.process != nullptr && !resigned_.empty() &&
           member.process->instance_ == resigned_;
  });
  if (resigner_wins_ > 0 && resigner != members_.end() &&
      resigner->disk.length >= members_[*best].disk.length) {
    best = static_cast<std::size_t>(resigner - members_.begin());
    --resigner_wins_;
  }
  auto& winner = members_[*best];
  if (winner.process->instance_ != leader_instance_) {
    ++leader_changes;
  }
  // What no majority had is gone.
  log_.resize(std::max(std::min(log_.size(), winner.disk.length), committed_));
  leader_ = best;
  leader_instance_ = winner.process->instance_;
  lonely_ = milliseconds(0);
  ++epoch_;
  epoch_id_ = random_.uuid().to_string();
  winner.process->state_ = NodeState::kLeader;
  winner.process->epoch_ = epoch_;
  if (on_elected) {
    on_elected(winner.host, winner.process->instance_ == resigned_);
  }
  resigned_.clear();
  if (more_elections_ > 0) {
    --more_elections_;
    winner.process->state_ = NodeState::kResigningLeader;  // this one does not last
  }
}

/// Who hears the leader follows it; who does not gives up after a while.
void ModelCluster::follow() {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    auto& member = members_[i];
    auto* process = member.process;
    if (process == nullptr || (leader_ && *leader_ == i)) {
      continue;
    }
    if (member.stranger) {
      process->state_ = NodeState::kLeader;  // of a cluster of its own
      process->epoch_ = 0;
      continue;
    }
    if (leader_ && connected(*leader_, i)) {
      process->without_leader_ = milliseconds(0);
      if (process->epoch_ != epoch_ || !is_settled_state(process->state_)) {
        member.disk.length = std::min(member.disk.length, log_.size());
        process->epoch_ = epoch_;
        const bool first =
            process->state_ != NodeState::kCatchingUp && process->state_ != NodeState::kFollower;
        process->state_ = !member.votes ? NodeState::kReadOnlyReplica
                          : first       ? NodeState::kCatchingUp
                                        : NodeState::kFollower;
      } else if (process->state_ == NodeState::kLeader) {
        process->state_ = NodeState::kCatchingUp;
      }
      continue;
    }
    process->without_leader_ += options_.tick;
    if (process->without_leader_ >= kHeartbeatLoss) {
      process->state_ = member.votes ? NodeState::kUnknown : NodeState::kReadOnlyLeaderless;
    }
  }
}

void ModelCluster::take_outboxes() {
  if (!leader_ || members_[*leader_].process->state_ != NodeState::kLeader) {
    return;
  }
  for (std::size_t i = 0; i < members_.size(); ++i) {
    auto* process = members_[i].process;
    if (process == nullptr || !connected(*leader_, i) || !is_settled_state(process->state_)) {
      continue;
    }
    if (members_[i].votes && !std::exchange(process->looked_for_dead_runs_, true)) {
      process->close_dead_runs();
    }
    for (auto& event : process->outbox_) {
      log_.push_back({.event = std::move(event)});
    }
    process->outbox_.clear();
    auto& run = process->running_;
    if (run && run->wants_point >= 0 && !run->written) {
      const auto latest = latest_point(log_.size());
      if ((latest ? latest->number.value() + 1 : 0) == run->wants_point) {
        log_.push_back(
            {.point = streams::ScavengePoint{
                 .position = LogPosition(10'000 + 500 * static_cast<std::int64_t>(log_.size())),
                 .number = EventNumber(run->wants_point),
                 .effective_now = world_.wall()}});
        run->written = true;
        if (on_point_written) {
          on_point_written(members_[i].host, run->wants_point, run->foreign);
        }
      } else {
        process->end_run("Interrupted", "Error while scavenging DB: another node was faster.");
      }
    }
  }
}

void ModelCluster::replicate() {
  if (!leader_) {
    return;
  }
  members_[*leader_].disk.length = log_.size();
  std::vector<std::size_t> lengths;
  for (std::size_t i = 0; i < members_.size(); ++i) {
    auto& member = members_[i];
    if (member.process != nullptr && connected(*leader_, i) &&
        member.held_up_until <= world_.now() && member.process->epoch_ == epoch_) {
      member.disk.length = log_.size();
      member.synced.length = log_.size();  // it is acknowledged
    }
    member.synced.length = std::min(member.synced.length, log_.size());
    member.disk.length = std::min(member.disk.length, log_.size());
    if (member.votes) {
      lengths.push_back(member.synced.length);
    }
  }
  std::ranges::sort(lengths, std::greater<>());
  committed_ = std::max(committed_, lengths[quorum() - 1]);
}

void ModelCluster::scavenge(Member& member) {
  auto& process = *member.process;
  auto& run = *process.running_;
  auto& disk = member.disk;
  run.age += options_.tick;
  if (run.stopping) {
    process.end_run("Stopped", "");
    return;
  }
  if (!run.has_point) {
    const auto latest = latest_point(visible(member));
    if (run.wants_point >= 0) {
      if (latest && latest->number.value() == run.wants_point) {
        disk.checkpoint = scavenge::Checkpoint{.point = *latest};
        disk.work_left = milliseconds(0);
        run.has_point = true;
      } else if (run.age > kReadBack) {
        process.end_run("Interrupted",
                        run.written ? "Error while scavenging DB: Unable to read back new scavenge "
                                      "point: this node is behind the leader."
                                    : "Error while scavenging DB: no leader takes writes.");
        return;
      }
    } else {
      const auto decision = scavenge::decide_start(disk.checkpoint, latest, run.sync_only);
      switch (decision.kind) {
        case scavenge::StartKind::kNothing:
          process.end_run("Success", "");
          return;
        case scavenge::StartKind::kCreatePoint:
          run.wants_point = decision.expected_version + 1;
          break;
        case scavenge::StartKind::kUsePoint:
          disk.checkpoint = scavenge::Checkpoint{.point = *decision.point};
          disk.work_left = milliseconds(0);
          run.has_point = true;
          break;
        case scavenge::StartKind::kResume:
          run.has_point = true;
          break;
      }
    }
    if (run.has_point && disk.work_left <= milliseconds(0)) {
      const auto range =
          static_cast<std::uint64_t>((options_.scavenge_most - options_.scavenge_least).count());
      disk.work_left = options_.scavenge_least + milliseconds(random_.below(range + 1));
    }
    return;
  }
  disk.work_left -= options_.tick;
  if (disk.work_left > milliseconds(0)) {
    const auto stage = static_cast<std::int64_t>(disk.checkpoint->stage);
    disk.checkpoint->stage =
        static_cast<scavenge::Stage>(std::min(kLastStage, stage + (ticks_ % 2 == 0 ? 1 : 0)));
    return;
  }
  // The end is on disk before it is reported.
  disk.checkpoint->stage = scavenge::Stage::kDone;
  disk.bytes -= disk.bytes / 10;
  const auto number = disk.checkpoint->point.number.value();
  ++disk.finished[number];
  member.synced = disk;
  process.tell({.type = "$scavengeIndexCompleted", .scavenge_id = run.id});
  process.end_run("Success", "");
  if (on_finished) {
    on_finished(member.host, number);
  }
}

void ModelCluster::spread_gossip() {
  for (std::size_t i = 0; i < members_.size(); ++i) {
    auto* here = members_[i].process;
    if (here == nullptr) {
      continue;
    }
    for (std::size_t j = 0; j < members_.size(); ++j) {
      if (i == j) {
        continue;
      }
      if (connected(i, j)) {
        here->seen_[j] = members_[j].process->as_seen();
      } else if (!members_[j].ghost || members_[j].process != nullptr) {
        here->seen_[j].alive = false;
      }
    }
  }
}

}  // namespace verger::sim
