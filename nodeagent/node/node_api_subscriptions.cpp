// /subscriptions: the persistent subscriptions, as an operator looks at them. Their consumers come
// by gRPC.
#include <nlohmann/json.hpp>

#include "nodeagent/node/detail/allowed_methods.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/node_api.h"
#include "nodeagent/node/persistent_subscriptions.h"

namespace verger::node {
namespace {

using http::Response;
using http::RoutedRequest;
using nlohmann::ordered_json;

const std::vector<Format> kSubscriptionFormats = {Format::kJson};
constexpr std::string_view kRestartMethods = "GET, POST, OPTIONS";

Response subscription_answer(int status, const ordered_json& list) {
  auto response = formatted({Format::kJson, "application/json"}, indented(list), methods::kGet);
  response.status = status;
  return response;
}

/// As the server writes a name into a path.
std::string escaped(const std::string& text) { return http::percent_encode(text); }

double rate_of(std::int64_t total, Monotonic since, Monotonic now) {
  const std::chrono::duration<double> age = now - since;
  return age.count() >= 1 ? static_cast<double>(total) / age.count() : 0.0;
}

ordered_json text_of_position(const std::optional<persistent::SourcePosition>& at) {
  return at ? ordered_json(persistent::to_text(*at)) : ordered_json(nullptr);
}

/// What older clients look at, who know numbers alone: 0 for none, and for a place in $all.
std::int64_t number_of_position(const std::optional<persistent::SourcePosition>& at) {
  const auto* found = at ? std::get_if<EventNumber>(&*at) : nullptr;
  return found != nullptr ? found->value() : 0;
}

std::size_t in_flight_of(const persistent::Group& group) {
  std::size_t out = 0;
  for (const auto& consumer : group.consumers().all()) {
    out += consumer.in_flight.size();
  }
  return out;
}

/// The addresses of a group.
struct GroupLinks {
  GroupLinks(const persistent::GroupKey& key, const std::string& base)
      : path(fmt::format("{}/subscriptions/{}/{}", base, escaped(key.stream), escaped(key.group))),
        parked(fmt::format("{}/streams/{}{}::{}-parked", base, escaped("$persistentsubscription-"),
                           escaped(key.stream), escaped(key.group))) {}
  [[nodiscard]] ordered_json detail() const {
    return {{"href", path + "/info"}, {"rel", "detail"}};
  }

  std::string path;
  std::string parked;
};

ordered_json subscription_summary(const persistent::Group& group, Monotonic now,
                                  const std::string& base) {
  const auto status = group.status();
  const auto& key = group.key();
  const GroupLinks links(key, base);
  return {{"links", ordered_json::array({links.detail()})},
          {"eventStreamId", key.stream},
          {"groupName", key.group},
          {"parkedMessageUri", links.parked},
          {"getMessagesUri", links.path + "/1"},
          {"status", status.status},
          {"averageItemsPerSecond", rate_of(status.total, status.since, now)},
          {"totalItemsProcessed", status.total},
          {"lastProcessedEventNumber", number_of_position(status.last_checkpoint)},
          {"lastCheckpointedEventPosition", text_of_position(status.last_checkpoint)},
          {"lastKnownEventNumber", number_of_position(status.last_known)},
          {"lastKnownEventPosition", text_of_position(status.last_known)},
          {"connectionCount", group.consumers().count()},
          {"totalInFlightMessages", in_flight_of(group)}};
}

ordered_json settings_of(const persistent::GroupSettings& settings) {
  return {{"resolveLinktos", settings.resolve_links},
          {"startFrom", number_of_position(settings.start)},
          {"startPosition", persistent::to_text(settings.start)},
          {"messageTimeoutMilliseconds", settings.message_timeout_ms},
          {"extraStatistics", settings.extra_statistics},
          {"maxRetryCount", settings.max_retry_count},
          {"liveBufferSize", settings.live_buffer_size},
          {"bufferSize", settings.history_buffer_size},
          {"readBatchSize", settings.read_batch_size},
          {"preferRoundRobin", settings.strategy == persistent::Strategy::kRoundRobin},
          {"checkPointAfterMilliseconds", settings.checkpoint_after_ms},
          {"minCheckPointCount", settings.min_checkpoint_count},
          {"maxCheckPointCount", settings.max_checkpoint_count},
          {"maxSubscriberCount", settings.max_subscriber_count},
          {"namedConsumerStrategy", name_of(settings.strategy)}};
}

ordered_json subscription_details(const persistent::Group& group, Monotonic now,
                                  const std::string& base) {
  const auto status = group.status();
  const auto& key = group.key();
  const GroupLinks links(key, base);
  auto connections = ordered_json::array();
  for (const auto& each : group.consumers().all()) {
    connections.push_back({{"from", ""},
                           {"username", each.user},
                           {"averageItemsPerSecond", rate_of(each.total, each.since, now)},
                           {"totalItemsProcessed", each.total},
                           {"countSinceLastMeasurement", each.total - each.total_when_measured},
                           {"extraStatistics", ordered_json::array()},
                           {"availableSlots", each.available()},
                           {"inFlightMessages", each.in_flight.size()},
                           {"connectionName", each.connection_name}});
  }
  return {{"links", ordered_json::array(
                        {links.detail(),
                         {{"href", links.path + "/replayParked"}, {"rel", "replayParked"}}})},
          {"config", settings_of(group.settings())},
          {"eventStreamId", key.stream},
          {"groupName", key.group},
          {"status", status.status},
          {"averageItemsPerSecond", rate_of(status.total, status.since, now)},
          {"parkedMessageUri", links.parked},
          {"getMessagesUri", links.path + "/1"},
          {"totalItemsProcessed", status.total},
          {"countSinceLastMeasurement", status.total - status.total_when_measured},
          {"lastProcessedEventNumber", number_of_position(status.last_checkpoint)},
          {"lastCheckpointedEventPosition", text_of_position(status.last_checkpoint)},
          {"lastKnownEventNumber", number_of_position(status.last_known)},
          {"lastKnownEventPosition", text_of_position(status.last_known)},
          {"readBufferCount", status.buffered},
          {"liveBufferCount", status.live_waiting},
          {"retryBufferCount", status.retries},
          {"totalInFlightMessages", in_flight_of(group)},
          {"outstandingMessagesCount", status.outstanding},
          {"connections", std::move(connections)},
          {"parkedMessageCount", status.parked}};
}

/// All of them, or those of one stream.
net::awaitable<Response> list_subscriptions(std::shared_ptr<Core> core, RoutedRequest routed) {
  if (auto answered = co_await by_the_leader(core, routed.request)) {
    co_return answered->status == 503 ? subscription_answer(503, ordered_json::array())
                                      : *std::move(answered);
  }
  const auto& subscriptions = *core->subscriptions;
  const auto stream = routed.parameter("stream");
  const auto base = base_url(*core, routed.request);
  auto out = ordered_json::array();
  for (const auto* group : subscriptions.all()) {
    if (stream.empty() || group->key().stream == stream) {
      out.push_back(subscription_summary(*group, core->now(), base));
    }
  }
  const bool missing = !stream.empty() && out.empty();
  co_return subscription_answer(!subscriptions.ready() ? 503 : missing ? 404 : 200, out);
}

net::awaitable<Response> show_subscription(std::shared_ptr<Core> core, RoutedRequest routed) {
  if (auto answered = co_await by_the_leader(core, routed.request)) {
    co_return *std::move(answered);
  }
  const auto& subscriptions = *core->subscriptions;
  const auto* group = subscriptions.find({.stream = std::string(routed.parameter("stream")),
                                          .group = std::string(routed.parameter("group"))});
  if (group == nullptr) {
    co_return empty_response(subscriptions.ready() ? 404 : 503, {}, methods::kGet);
  }
  co_return subscription_answer(
      200, subscription_details(*group, core->now(), base_url(*core, routed.request)));
}

net::awaitable<Response> restart_subscriptions(std::shared_ptr<Core> core, RoutedRequest routed) {
  if (auto answered = co_await by_the_leader(core, routed.request)) {
    co_return *std::move(answered);
  }
  if (!core->subscriptions->restart()) {
    co_return empty_response(503, "Server Is Not Ready", kRestartMethods);
  }
  co_return formatted({Format::kJson, "application/json"}, "\"Restarting\"", kRestartMethods);
}

}  // namespace

void add_subscription_routes(http::Router& router, const std::shared_ptr<Core>& core) {
  const RouteRule rule{.need = Need::kUser, .formats = kSubscriptionFormats};
  add_route(router, core, "GET", "/subscriptions", rule, list_subscriptions);
  add_route(router, core, "POST", "/subscriptions/restart", {.need = Need::kOperator},
            restart_subscriptions);
  add_route(router, core, "GET", "/subscriptions/{stream}", rule, list_subscriptions);
  add_route(router, core, "GET", "/subscriptions/{stream}/{group}/info", rule, show_subscription);
}

}  // namespace verger::node
