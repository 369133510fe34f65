// /admin/scavenge: node-interface.md §1.4 to §1.7.
#include <array>

#include <nlohmann/json.hpp>

#include "nodeagent/node/detail/allowed_methods.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/node_api.h"
#include "nodeagent/node/scavenger.h"

namespace verger::node {
namespace {

using http::Response;
using http::RoutedRequest;

constexpr std::string_view kCurrentScavenge = "DELETE, GET, OPTIONS";
constexpr std::string_view kById = "DELETE, OPTIONS";
const std::vector<Format> kFormats = {Format::kText, Format::kJson, Format::kXml};

std::optional<std::int32_t> integer(std::string_view text) {
  return parse_number<std::int32_t>(text);
}

/// The checks in the server's order; the error is the answer's text.
std::expected<ScavengeRequest, std::string> parse_request(const http::Target& target) {
  ScavengeRequest request;
  if (const auto text = joined_parameter(target, "startFromChunk")) {
    const auto value = integer(*text);
    if (!value || *value < 0) {
      return std::unexpected("startFromChunk must be a positive integer");
    }
  }
  if (const auto text = joined_parameter(target, "threads")) {
    const auto value = integer(*text);
    if (!value || *value < 1) {
      return std::unexpected("threads must be a 1 or above");
    }
    request.threads = *value;
  }
  if (const auto text = joined_parameter(target, "threshold")) {
    const auto value = integer(*text);
    if (!value) {
      return std::unexpected("threshold must be an integer");
    }
    request.threshold = *value;
  }
  if (const auto text = joined_parameter(target, "throttlePercent")) {
    const auto value = integer(*text);
    if (!value || *value < 1 || *value > 100) {
      return std::unexpected("throttlePercent must be between 1 and 100 inclusive");
    }
    if (*value != 100 && request.threads > 1) {
      return std::unexpected("throttlePercent must be 100 for a multi-threaded scavenge");
    }
    request.throttle_percent = *value;
  }
  if (const auto text = joined_parameter(target, "syncOnly")) {
    const auto value = parse_boolean(*text);
    if (!value) {
      return std::unexpected("syncOnly must be a boolean");
    }
    request.sync_only = *value;
  }
  return request;
}

net::awaitable<Response> start(std::shared_ptr<Core> core, RoutedRequest request) {
  const auto format = choose_format(request, kFormats);
  if (!format) {
    co_return format.error();
  }
  const auto parsed = parse_request(request.target);
  if (!parsed) {
    co_return text_response(400, parsed.error(), methods::kPost, false);
  }
  const auto started = core->scavenger->start(*parsed);
  if (!started) {
    co_return text_response(400, started.error().message, methods::kPost, true);
  }
  if (format->format == Format::kText) {
    co_return formatted(*format, "ScavengeId: " + *started, methods::kPost);
  }
  if (format->format == Format::kXml) {
    const std::array members = {std::pair<std::string, std::string>("ScavengeId", *started)};
    co_return formatted(*format, xml_of("ScavengeResultDto", members), methods::kPost);
  }
  co_return formatted(*format, indented({{"scavengeId", *started}}), methods::kPost);
}

net::awaitable<Response> current_scavenge(std::shared_ptr<Core> core, RoutedRequest request) {
  const auto format = choose_format(request, kFormats);
  if (!format) {
    co_return format.error();
  }
  const auto& id = core->scavenger->current();
  const auto link = id.empty() ? std::string() : "/admin/scavenge/" + id;
  if (format->format == Format::kText) {
    co_return formatted(*format, fmt::format("ScavengeId: {}, ScavengeLink: {}", id, link),
                        kCurrentScavenge);
  }
  if (format->format == Format::kXml) {
    const std::array members = {std::pair<std::string, std::string>("ScavengeId", id),
                                std::pair<std::string, std::string>("ScavengeLink", link)};
    co_return formatted(*format, xml_of("ScavengeGetResultDto", members), kCurrentScavenge);
  }
  co_return formatted(*format, indented({{"scavengeId", id}, {"scavengeLink", link}}),
                      kCurrentScavenge);
}

net::awaitable<Response> stop(std::shared_ptr<Core> core, RoutedRequest request) {
  const auto format = choose_format(request, kFormats);
  if (!format) {
    co_return format.error();
  }
  const std::string id(request.parameter("id"));
  const auto methods = id == "current" ? kCurrentScavenge : kById;
  const auto stopped = co_await Scavenger::stop(core->keep(*core->scavenger), id);
  while (stopped && core->options.misbehaviour.lose_stop_answer && core->serving()) {
    co_await core->env.timers.sleep_for(core->options.timings.tick);
  }
  if (!stopped) {
    co_return text_response(404, "Scavenge Id does not exist", methods, true);
  }
  co_return formatted(
      *format,
      format->format == Format::kText ? *stopped
      : format->format == Format::kXml
          ? fmt::format("<?xml version=\"1.0\" encoding=\"utf-8\"?><string>{}</string>", *stopped)
          : "\"" + *stopped + "\"",
      methods);
}

}  // namespace

void add_scavenge_routes(http::Router& router, const std::shared_ptr<Core>& core) {
  const RouteRule rule{.need = Need::kOperator, .formats = kFormats};
  add_route(router, core, "POST", "/admin/scavenge", rule, start);
  add_route(router, core, "GET", "/admin/scavenge/current", rule, current_scavenge);
  add_route(router, core, "DELETE", "/admin/scavenge/{id}", rule, stop);
}

}  // namespace verger::node
