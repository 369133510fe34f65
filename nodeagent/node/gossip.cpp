#include "nodeagent/node/gossip.h"

#include <algorithm>
#include <fmt/format.h>

#include "nodeagent/api/json_fields.h"

namespace verger::node {
namespace {

using api::Fields;
using api::JsonView;
using api::JsonWriter;

constexpr std::string_view kWhere = "gossip member";

void write(JsonWriter& out, const http::Endpoint& endpoint) {
  out.begin_object()
      .member("host", endpoint.host)
      .member("port", endpoint.port)
      .member("tls", endpoint.tls)
      .end_object();
}

/// Of a quantity with a type of its own.
template <class Quantity>
void need_number(Fields& fields, std::string_view name, Quantity& into) {
  auto number = into.value();
  fields.need(name, number);
  into = Quantity(number);
}

void need_uuid(Fields& fields, std::string_view name, Uuid& into) {
  std::string text;
  fields.need(name, text);
  if (auto uuid = Uuid::parse(text)) {
    into = *uuid;
  } else {
    fields.wrong(name, uuid.error().message);
  }
}

void need_endpoint(Fields& fields, std::string_view name, http::Endpoint& into) {
  fields.require(name);
  if (const auto value = fields.find(name)) {
    Fields inner(*value, std::string(kWhere), Errc::kInvalidArgument);
    inner.need("tls", into.tls);
    inner.need("host", into.host);
    inner.need("port", into.port);
    if (const auto read = inner.result(); !read) {
      fields.take(read.error());
    }
  }
}

}  // namespace

NodeId node_id(const http::Endpoint& endpoint) {
  NodeId id = endpoint.host;
  id += ':';
  id += fmt::format_int(endpoint.port).str();
  return id;
}

void write(JsonWriter& out, const Member& member) {
  out.begin_object()
      .member("instance", member.instance.to_string())
      .member("timestamp", member.timestamp.value())
      .member("state", api::to_string(member.state));
  out.name("http");
  write(out, member.http);
  out.name("replication");
  write(out, member.replication);
  out.member("committed", member.committed.value())
      .member("epoch", member.log.last_epoch.value())
      .member("epochPosition", member.log.epoch_position.value())
      .member("epochId", member.log.epoch_id.to_string())
      .member("writer", member.log.writer.value())
      .member("chaser", member.log.chaser.value())
      .member("priority", member.priority)
      .member("readOnly", member.read_only)
      .member("version", member.version)
      .member("alive", member.alive)
      .end_object();
}

Result<Member> parse_member(JsonView value) {
  Member member;
  Fields fields(value, std::string(kWhere), Errc::kInvalidArgument);
  std::string state;
  need_uuid(fields, "instance", member.instance);
  need_number(fields, "timestamp", member.timestamp);
  fields.need("state", state);
  need_endpoint(fields, "http", member.http);
  need_endpoint(fields, "replication", member.replication);
  need_number(fields, "committed", member.committed);
  need_number(fields, "epoch", member.log.last_epoch);
  need_number(fields, "epochPosition", member.log.epoch_position);
  need_uuid(fields, "epochId", member.log.epoch_id);
  need_number(fields, "writer", member.log.writer);
  need_number(fields, "chaser", member.log.chaser);
  fields.need("priority", member.priority);
  fields.need("readOnly", member.read_only);
  fields.need("version", member.version);
  fields.need("alive", member.alive);
  VERGER_RETURN_IF_ERROR(fields.result());
  VERGER_TRY(member.state, api::parse_node_state(state));
  return member;
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
