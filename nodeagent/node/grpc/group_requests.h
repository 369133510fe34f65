#pragma once

#include <event_store/persistent.pb.h>
#include <optional>
#include <string>

#include "nodeagent/node/grpc/service_base.h"
#include "nodeagent/node/persistent/group_records.h"
#include "nodeagent/node/persistent_subscriptions.h"

/// What the methods of PersistentSubscriptions share: requests to groups, and groups to messages.
namespace verger::node::rpc {

/// Create and Update; the error ends the call.
std::expected<persistent::GroupConfig, grpc::Status> group_config(
    const event_store::client::persistent_subscriptions::CreateReq::Options& options);
std::expected<persistent::GroupConfig, grpc::Status> group_config(
    const event_store::client::persistent_subscriptions::UpdateReq::Options& options);

/// The group of a request whose `stream_option` is a stream_identifier or all; nullopt: neither.
template <class Options>
std::optional<persistent::GroupKey> group_key(const Options& options) {
  persistent::GroupKey key{.group = options.group_name()};
  if (options.stream_option_case() == Options::kAll) {
    key.stream = persistent::kAllStream;
    return key;
  }
  auto stream = options.stream_option_case() == Options::kStreamIdentifier
                    ? stream_name(true, options.stream_identifier())
                    : std::nullopt;
  if (!stream) {
    return std::nullopt;
  }
  key.stream = *std::move(stream);
  return key;
}

/// How a call ends on a node that does not serve groups; nullopt: this one does.
std::optional<grpc::Status> groups_elsewhere(Core& core);
/// As groups know their callers.
std::string user_name(const Identity& caller);

/// How a call about a group ends.
grpc::Status group_status(const SubscriptionError& error, const persistent::GroupKey& key);
grpc::Status group_dropped(const persistent::GroupKey& key);

void write_info(const persistent::Group& group, Monotonic now,
                event_store::client::persistent_subscriptions::SubscriptionInfo& out);

/// Read, both ways.
net::awaitable<grpc::Status> read_group(NodeCall at);

}  // namespace verger::node::rpc
