#include "controller/cluster/detail/compare.h"

#include <algorithm>
#include <fmt/format.h>
#include <map>
#include <set>
#include <span>

#include "nodeagent/client/judge.h"

namespace verger::controller::detail {
namespace {

/// Of a node that does not answer only the others' gossip says whether it votes.
void tell_silent_replicas(std::vector<Raw>& raws) {
  for (auto& raw : raws) {
    const auto endpoint = http::parse_endpoint(raw.node.url);
    if (raw.node.answered || !endpoint) {
      continue;
    }
    const auto name = client::endpoint_name(endpoint->host, endpoint->port);
    for (const auto& other : raws) {
      if (!other.gossip) {
        continue;
      }
      for (const auto& member : other.gossip->members) {
        if (client::endpoint_name(member.http_ip, member.http_port) == name) {
          raw.node.read_only_replica = member.is_read_only_replica;
        }
      }
    }
  }
}

using Names = std::map<std::string, std::string>;  ///< instance id -> registered name

Names names_of(const std::vector<Raw>& raws, planner::ClusterSnapshot& snapshot) {
  Names out;
  for (const auto& raw : raws) {
    if (!raw.node.answered) {
      continue;
    }
    const auto [found, is_new] = out.emplace(raw.node.instance_id, raw.node.name);
    if (!is_new) {
      snapshot.wrong_cluster = fmt::format("{} and {} are the same node, under two addresses",
                                           found->second, raw.node.name);
    }
  }
  return out;
}

/// What one node's gossip says of the registered ones.
void tell_what_it_sees(Raw& raw, const Names& names) {
  std::string leader;
  int leaders = 0;
  for (const auto& member : raw.gossip->members) {
    if (member.is_alive && member.state == api::NodeState::kLeader) {
      leader = member.instance_id;
      ++leaders;
    }
    const auto known = names.find(member.instance_id);
    if (known == names.end()) {
      continue;
    }
    if (member.is_alive) {
      raw.node.sees_priorities[known->second] = member.node_priority;
    } else {
      raw.node.sees_dead.push_back(known->second);
    }
  }
  std::ranges::sort(raw.node.sees_dead);
  raw.node.sees_leader = leaders == 1 ? leader : "";
}

/// Members that are not registered. `silent`: how many registered nodes do not answer. What a node
/// of another cluster knows are not members of this one.
void note_unregistered(const std::vector<Raw>& raws, const Names& names, std::size_t silent,
                       planner::ClusterSnapshot& snapshot) {
  // Endpoints of nodes that answer are known by their own gossip, whichever instance others
  // remember of them; a registered node that is silent may be any of the rest.
  std::set<std::string> registered;
  for (const auto& raw : raws) {
    registered.insert(raw.names.begin(), raw.names.end());
  }
  std::set<std::string> alive;
  std::set<std::string> dead_voters;
  for (const auto& raw : raws) {
    if (!raw.gossip || raw.node.wrong_identity) {
      continue;
    }
    for (const auto& member : raw.gossip->members) {
      const auto name = client::endpoint_name(member.http_ip, member.http_port);
      if (names.contains(member.instance_id) || member.state == api::NodeState::kManager ||
          registered.contains(name)) {
        continue;
      }
      if (member.is_alive) {
        alive.insert(name);
      } else if (!member.is_read_only_replica) {
        dead_voters.insert(name);
      }
    }
  }
  if (alive.size() > silent) {
    snapshot.unregistered.assign(alive.begin(), alive.end());
  }
  if (dead_voters.size() > silent) {
    snapshot.unregistered_voters = dead_voters.size() - silent;
  }
}

/// A node that most others have never heard of is none of this cluster's. The first `registered`
/// are asked: a node that joins says nothing about the others.
void tell_unheard_of(std::vector<Raw>& raws, std::size_t registered) {
  const std::span<const Raw> witnesses(raws.data(), registered);
  for (auto& raw : raws) {
    const auto others = std::ranges::count_if(
        witnesses, [&raw](const Raw& other) { return &other != &raw && other.node.answered; });
    if (!raw.gossip || others == 0) {
      continue;
    }
    const auto never_heard = [&raw](const Raw& other) {
      return &other != &raw && other.gossip &&
             std::ranges::none_of(other.gossip->members, [&raw](const auto& member) {
               return member.instance_id == raw.node.instance_id ||
                      client::is_named(raw.names,
                                       client::endpoint_name(member.http_ip, member.http_port));
             });
    };
    const auto unheard = std::ranges::count_if(witnesses, never_heard);
    if (unheard * 2 > others) {
      raw.node.wrong_identity = true;
      raw.node.problem = fmt::format("{} of the {} other members do not know it", unheard, others);
    }
  }
}

void tell_other_databases(std::vector<Raw>& raws, const std::string& identity) {
  for (auto& raw : raws) {
    if (!identity.empty() && !raw.database_id.empty() && raw.database_id != identity) {
      raw.node.wrong_identity = true;
      raw.node.problem =
          fmt::format("its database is {}, registered was {}", raw.database_id, identity);
    }
  }
}

/// The directory of `one` that is also one of `other`; nullptr: there is none.
const api::DirectoryFacts* shared_directory(const Raw& one, const Raw& other) {
  for (const auto* mine : {&one.database_directory, &one.index_directory}) {
    for (const auto* theirs : {&other.database_directory, &other.index_directory}) {
      if (!mine->identity.empty() && mine->identity == theirs->identity) {
        return mine;
      }
    }
  }
  return nullptr;
}

/// Two agents with one directory would both report one node's files: one node's scavenge would
/// count for both. The database id is the same on all nodes, and does not show it.
void tell_shared_directories(std::vector<Raw>& raws) {
  for (auto& raw : raws) {
    for (const auto& other : raws) {
      const auto* mine = &raw == &other ? nullptr : shared_directory(raw, other);
      const auto* theirs = mine == nullptr ? nullptr : shared_directory(other, raw);
      if (mine != nullptr && theirs != nullptr && raw.node.agent) {
        // What the agent says of itself comes first: it may know which directory is right.
        auto& problem = raw.node.agent->files_problem;
        problem += fmt::format(
            "{}its {} is the same directory as the {} of {}'s agent: each agent needs the Db and "
            "Index of its own node",
            problem.empty() ? "" : "; ", mine->path, theirs->path, other.node.name);
      }
    }
  }
}

}  // namespace

void compare(std::vector<Raw>& raws, const ClusterConfig& config,
             planner::ClusterSnapshot& snapshot) {
  const auto names = names_of(raws, snapshot);
  const auto registered = std::min(config.nodes.size(), raws.size());
  const auto silent = static_cast<std::size_t>(
      std::count_if(raws.begin(), raws.begin() + static_cast<std::ptrdiff_t>(registered),
                    [](const Raw& raw) { return !raw.node.answered; }));
  tell_silent_replicas(raws);
  for (auto& raw : raws) {
    if (raw.gossip) {
      tell_what_it_sees(raw, names);
    }
  }
  tell_unheard_of(raws, registered);
  tell_other_databases(raws, config.identity);
  note_unregistered(raws, names, silent, snapshot);
  tell_shared_directories(raws);
}

}  // namespace verger::controller::detail
