// /metrics, as the server's exporter writes it: node-interface.md §1.10.
#include <algorithm>
#include <array>
#include <memory>
#include <prometheus/metric_family.h>
#include <prometheus/text_serializer.h>

#include "nodeagent/node/detail/core.h"
#include "nodeagent/node/node_api.h"
#include "nodeagent/node/scavenger.h"

namespace verger::node {
namespace {

using http::Response;
using http::RoutedRequest;

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

/// What one scrape left for the next ones, as the server's exporter does.
struct Scraped {
  struct Status {
    std::string name;
    std::string value;
    double seconds = 0;  ///< since 1970, when it was last seen as the current one
  };
  std::vector<Status> statuses;  ///< each that was ever seen, in the order of its first time
  std::int64_t at_second = 0;
  std::string text;  ///< the answer for the rest of that second

  void see(std::string name, std::string value, double seconds) {
    const auto known = std::ranges::find_if(statuses, [&](const Status& status) {
      return status.name == name && status.value == value;
    });
    if (known != statuses.end()) {
      known->seconds = seconds;
    } else {
      statuses.push_back({std::move(name), std::move(value), seconds});
    }
  }
};

/// The value of a status is when it was last current, so that the largest is the current one.
void add_statuses(Metrics& metrics, const Core& core, std::int64_t second, Scraped& scraped) {
  const auto running = core.scavenger->running();
  const std::string phase = running ? running->phase : "Idle";
  const auto seconds = static_cast<double>(second);
  scraped.see("Node", std::string(api::to_string(core.election->state())), seconds);
  scraped.see("Index", phase == "Index execution Phase" ? "Scavenging" : "Idle", seconds);
  scraped.see("Scavenge", phase, seconds);
  metrics.family("statuses", prometheus::MetricType::Counter);
  for (const auto& status : scraped.statuses) {
    metrics.value(status.seconds, {{"name", status.name}, {"status", status.value}});
  }
}

std::string scrape(Core& core, Scraped& scraped) {
  using prometheus::MetricType;
  using Label = prometheus::ClientMetric::Label;
  const auto now_ms = (core.env.clock.now().value() - kUnixEpoch.value()) / kTicksPerMillisecond;
  const auto second = now_ms / 1000;
  if (second == scraped.at_second) {
    return scraped.text;
  }
  Metrics metrics(now_ms);
  add_statuses(metrics, core, second, scraped);
  metrics.family("elections_count", MetricType::Counter);
  const auto epoch = core.log().epochs().last();
  metrics.value(epoch ? epoch->number.value() + 1 : 0);
  metrics.family("checkpoints", MetricType::Gauge);
  const auto checkpoint = [&](std::string name, LogPosition position) {
    metrics.value(static_cast<double>(position.value()),
                  {Label{"name", std::move(name)}, Label{"read", "non-flushed"}});
  };
  checkpoint("index", core.db().committed());
  checkpoint("replication", core.db().committed());
  checkpoint("writer", core.log().append_position());
  if (const auto space = core.env.files.space(core.log().directory())) {
    metrics.family("sys_disk_bytes", MetricType::Gauge);
    const auto bytes = [&](std::string kind, std::uint64_t value) {
      metrics.value(static_cast<double>(value),
                    {Label{"kind", std::move(kind)}, Label{"disk", "/"}});
    };
    bytes("used", space->total - std::min(space->total, space->available));
    bytes("total", space->total);
  }
  metrics.family("proc_up_time", MetricType::Counter);
  metrics.value(static_cast<double>(core.env.clock.now().value() - core.born.value()) /
                static_cast<double>(kTicksPerSecond));
  scraped.at_second = second;
  scraped.text = metrics.text();
  return scraped.text;
}

/// Its own kind of negotiation: openmetrics is taken for text, JSON is refused before the
/// credentials are checked.
net::awaitable<Response> metrics(std::shared_ptr<Core> core, RoutedRequest routed,
                                 std::shared_ptr<Scraped> scraped, Need need) {
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
  Response response;
  response.headers.set("Content-Type", "text/plain; charset=utf-8; version=0.0.4");
  response.body = scrape(*core, *scraped);
  co_return response;
}

}  // namespace

void add_metrics_route(http::Router& router, const std::shared_ptr<Core>& core) {
  const auto need = core->options.allow_anonymous_endpoint_access ? Need::kNobody : Need::kUser;
  add_route(router, core, "GET", "/metrics", RouteRule{.need = Need::kNobody},
            [need, scraped = std::make_shared<Scraped>()](std::shared_ptr<Core> node,
                                                          RoutedRequest routed) {
              return metrics(std::move(node), std::move(routed), scraped, need);
            });
}

}  // namespace verger::node
