#include "controller/scheduler/schedule_policy.h"

#include <algorithm>
#include <charconv>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/executor/plan_json.h"
#include "nodeagent/http/loopback.h"
#include "planner/plan.h"

namespace verger::controller {
namespace {

using nlohmann::json;
using std::chrono::seconds;

/// The number in front of a unit; nullopt for anything else.
std::optional<std::pair<double, std::string>> number_and_unit(std::string_view text) {
  double value = 0;
  const char* const end = text.data() + text.size();
  const auto [next, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || value < 0) {
    return std::nullopt;
  }
  std::string_view unit(next, static_cast<std::size_t>(end - next));
  while (unit.starts_with(' ')) {
    unit.remove_prefix(1);
  }
  return std::pair(value, std::string(unit));
}

json to_json(const Window& window) {
  return {{"name", window.name}, {"zone", window.zone.name()}, {"text", window.describe()}};
}

}  // namespace

std::string_view to_string(CatchUp rule) {
  switch (rule) {
    case CatchUp::kRun:
      return "run";
    case CatchUp::kSkip:
      return "skip";
    case CatchUp::kRunIfInWindow:
      return "run-if-in-window";
  }
  return "";
}

std::string_view to_string(ResignRule rule) {
  return rule == ResignRule::kAllowed ? "allowed" : "needs-approval";
}

bool SchedulePolicy::selects(const ClusterConfig& cluster) const {
  if (labels.empty()) {
    return std::ranges::find(clusters, cluster.name) != clusters.end();
  }
  return std::ranges::all_of(labels, [&cluster](const auto& label) {
    const auto found = cluster.labels.find(label.first);
    return found != cluster.labels.end() && found->second == label.second;
  });
}

std::string to_text(const std::vector<PolicyProblem>& problems) {
  std::string out;
  for (const auto& problem : problems) {
    out += fmt::format("{}{}{}", out.empty() ? "" : "\n",
                       problem.line > 0 ? fmt::format("line {}: ", problem.line) : "",
                       problem.message);
  }
  return out;
}

Result<seconds> parse_length(std::string_view text) {
  const auto parsed = number_and_unit(text);
  const auto wrong =
      Error{Errc::kInvalidArgument,
            fmt::format("\"{}\" is no length of time; it takes 45s, 90m, 6h, 14d", text)};
  if (!parsed) {
    return wrong;
  }
  const auto& [value, unit] = *parsed;
  const double factor = unit == "s"   ? 1
                        : unit == "m" ? 60
                        : unit == "h" ? 3'600
                        : unit == "d" ? 86'400
                                      : 0;
  if (factor == 0 || value * factor > 1e9) {
    return wrong;
  }
  return seconds(static_cast<std::int64_t>(value * factor));
}

Result<std::int64_t> parse_size(std::string_view text) {
  const auto parsed = number_and_unit(text);
  const auto wrong =
      Error{Errc::kInvalidArgument,
            fmt::format("\"{}\" is no size; it takes 4096, 64KiB, 16MiB, 2GiB, 1TiB", text)};
  if (!parsed) {
    return wrong;
  }
  const auto& [value, unit] = *parsed;
  const std::pair<std::string_view, unsigned> units[] = {{"", 0U},     {"B", 0U},    {"KiB", 10U},
                                                         {"MiB", 20U}, {"GiB", 30U}, {"TiB", 40U}};
  for (const auto& [name, shift] : units) {
    if (name == unit) {
      const auto bytes = value * static_cast<double>(std::int64_t{1} << shift);
      if (bytes > 9e18) {
        return wrong;
      }
      return static_cast<std::int64_t>(bytes);
    }
  }
  return wrong;
}

Result<WebhookAddress> webhook_address(std::string_view url) {
  const auto scheme = url.find("://");
  const auto path = scheme == std::string_view::npos ? scheme : url.find('/', scheme + 3);
  VERGER_TRY(auto endpoint, http::parse_endpoint(url.substr(0, path), 0));
  if (!endpoint.tls && !http::is_loopback(endpoint.host)) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: plain HTTP is for loopback addresses only", endpoint.url())};
  }
  std::string target(path == std::string_view::npos ? "/" : url.substr(path));
  // A blank or the end of a line would end the request's first line.
  if (!std::ranges::all_of(target, [](char c) { return c > 0x20 && c < 0x7F && c != '#'; })) {
    return Error{Errc::kInvalidArgument,
                 fmt::format("{}: its path has a character that no URL has; write it as %XX",
                             endpoint.url())};
  }
  return WebhookAddress{std::move(endpoint), std::move(target)};
}

json to_json(const SchedulePolicy& policy) {
  auto schedules = json::array();
  for (const auto& schedule : policy.schedules) {
    schedules.push_back({{"cron", schedule.text()}, {"zone", schedule.zone().name()}});
  }
  auto allow = json::array();
  for (const auto& window : policy.windows.allow) {
    allow.push_back(to_json(window));
  }
  auto deny = json::array();
  for (const auto& window : policy.windows.deny) {
    deny.push_back(to_json(window));
  }
  auto notifications = json::array();
  for (const auto& each : policy.notifications) {
    notifications.push_back({{"on", each.on},
                             {"webhook", each.webhook},
                             {"format", each.format.empty() ? "json" : each.format},
                             {"command", each.command},
                             {"email", each.email}});
  }
  return {{"name", policy.name},
          {"description", policy.description},
          {"enabled", policy.enabled},
          {"clusters", policy.clusters},
          {"labels", policy.labels},
          {"plan", to_nlohmann(planner::to_json(policy.plan))},
          {"schedule", std::move(schedules)},
          {"windows", {{"allow", std::move(allow)}, {"deny", std::move(deny)}}},
          {"catch_up", to_string(policy.catch_up)},
          {"expected_duration_seconds",
           policy.expected_duration ? json(policy.expected_duration->count()) : json()},
          {"spans_openings", policy.spans_openings},
          {"resign", to_string(policy.resign)},
          {"notifications", std::move(notifications)}};
}

}  // namespace verger::controller
