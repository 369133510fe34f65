#include "nodeagent/api/node.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/api/json_fields.h"
#include "nodeagent/api/json_writer.h"

namespace verger::api {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 16> kStateNames = {"Initializing",
                                                          "DiscoverLeader",
                                                          "Unknown",
                                                          "PreReplica",
                                                          "CatchingUp",
                                                          "Clone",
                                                          "Follower",
                                                          "PreLeader",
                                                          "Leader",
                                                          "Manager",
                                                          "ShuttingDown",
                                                          "Shutdown",
                                                          "ReadOnlyLeaderless",
                                                          "PreReadOnlyReplica",
                                                          "ReadOnlyReplica",
                                                          "ResigningLeader"};

bool same_word(std::string_view a, std::string_view b) {
  const auto lower = [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  };
  return std::ranges::equal(a, b, [&](char x, char y) { return lower(x) == lower(y); });
}

Result<GossipMember> parse_member(JsonView value, const std::string& where) {
  GossipMember member;
  Fields fields(value, where);
  fields.require("state");
  std::string state;
  fields.read("instanceId", member.instance_id);
  fields.read("timeStamp", member.time_stamp);
  fields.read("state", state);
  fields.read("isAlive", member.is_alive);
  fields.read("internalTcpIp", member.internal_tcp_ip);
  fields.read("internalTcpPort", member.internal_tcp_port);
  fields.read("internalSecureTcpPort", member.internal_secure_tcp_port);
  fields.read("externalTcpIp", member.external_tcp_ip);
  fields.read("externalTcpPort", member.external_tcp_port);
  fields.read("externalSecureTcpPort", member.external_secure_tcp_port);
  // 5.0 has two HTTP endpoints; clients use the external one.
  fields.read("externalHttpIp", member.http_ip);
  fields.read("externalHttpPort", member.http_port);
  fields.read("internalHttpIp", member.internal_http_ip);
  fields.read("internalHttpPort", member.internal_http_port);
  fields.read("httpEndPointIp", member.http_ip);
  fields.read("httpEndPointPort", member.http_port);
  fields.read("internalHttpEndPointIp", member.internal_http_ip);
  fields.read("internalHttpEndPointPort", member.internal_http_port);
  fields.read("lastCommitPosition", member.last_commit_position);
  fields.read("writerCheckpoint", member.writer_checkpoint);
  fields.read("chaserCheckpoint", member.chaser_checkpoint);
  fields.read("epochPosition", member.epoch_position);
  fields.read("epochNumber", member.epoch_number);
  fields.read("epochId", member.epoch_id);
  fields.read("nodePriority", member.node_priority);
  fields.read("isReadOnlyReplica", member.is_read_only_replica);
  fields.read("esVersion", member.es_version);
  VERGER_RETURN_IF_ERROR(fields.result());
  // A state of a newer server makes this member one that is not settled; the others count.
  member.state = parse_node_state(state).value_or(NodeState::kUnknown);
  return member;
}

/// The event inside a feed's entry: JSON in a string, or an object where the server unpacked it.
/// Errors: it is not an entry about a scavenge.
Result<ScavengeEvent> parse_entry(JsonView value, const std::string& where) {
  ScavengeEvent event;
  Fields entry(value, where);
  entry.require("eventType");
  entry.read("eventType", event.type);
  entry.read("eventNumber", event.number);
  VERGER_RETURN_IF_ERROR(entry.result());
  const auto data = entry.find("data");
  const auto text = data && data->is_string() ? data->string() : std::string();
  if (!data || (data->is_string() && text.empty())) {
    return event;  // not JSON, or redacted
  }
  JsonDocument inside;
  if (data->is_string()) {
    VERGER_TRY(inside, JsonDocument::parse(text, where + ".data"));
  }
  Fields fields(data->is_string() ? inside.root() : *data, where + ".data");
  fields.read("scavengeId", event.scavenge_id);
  fields.read("nodeEndpoint", event.node_endpoint);
  fields.read("result", event.result);
  fields.read("errorMessage", event.error);
  fields.read("error", event.error);
  fields.read("timeTaken", event.time_taken);
  fields.read("spaceSaved", event.space_saved);
  fields.read("chunkStartNumber", event.chunk_start);
  fields.read("chunkEndNumber", event.chunk_end);
  fields.read("maxChunkScavenged", event.max_chunk_scavenged);
  VERGER_RETURN_IF_ERROR(fields.result());
  return event;
}

}  // namespace

std::string_view to_string(NodeState state) { return kStateNames[static_cast<std::size_t>(state)]; }

Result<NodeState> parse_node_state(std::string_view text) {
  for (std::size_t i = 0; i < kStateNames.size(); ++i) {
    if (same_word(kStateNames[i], text)) {
      return static_cast<NodeState>(i);
    }
  }
  constexpr std::array<std::pair<std::string_view, NodeState>, 3> kOldNames = {
      {{"Master", NodeState::kLeader},
       {"Slave", NodeState::kFollower},
       {"PreMaster", NodeState::kPreLeader}}};
  for (const auto& [name, state] : kOldNames) {
    if (same_word(name, text)) {
      return state;
    }
  }
  return Error{Errc::kInvalidArgument, fmt::format("\"{}\" is not a known state of a node", text)};
}

std::string to_text(const Gossip& gossip) {
  JsonWriter out(64 + 600 * gossip.members.size());
  out.begin_object().name("members").begin_list();
  for (const auto& member : gossip.members) {
    out.begin_object()
        .member("instanceId", member.instance_id)
        .member("timeStamp", member.time_stamp)
        .member("state", to_string(member.state))
        .member("isAlive", member.is_alive)
        .member("internalTcpIp", member.internal_tcp_ip)
        .member("internalTcpPort", member.internal_tcp_port)
        .member("internalSecureTcpPort", member.internal_secure_tcp_port)
        .member("externalTcpIp", member.external_tcp_ip)
        .member("externalTcpPort", member.external_tcp_port)
        .member("externalSecureTcpPort", member.external_secure_tcp_port)
        .member("httpEndPointIp", member.http_ip)
        .member("httpEndPointPort", member.http_port)
        .member("lastCommitPosition", member.last_commit_position)
        .member("writerCheckpoint", member.writer_checkpoint)
        .member("chaserCheckpoint", member.chaser_checkpoint)
        .member("epochPosition", member.epoch_position)
        .member("epochNumber", member.epoch_number)
        .member("epochId", member.epoch_id)
        .member("nodePriority", member.node_priority)
        .member("isReadOnlyReplica", member.is_read_only_replica)
        .member("esVersion", member.es_version);
    if (!member.internal_http_ip.empty()) {
      out.member("internalHttpEndPointIp", member.internal_http_ip)
          .member("internalHttpEndPointPort", member.internal_http_port);
    }
    out.end_object();
  }
  return out.end_list()
      .member("serverIp", gossip.server_ip)
      .member("serverPort", gossip.server_port)
      .end_object()
      .take();
}

json to_json(const NodeInfo& info) {
  json out = {
      {"esVersion", info.version},
      {"state", info.state},
      {"features",
       {{"projections", false},
        {"userManagement", info.user_management},
        {"atomPub", info.atom_pub}}},
      {"authentication", {{"type", info.authentication_type}, {"properties", json::array()}}}};
  if (info.is_verger) {
    out["verger"] = true;
  }
  return out;
}

json to_json(const CurrentScavenge& current) {
  return {{"scavengeId", current.id}, {"scavengeLink", current.link}};
}

Result<Gossip> parse_gossip(std::string_view body) {
  VERGER_TRY(const auto document, JsonDocument::parse(body, "gossip"));
  Gossip gossip;
  Fields fields(document.root(), "gossip");
  fields.require("members");
  if (const auto members = fields.find("members"); members && members->is_array()) {
    gossip.members.reserve(members->size());
  }
  fields.each("members", [&](JsonView element, const std::string& where) -> Result<void> {
    VERGER_TRY(auto member, parse_member(element, where));
    gossip.members.push_back(std::move(member));
    return {};
  });
  fields.read("serverIp", gossip.server_ip);
  fields.read("serverPort", gossip.server_port);
  VERGER_RETURN_IF_ERROR(fields.result());
  return gossip;
}

Result<NodeInfo> parse_info(std::string_view body) {
  VERGER_TRY(const auto document, JsonDocument::parse(body, "info"));
  NodeInfo info;
  Fields fields(document.root(), "info");
  fields.read("esVersion", info.version);
  fields.read("dbVersion", info.version);
  if (info.version.empty()) {
    fields.wrong("esVersion", "is missing");
  }
  fields.require("state");
  fields.read("state", info.state);
  // Before 20.6 Atom was always on and no node reported it.
  info.atom_pub = !fields.has("features") && fields.has("projectionsMode");
  if (const auto features = fields.find("features")) {
    Fields inner(*features, "info.features");
    inner.read("atomPub", info.atom_pub);
    inner.read("userManagement", info.user_management);
    VERGER_RETURN_IF_ERROR(inner.result());
  }
  if (const auto authentication = fields.find("authentication")) {
    Fields inner(*authentication, "info.authentication");
    inner.read("type", info.authentication_type);
    VERGER_RETURN_IF_ERROR(inner.result());
  }
  info.is_verger = fields.has("verger");
  VERGER_RETURN_IF_ERROR(fields.result());
  return info;
}

Result<CurrentScavenge> parse_current_scavenge(std::string_view body) {
  VERGER_TRY(const auto document, JsonDocument::parse(body, "current scavenge"));
  CurrentScavenge current;
  Fields fields(document.root(), "current scavenge");
  fields.require("scavengeId");
  fields.read("scavengeId", current.id);
  fields.read("scavengeLink", current.link);
  VERGER_RETURN_IF_ERROR(fields.result());
  return current;
}

Result<std::vector<ScavengeEvent>> parse_scavenge_feed(std::string_view body) {
  VERGER_TRY(const auto document, JsonDocument::parse(body, "feed"));
  std::vector<ScavengeEvent> events;
  Fields fields(document.root(), "feed");
  fields.require("entries");
  fields.each("entries", [&](JsonView element, const std::string& where) -> Result<void> {
    // The stream is an ordinary one: what another client wrote to it, or the link to an event that
    // is gone, does not make the page unreadable.
    if (auto event = parse_entry(element, where)) {
      events.push_back(*std::move(event));
    }
    return {};
  });
  VERGER_RETURN_IF_ERROR(fields.result());
  return events;
}

std::optional<Version> parse_version(std::string_view text) {
  std::array<std::int32_t, 3> parts = {0, 0, 0};
  std::size_t count = 0;
  while (count < parts.size()) {
    const auto* const end = text.data() + text.size();
    const auto [next, error] = std::from_chars(text.data(), end, parts[count]);
    if (error != std::errc{} || parts[count] < 0) {
      break;
    }
    ++count;
    text.remove_prefix(static_cast<std::size_t>(next - text.data()));
    if (text.size() < 2 || text[0] != '.' || text[1] < '0' || text[1] > '9') {
      break;
    }
    text.remove_prefix(1);
  }
  const Version version{.major = parts[0], .minor = parts[1], .patch = parts[2]};
  if (count < 2 || version == Version{}) {
    return std::nullopt;
  }
  return version;
}

}  // namespace verger::api
