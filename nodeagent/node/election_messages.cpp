// What each message between nodes makes of an election.
#include <algorithm>
#include <tuple>
#include <utility>

#include "nodeagent/node/election.h"

namespace verger::node {
namespace {

using api::NodeState;

/// The candidate's log must not be behind: then it holds everything that can be committed.
bool at_least_as_new(const LogState& candidate, const LogState& voter) {
  return std::tie(candidate.last_epoch, candidate.writer) >=
         std::tie(voter.last_epoch, voter.writer);
}

}  // namespace

Effects Election::receive(Monotonic now, const ElectionMessage& message) {
  Effects out;
  if (state_ == NodeState::kInitializing || state_ == NodeState::kShuttingDown ||
      message.to != config_.self || message.from == config_.self) {
    return out;
  }
  std::visit([&](const auto& payload) { on(out, now, message.from, payload); }, message.payload);
  return out;
}

void Election::on(Effects& out, Monotonic, const NodeId& from, const message::Probe& probe) {
  send(out, from, describe(probe.round));
}

void Election::on(Effects& out, Monotonic now, const NodeId& from,
                  const message::ProbeReply& reply) {
  if (!leaderless() || campaigning_ || round_.id == 0 || reply.round != round_.id) {
    return;
  }
  if (reply.leader && reply.leader->term >= term_ && reply.leader->node != config_.self) {
    follow(out, now, *reply.leader);
    return;
  }
  seen_term_ = std::max(seen_term_, reply.term);
  if (!reply.read_only && !round_.decided) {
    round_.replies.insert_or_assign(from, reply);
    judge_round(out, now);
  }
}

void Election::on(Effects& out, Monotonic now, const NodeId& from,
                  const message::Nominate& nominate) {
  if (state_ == NodeState::kPreLeader || state_ == NodeState::kLeader) {
    if (nominate.seen_term <= term_) {
      send(out, from, message::LeaderElected{*leader_});
      return;
    }
    // Some voter has voted in a newer term and cannot come back to this one: the sitting leader is
    // elected again, in a term that all can follow.
    step_down(out, now);
  }
  if (config_.read_only || !leaderless() || campaigning_) {
    return;
  }
  set_state(out, NodeState::kUnknown);
  seen_term_ = std::max(seen_term_, nominate.seen_term);
  campaign(out, now);
}

void Election::on(Effects& out, Monotonic now, const NodeId& from,
                  const message::RequestVote& request) {
  if (config_.read_only) {
    return;
  }
  const bool free = request.term > term_ || (request.term == term_ && voted_for_ == from);
  // A node that hears its leader does not help to replace it.
  const bool content = leading() || (leader_ && link_alive_ && leader_->node != from &&
                                     leader_->instance != resigning_instance_);
  if (!free || content || !at_least_as_new(request.log, log_)) {
    send(out, from, message::Vote{request.term, false, std::max(term_, seen_term_)});
    return;
  }
  if (leader_) {
    // From here on nothing may be acknowledged to the leader of an older term.
    lose_leader(out, now);
  }
  if (request.term > term_) {
    term_ = request.term;
    voted_for_ = from;
    campaigning_ = false;
    out.emplace_back(effect::PersistTerm{term_});
  }
  if (leaderless()) {
    round_ = Round{};
    next_round_ = now + config_.election_timeout + jitter(config_.election_timeout / 4);
  }
  send(out, from, message::Vote{request.term, true, term_});
}

void Election::on(Effects& out, Monotonic now, const NodeId& from, const message::Vote& vote) {
  seen_term_ = std::max(seen_term_, vote.highest_term);
  if (campaigning_ && vote.granted && vote.term == term_) {
    votes_.insert(from);
    count_votes(out, now);
  }
}

void Election::on(Effects& out, Monotonic now, const NodeId& from,
                  const message::LeaderElected& elected) {
  if (elected.leader.term < term_) {
    if (state_ == NodeState::kPreLeader || state_ == NodeState::kLeader) {
      send(out, from, message::LeaderElected{*leader_});
    }
    return;
  }
  if (elected.leader.term == term_ && leading()) {
    return;
  }
  // The news may be old: a link to the same or a newer term stays.
  if (leader_ && leader_->term >= elected.leader.term) {
    return;
  }
  follow(out, now, elected.leader);
}

void Election::on(Effects& out, Monotonic, const NodeId& from, const message::Resign& resign) {
  if (!leader_ || leader_->instance != resign.instance || leader_->term != resign.term) {
    return;
  }
  resigning_instance_ = resign.instance;
  resigning_term_ = resign.term;
  if (!config_.read_only) {
    send(out, from, message::ResignAgreed{resign.term});
  }
}

void Election::on(Effects& out, Monotonic now, const NodeId& from,
                  const message::ResignAgreed& agreed) {
  if (!resign_requested_ || state_ != NodeState::kLeader || agreed.term != term_) {
    return;
  }
  resign_agreed_.insert(from);
  if (static_cast<int>(resign_agreed_.size()) >= majority()) {
    begin_drain(out, now);
  }
}

}  // namespace verger::node
