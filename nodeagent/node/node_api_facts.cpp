// /stats, /info/options and /metrics: node-interface.md §1.10.
#include <array>
#include <cstdlib>
#include <fmt/format.h>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>
#include <sys/resource.h>
#include <sys/sysinfo.h>
#include <unistd.h>

#include <nlohmann/json.hpp>

#include "nodeagent/node/detail/allowed_methods.h"
#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/detail/following.h"
#include "nodeagent/node/detail/leadership.h"
#include "nodeagent/node/node_api.h"
#include "nodeagent/node/scavenger.h"

namespace verger::node {
namespace {

using http::Response;
using http::RoutedRequest;
using nlohmann::ordered_json;

const std::vector<Format> kStatsFormats = {Format::kJson, Format::kXml};
const std::vector<Format> kOptionsFormats = {Format::kJson, Format::kXml, Format::kText};

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

// --- Statistics: what is not measured here is zero; the names are the server's ---

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

void flatten(const ordered_json& value, const std::string& name, ordered_json& out) {
  if (!value.is_object()) {
    out[name] = value;
    return;
  }
  for (const auto& [member, inner] : value.items()) {
    flatten(inner, name.empty() ? member : fmt::format("{}-{}", name, member), out);
  }
}

net::awaitable<Response> stats(std::shared_ptr<Core> core, RoutedRequest routed) {
  const auto format = choose_format(routed, kStatsFormats);
  if (!format) {
    co_return format.error();
  }
  const auto group = routed.target.parameter("group");
  const bool grouped = !group || parse_boolean(*group).value_or(true);
  const auto& segments = routed.target.segments;
  if (!grouped && segments.size() > 1) {
    co_return text_response(400, "Dynamic stats selection works only with grouping enabled",
                            methods::kGet, false);
  }
  const ordered_json all = {
      {"proc", process_stats(*core)}, {"sys", system_stats(*core)}, {"es", server_stats(*core)}};
  const auto* chosen = &all;
  for (std::size_t i = 1; i < segments.size(); ++i) {
    const auto found = chosen->find(segments[i]);
    // Groups can be named, values cannot.
    if (found == chosen->end() || !found->is_object()) {
      co_return text_response(404, {}, methods::kGet, true);
    }
    chosen = &*found;
  }
  ordered_json flat = ordered_json::object();
  if (!grouped) {
    flatten(all, {}, flat);
  }
  co_return cached_for_a_second(
      formatted(*format, stats_text(*format, grouped ? *chosen : flat), methods::kGet));
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

// --- Options ---

EffectiveOption option(std::string name, std::string group, std::string value, std::string type,
                       std::string description) {
  return {.name = std::move(name),
          .description = std::move(description),
          .group = std::move(group),
          .value = std::move(value),
          .source = "<DEFAULT>",
          .type = std::move(type)};
}

/// For a node that was not started by a program with options.
std::vector<EffectiveOption> known_options(const NodeOptions& options) {
  const auto truth = [](bool value) { return std::string(value ? "True" : "False"); };
  return {option("Insecure", "ApplicationOptions", truth(options.insecure), "boolean",
                 "Disable Authentication, Authorization and TLS on all TCP/HTTP interfaces."),
          option("DefaultAdminPassword", "DefaultUserOptions", "********", "string",
                 "Admin Default password"),
          option("DefaultOpsPassword", "DefaultUserOptions", "********", "string",
                 "Ops Default password"),
          option("ClusterSize", "ClusterOptions", std::to_string(options.cluster_size), "integer",
                 "The number of nodes in the cluster."),
          option("NodePriority", "ClusterOptions", std::to_string(options.node_priority), "integer",
                 "The node priority used during leader election."),
          option("ReadOnlyReplica", "ClusterOptions", truth(options.read_only_replica), "boolean",
                 "Sets this node as a read only replica that does not vote."),
          option("Db", "DatabaseOptions", options.database.string(), "string",
                 "The path the db should be loaded/saved to."),
          option("Index", "DatabaseOptions", options.index.string(), "string",
                 "The path the index should be loaded/saved to."),
          option("ChunkSize", "DatabaseOptions", std::to_string(options.chunk_size), "integer", ""),
          option("EnableAtomPubOverHttp", "InterfaceOptions", truth(options.enable_atom_pub),
                 "boolean", "Enable AtomPub over HTTP Interface.")};
}

net::awaitable<Response> info_options(std::shared_ptr<Core> core, RoutedRequest routed) {
  const auto format = choose_format(routed, kOptionsFormats);
  if (!format) {
    co_return format.error();
  }
  auto list = ordered_json::array();
  const auto& given = core->options.effective;
  for (const auto& one : given.empty() ? known_options(core->options) : given) {
    ordered_json schema = {{"type", one.type}};
    if (!one.unit.empty()) {
      schema["x-unit"] = one.unit;
    }
    list.push_back({{"name", one.name},
                    {"description", one.description},
                    {"group", one.group},
                    {"value", one.value},
                    {"configurationSource", one.source},
                    {"deprecationMessage", one.deprecation.empty() ? ordered_json(nullptr)
                                                                   : ordered_json(one.deprecation)},
                    {"schema", std::move(schema)}});
  }
  co_return formatted(*format, indented(list), methods::kGet);
}

// --- Metrics ---

class Metrics {
 public:
  explicit Metrics(std::int64_t now_ms) : now_ms_(now_ms) {}

  void family(std::string name, prometheus::MetricType type) {
    families_.push_back({"eventstore_" + std::move(name), {}, type, {}});
  }
  void value(double value, std::vector<prometheus::ClientMetric::Label> labels = {}) {
    prometheus::ClientMetric metric;
    metric.label = std::move(labels);
    metric.timestamp_ms = now_ms_;
    if (families_.back().type == prometheus::MetricType::Counter) {
      metric.counter.value = value;
    } else {
      metric.gauge.value = value;
    }
    families_.back().metric.push_back(std::move(metric));
  }
  [[nodiscard]] std::string text() const {
    return prometheus::TextSerializer().Serialize(families_);
  }

 private:
  std::int64_t now_ms_;
  std::vector<prometheus::MetricFamily> families_;
};

net::awaitable<Response> metrics(std::shared_ptr<Core> core, RoutedRequest) {
  using prometheus::MetricType;
  using Label = prometheus::ClientMetric::Label;
  const auto now_ms = (core->env.clock.now().value() - kUnixEpoch.value()) / kTicksPerMillisecond;
  Metrics metrics(now_ms);
  const auto whole_seconds = now_ms / 1000;
  const auto seconds = static_cast<double>(whole_seconds);
  // The value is when a status was last current, so that the largest is the current one.
  const auto running = core->scavenger->running();
  const std::string phase = running ? running->phase : "Idle";
  metrics.family("statuses", MetricType::Counter);
  const auto status = [&](std::string name, std::string value) {
    metrics.value(seconds, {Label{"name", std::move(name)}, Label{"status", std::move(value)}});
  };
  status("Node", std::string(api::to_string(core->election->state())));
  status("Index", phase == "Index execution Phase" ? "Scavenging" : "Idle");
  status("Scavenge", phase);
  metrics.family("elections_count", MetricType::Counter);
  const auto epoch = core->log().epochs().last();
  metrics.value(epoch ? epoch->number.value() + 1 : 0);
  metrics.family("checkpoints", MetricType::Gauge);
  const auto checkpoint = [&](std::string name, LogPosition position) {
    metrics.value(static_cast<double>(position.value()),
                  {Label{"name", std::move(name)}, Label{"read", "non-flushed"}});
  };
  checkpoint("index", core->db().committed());
  checkpoint("replication", core->db().committed());
  checkpoint("writer", core->log().append_position());
  if (const auto space = core->env.files.space(core->log().directory())) {
    metrics.family("sys_disk_bytes", MetricType::Gauge);
    const auto bytes = [&](std::string kind, std::uint64_t value) {
      metrics.value(static_cast<double>(value),
                    {Label{"kind", std::move(kind)}, Label{"disk", "/"}});
    };
    bytes("used", space->total - std::min(space->total, space->available));
    bytes("total", space->total);
  }
  metrics.family("proc_up_time", MetricType::Counter);
  metrics.value(static_cast<double>(core->env.clock.now().value() - core->born.value()) /
                static_cast<double>(kTicksPerSecond));
  Response response;
  response.headers.set("Content-Type", "text/plain; charset=utf-8; version=0.0.4");
  response.body = metrics.text();
  co_return response;
}

/// Its own kind of negotiation: openmetrics is taken for text, JSON is refused before anybody is
/// asked who he is.
net::awaitable<Response> metrics_route(std::shared_ptr<Core> core, RoutedRequest routed,
                                       Need need) {
  constexpr std::array kText = {Format::kText};
  const auto asked = routed.target.parameter("format");
  const auto accept = routed.request.headers.get("Accept");
  const bool openmetrics = (!asked || asked->empty()) && accept &&
                           accept->find("application/openmetrics-text") != std::string_view::npos;
  if (const auto format = choose_format(routed, kText); !format && !openmetrics) {
    co_return format.error();
  }
  if (!satisfies(identity_of(*core, routed.request), need)) {
    co_return not_allowed();
  }
  co_return co_await metrics(std::move(core), std::move(routed));
}

}  // namespace

void add_fact_routes(http::Router& router, const std::shared_ptr<Core>& core) {
  const auto need = core->options.allow_anonymous_endpoint_access ? Need::kNobody : Need::kUser;
  if (!core->options.disable_stats_on_http) {
    const RouteRule rule{.need = need, .formats = kStatsFormats};
    add_route(router, core, "GET", "/stats", rule, stats);
    add_route(router, core, "GET", "/stats/replication", rule, replication_stats);
    add_route(router, core, "GET", "/stats/tcp", rule, tcp_stats);
    add_route(router, core, "GET", "/stats/{path*}", rule, stats);
    add_route(router, core, "GET", "/metrics", RouteRule{.need = Need::kNobody},
              [need](std::shared_ptr<Core> node, RoutedRequest routed) {
                return metrics_route(std::move(node), std::move(routed), need);
              });
  }
  add_route(router, core, "GET", "/info/options",
            {.need = Need::kOperator, .formats = kOptionsFormats}, info_options);
}

}  // namespace verger::node
