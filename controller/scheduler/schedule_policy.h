#pragma once

#include <chrono>
#include <expected>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include <nlohmann/json_fwd.hpp>

#include "controller/cluster/registry.h"
#include "controller/scheduler/cron.h"
#include "controller/scheduler/windows.h"
#include "nodeagent/http/client.h"
#include "planner/policy.h"

namespace verger::controller {

/// What becomes of a due time that could not be kept: the controller was down, the cluster paused
/// or busy, the windows closed.
enum class CatchUp : std::uint8_t {
  kRun,            ///< as soon as it can be
  kSkip,           ///< never
  kRunIfInWindow,  ///< as long as the opening lasts in which it was due
};
std::string_view to_string(CatchUp rule);

enum class ResignRule : std::uint8_t {
  kAllowed,
  kNeedsApproval,  ///< a plan that moves the leader waits for a person's `verger apply`
};
std::string_view to_string(ResignRule rule);

/// Whom to notify of what, and how.
struct Notification {
  std::vector<std::string> on;       ///< started, stopped, done, failed, ...
  std::string webhook;               ///< URL; or
  std::vector<std::string> command;  ///< program and arguments; the event's JSON on its stdin; or
  std::string email;                 ///< an address
  std::string format{};              ///< of a webhook's body: notification_formats(); empty: json
};

struct WebhookAddress {
  http::Endpoint endpoint;
  std::string target;  ///< path and query; it may hold a secret
};
/// Errors: kInvalidArgument: no URL, or one that would be called without TLS beyond this machine.
Result<WebhookAddress> webhook_address(std::string_view url);

/// A policy as it is written: YAML, one per file (policies/policy.schema.json).
struct SchedulePolicy {
  std::string name;
  std::string description;
  bool enabled = true;
  std::vector<std::string> clusters;          ///< by name; or
  std::map<std::string, std::string> labels;  ///< every cluster that has all of them
  planner::Policy plan;
  std::vector<CronSchedule> schedules;
  WindowRules windows;
  CatchUp catch_up = CatchUp::kRunIfInWindow;
  std::optional<std::chrono::seconds> expected_duration;
  bool spans_openings = false;  ///< one run may take several openings
  ResignRule resign = ResignRule::kAllowed;
  std::vector<Notification> notifications;
  std::string source;  ///< the YAML

  [[nodiscard]] bool selects(const ClusterConfig& cluster) const;
};

/// Something wrong with a policy's text.
struct PolicyProblem {
  int line = 0;  ///< from 1; 0: the file as a whole
  std::string message;
  friend bool operator==(const PolicyProblem&, const PolicyProblem&) = default;
};
/// "line 3: ..." each on a line of its own.
std::string to_text(const std::vector<PolicyProblem>& problems);

/// All problems at once: syntax, unknown keys (with the nearest name), values, zones, schedules.
/// `defaults` gives what the text does not say. Does not judge whether the windows are wide enough;
/// admit() does.
std::expected<SchedulePolicy, std::vector<PolicyProblem>> parse_schedule_policy(
    std::string_view yaml, const planner::Policy& defaults = {});

/// For the API and for comparing: everything, defaults filled in.
nlohmann::json to_json(const SchedulePolicy& policy);

/// "90m", "6h", "14d", "45s". Errors: kInvalidArgument.
Result<std::chrono::seconds> parse_length(std::string_view text);
/// "16MiB", "1 GiB", "4096". Errors: kInvalidArgument.
Result<std::int64_t> parse_size(std::string_view text);

}  // namespace verger::controller
