#include "nodeagent/client/node_client.h"

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/api/json_text.h"
#include "nodeagent/client/detail/call.h"
#include "nodeagent/client/detail/common.h"

namespace verger::client {
namespace {

template <class T>
net::awaitable<Outcome<T>> not_in(const NodeDialect& dialect, std::string_view what) {
  return answer_at_once(
      refused<T>("unsupported_version",
                 fmt::format("version {}.{}.{} has no {}; it was not asked", dialect.version.major,
                             dialect.version.minor, dialect.version.patch, what)));
}

template <class T>
net::awaitable<Outcome<T>> wrong_argument(std::string why) {
  return answer_at_once(refused<T>("invalid", std::move(why)));
}

/// A read that any client may make, but not with a wrong password.
template <class T>
net::awaitable<Outcome<T>> call_open_read(http::Client* client, http::Endpoint to,
                                          http::Request request, std::chrono::milliseconds deadline,
                                          Outcome<T> (*judge)(const http::Response&)) {
  http::Request anonymous{.method = request.method, .target = request.target};
  auto outcome = co_await call<T>(client, to, std::move(request), deadline, judge);
  if (outcome.code != "credentials_refused") {
    co_return outcome;
  }
  anonymous.headers.set("Accept", "application/json");
  outcome = co_await call<T>(client, to, std::move(anonymous), deadline, judge);
  outcome.credentials_refused = true;
  co_return outcome;
}

bool is_stream_name(std::string_view name) { return !name.empty() && name.size() <= 1024; }

}  // namespace

Result<std::string> scavenge_target(const ScavengeParameters& parameters,
                                    const NodeDialect& dialect) {
  const auto missing = [&](std::string_view name) {
    return Error{Errc::kUnsupported,
                 fmt::format("version {}.{}.{} has no scavenge parameter {}", dialect.version.major,
                             dialect.version.minor, dialect.version.patch, name)};
  };
  std::vector<std::string> query;
  if (parameters.start_from_chunk.has_value()) {
    if (*parameters.start_from_chunk < 0) {
      return Error{Errc::kInvalidArgument, "startFromChunk must be a positive integer"};
    }
    query.push_back(fmt::format("startFromChunk={}", *parameters.start_from_chunk));
  }
  if (parameters.threads.has_value()) {
    if (*parameters.threads < 1 || *parameters.threads > dialect.threads_max) {
      return Error{Errc::kInvalidArgument,
                   fmt::format("threads must be from 1 to {}", dialect.threads_max)};
    }
    query.push_back(fmt::format("threads={}", *parameters.threads));
  }
  if (parameters.threshold.has_value()) {
    if (!dialect.scavenge_parameters) {
      return missing("threshold");
    }
    query.push_back(fmt::format("threshold={}", *parameters.threshold));
  }
  if (parameters.throttle_percent.has_value()) {
    if (!dialect.scavenge_parameters) {
      return missing("throttlePercent");
    }
    if (*parameters.throttle_percent < 1 || *parameters.throttle_percent > 100) {
      return Error{Errc::kInvalidArgument, "throttlePercent must be between 1 and 100 inclusive"};
    }
    if (*parameters.throttle_percent != 100 && parameters.threads.value_or(1) > 1) {
      return Error{Errc::kInvalidArgument,
                   "throttlePercent must be 100 for a multi-threaded scavenge"};
    }
    query.push_back(fmt::format("throttlePercent={}", *parameters.throttle_percent));
  }
  if (parameters.sync_only) {
    if (!dialect.scavenge_parameters) {
      return missing("syncOnly");
    }
    query.emplace_back("syncOnly=true");
  }
  return fmt::format("/admin/scavenge{}{}", query.empty() ? "" : "?", fmt::join(query, "&"));
}

NodeClient::NodeClient(http::Client& client, http::Endpoint node,
                       std::optional<Credentials> credentials, NodeDialect dialect,
                       std::chrono::milliseconds deadline)
    : NodeClient(client, std::move(node),
                 credentials ? std::make_shared<const Credentials>(*std::move(credentials))
                             : SharedCredentials(),
                 dialect, deadline) {}

NodeClient::NodeClient(http::Client& client, http::Endpoint node, SharedCredentials credentials,
                       NodeDialect dialect, std::chrono::milliseconds deadline)
    : client_(&client),
      node_(std::move(node)),
      credentials_(std::move(credentials)),
      dialect_(dialect),
      deadline_(deadline) {}

http::Request NodeClient::request(std::string method, std::string target) const {
  http::Request out{.method = std::move(method), .target = std::move(target)};
  // /metrics refuses JSON; every other route here answers text without this.
  if (out.target != "/metrics") {
    out.headers.set("Accept", "application/json");
  }
  if (credentials_ != nullptr && !credentials_->user.empty()) {
    out.headers.set("Authorization",
                    http::basic_authorization(credentials_->user, credentials_->password));
  }
  return out;
}

net::awaitable<Outcome<api::Gossip>> NodeClient::gossip() const {
  return call_open_read<api::Gossip>(client_, node_, request("GET", "/gossip"), deadline_,
                                     &parse_answer_gossip);
}

net::awaitable<Outcome<api::NodeInfo>> NodeClient::info() const {
  return call_open_read<api::NodeInfo>(client_, node_, request("GET", "/info"), deadline_,
                                       &parse_answer_info);
}

net::awaitable<Outcome<Nothing>> NodeClient::ping() const {
  return call_open_read<Nothing>(client_, node_, request("GET", "/ping"), deadline_,
                                 &parse_answer_ping);
}

net::awaitable<Outcome<Live>> NodeClient::live() const {
  return call<Live>(client_, node_, request("GET", "/health/live"), deadline_, &parse_answer_live);
}

net::awaitable<Outcome<Login>> NodeClient::login() const {
  if (!dialect_.resign) {
    return not_in<Login>(dialect_, "/admin/login");
  }
  return call<Login>(client_, node_, request("GET", "/admin/login"), deadline_,
                     &parse_answer_login);
}

net::awaitable<Outcome<StatusLines>> NodeClient::metrics() const {
  if (!dialect_.metrics) {
    return not_in<StatusLines>(dialect_, "/metrics");
  }
  return call<StatusLines>(client_, node_, request("GET", "/metrics"), deadline_,
                           &parse_answer_metrics);
}

net::awaitable<Outcome<Stats>> NodeClient::stats() const {
  return call<Stats>(client_, node_, request("GET", "/stats"), deadline_, &parse_answer_stats);
}

net::awaitable<Outcome<NodeSettings>> NodeClient::settings() const {
  return call<NodeSettings>(client_, node_, request("GET", "/info/options"), deadline_,
                            &parse_answer_settings);
}

net::awaitable<Outcome<StartedScavenge>> NodeClient::start_scavenge(
    ScavengeParameters parameters) const {
  auto target = scavenge_target(parameters, dialect_);
  if (!target.has_value()) {
    return answer_at_once(refused<StartedScavenge>(
        target.error().code == Errc::kUnsupported ? "unsupported_version" : "invalid",
        target.error().message));
  }
  return call<StartedScavenge>(client_, node_, request("POST", std::move(*target)), deadline_,
                               [dialect = dialect_](const http::Response& response) {
                                 return parse_answer_start_scavenge(response, dialect);
                               });
}

net::awaitable<Outcome<api::CurrentScavenge>> NodeClient::current_scavenge() const {
  if (!dialect_.current_scavenge) {
    return not_in<api::CurrentScavenge>(dialect_, "GET /admin/scavenge/current");
  }
  return call<api::CurrentScavenge>(client_, node_, request("GET", "/admin/scavenge/current"),
                                    deadline_, &parse_answer_current);
}

net::awaitable<Outcome<LastScavenge>> NodeClient::last_scavenge() const {
  if (!dialect_.last_scavenge) {
    return not_in<LastScavenge>(dialect_, "GET /admin/scavenge/last");
  }
  return call<LastScavenge>(client_, node_, request("GET", "/admin/scavenge/last"), deadline_,
                            &parse_answer_last);
}

net::awaitable<Outcome<StoppedScavenge>> NodeClient::stop_scavenge(std::string id) const {
  if (!is_guid(id)) {
    return wrong_argument<StoppedScavenge>(fmt::format("\"{}\" is not the id of a scavenge", id));
  }
  return call<StoppedScavenge>(client_, node_, request("DELETE", "/admin/scavenge/" + id),
                               deadline_, [dialect = dialect_](const http::Response& response) {
                                 return parse_answer_stop(response, dialect);
                               });
}

net::awaitable<Outcome<StoppedScavenge>> NodeClient::stop_current_scavenge() const {
  if (!dialect_.current_scavenge) {
    return not_in<StoppedScavenge>(dialect_, "DELETE /admin/scavenge/current");
  }
  return call<StoppedScavenge>(client_, node_, request("DELETE", "/admin/scavenge/current"),
                               deadline_, [dialect = dialect_](const http::Response& response) {
                                 return parse_answer_stop(response, dialect);
                               });
}

net::awaitable<Outcome<std::vector<api::ScavengeEvent>>> NodeClient::scavenges() const {
  return call<std::vector<api::ScavengeEvent>>(client_, node_,
                                               request("GET", "/streams/$scavenges?embed=body"),
                                               deadline_, &parse_answer_scavenges);
}

net::awaitable<Outcome<std::vector<api::ScavengeEvent>>> NodeClient::scavenge_log(
    std::string id, std::int32_t count, std::optional<std::int64_t> from) const {
  using Events = std::vector<api::ScavengeEvent>;
  if (!is_guid(id)) {
    return wrong_argument<Events>(fmt::format("\"{}\" is not the id of a scavenge", id));
  }
  if (count < 1 || from.value_or(0) < 0) {
    return wrong_argument<Events>(
        "a page of a scavenge's log needs a count of 1 or more, and no "
        "negative event number");
  }
  return call<Events>(
      client_, node_,
      request("GET", fmt::format("/streams/$scavenges/{}/{}/{}?embed=body", id,
                                 from.has_value() ? std::to_string(*from) : "head", count)),
      deadline_, &parse_answer_scavenge_log);
}

net::awaitable<Outcome<Nothing>> NodeClient::resign() const {
  if (!dialect_.resign) {
    return not_in<Nothing>(dialect_, "POST /admin/node/resign");
  }
  return call<Nothing>(client_, node_, request("POST", "/admin/node/resign"), deadline_,
                       &parse_answer_queued);
}

net::awaitable<Outcome<Nothing>> NodeClient::set_priority(std::int32_t priority) const {
  if (!dialect_.resign) {
    return not_in<Nothing>(dialect_, "POST /admin/node/priority");
  }
  return call<Nothing>(client_, node_,
                       request("POST", fmt::format("/admin/node/priority/{}", priority)), deadline_,
                       &parse_answer_queued);
}

net::awaitable<Outcome<Nothing>> NodeClient::reload() const {
  if (!dialect_.reload) {
    return not_in<Nothing>(dialect_, "POST /admin/reloadconfig");
  }
  return call<Nothing>(client_, node_, request("POST", "/admin/reloadconfig"), deadline_,
                       &parse_answer_queued);
}

net::awaitable<Outcome<Nothing>> NodeClient::shutdown() const {
  return call<Nothing>(client_, node_, request("POST", "/admin/shutdown"), deadline_,
                       &parse_answer_queued);
}

net::awaitable<Outcome<MergeIndexes>> NodeClient::merge_indexes() const {
  return call<MergeIndexes>(client_, node_, request("POST", "/admin/mergeindexes"), deadline_,
                            &parse_answer_merge_indexes);
}

net::awaitable<Outcome<std::vector<ServerWork>>> NodeClient::projections() const {
  return call<std::vector<ServerWork>>(client_, node_,
                                       request("GET", "/projections/all-non-transient"), deadline_,
                                       &parse_answer_projections);
}

net::awaitable<Outcome<std::vector<ServerWork>>> NodeClient::subscriptions() const {
  return call<std::vector<ServerWork>>(client_, node_, request("GET", "/subscriptions"), deadline_,
                                       &parse_answer_subscriptions);
}

net::awaitable<Outcome<Nothing>> NodeClient::enable_projection(std::string name) const {
  if (name.empty()) {
    return wrong_argument<Nothing>("a projection has a name");
  }
  return call<Nothing>(
      client_, node_,
      request("POST", fmt::format("/projection/{}/command/enable", http::percent_encode(name))),
      deadline_, &parse_answer_work_started);
}

net::awaitable<Outcome<Nothing>> NodeClient::restart_projections() const {
  auto post = request("POST", "/projections/restart");
  post.headers.set("Content-Type", "application/json");  // without one: 415
  return call<Nothing>(client_, node_, std::move(post), deadline_, &parse_answer_work_started);
}

net::awaitable<Outcome<Nothing>> NodeClient::restart_subscriptions() const {
  return call<Nothing>(client_, node_, request("POST", "/subscriptions/restart"), deadline_,
                       &parse_answer_work_started);
}

net::awaitable<Outcome<AutoScavenge>> NodeClient::auto_scavenge() const {
  if (!dialect_.may_auto_scavenge) {
    return answer_at_once(
        done(AutoScavenge{.state = AutoScavengeState::kNotInstalled, .schedule = {}}));
  }
  return call<AutoScavenge>(client_, node_, request("GET", "/auto-scavenge/status"), deadline_,
                            &parse_answer_auto_scavenge);
}

net::awaitable<Outcome<Nothing>> NodeClient::pause_auto_scavenge() const {
  if (!dialect_.may_auto_scavenge) {
    return not_in<Nothing>(dialect_, "auto-scavenge");
  }
  return call<Nothing>(client_, node_, request("POST", "/auto-scavenge/pause"), deadline_,
                       &parse_answer_auto_scavenge_change);
}

net::awaitable<Outcome<Nothing>> NodeClient::resume_auto_scavenge() const {
  if (!dialect_.may_auto_scavenge) {
    return not_in<Nothing>(dialect_, "auto-scavenge");
  }
  return call<Nothing>(client_, node_, request("POST", "/auto-scavenge/resume"), deadline_,
                       &parse_answer_auto_scavenge_change);
}

net::awaitable<Outcome<Appended>> NodeClient::append(std::string stream,
                                                     std::vector<NewEvent> events,
                                                     std::int64_t expected_version) const {
  if (!is_stream_name(stream) || events.empty()) {
    return wrong_argument<Appended>("an append needs the name of a stream and an event");
  }
  // The server answers 200 and does nothing on other negative numbers.
  if (expected_version < kStreamExists || expected_version == -3) {
    return wrong_argument<Appended>(fmt::format("{} is not an expected version", expected_version));
  }
  auto body = nlohmann::json::array();
  for (const auto& event : events) {
    auto data = api::parse_json(event.data_json, "data of " + event.id);
    if (!data.has_value()) {
      return wrong_argument<Appended>(data.error().message);
    }
    nlohmann::json item = {{"eventId", event.id}, {"eventType", event.type}, {"data", *data}};
    if (!event.metadata_json.empty()) {
      auto metadata = api::parse_json(event.metadata_json, "metadata of " + event.id);
      if (!metadata.has_value()) {
        return wrong_argument<Appended>(metadata.error().message);
      }
      item["metadata"] = std::move(*metadata);
    }
    body.push_back(std::move(item));
  }
  auto post = request("POST", "/streams/" + http::percent_encode(stream));
  post.headers.set("Content-Type", "application/vnd.eventstore.events+json");
  if (expected_version != kAnyVersion) {
    post.headers.set("ES-ExpectedVersion", std::to_string(expected_version));
  }
  post.body = api::to_text(body);
  return call<Appended>(client_, node_, std::move(post), deadline_, &parse_answer_append);
}

net::awaitable<Outcome<StreamPage>> NodeClient::read_forward(std::string stream, std::int64_t from,
                                                             std::int32_t count) const {
  if (!is_stream_name(stream) || from < 0 || count < 1) {
    return wrong_argument<StreamPage>("a page needs a stream, an event number and a count");
  }
  auto get = request("GET", fmt::format("/streams/{}/{}/forward/{}?embed=body",
                                        http::percent_encode(stream), from, count));
  get.headers.set("Accept", "application/vnd.eventstore.atom+json");
  return call<StreamPage>(client_, node_, std::move(get), deadline_, &parse_answer_page);
}

net::awaitable<Outcome<StreamPage>> NodeClient::read_backward(std::string stream,
                                                              std::optional<std::int64_t> from,
                                                              std::int32_t count) const {
  if (!is_stream_name(stream) || from.value_or(0) < 0 || count < 1) {
    return wrong_argument<StreamPage>("a page needs a stream, an event number and a count");
  }
  auto get = request(
      "GET", fmt::format("/streams/{}/{}/backward/{}?embed=body", http::percent_encode(stream),
                         from.has_value() ? std::to_string(*from) : "head", count));
  get.headers.set("Accept", "application/vnd.eventstore.atom+json");
  return call<StreamPage>(client_, node_, std::move(get), deadline_, &parse_answer_page);
}

}  // namespace verger::client
