#include "nodeagent/node/election.h"

#include <algorithm>
#include <tuple>
#include <utility>

namespace verger::node {
namespace {

using api::NodeState;

}  // namespace

Election::Election(ElectionConfig config, EpochNumber durable_term, LogState log,
                   Uuid last_epoch_leader)
    : config_(std::move(config)),
      random_(config_.seed),
      term_(std::max(durable_term, log.last_epoch)),
      log_(log),
      last_epoch_leader_(last_epoch_leader),
      priority_(config_.read_only ? 0 : config_.priority) {}

bool Election::leaderless() const {
  return state_ == NodeState::kDiscoverLeader || state_ == NodeState::kUnknown ||
         state_ == NodeState::kReadOnlyLeaderless;
}

bool Election::leading() const {
  return state_ == NodeState::kPreLeader || state_ == NodeState::kLeader ||
         state_ == NodeState::kResigningLeader;
}

bool Election::leads(EpochNumber term) const { return leading() && term == term_; }

LeaderInfo Election::myself() const { return {config_.self, config_.instance, term_}; }

message::ProbeReply Election::describe(std::uint64_t round) const {
  message::ProbeReply reply;
  reply.round = round;
  reply.instance = config_.instance;
  reply.log = log_;
  reply.term = std::max(term_, seen_term_);
  reply.priority = priority_;
  reply.read_only = config_.read_only;
  reply.resigning =
      state_ == NodeState::kResigningLeader || resigning_instance_ == config_.instance;
  reply.last_epoch_leader = last_epoch_leader_;
  if (state_ == NodeState::kPreLeader || state_ == NodeState::kLeader) {
    reply.leader = myself();
  } else if (!leading() && leader_ && link_alive_ && leader_->instance != resigning_instance_) {
    reply.leader = leader_;
  }
  return reply;
}

void Election::set_state(Effects& out, NodeState state) {
  if (state != state_) {
    state_ = state;
    out.emplace_back(effect::StateChanged{state});
  }
}

void Election::send(Effects& out, const NodeId& to, ElectionPayload payload) {
  out.emplace_back(effect::Send{{config_.self, to, std::move(payload)}});
}

void Election::broadcast(Effects& out, const ElectionPayload& payload) {
  for (const auto& peer : peers_) {
    send(out, peer, payload);
  }
}

std::chrono::nanoseconds Election::jitter(std::chrono::nanoseconds below) {
  return std::chrono::nanoseconds(
      random_.below(static_cast<std::uint64_t>(std::max<std::int64_t>(1, below.count()))));
}

void Election::set_peers(std::set<NodeId> alive, std::set<NodeId> all) {
  alive.erase(config_.self);
  all.erase(config_.self);
  alive_peers_ = std::move(alive);
  peers_ = std::move(all);
}

void Election::set_log(LogState log, Uuid last_epoch_leader) {
  log_ = log;
  last_epoch_leader_ = last_epoch_leader;
}

Effects Election::start(Monotonic now) {
  Effects out;
  discover_until_ = now + config_.discover_leader;
  if (config_.read_only) {
    set_state(out, NodeState::kReadOnlyLeaderless);
  } else if (config_.cluster_size == 1) {
    set_state(out, NodeState::kUnknown);
    campaign(out, now);
    return out;
  } else {
    set_state(out, NodeState::kDiscoverLeader);
  }
  begin_round(out, now);
  return out;
}

void Election::schedule_round(Monotonic now) {
  round_ = Round{};
  next_round_ = now + jitter(config_.election_timeout / 4);
}

void Election::begin_round(Effects& out, Monotonic now) {
  round_ = Round{};
  round_.id = random_.next() | 1U;
  round_.started = now;
  if (!config_.read_only) {
    round_.replies.emplace(config_.self, describe(round_.id));
  }
  broadcast(out, message::Probe{round_.id});
  judge_round(out, now);
}

void Election::judge_round(Effects& out, Monotonic now) {
  if (config_.read_only || round_.id == 0 || round_.decided) {
    return;
  }
  const auto answered = static_cast<int>(round_.replies.size());
  if (state_ == NodeState::kDiscoverLeader) {
    if (answered < config_.cluster_size && now < discover_until_) {
      return;
    }
    set_state(out, NodeState::kUnknown);
  }
  if (answered < majority()) {
    return;
  }
  // The first majority could decide; waiting a moment for the others makes the best one win.
  const auto expected =
      std::min<int>(config_.cluster_size, static_cast<int>(alive_peers_.size()) + 1);
  if (answered < expected && now - round_.started < config_.election_timeout / 4) {
    return;
  }
  nominate(out, now);
}

NodeId Election::choose() const {
  EpochNumber newest{-1};
  Uuid newest_leader;
  for (const auto& [id, reply] : round_.replies) {
    if (reply.log.last_epoch > newest) {
      newest = reply.log.last_epoch;
      newest_leader = reply.last_epoch_leader;
    }
  }
  NodeId best;
  const message::ProbeReply* best_reply = nullptr;
  for (const auto& [id, reply] : round_.replies) {
    if (failed_candidates_.contains(id)) {
      continue;
    }
    if (newest >= EpochNumber(0) && reply.instance == newest_leader && !reply.resigning &&
        reply.instance != resigning_instance_) {
      return id;
    }
    const auto rank = [](const message::ProbeReply& r) {
      return std::tie(r.log.last_epoch, r.log.writer, r.log.chaser, r.priority, r.instance);
    };
    if (best_reply == nullptr || rank(reply) > rank(*best_reply)) {
      best = id;
      best_reply = &reply;
    }
  }
  return best;
}

void Election::nominate(Effects& out, Monotonic now) {
  round_.decided = true;
  for (const auto& [id, reply] : round_.replies) {
    seen_term_ = std::max(seen_term_, reply.term);
  }
  auto candidate = choose();
  if (candidate.empty()) {
    failed_candidates_.clear();
    candidate = choose();
  }
  last_nominee_ = candidate;
  if (candidate == config_.self) {
    campaign(out, now);
  } else {
    send(out, candidate, message::Nominate{seen_term_});
  }
}

void Election::campaign(Effects& out, Monotonic now) {
  term_ = EpochNumber(std::max(term_, seen_term_).value() + 1);
  voted_for_ = config_.self;
  campaigning_ = true;
  campaign_until_ = now + config_.election_timeout;
  votes_ = {config_.self};
  out.emplace_back(effect::PersistTerm{term_});
  broadcast(out, message::RequestVote{term_, config_.instance, log_});
  count_votes(out, now);
}

void Election::count_votes(Effects& out, Monotonic now) {
  if (campaigning_ && static_cast<int>(votes_.size()) >= majority()) {
    win(out, now);
  }
}

void Election::note_elected(const LeaderInfo& leader) {
  failed_candidates_.clear();
  last_nominee_.clear();
  campaigning_ = false;
  round_ = Round{};
  if (leader.term > resigning_term_) {
    resigning_instance_ = Uuid{};
    resigning_term_ = EpochNumber(-1);
  }
}

void Election::win(Effects& out, Monotonic now) {
  leader_ = myself();
  note_elected(*leader_);
  link_alive_ = false;
  resign_requested_ = false;
  subscribers_ = 0;
  quorum_seen_ = now;
  set_state(out, NodeState::kPreLeader);
  out.emplace_back(effect::PrepareToLead{term_});
  broadcast(out, message::LeaderElected{*leader_});
}

void Election::follow(Effects& out, Monotonic now, const LeaderInfo& leader) {
  if (leader.node == config_.self || (leader_ && *leader_ == leader)) {
    return;
  }
  if (leading()) {
    out.emplace_back(effect::StopLeading{});
  } else if (leader_) {
    out.emplace_back(effect::StopFollowing{});
  }
  term_ = std::max(term_, leader.term);
  leader_ = leader;
  link_alive_ = false;
  follow_until_ = now + config_.quorum_loss_wait + config_.election_timeout;
  note_elected(leader);
  set_state(out, config_.read_only ? NodeState::kPreReadOnlyReplica : NodeState::kPreReplica);
  out.emplace_back(effect::Follow{leader});
}

void Election::lose_leader(Effects& out, Monotonic now) {
  out.emplace_back(effect::StopFollowing{});
  leader_.reset();
  link_alive_ = false;
  set_state(out, config_.read_only ? NodeState::kReadOnlyLeaderless : NodeState::kUnknown);
  schedule_round(now);
}

void Election::step_down(Effects& out, Monotonic now) {
  out.emplace_back(effect::StopLeading{});
  leader_.reset();
  resign_requested_ = false;
  set_state(out, NodeState::kUnknown);
  schedule_round(now);
}

Effects Election::tick(Monotonic now) {
  Effects out;
  if (leading()) {
    if (subscribers_ + 1 >= majority()) {
      quorum_seen_ = now;
    }
    if (state_ == NodeState::kResigningLeader) {
      if (now >= drain_until_) {
        return drained(now);
      }
    } else if (config_.cluster_size > 1 && now - quorum_seen_ > config_.quorum_loss_wait) {
      step_down(out, now);
    } else if (resign_requested_ && now >= resign_until_) {
      resign_requested_ = false;
    }
    return out;
  }
  if (leader_) {
    if (!link_alive_ && now >= follow_until_) {
      lose_leader(out, now);
    }
    return out;
  }
  if (!leaderless()) {
    return out;
  }
  if (campaigning_) {
    if (now < campaign_until_) {
      return out;
    }
    campaigning_ = false;
    failed_candidates_.insert(config_.self);
    schedule_round(now);
  }
  if (round_.id == 0) {
    if (now >= next_round_) {
      if (config_.cluster_size == 1) {
        campaign(out, now);
      } else {
        begin_round(out, now);
      }
    }
    return out;
  }
  judge_round(out, now);
  // A nominated node that did not win in time is passed over in the next round.
  if (leaderless() && !campaigning_ && round_.id != 0 &&
      now - round_.started >= (state_ == NodeState::kDiscoverLeader ? config_.election_timeout / 2
                                                                    : config_.election_timeout)) {
    if (round_.decided && !last_nominee_.empty()) {
      failed_candidates_.insert(last_nominee_);
    } else {
      failed_candidates_.clear();
    }
    schedule_round(now);
  }
  return out;
}

void Election::begin_drain(Effects& out, Monotonic now) {
  resign_requested_ = false;
  drain_until_ = now + config_.drain_timeout;
  resigning_instance_ = config_.instance;
  resigning_term_ = term_;
  set_state(out, NodeState::kResigningLeader);
  out.emplace_back(effect::Drain{});
}

Effects Election::lead(Monotonic now, EpochNumber term) {
  Effects out;
  if (state_ == NodeState::kPreLeader && term == term_) {
    quorum_seen_ = now;
    set_state(out, NodeState::kLeader);
  }
  return out;
}

Effects Election::link(Monotonic now, EpochNumber term, LinkState link) {
  Effects out;
  if (leading() || !leader_ || leader_->term != term || state_ == NodeState::kShuttingDown) {
    return out;
  }
  if (link == LinkState::kLost) {
    lose_leader(out, now);
    return out;
  }
  link_alive_ = true;
  if (config_.read_only) {
    set_state(out, NodeState::kReadOnlyReplica);
  } else if (link == LinkState::kSubscribed) {
    set_state(out, NodeState::kCatchingUp);
  } else if (link == LinkState::kCaughtUp) {
    if (state_ != NodeState::kFollower) {
      set_state(out, NodeState::kClone);
    }
  } else {
    set_state(out, NodeState::kFollower);
  }
  return out;
}

Effects Election::subscribers(Monotonic now, int count) {
  subscribers_ = count;
  if (count + 1 >= majority()) {
    quorum_seen_ = now;
  }
  return {};
}

Effects Election::drained(Monotonic now) {
  Effects out;
  if (state_ == NodeState::kResigningLeader) {
    step_down(out, now);
  }
  return out;
}

Effects Election::resign(Monotonic now) {
  Effects out;
  if (state_ != NodeState::kLeader || resign_requested_) {
    return out;
  }
  resign_agreed_ = {config_.self};
  if (majority() == 1) {
    begin_drain(out, now);
    return out;
  }
  resign_requested_ = true;
  resign_until_ = now + config_.election_timeout;
  broadcast(out, message::Resign{term_, config_.instance});
  return out;
}

Effects Election::shut_down(Monotonic) {
  Effects out;
  if (leading()) {
    out.emplace_back(effect::StopLeading{});
  } else if (leader_) {
    out.emplace_back(effect::StopFollowing{});
  }
  leader_.reset();
  link_alive_ = false;
  set_state(out, NodeState::kShuttingDown);
  return out;
}

}  // namespace verger::node
