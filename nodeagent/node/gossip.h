#pragma once

#include <chrono>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/base/clock.h"
#include "engine/base/types.h"
#include "engine/base/uuid.h"
#include "nodeagent/api/json_view.h"
#include "nodeagent/api/json_writer.h"
#include "nodeagent/api/node.h"
#include "nodeagent/http/client.h"
#include "nodeagent/node/election.h"

namespace verger::node {

/// What a node reports of itself.
struct Member {
  Uuid instance;       ///< zero: a configured seed that never answered
  Ticks timestamp{0};  ///< of its own clock, so that of two of its entries the newer is known
  api::NodeState state = api::NodeState::kManager;
  http::Endpoint http;
  http::Endpoint replication;
  LogPosition committed{-1};
  LogState log{EpochNumber(-1), LogPosition(-1), Uuid{}, LogPosition(-1), LogPosition(-1)};
  std::int32_t priority = 0;
  bool read_only = false;
  std::string version = "24.6.0";
  /// As the node that keeps the table sees it.
  bool alive = true;
};

NodeId node_id(const http::Endpoint& endpoint);
void write(api::JsonWriter& out, const Member& member);
/// Errors: kInvalidArgument.
Result<Member> parse_member(api::JsonView value);

/// Who is in the cluster. What a member says of itself comes by gossip and the newest wins;
/// whether it is alive, every node judges by itself. No I/O.
///
/// A member's time stamps only grow, even when its wall clock jumps: others would not believe an
/// older one, and a node that was restarted after its clock had been set back would be a stranger
/// to them, as their leader too, until that time had come again.
class MemberTable {
 public:
  explicit MemberTable(std::chrono::milliseconds removal) : removal_(removal) {}

  /// Its time stamp is raised above all that the others have seen of this node.
  void set_self(Member self);
  void add_seed(const http::Endpoint& endpoint, Ticks now);
  /// An entry another node passed on; `direct` when it is the sender's own.
  void merge(const Member& member, bool direct, Monotonic now);
  /// A contact failed, or its link broke and it does not answer.
  void mark_dead(const NodeId& id, Monotonic now);
  void mark_alive(const NodeId& id);
  /// Forgets those dead for long; seeds stay as such.
  void sweep(Monotonic now, Ticks wall);

  [[nodiscard]] const Member* find(const NodeId& id) const;
  [[nodiscard]] const std::map<NodeId, Member>& all() const { return members_; }
  [[nodiscard]] const NodeId& self() const { return self_; }
  /// Voters other than this node; with seeds, which may be voters.
  [[nodiscard]] std::set<NodeId> voters(bool alive_only) const;
  /// All but this node.
  [[nodiscard]] std::vector<http::Endpoint> others() const;
  /// As GET /gossip shows it; a dead former leader is Unknown once `leader` is another.
  [[nodiscard]] std::vector<Member> view(const std::optional<NodeId>& leader) const;

 private:
  std::chrono::milliseconds removal_;
  NodeId self_;
  Ticks newest_of_self_{0};  ///< that any node had, also from the process before this one
  std::map<NodeId, Member> members_;
  std::map<NodeId, Monotonic> dead_since_;
  std::map<NodeId, http::Endpoint> seeds_;
};

}  // namespace verger::node
