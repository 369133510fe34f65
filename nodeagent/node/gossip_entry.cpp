#include "nodeagent/node/gossip_entry.h"

#include <nlohmann/json.hpp>

#include "nodeagent/api/node.h"

namespace verger::node {

nlohmann::ordered_json gossip_entry(const Member& member) {
  const bool tls = member.replication.tls;
  const auto port = static_cast<int>(member.replication.port);
  return {{"instanceId", member.instance.to_string()},
          {"timeStamp", format_ticks(member.timestamp)},
          {"state", api::to_string(member.state)},
          {"isAlive", member.alive},
          {"internalTcpIp", member.replication.host},
          {"internalTcpPort", tls ? 0 : port},
          {"internalSecureTcpPort", tls ? port : 0},
          {"externalTcpIp", member.replication.host},
          {"externalTcpPort", 0},
          {"externalSecureTcpPort", 0},
          {"httpEndPointIp", member.http.host},
          {"httpEndPointPort", member.http.port},
          {"lastCommitPosition", member.committed.value()},
          {"writerCheckpoint", member.log.writer.value()},
          {"chaserCheckpoint", member.log.chaser.value()},
          {"epochPosition", member.log.epoch_position.value()},
          {"epochNumber", member.log.last_epoch.value()},
          {"epochId", member.log.epoch_id.to_string()},
          {"nodePriority", member.priority},
          {"isReadOnlyReplica", member.read_only},
          {"esVersion", member.version}};
}

}  // namespace verger::node
