// PersistentSubscriptions: all methods but Read. Groups live on the leader alone.
#include "nodeagent/node/grpc/group_requests.h"

namespace verger::node::rpc {

using ::verger::grpc::Status;
namespace groups = event_store::client::persistent_subscriptions;
namespace es = event_store::client;

std::optional<Status> groups_elsewhere(Core& core) {
  if (core.subscriptions->ready()) {
    return std::nullopt;
  }
  const auto state = core.election->state();
  const bool here = state == api::NodeState::kLeader || state == api::NodeState::kResigningLeader;
  return here ? not_ready() : leader_is_elsewhere(core);
}

std::string user_name(const Identity& caller) {
  return caller.kind == Identity::Kind::kSystem ? "system" : caller.login;
}

namespace {

std::shared_ptr<PersistentSubscriptions> subscriptions_of(const NodeCall& at) {
  return at.core->keep(*at.core->subscriptions);
}

using Change = net::awaitable<SubscriptionResult> (*)(PersistentSubscriptions::Self,
                                                      persistent::GroupConfig, std::string);

/// Create and Update.
template <class Request, class Response>
net::awaitable<Status> configure_group(NodeCall at, Change change) {
  const InFlightCall in_flight(at.core);
  const auto request = co_await at.call->only<Request>();
  if (!request) {
    co_return request.error();
  }
  if (!request->has_options()) {
    co_return grpc::handler_failed();
  }
  if (auto elsewhere = groups_elsewhere(*at.core)) {
    co_return *std::move(elsewhere);
  }
  const auto config = group_config(request->options());
  if (!config) {
    co_return config.error();
  }
  const auto done = co_await change(subscriptions_of(at), *config, user_name(at.caller));
  if (!done) {
    co_return group_status(done.error(), config->key);
  }
  co_await at.call->write(Response());
  co_return Status{};
}

net::awaitable<Status> remove_group(NodeCall at) {
  const InFlightCall in_flight(at.core);
  const auto request = co_await at.call->only<groups::DeleteReq>();
  if (!request) {
    co_return request.error();
  }
  if (auto elsewhere = groups_elsewhere(*at.core)) {
    co_return *std::move(elsewhere);
  }
  const auto key = group_key(request->options());
  if (!key) {
    co_return grpc::handler_failed();
  }
  const auto done =
      co_await PersistentSubscriptions::remove(subscriptions_of(at), *key, user_name(at.caller));
  if (!done) {
    co_return group_status(done.error(), *key);
  }
  co_await at.call->write(groups::DeleteResp());
  co_return Status{};
}

net::awaitable<Status> group_info(NodeCall at) {
  const auto request = co_await at.call->only<groups::GetInfoReq>();
  if (!request) {
    co_return request.error();
  }
  const auto key = group_key(request->options());
  if (!key) {
    co_return grpc::handler_failed();
  }
  if (!at.core->subscriptions->ready()) {
    co_return not_ready();
  }
  const auto* group = at.core->subscriptions->find(*key);
  if (group == nullptr) {
    co_return group_status({SubscriptionError::Code::kNotFound}, *key);
  }
  groups::GetInfoResp response;
  write_info(*group, at.core->now(), *response.mutable_subscription_info());
  co_await at.call->write(response);
  co_return Status{};
}

/// The stream whose groups are to be listed; empty: all. nullopt: the request does not say it.
std::optional<std::string> listed_stream(const groups::ListReq::Options& options) {
  if (options.has_list_all_subscriptions()) {
    return std::string();
  }
  if (!options.has_list_for_stream()) {
    return std::nullopt;
  }
  const auto& from = options.list_for_stream();
  if (from.has_all()) {
    return std::string(persistent::kAllStream);
  }
  return stream_name(from.has_stream(), from.stream());
}

net::awaitable<Status> list_groups(NodeCall at) {
  const auto request = co_await at.call->only<groups::ListReq>();
  if (!request) {
    co_return request.error();
  }
  const auto stream = listed_stream(request->options());
  if (!stream) {
    co_return grpc::handler_failed();
  }
  if (!at.core->subscriptions->ready()) {
    co_return not_ready();
  }
  groups::ListResp response;
  for (const auto* group : at.core->subscriptions->all()) {
    if (stream->empty() || group->key().stream == *stream) {
      write_info(*group, at.core->now(), *response.add_subscriptions());
    }
  }
  if (!stream->empty() && response.subscriptions().empty()) {
    co_return group_status({SubscriptionError::Code::kNotFound}, {.stream = *stream});
  }
  co_await at.call->write(response);
  co_return Status{};
}

net::awaitable<Status> replay_parked(NodeCall at) {
  const auto request = co_await at.call->only<groups::ReplayParkedReq>();
  if (!request) {
    co_return request.error();
  }
  const auto& options = request->options();
  const auto key = group_key(options);
  if (!key ||
      options.stop_at_option_case() == groups::ReplayParkedReq::Options::STOP_AT_OPTION_NOT_SET) {
    co_return grpc::handler_failed();
  }
  // The server answers on its leader alone, and elsewhere never.
  while (!at.core->subscriptions->ready() && !at.call->cancelled() && at.core->serving()) {
    co_await at.core->env.timers.sleep_for(at.core->options.timings.tick);
  }
  if (at.call->cancelled()) {
    co_return grpc::client_gone();
  }
  const auto done = at.core->subscriptions->replay(
      *key, options.has_stop_at() ? std::optional(options.stop_at()) : std::nullopt);
  if (!done) {
    co_return group_status(done.error(), *key);
  }
  co_await at.call->write(groups::ReplayParkedResp());
  co_return Status{};
}

net::awaitable<Status> restart_groups(NodeCall at) {
  const auto request = co_await at.call->only<es::Empty>();
  if (!request) {
    co_return request.error();
  }
  if (!at.core->subscriptions->restart()) {
    co_return grpc::handler_failed();
  }
  co_await at.call->write(es::Empty());
  co_return Status{};
}

}  // namespace

void add_persistent_subscriptions(const Registry& registry) {
  const auto add = [&](const char* name, Need need, NodeMethod method) {
    registry.add("persistent_subscriptions.PersistentSubscriptions", name,
                 need == Need::kNobody ? std::move(method) : only_for(need, std::move(method)));
  };
  add("Create", Need::kOperator, [](NodeCall at) {
    return configure_group<groups::CreateReq, groups::CreateResp>(std::move(at),
                                                                  &PersistentSubscriptions::create);
  });
  add("Update", Need::kOperator, [](NodeCall at) {
    return configure_group<groups::UpdateReq, groups::UpdateResp>(std::move(at),
                                                                  &PersistentSubscriptions::update);
  });
  add("Delete", Need::kOperator, remove_group);
  add("Read", Need::kNobody, read_group);
  add("GetInfo", Need::kUser, group_info);
  add("ReplayParked", Need::kOperator, replay_parked);
  add("List", Need::kUser, list_groups);
  add("RestartSubsystem", Need::kOperator, restart_groups);
}

}  // namespace verger::node::rpc
