#include "nodeagent/client/judge.h"

#include <algorithm>
#include <fmt/format.h>
#include <string>

namespace verger::client {
namespace {

char lower_char(char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c; }

std::string lower(std::string_view text) {
  std::string out(text);
  std::ranges::transform(out, out.begin(), &lower_char);
  return out;
}

bool same_host(std::string_view a, std::string_view b) {
  return !a.empty() && std::ranges::equal(a, b, {}, &lower_char, &lower_char);
}

/// The one member that `matches`; nullptr where there are none or several.
template <class Matches>
const api::GossipMember* only_member(const api::Gossip& gossip, const Matches& matches) {
  const api::GossipMember* found = nullptr;
  for (const auto& member : gossip.members) {
    if (!matches(member)) {
      continue;
    }
    if (found != nullptr) {
      return nullptr;
    }
    found = &member;
  }
  return found;
}

bool is_settled(const api::GossipMember& member) {
  switch (member.state) {
    case api::NodeState::kManager:
    case api::NodeState::kShuttingDown:
    case api::NodeState::kShutdown:
      return false;
    case api::NodeState::kInitializing:
    case api::NodeState::kDiscoverLeader:
    case api::NodeState::kUnknown:
    case api::NodeState::kPreReplica:
    case api::NodeState::kCatchingUp:
    case api::NodeState::kClone:
    case api::NodeState::kFollower:
    case api::NodeState::kPreLeader:
    case api::NodeState::kLeader:
    case api::NodeState::kReadOnlyLeaderless:
    case api::NodeState::kPreReadOnlyReplica:
    case api::NodeState::kReadOnlyReplica:
    case api::NodeState::kResigningLeader:
      return member.is_alive;
  }
  return false;
}

Outcome<api::GossipMember> about_itself(const api::GossipMember& member) {
  if (!is_settled(member)) {
    return unknown<api::GossipMember>(
        "unsettled",
        fmt::format("{}:{} calls itself {}{}", member.http_ip, member.http_port,
                    to_string(member.state), member.is_alive ? "" : ", not alive"),
        member);
  }
  return done(member);
}

}  // namespace

const api::GossipMember* answering_member(const api::Gossip& gossip, const http::Endpoint& asked) {
  // serverIp and serverPort are the real endpoint, http_* may be what is advertised to clients.
  for (const auto& member : gossip.members) {
    if ((member.http_port == gossip.server_port && same_host(member.http_ip, gossip.server_ip)) ||
        (member.internal_http_port == gossip.server_port &&
         same_host(member.internal_http_ip, gossip.server_ip))) {
      return &member;
    }
  }
  if (gossip.members.size() == 1) {  // a single node behind an advertised address
    return &gossip.members.front();
  }
  if (const auto* found = only_member(gossip, [&](const api::GossipMember& member) {
        return member.http_port == asked.port && same_host(member.http_ip, asked.host);
      })) {
    return found;
  }
  if (const auto* found = only_member(gossip, [&](const api::GossipMember& member) {
        return same_host(member.internal_tcp_ip, gossip.server_ip);
      })) {
    return found;
  }
  return only_member(gossip, [&](const api::GossipMember& member) {
    return asked.port != 0 && member.http_port == asked.port;
  });
}

std::string endpoint_name(std::string_view host, std::int32_t port) {
  auto out = lower(host);
  out += ':';
  out += std::to_string(port);
  return out;
}

std::vector<std::string> own_names(const api::Gossip& gossip, const http::Endpoint& asked) {
  std::vector<std::string> names;
  const auto add = [&names](std::string_view host, std::int32_t port) {
    if (!host.empty() && port != 0) {
      names.push_back(endpoint_name(host, port));
    }
  };
  add(gossip.server_ip, gossip.server_port);
  if (const auto* self = answering_member(gossip, asked)) {
    add(self->http_ip, self->http_port);
    add(self->internal_http_ip, self->internal_http_port);
    add(self->internal_tcp_ip, gossip.server_port);
  }
  add(asked.host, asked.port);
  std::ranges::sort(names);
  const auto repeated = std::ranges::unique(names);
  names.erase(repeated.begin(), repeated.end());
  return names;
}

bool is_named(const std::vector<std::string>& names, std::string_view node_endpoint) {
  return std::ranges::binary_search(names, lower(node_endpoint));
}

Outcome<api::GossipMember> own_entry(const api::Gossip& gossip, const http::Endpoint& asked) {
  if (const auto* self = answering_member(gossip, asked)) {
    return about_itself(*self);
  }
  return unknown<api::GossipMember>(
      "not_itself", fmt::format("the gossip of {}:{} does not list that node itself",
                                gossip.server_ip, gossip.server_port));
}

Outcome<api::GossipMember> entry_of(const api::Gossip& gossip, std::string_view instance_id) {
  for (const auto& member : gossip.members) {
    if (member.instance_id != instance_id) {
      continue;
    }
    if (&member == answering_member(gossip)) {
      return about_itself(member);
    }
    return unknown<api::GossipMember>(
        "not_itself",
        fmt::format("this is what {}:{} saw of another node, up to some seconds ago; ask that node",
                    gossip.server_ip, gossip.server_port),
        member);
  }
  return unknown<api::GossipMember>("not_itself",
                                    fmt::format("no member has instance id {}", instance_id));
}

Outcome<std::int64_t> own_writer_checkpoint(const api::Gossip& gossip, const NodeDialect& dialect) {
  const auto own = own_entry(gossip);
  if (!own.done()) {
    return unknown<std::int64_t>(own.code, own.why);
  }
  if (gossip.members.size() == 1 && dialect.stale_single_gossip) {
    return unknown<std::int64_t>(
        "stale", "a single node's gossip shows the positions of its last state change: ask /stats",
        own.value->writer_checkpoint);
  }
  if (own.value->writer_checkpoint < 0) {
    return unknown<std::int64_t>("stale", "the node does not know its position yet");
  }
  return done(own.value->writer_checkpoint);
}

Outcome<ScavengeEnd> end_of_scavenge(const std::vector<api::ScavengeEvent>& events,
                                     std::string_view scavenge_id) {
  ScavengeEnd end;
  bool ended = false;
  for (const auto& event : events) {
    if (event.scavenge_id != scavenge_id) {
      continue;
    }
    if (event.type == "$scavengeCompleted") {
      ended = true;
      end.result = event.result;
      end.error = event.error;
      end.time_taken = event.time_taken;
      end.node_endpoint = event.node_endpoint;
      end.space_saved = event.space_saved;
    } else if (event.type != "$scavengeStarted") {
      ++end.entries;
    }
  }
  const auto what = fmt::format("scavenge {}", scavenge_id);
  if (!ended) {
    return unknown<ScavengeEnd>(
        "still_open", what + " has no end in its log: it runs, or the entry was lost", end);
  }
  if (end.result == "Success" && end.error.empty()) {
    if (end.entries == 0) {
      return unknown<ScavengeEnd>(
          "untouched",
          what + " ended with Success and worked on nothing: compare the point it reached", end);
    }
    return done(end);
  }
  if (end.result == "Stopped" && end.error.empty()) {
    return refused<ScavengeEnd>("stopped", what + " was stopped; the next start resumes there",
                                end);
  }
  if (end.error == "The node was restarted.") {
    return unknown<ScavengeEnd>("restarted", what + " was ended by a restart of its node", end);
  }
  return unknown<ScavengeEnd>("errored",
                              fmt::format("{} ended with {}: {}", what, end.result,
                                          end.error.empty() ? "no reason" : end.error),
                              end);
}

}  // namespace verger::client
