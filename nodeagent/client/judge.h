#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "nodeagent/api/node.h"
#include "nodeagent/client/dialect.h"
#include "nodeagent/client/outcome.h"
#include "nodeagent/http/client.h"

/// What a read means where the answer is true and still misleads (node-interface.md, 8.2).
namespace verger::client {

/// The entry of the node that answered, in any state; nullptr where it cannot be determined. A node
/// may show clients other addresses than its own (AdvertiseHostToClientAs; host names beside IPs),
/// so it is looked for by, in this order: its endpoint as it calls itself; the only member; the
/// requested endpoint; the only member with its address between nodes; the only one with the
/// requested port. `asked` may be empty.
const api::GossipMember* answering_member(const api::Gossip& gossip,
                                          const http::Endpoint& asked = {});

/// "host:port" in lower case, for comparing.
std::string endpoint_name(std::string_view host, std::int32_t port);
/// Under which names ("host:port") the answering node may sign its entries in $scavenges: bound
/// address up to 24.2, advertised since, and the one it was reached by. Sorted, in lower case.
std::vector<std::string> own_names(const api::Gossip& gossip, const http::Endpoint& asked);
/// Whether `node_endpoint` of an entry is one of `names`.
bool is_named(const std::vector<std::string>& names, std::string_view node_endpoint);

/// The answering node's own entry: only what a node says about itself counts.
/// unknown: not_itself (it does not list itself), unsettled (not alive in its own view, a seed, or
/// on its way out).
Outcome<api::GossipMember> own_entry(const api::Gossip& gossip, const http::Endpoint& asked = {});

/// What the answering node says about the member with `instance_id`. done only for itself, as
/// own_entry; for others unknown (not_itself) with the entry: a node that is shutting down stays
/// alive and leader in the eyes of others for five or six seconds.
Outcome<api::GossipMember> entry_of(const api::Gossip& gossip, std::string_view instance_id);

/// The answering node's own writer checkpoint. unknown (stale) for a single node of 20.6 to 24.6,
/// which shows the one of its last state change: read /stats.
Outcome<std::int64_t> own_writer_checkpoint(const api::Gossip& gossip, const NodeDialect& dialect);

/// How a run ended, from its log (node-interface.md, 6.1).
struct ScavengeEnd {
  std::string result;  ///< as written: "Success", "Stopped", "Interrupted", ...
  std::string error;
  std::string time_taken;
  std::string node_endpoint;
  std::int64_t space_saved = 0;
  std::int64_t entries = 0;  ///< of chunks, merges and index tables
};
/// Entries of one scavenge's stream, in any order, or of $scavenges for `scavenge_id`.
///   done      Success, and something was worked on
///   refused   stopped: it keeps its checkpoint and resumes with the next start
///   unknown   still_open (no end in the log: it may run, or the entry was lost), untouched
///   (Success
///             without any entry: compare the point), restarted, errored (how far it got is not
///             reported; the next start resumes there)
Outcome<ScavengeEnd> end_of_scavenge(const std::vector<api::ScavengeEvent>& events,
                                     std::string_view scavenge_id);

}  // namespace verger::client
