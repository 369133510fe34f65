#pragma once

#include <deque>
#include <functional>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "nodeagent/http/message.h"
#include "nodeagent/node/detail/node_context.h"
#include "nodeagent/node/gossip.h"

namespace verger::node {

/// Keeps the member table up to date: gossip over HTTP, the same message both ways
/// (docs/formats/replication.md).
class GossipService {
 public:
  /// `describe_self`: what this node reports of itself now.
  GossipService(NodeContext& context, std::function<Member()> describe_self);

  /// The configured nodes become members.
  void add_seeds();
  /// Gossips with all members until the node ends, if there are or may be others.
  void start();
  /// Call it with the node's ticks; `leader` is whom this node takes for the leader.
  void tick(const std::optional<NodeId>& leader);
  /// The own entry becomes what is true now.
  void refresh_self();

  [[nodiscard]] const Member* find(const NodeId& id) const { return members_.find(id); }
  /// Voters other than this node; with seeds, which may be voters.
  [[nodiscard]] std::set<NodeId> voters(bool alive_only) const {
    return members_.voters(alive_only);
  }
  /// As GET /gossip shows it; a dead former leader is Unknown once `leader` is another.
  [[nodiscard]] std::vector<Member> view(const std::optional<NodeId>& leader) const;

  void mark_alive(const NodeId& id) { members_.mark_alive(id); }
  /// The link to this member broke: is it dead, or only the link?
  void look_after(const NodeId& id);
  /// Sends `peer` what is known here and takes what it answers; no answer marks it dead.
  static net::awaitable<void> exchange(std::shared_ptr<GossipService> service, http::Endpoint peer);
  /// The answer to POST /verger/v1/gossip.
  http::Response answer(const std::string& body);

 private:
  static net::awaitable<void> loop(std::shared_ptr<GossipService> service);
  std::string message();
  /// Returns the sender's name; empty when it is not gossip.
  NodeId take(const std::string& body);
  /// Logs why gossip with `peer` fails, once for each reason.
  void tell_problem(const http::Endpoint& peer, const std::string& problem);

  NodeContext& context_;
  std::function<Member()> describe_self_;
  MemberTable members_;
  std::map<NodeId, std::string> problems_;
  /// What GET /gossip would have said, where it is to lag (NodeMisbehaviour).
  std::deque<std::pair<Monotonic, std::vector<Member>>> past_;
};

}  // namespace verger::node
