// /stats, /stats/replication and /stats/tcp: node-interface.md §1.10. What is not measured here is
// zero; the names are the server's.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "nodeagent/node/detail/allowed_methods.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/detail/following.h"
#include "nodeagent/node/detail/leadership.h"
#include "nodeagent/node/node_api.h"

namespace verger::node {
namespace {

using http::Response;
using http::RoutedRequest;
using nlohmann::ordered_json;

const std::vector<Format> kStatsFormats = {Format::kJson, Format::kXml};

/// JSON; as XML nothing: the server's writer gives up on its dictionaries and lists, and a success
/// without a body is what is left (I).
std::string stats_text(const Negotiated& format, const ordered_json& value) {
  return format.format == Format::kXml ? std::string() : indented(value);
}

Response cached_for_a_second(Response response) {
  response.headers.set("Cache-Control", "max-age=1, public");
  response.headers.set("Vary", "Accept");
  return response;
}

ordered_json process_stats(Core& core) {
  rusage usage{};
  static_cast<void>(getrusage(RUSAGE_SELF, &usage));
  return {{"startTime", format_ticks(core.born)},
          {"id", static_cast<std::int64_t>(getpid())},
          {"mem", static_cast<std::int64_t>(usage.ru_maxrss) * 1024},
          {"cpu", 0.0},
          {"threadsCount", 0},
          {"contentionsRate", 0.0},
          {"thrownExceptionsRate", 0.0},
          {"gc",
           {{"allocationSpeed", 0.0},
            {"fragmentation", 0.0},
            {"gen0ItemsCount", 0},
            {"gen0Size", 0},
            {"gen1ItemsCount", 0},
            {"gen1Size", 0},
            {"gen2ItemsCount", 0},
            {"gen2Size", 0},
            {"largeHeapSize", 0},
            {"timeInGc", 0.0},
            {"totalBytesInHeaps", 0}}},
          {"diskIo",
           {{"readBytes", static_cast<std::int64_t>(usage.ru_inblock) * 512},
            {"writtenBytes", static_cast<std::int64_t>(usage.ru_oublock) * 512},
            {"readOps", static_cast<std::int64_t>(usage.ru_inblock)},
            {"writeOps", static_cast<std::int64_t>(usage.ru_oublock)}}},
          {"tcp",
           {{"connections",
             core.leadership->subscribers().size() + (core.following->has_link() ? 1U : 0U)},
            {"receivingSpeed", 0.0},
            {"sendingSpeed", 0.0},
            {"inSend", 0},
            {"measureTime", "00:00:00"},
            {"pendingReceived", 0},
            {"pendingSend", 0},
            {"receivedBytesSinceLastRun", 0},
            {"receivedBytesTotal", 0},
            {"sentBytesSinceLastRun", 0},
            {"sentBytesTotal", 0}}}};
}

ordered_json system_stats(Core& core) {
  std::array<double, 3> load{};
  if (getloadavg(load.data(), static_cast<int>(load.size())) < 0) {
    load = {};
  }
  struct sysinfo memory{};
  static_cast<void>(sysinfo(&memory));
  const auto bytes = [&](unsigned long units) {
    return static_cast<std::int64_t>(units) * static_cast<std::int64_t>(memory.mem_unit);
  };
  ordered_json stats = {{"cpu", 0.0},
                        {"loadavg", {{"1m", load[0]}, {"5m", load[1]}, {"15m", load[2]}}},
                        {"freeMem", bytes(memory.freeram)},
                        {"totalMem", bytes(memory.totalram)}};
  if (const auto space = core.env.files.space(core.log().directory())) {
    const auto used = space->total - std::min(space->total, space->available);
    stats["drive"] = {{"/",
                       {{"availableBytes", space->available},
                        {"totalBytes", space->total},
                        {"usage", space->total == 0 ? 0 : used * 100 / space->total},
                        {"usedBytes", used}}}};
  }
  return stats;
}

ordered_json cache_stats(std::string_view name, ordered_json parts) {
  parts.update({{"name", name},
                {"count", 0},
                {"sizeBytes", 0},
                {"capacityBytes", 0},
                {"utilizationPercent", 0.0}});
  return parts;
}

ordered_json server_stats(Core& core) {
  const ordered_json queue = {{"queueName", "MainQueue"},
                              {"groupName", ""},
                              {"avgItemsPerSecond", 0},
                              {"avgProcessingTime", 0.0},
                              {"currentIdleTime", "0:00:00:00.0000000"},
                              {"currentItemProcessingTime", nullptr},
                              {"idleTimePercent", 100.0},
                              {"length", core.requests},
                              {"lengthCurrentTryPeak", 0},
                              {"lengthLifetimePeak", 0},
                              {"totalItemsProcessed", 0},
                              {"inProgressMessage", "<none>"},
                              {"lastProcessedMessage", "<none>"}};
  auto last = cache_stats("LastEventNumber", ordered_json::object());
  auto metadata = cache_stats("Metadata", ordered_json::object());
  auto streams = cache_stats("StreamInfo", {{"lastEventNumber", last}, {"metadata", metadata}});
  return {{"checksum", core.log().end().value()},
          {"checksumNonFlushed", core.log().append_position().value()},
          {"queue", {{"mainQueue", queue}}},
          {"cache", cache_stats("cache", {{"streamInfo", streams}})},
          {"writer",
           {{"lastFlushSize", 0},
            {"lastFlushDelayMs", 0.0},
            {"meanFlushSize", 0},
            {"meanFlushDelayMs", 0.0},
            {"maxFlushSize", 0},
            {"maxFlushDelayMs", 0.0},
            {"queuedFlushMessages", 0}}},
          {"readIndex",
           {{"cachedRecord", 0},
            {"notCachedRecord", 0},
            {"cachedStreamInfo", 0},
            {"notCachedStreamInfo", 0},
            {"cachedTransInfo", 0},
            {"notCachedTransInfo", 0}}}};
}

ordered_json all_stats(Core& core) {
  return {{"proc", process_stats(core)}, {"sys", system_stats(core)}, {"es", server_stats(core)}};
}

void flatten(const ordered_json& value, const std::string& name, ordered_json& out) {
  if (!value.is_object()) {
    out[name] = value;
    return;
  }
  for (const auto& [member, inner] : value.items()) {
    flatten(inner, name.empty() ? member : fmt::format("{}-{}", name, member), out);
  }
}

/// What `metadata=true` describes: the server describes these and no others. A value with its
/// description is no group, so a path cannot name it.
struct Described {
  std::string_view name;      ///< ungrouped; the parts have no "-" in them
  std::string_view category;  ///< empty: null
  std::string_view title;
};

constexpr auto kDescribed = std::to_array<Described>(
    {{.name = "proc-mem", .category = "Process", .title = "Process Virtual Memory"},
     {.name = "proc-cpu", .category = "Process", .title = "Process Cpu Usage"},
     {.name = "es-writer-lastFlushSize", .category = "", .title = "Writer Last Flush Size"},
     {.name = "es-writer-lastFlushDelayMs", .category = "", .title = "Writer Last Flush Delay, ms"},
     {.name = "es-writer-meanFlushSize", .category = "", .title = "Writer Mean Flush Size"},
     {.name = "es-writer-meanFlushDelayMs", .category = "", .title = "Writer Mean Flush Delay, ms"},
     {.name = "es-writer-maxFlushSize", .category = "", .title = "Writer Max Flush Size"},
     {.name = "es-writer-maxFlushDelayMs", .category = "", .title = "Writer Max Flush Delay, ms"},
     {.name = "es-writer-queuedFlushMessages",
      .category = "",
      .title = "Writer Queued Flush Message"}});

ordered_json with_description(const Described& described, ordered_json value) {
  const auto category =
      described.category.empty() ? ordered_json() : ordered_json(described.category);
  return {{"value", std::move(value)},
          {"category", category},
          {"title", described.title},
          {"drawChart", true}};
}

/// `prefix` is where `group` stands, "es-writer-" for example.
void describe(ordered_json& group, const std::string& prefix) {
  for (const auto& [member, inner] : group.items()) {
    const auto name = prefix + member;
    const auto* described = std::ranges::find(kDescribed, name, &Described::name);
    if (described != kDescribed.end()) {
      inner = with_description(*described, std::move(inner));
    } else if (inner.is_object()) {
      describe(inner, name + "-");
    }
  }
}

net::awaitable<Response> stats(std::shared_ptr<Core> core, RoutedRequest routed) {
  const auto format = choose_format(routed, kStatsFormats);
  if (!format) {
    co_return format.error();
  }
  const auto asked = routed.target.parameter("group");
  const bool grouped = !asked || parse_boolean(*asked).value_or(true);
  const auto& segments = routed.target.segments;
  if (!grouped && segments.size() > 1) {
    co_return text_response(400, "Dynamic stats selection works only with grouping enabled",
                            methods::kGet, false);
  }
  const auto all = all_stats(*core);
  std::string prefix;
  const auto* group = &all;
  for (std::size_t i = 1; i < segments.size(); ++i) {
    const auto found = group->find(segments[i]);
    // Groups can be named, values cannot.
    if (found == group->end() || !found->is_object()) {
      co_return text_response(404, {}, methods::kGet, true);
    }
    group = &*found;
    prefix += segments[i] + "-";
  }
  ordered_json shown = ordered_json::object();
  if (grouped) {
    shown = *group;
  } else {
    flatten(all, {}, shown);
  }
  const auto metadata = routed.target.parameter("metadata");
  if (metadata && parse_boolean(*metadata).value_or(false)) {
    describe(shown, prefix);
  }
  co_return cached_for_a_second(formatted(*format, stats_text(*format, shown), methods::kGet));
}

net::awaitable<Response> replication_stats(std::shared_ptr<Core> core, RoutedRequest routed) {
  const auto format = choose_format(routed, kStatsFormats);
  if (!format) {
    co_return format.error();
  }
  auto list = ordered_json::array();
  for (const auto& subscriber : core->leadership->subscribers()) {
    const auto* member = core->gossip->find(subscriber->node);
    if (!subscriber->accepted || subscriber->closed || member == nullptr) {
      continue;
    }
    list.push_back(
        {{"subscriptionId", subscriber->instance.to_string()},
         {"connectionId", subscriber->instance.to_string()},
         {"subscriptionEndpoint",
          fmt::format("Unspecified/{}:{}", member->replication.host, member->replication.port)},
         {"totalBytesSent", subscriber->bytes_sent},
         {"totalBytesReceived", subscriber->bytes_received},
         {"pendingSendBytes", 0},
         {"pendingReceivedBytes", 0},
         {"sendQueueSize", 0}});
  }
  co_return cached_for_a_second(formatted(*format, stats_text(*format, list), methods::kGetTwice));
}

net::awaitable<Response> tcp_stats(std::shared_ptr<Core> core, RoutedRequest routed) {
  const auto format = choose_format(routed, kStatsFormats);
  if (!format) {
    co_return format.error();
  }
  auto list = ordered_json::array();
  const auto add = [&](const Member& other, const Uuid& id, std::uint64_t sent,
                       std::uint64_t received) {
    list.push_back(
        {{"remoteEndPoint", fmt::format("{}:{}", other.replication.host, other.replication.port)},
         {"localEndPoint",
          fmt::format("{}:{}", core->addresses.replication.host, core->addresses.replication.port)},
         {"clientConnectionName", nullptr},
         {"connectionId", id.to_string()},
         {"totalBytesSent", sent},
         {"totalBytesReceived", received},
         {"pendingSendBytes", 0},
         {"pendingReceivedBytes", 0},
         {"isExternalConnection", false},
         {"isSslConnection", core->addresses.replication.tls}});
  };
  if (const auto* followed = core->following->connected_leader()) {
    if (const auto* leader = core->gossip->find(followed->node)) {
      add(*leader, leader->instance, 0, 0);
    }
  }
  for (const auto& subscriber : core->leadership->subscribers()) {
    const auto* member = core->gossip->find(subscriber->node);
    if (subscriber->accepted && member != nullptr) {
      add(*member, subscriber->instance, subscriber->bytes_sent, subscriber->bytes_received);
    }
  }
  co_return cached_for_a_second(formatted(*format, stats_text(*format, list), methods::kGetTwice));
}

}  // namespace

ordered_json flat_stats(Core& core) {
  auto out = ordered_json::object();
  flatten(all_stats(core), {}, out);
  return out;
}

void add_stats_routes(http::Router& router, const std::shared_ptr<Core>& core) {
  const auto need = core->options.allow_anonymous_endpoint_access ? Need::kNobody : Need::kUser;
  const RouteRule rule{.need = need, .formats = kStatsFormats};
  add_route(router, core, "GET", "/stats", rule, stats);
  add_route(router, core, "GET", "/stats/replication", rule, replication_stats);
  add_route(router, core, "GET", "/stats/tcp", rule, tcp_stats);
  add_route(router, core, "GET", "/stats/{path*}", rule, stats);
}

}  // namespace verger::node
