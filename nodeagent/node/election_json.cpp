#include "nodeagent/node/election_json.h"

#include <string>

#include <nlohmann/json.hpp>

#include "engine/base/json_number.h"
#include "nodeagent/node/detail/uuid_json.h"

namespace verger::node {
namespace {

using nlohmann::json;

// These throw on anything that is not as written; the one caller that parses catches.
EpochNumber term_of(const json& value) { return EpochNumber(json_integer<std::int32_t>(value)); }

LogState log_of(const json& value) {
  LogState log;
  log.last_epoch = term_of(value.at("epoch"));
  log.epoch_position = LogPosition(json_integer<std::int64_t>(value.at("epochPosition")));
  log.epoch_id = uuid_of(value.at("epochId"));
  log.writer = LogPosition(json_integer<std::int64_t>(value.at("writer")));
  log.chaser = LogPosition(json_integer<std::int64_t>(value.at("chaser")));
  return log;
}

json leader_json(const LeaderInfo& leader) {
  return {{"node", leader.node},
          {"instance", leader.instance.to_string()},
          {"term", leader.term.value()}};
}

LeaderInfo leader_of(const json& value) {
  return {value.at("node").get<std::string>(), uuid_of(value.at("instance")),
          term_of(value.at("term"))};
}

struct Encoder {
  json operator()(const message::Probe& m) const { return {{"kind", "probe"}, {"round", m.round}}; }
  json operator()(const message::ProbeReply& m) const {
    json out = {{"kind", "probeReply"},
                {"round", m.round},
                {"instance", m.instance.to_string()},
                {"log", to_json(m.log)},
                {"term", m.term.value()},
                {"priority", m.priority},
                {"readOnly", m.read_only},
                {"resigning", m.resigning},
                {"lastEpochLeader", m.last_epoch_leader.to_string()}};
    if (m.leader) {
      out["leader"] = leader_json(*m.leader);
    }
    return out;
  }
  json operator()(const message::Nominate& m) const {
    return {{"kind", "nominate"}, {"seenTerm", m.seen_term.value()}};
  }
  json operator()(const message::RequestVote& m) const {
    return {{"kind", "requestVote"},
            {"term", m.term.value()},
            {"instance", m.instance.to_string()},
            {"log", to_json(m.log)}};
  }
  json operator()(const message::Vote& m) const {
    return {{"kind", "vote"},
            {"term", m.term.value()},
            {"granted", m.granted},
            {"highestTerm", m.highest_term.value()}};
  }
  json operator()(const message::LeaderElected& m) const {
    return {{"kind", "leaderElected"}, {"leader", leader_json(m.leader)}};
  }
  json operator()(const message::Resign& m) const {
    return {{"kind", "resign"}, {"term", m.term.value()}, {"instance", m.instance.to_string()}};
  }
  json operator()(const message::ResignAgreed& m) const {
    return {{"kind", "resignAgreed"}, {"term", m.term.value()}};
  }
};

ElectionPayload payload_of(const json& value) {
  const auto kind = value.at("kind").get<std::string>();
  if (kind == "probe") {
    return message::Probe{json_integer<std::uint64_t>(value.at("round"))};
  }
  if (kind == "probeReply") {
    message::ProbeReply reply;
    reply.round = json_integer<std::uint64_t>(value.at("round"));
    reply.instance = uuid_of(value.at("instance"));
    reply.log = log_of(value.at("log"));
    reply.term = term_of(value.at("term"));
    reply.priority = json_integer<std::int32_t>(value.at("priority"));
    reply.read_only = value.at("readOnly").get<bool>();
    reply.resigning = value.at("resigning").get<bool>();
    reply.last_epoch_leader = uuid_of(value.at("lastEpochLeader"));
    if (value.contains("leader")) {
      reply.leader = leader_of(value.at("leader"));
    }
    return reply;
  }
  if (kind == "nominate") {
    return message::Nominate{term_of(value.at("seenTerm"))};
  }
  if (kind == "requestVote") {
    return message::RequestVote{term_of(value.at("term")), uuid_of(value.at("instance")),
                                log_of(value.at("log"))};
  }
  if (kind == "vote") {
    return message::Vote{term_of(value.at("term")), value.at("granted").get<bool>(),
                         term_of(value.at("highestTerm"))};
  }
  if (kind == "leaderElected") {
    return message::LeaderElected{leader_of(value.at("leader"))};
  }
  if (kind == "resign") {
    return message::Resign{term_of(value.at("term")), uuid_of(value.at("instance"))};
  }
  if (kind == "resignAgreed") {
    return message::ResignAgreed{term_of(value.at("term"))};
  }
  throw std::invalid_argument("unknown kind '" + kind + "'");
}

}  // namespace

json to_json(const LogState& log) {
  return {{"epoch", log.last_epoch.value()},
          {"epochPosition", log.epoch_position.value()},
          {"epochId", log.epoch_id.to_string()},
          {"writer", log.writer.value()},
          {"chaser", log.chaser.value()}};
}

json to_json(const ElectionMessage& message) {
  auto out = std::visit(Encoder{}, message.payload);
  out["from"] = message.from;
  out["to"] = message.to;
  return out;
}

Result<ElectionMessage> parse_election_message(const json& value) {
  try {
    return ElectionMessage{value.at("from").get<std::string>(), value.at("to").get<std::string>(),
                           payload_of(value)};
  } catch (const std::exception& e) {
    return Error{Errc::kInvalidArgument, std::string("election message: ") + e.what()};
  }
}

}  // namespace verger::node
