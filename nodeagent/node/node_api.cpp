#include "nodeagent/node/node_api.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "nodeagent/node/detail/allowed_methods.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/gossip_entry.h"
#include "nodeagent/node/scavenger.h"
#include "nodeagent/node/write_service.h"

namespace verger::node {
namespace {

using http::Response;
using http::RoutedRequest;
using nlohmann::ordered_json;

const std::vector<Format> kJsonFirst = {Format::kJson, Format::kXml, Format::kText};
const std::vector<Format> kTextFirst = {Format::kText, Format::kJson, Format::kXml};
constexpr std::string_view kNoCache = "max-age=0, no-cache, must-revalidate";

net::awaitable<Response> info(std::shared_ptr<Core> core, RoutedRequest request) {
  auto format = choose_format(request, kJsonFirst);
  if (!format) {
    co_return format.error();
  }
  std::string state(api::to_string(core->election->state()));
  std::ranges::transform(state, state.begin(),
                         [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  const ordered_json body = {
      {"esVersion", "24.6.0"},
      {"state", state},
      {"features",
       {{"projections", false},
        {"userManagement", !core->options.insecure},
        {"atomPub", core->options.enable_atom_pub}}},
      {"authentication",
       {{"type", core->options.insecure ? "insecure" : "internal"},
        {"properties", ordered_json::array()}}},
      {"verger", {{"embeddedNode", true}, {"instanceId", core->instance.to_string()}}}};
  co_return formatted(*format, indented(body), methods::kGet);
}

net::awaitable<Response> ping(std::shared_ptr<Core>, RoutedRequest request) {
  auto format = choose_format(request, kJsonFirst);
  if (!format) {
    co_return format.error();
  }
  if (format->format == Format::kText) {
    co_return formatted(*format, "Text: Ping request successfully handled", methods::kGet);
  }
  if (format->format == Format::kXml) {
    const std::array members = {
        std::pair<std::string, std::string>("Text", "Ping request successfully handled")};
    co_return formatted(*format, xml_of("TextMessage", members), methods::kGet);
  }
  const ordered_json body = {
      {"text", "Ping request successfully handled"}, {"msgTypeId", 123}, {"label", "Http"}};
  co_return formatted(*format, indented(body), methods::kGet);
}

net::awaitable<Response> health(std::shared_ptr<Core> core, RoutedRequest request) {
  const auto state = core->election->state();
  const bool live = core->takes_work() && state != api::NodeState::kInitializing &&
                    state != api::NodeState::kDiscoverLeader;
  Response response;
  response.status = live ? 204 : 503;
  int code = 0;
  if (const auto wanted = request.target.parameter("liveCode"); live && wanted) {
    std::from_chars(wanted->data(), wanted->data() + wanted->size(), code);
    response.status = code >= 200 && code < 600 ? code : response.status;
  }
  co_return response;
}

std::string gossip_text(const ordered_json& body) {
  std::string out = fmt::format("Server: {}:{}, Members: [", body["serverIp"].get<std::string>(),
                                body["serverPort"].get<int>());
  bool first = true;
  for (const auto& member : body["members"]) {
    out += first ? "" : ",";
    first = false;
    bool first_field = true;
    for (const auto& [name, value] : member.items()) {
      auto label = name;
      label.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(label.front())));
      auto text = value.is_string()    ? value.get<std::string>()
                  : value.is_boolean() ? std::string(value.get<bool>() ? "True" : "False")
                                       : value.dump();
      if (name == "instanceId" || name == "epochId") {
        text = fmt::format("{{{}}}", text);
      } else if (name == "esVersion") {
        label = "ESVersion";
        text.insert(text.begin(), '$');
      }
      out += fmt::format("{}{}: {}", first_field ? "" : ", ", label, text);
      first_field = false;
    }
  }
  return out + "]";
}

std::string gossip_xml(const ordered_json& body) {
  const auto element = [](std::string name, const ordered_json& value) {
    name.front() = static_cast<char>(std::toupper(static_cast<unsigned char>(name.front())));
    if (name == "EsVersion") {
      name = "ESVersion";
    }
    return fmt::format("<{0}>{1}</{0}>", name,
                       value.is_string() ? value.get<std::string>() : value.dump());
  };
  std::string out =
      "<?xml version=\"1.0\" encoding=\"utf-8\"?><ClientClusterInfo "
      "xmlns:xsi=\"http://www.w3.org/2001/XMLSchema-instance\" "
      "xmlns:xsd=\"http://www.w3.org/2001/XMLSchema\"><Members>";
  for (const auto& member : body["members"]) {
    out += "<ClientMemberInfo>";
    for (const auto& [name, value] : member.items()) {
      out += element(name, value);
    }
    out += "</ClientMemberInfo>";
  }
  return out + "</Members>" + element("serverIp", body["serverIp"]) +
         element("serverPort", body["serverPort"]) + "</ClientClusterInfo>";
}

/// The web UI is not here; its address is.
net::awaitable<Response> root(std::shared_ptr<Core> core, RoutedRequest request) {
  auto response = text_response(302, "Moved", methods::kGet, true);
  response.headers.set("Location", base_url(*core, request.request) + "/web/index.html");
  co_return response;
}

net::awaitable<Response> gossip(std::shared_ptr<Core> core, RoutedRequest request) {
  auto format = choose_format(request, kJsonFirst);
  if (!format) {
    co_return format.error();
  }
  // As on the server, reading refreshes nothing: the own entry is as of the last gossip round,
  // message or change of state (node-interface.md §1.9).
  auto members = ordered_json::array();
  for (const auto& member : core->gossip->view(core->election->leader())) {
    members.push_back(gossip_entry(member));
  }
  const ordered_json body = {{"members", std::move(members)},
                             {"serverIp", core->addresses.http.host},
                             {"serverPort", core->addresses.http.port}};
  auto response = formatted(*format,
                            format->format == Format::kText  ? gossip_text(body)
                            : format->format == Format::kXml ? gossip_xml(body)
                                                             : indented(body),
                            methods::kGet);
  response.headers.set("Cache-Control", std::string(kNoCache));
  response.headers.set("Vary", "Accept");
  co_return response;
}

net::awaitable<Response> resign(std::shared_ptr<Core> core, RoutedRequest) {
  resign_lead(*core);
  co_return empty_response(200, {}, methods::kPost);
}

net::awaitable<Response> priority(std::shared_ptr<Core> core, RoutedRequest request) {
  const auto value = parse_number<std::int32_t>(request.parameter("n"));
  if (!value) {
    co_return text_response(400, "nodePriority must be an integer.", methods::kPost, false);
  }
  change_priority(*core, *value);
  co_return empty_response(200, {}, methods::kPost);
}

net::awaitable<void> shut_down_later(std::shared_ptr<Core> core) {
  co_await core->env.timers.sleep_for(core->options.misbehaviour.shutdown_delay);
  if (core->serving()) {
    core->env.on_shutdown();
  }
}

net::awaitable<Response> shutdown(std::shared_ptr<Core> core, RoutedRequest) {
  shut_down(*core);
  co_return empty_response(200, {}, methods::kPost);
}

net::awaitable<Response> reload(std::shared_ptr<Core> core, RoutedRequest) {
  core->env.log.info(
      "Reloading the node's configuration since a request has been received on "
      "/admin/reloadconfig.");
  if (core->env.on_reload) {
    core->env.on_reload();
  } else {
    core->env.log.info("Skipping reload of certificates since TLS is disabled.");
    core->env.log.info("The node's configuration was successfully reloaded");
  }
  co_return empty_response(200, {}, methods::kPost);
}

net::awaitable<Response> merge_indexes(std::shared_ptr<Core> core, RoutedRequest request) {
  auto format = choose_format(request, kTextFirst);
  if (!format) {
    co_return format.error();
  }
  const auto id = core->env.random.uuid().to_string();
  merge_index(*core);
  if (format->format == Format::kXml) {
    const std::array members = {std::pair<std::string, std::string>("MergeIndexesId", id)};
    co_return formatted(*format, xml_of("MergeIndexesResultDto", members), methods::kPost);
  }
  co_return formatted(*format,
                      format->format == Format::kText ? "MergeIndexesId: " + id
                                                      : indented({{"mergeIndexesId", id}}),
                      methods::kPost);
}

}  // namespace

void resign_lead(Core& core) {
  if (core.election->state() == api::NodeState::kLeader) {
    core.env.log.info("resigning on request", {{"node", core.self}});
    core.election->resign();
  } else {
    core.env.log.info("asked to resign, but this node does not lead: ignored",
                      {{"node", core.self}});
  }
}

void change_priority(Core& core, std::int32_t priority) {
  if (!core.options.read_only_replica) {
    core.election->set_priority(priority);  // in gossip from the next round on
    core.env.log.info("node priority set",
                      {{"node", core.self}, {"priority", std::to_string(priority)}});
  }
}

void shut_down(Core& core) {
  core.env.log.info("shutdown requested", {{"node", core.self}});
  if (core.options.misbehaviour.shutdown_delay.count() > 0) {
    core.spawn(shut_down_later(core.shared_from_this()));
  } else {
    core.env.on_shutdown();
  }
}

void merge_index(Core& core) {
  if (const auto merged = core.db().stream_index().maintain(); !merged) {
    core.env.log.error("index not merged", {{"reason", merged.error().message}});
  }
}

std::expected<Negotiated, Response> choose_format(const RoutedRequest& request,
                                                  std::span<const Format> supported) {
  auto result = negotiate(request.request, request.target, supported);
  if (result.chosen) {
    return *std::move(result.chosen);
  }
  return std::unexpected(result.unknown_format_parameter ? empty_response(500, {}, {})
                                                         : not_acceptable());
}

net::awaitable<std::optional<Response>> by_the_leader(std::shared_ptr<Core> core,
                                                      http::Request request) {
  if (core->election->state() == api::NodeState::kLeader) {
    co_return std::nullopt;
  }
  const auto leader = core->election->leader();
  const auto* member = leader ? core->gossip->find(*leader) : nullptr;
  if (member == nullptr || *leader == core->self) {
    co_return Response{.status = 503, .reason = "Server Is Not Ready"};
  }
  const auto endpoint = member->http;
  auto answer = co_await core->env.client.send(endpoint, std::move(request),
                                               core->options.timings.request_timeout);
  if (!answer) {
    if (answer.error().code == Errc::kUnavailable) {
      co_return Response{.status = 503, .reason = "Server Is Not Ready"};
    }
    co_return Response{.status = 408, .reason = "Server was unable to handle request in time"};
  }
  // The server's proxy passes the media type on without its parameters.
  if (const auto type = answer->headers.get("Content-Type")) {
    const std::string bare(type->substr(0, type->find(';')));
    answer->headers.set("Content-Type", bare);
  }
  co_return *std::move(answer);
}

std::string indented(const ordered_json& value) {
  return value.dump(2, ' ', false, ordered_json::error_handler_t::replace);
}

std::string base_url(const Core& core, const http::Request& request) {
  const auto host = request.headers.get("Host");
  return host ? fmt::format("{}://{}", core.addresses.http.tls ? "https" : "http", *host)
              : core.addresses.http.url();
}

Identity identity_of(Core& core, const http::Request& request) {
  return core.authenticator->identify(request).value_or(Identity{});
}

void add_route(http::Router& router, const std::shared_ptr<Core>& core, std::string method,
               std::string_view pattern, NodeHandler handler) {
  add_route(router, core, std::move(method), pattern, RouteRule{.need = Need::kNobody},
            std::move(handler));
}

void add_route(http::Router& router, const std::shared_ptr<Core>& core, std::string method,
               std::string_view pattern, RouteRule rule, NodeHandler handler) {
  router.add(std::move(method), pattern,
             [weak = std::weak_ptr<Core>(core), rule = std::move(rule),
              handler = std::move(handler)](RoutedRequest request) -> net::awaitable<Response> {
               const auto at_once = [](Response response) -> net::awaitable<Response> {
                 co_return response;
               };
               auto node = weak.lock();
               if (!node || !node->serving()) {
                 return at_once(Response{.status = 503, .reason = "Server Is Not Ready"});
               }
               if (!rule.bodies.empty() && !content_format(request.request, rule.bodies)) {
                 return at_once(empty_response(415, "Invalid or missing Content-Type", {}));
               }
               if (!rule.formats.empty()) {
                 if (auto format = choose_format(request, rule.formats); !format) {
                   return at_once(std::move(format).error());
                 }
               }
               if (!satisfies(identity_of(*node, request.request), rule.need)) {
                 return at_once(not_allowed());
               }
               return handler(std::move(node), std::move(request));
             });
}

namespace {

/// A known path with another method (node-interface.md §1.1). Of two segments it is 404: there the
/// server has a route for any method, for calls of gRPC services that it does not know, which then
/// takes nothing else.
Response no_method(const http::Request& request, const http::Target& target,
                   const http::Router::Match& match) {
  Response response{.status = 405};
  if (target.path == "/health/live") {
    return response;
  }
  if (request.method == "OPTIONS") {
    response.status = 200;
    response.headers.set("Access-Control-Allow-Methods",
                         fmt::format("{}, OPTIONS", fmt::join(match.methods, ", ")));
    return response;
  }
  auto methods = match.methods;
  methods.emplace_back("OPTIONS");
  const bool readable = std::ranges::find(methods, "GET") != methods.end();
  if (request.method == "HEAD" && readable) {  // let in with GET, and then taken by no route
    response.headers.set("Access-Control-Allow-Methods",
                         fmt::format("{}", fmt::join(methods, ", ")));
    return response;
  }
  if (target.segments.size() == 2) {
    response.status = 404;
    return response;
  }
  if (readable) {
    methods.emplace_back("HEAD");
  }
  std::ranges::sort(methods);
  const auto repeated = std::ranges::unique(methods);
  methods.erase(repeated.begin(), repeated.end());
  response.headers.set("Allow", fmt::format("{}", fmt::join(methods, ", ")));
  return response;
}

}  // namespace

std::shared_ptr<http::Router> make_router(const std::shared_ptr<Core>& core) {
  auto router = std::make_shared<http::Router>();
  auto& r = *router;
  const RouteRule anybody{.need = Need::kNobody};
  const RouteRule operators{.need = Need::kOperator};
  add_route(r, core, "GET", "/", anybody, root);
  add_route(r, core, "GET", "/info", anybody, info);
  add_route(r, core, "GET", "/ping", anybody, ping);
  if (!core->options.disable_gossip_on_http) {
    const bool open = core->options.override_anonymous_endpoint_access_for_gossip ||
                      core->options.allow_anonymous_endpoint_access;
    add_route(r, core, "GET", "/gossip", open ? anybody : RouteRule{.need = Need::kUser}, gossip);
  }
  // Answers also while the node starts or stops.
  for (const auto* method : {"GET", "HEAD"}) {
    r.add(method, "/health/live", [weak = std::weak_ptr<Core>(core)](RoutedRequest request) {
      auto node = weak.lock();
      if (!node) {
        return [](Response response) -> net::awaitable<Response> {
          co_return response;
        }(Response{.status = 503});
      }
      return health(std::move(node), std::move(request));
    });
  }
  if (!core->options.disable_admin_ui) {
    add_route(r, core, "POST", "/admin/node/resign", operators, resign);
    add_route(r, core, "POST", "/admin/node/priority/{n}", operators, priority);
    add_route(r, core, "POST", "/admin/shutdown", operators, shutdown);
    add_route(r, core, "POST", "/admin/reloadconfig", operators, reload);
    add_route(r, core, "POST", "/admin/mergeindexes",
              {.need = Need::kOperator, .formats = kTextFirst}, merge_indexes);
    add_scavenge_routes(r, core);
    add_scavenge_history_routes(r, core);
  }
  if (!core->options.disable_stats_on_http) {
    add_stats_routes(r, core);
    add_metrics_route(r, core);
  }
  add_options_route(r, core);
  add_user_routes(r, core);
  add_subscription_routes(r, core);
  if (core->options.enable_atom_pub) {
    add_stream_routes(r, core);
  }
  add_route(r, core, "POST", "/verger/v1/gossip",
            [](std::shared_ptr<Core> node, RoutedRequest request) -> net::awaitable<Response> {
              co_return node->gossip->answer(request.request.body);
            });
  add_route(r, core, "POST", "/verger/v1/election",
            [](std::shared_ptr<Core> node, RoutedRequest request) -> net::awaitable<Response> {
              co_return node->election->answer(request.request.body);
            });
  add_route(r, core, "POST", "/verger/v1/write",
            [](std::shared_ptr<Core> node, RoutedRequest request) -> net::awaitable<Response> {
              co_return co_await answer_write(std::move(node), std::move(request.request.body));
            });
  r.no_method = no_method;
  return router;
}

}  // namespace verger::node
