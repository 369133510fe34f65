#include "nodeagent/node/gossip.h"

#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "engine/base/json_number.h"
#include "nodeagent/node/detail/uuid_json.h"

namespace verger::node {
namespace {

using nlohmann::json;

json endpoint_json(const http::Endpoint& endpoint) {
  return {{"host", endpoint.host}, {"port", endpoint.port}, {"tls", endpoint.tls}};
}

http::Endpoint endpoint_of(const json& value) {
  return {value.at("tls").get<bool>(), value.at("host").get<std::string>(),
          json_integer<std::uint16_t>(value.at("port"))};
}

}  // namespace

NodeId node_id(const http::Endpoint& endpoint) {
  return fmt::format("{}:{}", endpoint.host, endpoint.port);
}

json to_json(const Member& member) {
  return {{"instance", member.instance.to_string()},
          {"timestamp", member.timestamp.value()},
          {"state", api::to_string(member.state)},
          {"http", endpoint_json(member.http)},
          {"replication", endpoint_json(member.replication)},
          {"committed", member.committed.value()},
          {"epoch", member.log.last_epoch.value()},
          {"epochPosition", member.log.epoch_position.value()},
          {"epochId", member.log.epoch_id.to_string()},
          {"writer", member.log.writer.value()},
          {"chaser", member.log.chaser.value()},
          {"priority", member.priority},
          {"readOnly", member.read_only},
          {"version", member.version},
          {"alive", member.alive}};
}

Result<Member> parse_member(const json& value) {
  try {
    Member member;
    member.instance = uuid_of(value.at("instance"));
    member.timestamp = Ticks(json_integer<std::int64_t>(value.at("timestamp")));
    VERGER_TRY(member.state, api::parse_node_state(value.at("state").get<std::string>()));
    member.http = endpoint_of(value.at("http"));
    member.replication = endpoint_of(value.at("replication"));
    member.committed = LogPosition(json_integer<std::int64_t>(value.at("committed")));
    member.log.last_epoch = EpochNumber(json_integer<std::int32_t>(value.at("epoch")));
    member.log.epoch_position = LogPosition(json_integer<std::int64_t>(value.at("epochPosition")));
    member.log.epoch_id = uuid_of(value.at("epochId"));
    member.log.writer = LogPosition(json_integer<std::int64_t>(value.at("writer")));
    member.log.chaser = LogPosition(json_integer<std::int64_t>(value.at("chaser")));
    member.priority = json_integer<std::int32_t>(value.at("priority"));
    member.read_only = value.at("readOnly").get<bool>();
    member.version = value.at("version").get<std::string>();
    member.alive = value.at("alive").get<bool>();
    return member;
  } catch (const std::exception& e) {
    return Error{Errc::kInvalidArgument, std::string("gossip member: ") + e.what()};
  }
}

void MemberTable::set_self(Member self) {
  self_ = node_id(self.http);
  if (const auto known = members_.find(self_); known != members_.end()) {
    newest_of_self_ = std::max(newest_of_self_, known->second.timestamp);
  }
  if (self.timestamp <= newest_of_self_) {
    self.timestamp = Ticks(newest_of_self_.value() + 1);
  }
  newest_of_self_ = self.timestamp;
  self.alive = true;
  members_.insert_or_assign(self_, std::move(self));
}

void MemberTable::add_seed(const http::Endpoint& endpoint, Ticks now) {
  const auto id = node_id(endpoint);
  seeds_.emplace(id, endpoint);
  if (id == self_ || members_.contains(id)) {
    return;
  }
  Member seed;
  seed.http = endpoint;
  seed.timestamp = now;
  members_.emplace(id, seed);
}

void MemberTable::merge(const Member& member, bool direct, Monotonic now) {
  const auto id = node_id(member.http);
  if (id == self_) {
    newest_of_self_ = std::max(newest_of_self_, member.timestamp);
    return;
  }
  const auto known = members_.find(id);
  const bool is_seed = known != members_.end() && known->second.instance.is_zero();
  if (member.instance.is_zero() && (known != members_.end())) {
    return;
  }
  const bool newer =
      known == members_.end() || is_seed || member.timestamp > known->second.timestamp;
  if (newer) {
    // Second-hand news of a dead node only says who it was; fresh news proves that it lives.
    const bool was_alive = known != members_.end() && !is_seed && known->second.alive;
    const bool alive = direct || member.alive || was_alive;
    members_.insert_or_assign(id, member);
    members_.at(id).alive = alive;
    if (alive) {
      dead_since_.erase(id);
    } else {
      dead_since_.try_emplace(id, now);
    }
  } else if (direct) {
    mark_alive(id);
  }
}

void MemberTable::mark_dead(const NodeId& id, Monotonic now) {
  const auto known = members_.find(id);
  if (known != members_.end() && !known->second.instance.is_zero() && known->second.alive) {
    known->second.alive = false;
    dead_since_.try_emplace(id, now);
  }
}

void MemberTable::mark_alive(const NodeId& id) {
  const auto known = members_.find(id);
  if (known != members_.end()) {
    known->second.alive = true;
    dead_since_.erase(id);
  }
}

void MemberTable::sweep(Monotonic now, Ticks wall) {
  std::erase_if(dead_since_, [&](const auto& dead) {
    if (now - dead.second < removal_) {
      return false;
    }
    members_.erase(dead.first);
    return true;
  });
  for (const auto& [id, endpoint] : seeds_) {
    add_seed(endpoint, wall);
  }
}

const Member* MemberTable::find(const NodeId& id) const {
  const auto known = members_.find(id);
  return known == members_.end() ? nullptr : &known->second;
}

std::set<NodeId> MemberTable::voters(bool alive_only) const {
  std::set<NodeId> ids;
  for (const auto& [id, member] : members_) {
    const bool counted = !alive_only || (member.alive && !member.instance.is_zero());
    if (id != self_ && !member.read_only && counted) {
      ids.insert(id);
    }
  }
  return ids;
}

std::vector<http::Endpoint> MemberTable::others() const {
  std::vector<http::Endpoint> endpoints;
  for (const auto& [id, member] : members_) {
    if (id != self_) {
      endpoints.push_back(member.http);
    }
  }
  return endpoints;
}

std::vector<Member> MemberTable::view(const std::optional<NodeId>& leader) const {
  std::vector<Member> members;
  // Descending by endpoint, as the server lists them.
  for (auto entry = members_.rbegin(); entry != members_.rend(); ++entry) {
    auto member = entry->second;
    const bool led = member.state == api::NodeState::kLeader ||
                     member.state == api::NodeState::kPreLeader ||
                     member.state == api::NodeState::kResigningLeader;
    if (!member.alive && led && leader && *leader != entry->first) {
      member.state = api::NodeState::kUnknown;
    }
    members.push_back(std::move(member));
  }
  return members;
}

}  // namespace verger::node
