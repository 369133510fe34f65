#include "election_model.h"

namespace verger::node::testing {

using namespace std::chrono_literals;

ElectionModel::ElectionModel(int count, std::uint64_t seed, ModelFaults f)
    : faults(f), random_(seed) {
  for (int i = 0; i < count; ++i) {
    nodes.emplace_back().id = "n" + std::to_string(i + 1);
  }
}

std::size_t ElectionModel::index(const NodeId& id) const {
  return static_cast<std::size_t>(std::stoi(id.substr(1)) - 1);
}

std::optional<std::size_t> ElectionModel::leader() const {
  std::optional<std::size_t> found;
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    if (nodes[i].machine && nodes[i].machine->state() == api::NodeState::kLeader &&
        (!found || nodes[i].machine->term() > nodes[*found].machine->term())) {
      found = i;
    }
  }
  return found;
}

void ElectionModel::boot(std::size_t i) {
  auto& node = nodes[i];
  node.instance = random_.uuid();
  ++node.boots;
  ElectionConfig config;
  config.self = node.id;
  config.instance = node.instance;
  config.cluster_size = static_cast<int>(nodes.size());
  config.priority = node.priority;
  config.discover_leader = 60ms;
  config.election_timeout = 50ms;
  config.quorum_loss_wait = 80ms;
  config.drain_timeout = 40ms;
  config.seed = random_.next();
  const EpochNumber last(node.log.empty() ? -1 : node.log.back());
  node.machine = std::make_unique<Election>(config, std::max(node.term, last), LogState{}, Uuid{});
  refresh(node);
  apply(i, node.machine->start(now));
}

void ElectionModel::refresh(Node& node) {
  LogState log;
  log.last_epoch = EpochNumber(node.log.empty() ? -1 : node.log.back());
  log.writer = log.chaser = LogPosition(static_cast<std::int64_t>(node.log.size()));
  const auto wrote = instance_of_term_.find(log.last_epoch.value());
  node.machine->set_log(log, wrote == instance_of_term_.end() ? Uuid{} : wrote->second);
  std::set<NodeId> all, alive;
  for (const auto& other : nodes) {
    all.insert(other.id);
    if (other.machine) {
      alive.insert(other.id);
    }
  }
  node.machine->set_peers(alive, all);
}

void ElectionModel::crash(std::size_t i) {
  auto& node = nodes[i];
  unlink(node);
  node.machine.reset();
  node.acknowledged.clear();
  node.draining = false;
  node.committed = 0;
  ++crashes;
}

void ElectionModel::unlink(Node& node) {
  node.follows.reset();
  node.linked = false;
}

void ElectionModel::post(ElectionMessage message) {
  if (random_.below(1000) < faults.lose) {
    ++lost;
    return;
  }
  const auto delay = [&] {
    return Monotonic(static_cast<std::int64_t>(
        random_.below(static_cast<std::uint64_t>(faults.max_delay.count()) + 1)));
  };
  if (random_.below(1000) < faults.duplicate) {
    ++duplicated;
    packets_.push({now + delay() * 4, sequence_++, message});
  }
  packets_.push({now + delay(), sequence_++, std::move(message)});
}

void ElectionModel::apply(std::size_t i, const Effects& effects) {
  auto& node = nodes[i];
  for (const auto& effect : effects) {
    if (!node.machine) {
      return;
    }
    if (random_.below(10'000) < faults.crash) {
      crash(i);
      return;
    }
    if (const auto* persist = std::get_if<effect::PersistTerm>(&effect)) {
      EXPECT_GT(persist->term, node.term) << node.id;
      node.term = persist->term;
    } else if (const auto* send = std::get_if<effect::Send>(&effect)) {
      post(send->message);
    } else if (std::get_if<effect::StopFollowing>(&effect) != nullptr) {
      unlink(node);
    } else if (const auto* follow = std::get_if<effect::Follow>(&effect)) {
      node.follows = follow->leader;
      node.linked = false;
    } else if (const auto* prepare = std::get_if<effect::PrepareToLead>(&effect)) {
      const auto [at, first] = leader_of_term_.emplace(prepare->term.value(), node.id);
      EXPECT_TRUE(first) << "term " << prepare->term.value() << " has two leaders: " << at->second
                         << " and " << node.id;
      instance_of_term_[prepare->term.value()] = node.instance;
      node.acknowledged.clear();
      node.log.push_back(prepare->term.value());
      ++leaders_seen;
      note_commit(node);
    } else if (std::get_if<effect::StopLeading>(&effect) != nullptr) {
      node.acknowledged.clear();
      node.draining = false;
    } else if (std::get_if<effect::Drain>(&effect) != nullptr) {
      node.draining = true;
    }
  }
}

void ElectionModel::note_commit(Node& node) {
  std::vector<std::size_t> have{node.log.size()};
  for (const auto& [id, count] : node.acknowledged) {
    have.push_back(count);
  }
  std::sort(have.rbegin(), have.rend());
  const auto majority = nodes.size() / 2 + 1;
  if (have.size() < majority) {
    return;
  }
  const auto upto = have[majority - 1];
  if (upto == 0 || node.log[upto - 1] != node.machine->term().value()) {
    return;
  }
  const std::vector<std::int32_t> prefix(node.log.begin(),
                                         node.log.begin() + static_cast<std::ptrdiff_t>(upto));
  const auto common = std::min(prefix.size(), committed.size());
  EXPECT_TRUE(std::equal(prefix.begin(), prefix.begin() + static_cast<std::ptrdiff_t>(common),
                         committed.begin()))
      << node.id << " commits over what was committed";
  if (prefix.size() > committed.size()) {
    committed = prefix;
  }
  node.committed = upto;
}

/// A link exists while the follower follows and the leader leads that term; then whole logs go
/// over.
void ElectionModel::replicate(Node& follower) {
  if (!follower.follows) {
    return;
  }
  const auto term = follower.follows->term;
  auto& leader = nodes[index(follower.follows->node)];
  const auto i = index(follower.id);
  if (!leader.machine || leader.instance != follower.follows->instance ||
      !leader.machine->leads(term)) {
    apply(i, follower.machine->link(now, term, LinkState::kLost));
    return;
  }
  if (random_.below(1000) < faults.lose) {
    return;  // this round trip takes longer
  }
  if (!follower.linked) {
    follower.linked = true;
    apply(i, follower.machine->link(now, term, LinkState::kSubscribed));
    return;
  }
  EXPECT_GE(leader.log.size(), follower.committed);
  follower.log = leader.log;
  refresh(follower);
  leader.acknowledged[follower.id] = follower.log.size();
  note_commit(leader);
  apply(i, follower.machine->link(now, term, LinkState::kInQuorum));
}

void ElectionModel::write(std::size_t i) {
  auto& node = nodes[i];
  if (node.machine && node.machine->state() == api::NodeState::kLeader) {
    node.log.push_back(node.machine->term().value());
    note_commit(node);
  }
}

void ElectionModel::step() {
  now += 1ms;
  while (!packets_.empty() && packets_.top().at <= now) {
    const auto message = packets_.top().message;
    packets_.pop();
    const auto i = index(message.to);
    if (nodes[i].machine) {
      refresh(nodes[i]);
      apply(i, nodes[i].machine->receive(now, message));
    }
  }
  for (std::size_t i = 0; i < nodes.size(); ++i) {
    auto& node = nodes[i];
    if (!node.machine) {
      if (faults.crash != 0 && random_.below(60) == 0) {
        boot(i);
      }
      continue;
    }
    refresh(node);
    if (random_.below(3) == 0) {
      replicate(node);
    }
    if (!node.machine) {
      continue;
    }
    int count = 0;
    for (const auto& other : nodes) {
      count += static_cast<int>(other.machine && other.linked && other.follows->node == node.id &&
                                other.follows->instance == node.instance &&
                                node.machine->leads(other.follows->term));
    }
    if (node.machine->leads(node.machine->term())) {
      apply(i, node.machine->subscribers(now, count));
      if (node.machine && node.committed > 0 &&
          node.log[node.committed - 1] == node.machine->term().value()) {
        apply(i, node.machine->lead(now, node.machine->term()));
      }
    }
    if (node.machine && node.draining) {
      apply(i, node.machine->drained(now));
    }
    if (node.machine && random_.below(1000) < faults.resign) {
      const auto effects = node.machine->resign(now);
      resigns += static_cast<std::uint64_t>(!effects.empty());
      apply(i, effects);
    }
    if (writing && node.machine && random_.below(10) == 0) {
      write(i);
    }
    if (node.machine) {
      apply(i, node.machine->tick(now));
    }
  }
}

void ElectionModel::run_for(std::chrono::milliseconds duration) {
  const auto end = now + duration;
  while (now < end && !::testing::Test::HasFailure()) {
    step();
  }
}

bool ElectionModel::run_until_leader(std::chrono::milliseconds limit) {
  const auto end = now + limit;
  while (now < end && !::testing::Test::HasFailure()) {
    step();
    const auto found = leader();
    if (found) {
      bool all = true;
      for (const auto& node : nodes) {
        all = all && (!node.machine || node.id == nodes[*found].id ||
                      (node.machine->state() == api::NodeState::kFollower &&
                       node.follows->node == nodes[*found].id));
      }
      if (all) {
        return true;
      }
    }
  }
  return false;
}

}  // namespace verger::node::testing
