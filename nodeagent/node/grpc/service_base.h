#pragma once

#include <event_store/shared.pb.h>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "engine/base/uuid.h"
#include "nodeagent/grpc/service_table.h"
#include "nodeagent/node/authentication.h"
#include "nodeagent/node/detail/core.h"

/// What the node's services share.
namespace verger::node::rpc {

inline constexpr std::string_view kClientPackage = "event_store.client.";

/// A call and its caller, for a node that lives.
struct NodeCall {
  std::shared_ptr<Core> core;
  std::shared_ptr<grpc::ServerCall> call;
  Identity caller;
};
using NodeMethod = std::function<net::awaitable<grpc::Status>(NodeCall)>;

/// The services of one node; registers methods whose callers are authenticated first.
struct Registry {
  std::shared_ptr<grpc::ServiceTable> table;
  std::weak_ptr<Core> core;
  /// `service`: without kClientPackage, "gossip.Gossip".
  void add(const std::string& service, const std::string& method, NodeMethod handler,
           std::size_t most_bytes = grpc::kMostMessageBytes) const;
  /// `service`: with its package.
  void add_whole(const std::string& service, const std::string& method, NodeMethod handler,
                 std::size_t most_bytes = grpc::kMostMessageBytes) const;
};

/// A call that the node's end waits for.
struct InFlightCall {
  std::shared_ptr<Core> core;
  explicit InFlightCall(std::shared_ptr<Core> node) : core(std::move(node)) { ++core->requests; }
  ~InFlightCall() { --core->requests; }
  InFlightCall(const InFlightCall&) = delete;
  InFlightCall& operator=(const InFlightCall&) = delete;
};

/// `method` for a caller with the right; others are refused.
NodeMethod only_for(Need need, NodeMethod method);

void add_cluster_services(const Registry& registry);
void add_operations(const Registry& registry);
void add_persistent_subscriptions(const Registry& registry);
void add_redaction(const Registry& registry);
void add_streams(const Registry& registry);
void add_users(const Registry& registry);

grpc::Status access_denied();
grpc::Status not_ready();
grpc::Status stream_deleted(std::string_view stream);
grpc::Status invalid_argument(std::string message);
/// "'None' is not a valid EventStore.Client.Streams.<type>".
grpc::Status no_case(std::string_view type);

/// Where the leader is, as the end of a call: 5, or 14 where none is known.
grpc::Status leader_is_elsewhere(Core& core);
/// How a call that wants the leader (header requires-leader) ends here; nullopt: it does not want
/// it, or this is the leader.
std::optional<grpc::Status> not_the_leader(Core& core, const http::Request& head);

/// The stream's name, where bytes that are no UTF-8 become U+FFFD; nullopt: no identifier, or no
/// name in it.
std::optional<std::string> stream_name(bool has_identifier,
                                       const event_store::client::StreamIdentifier& identifier);
/// nullopt: no value, or a text that is no GUID.
std::optional<Uuid> parse_uuid(const event_store::client::UUID& uuid);
void write_uuid(const Uuid& uuid, bool as_text, event_store::client::UUID& into);

}  // namespace verger::node::rpc
