#include "nodeagent/client/server_work.h"

#include <fmt/format.h>
#include <string_view>

#include <nlohmann/json.hpp>

#include "nodeagent/api/json_text.h"
#include "nodeagent/client/detail/common.h"

namespace verger::client {
namespace {

using nlohmann::json;

/// A member that is text; empty where there is none.
std::string work_text(const json& entry, std::string_view name) {
  const auto found = entry.find(name);
  return found != entry.end() && found->is_string() ? found->get<std::string>() : std::string{};
}

/// "Running", "Stopped (Enabled)", "Running/CompletingPhase/Writing results": the first word
/// counts.
WorkState projection_state(std::string_view status) {
  const auto first = status.substr(0, status.find_first_of("/ ("));
  if (first == "Running") {
    return WorkState::kRunning;
  }
  for (const auto* each :
       {"Creating", "Loading", "Loaded", "Preparing", "Prepared", "Starting", "LoadingStopped"}) {
    if (first == each) {
      return WorkState::kStarting;
    }
  }
  return WorkState::kStopped;
}

/// Flags: "Live", "Behind, OutstandingPageRequest", "NotReady".
WorkState subscription_state(std::string_view status) {
  if (status.contains("NotReady")) {
    return WorkState::kStarting;
  }
  return status.contains("Live") || status.contains("Behind") ? WorkState::kRunning
                                                              : WorkState::kStopped;
}

Outcome<std::vector<ServerWork>> unreadable_work(const http::Response& response) {
  return unknown<std::vector<ServerWork>>(
      "unexpected_answer", "the list cannot be read; the answer was " + describe(response));
}

}  // namespace

Outcome<std::vector<ServerWork>> parse_answer_projections(const http::Response& response) {
  if (response.status != 200) {
    return common_failure(response).as<std::vector<ServerWork>>();
  }
  const auto value = api::parse_json(response.body, "projections");
  if (!value || !value->is_object()) {
    return unreadable_work(response);
  }
  const auto list = value->find("projections");
  if (list == value->end() || !list->is_array()) {
    return unreadable_work(response);
  }
  std::vector<ServerWork> out;
  for (const auto& each : *list) {
    if (!each.is_object() || work_text(each, "name").empty()) {
      return unreadable_work(response);
    }
    const auto status = work_text(each, "status");
    const auto reason = work_text(each, "stateReason");
    out.push_back({.name = work_text(each, "name"),
                   .status = reason.empty() ? status : fmt::format("{}: {}", status, reason),
                   .state = projection_state(status),
                   .continuous = work_text(each, "mode") == "Continuous"});
  }
  return done(std::move(out));
}

Outcome<std::vector<ServerWork>> parse_answer_subscriptions(const http::Response& response) {
  if (response.status != 200) {
    return common_failure(response).as<std::vector<ServerWork>>();
  }
  const auto value = api::parse_json(response.body, "subscriptions");
  if (!value || !value->is_array()) {
    return unreadable_work(response);
  }
  std::vector<ServerWork> out;
  for (const auto& each : *value) {
    if (!each.is_object() || work_text(each, "groupName").empty()) {
      return unreadable_work(response);
    }
    const auto status = work_text(each, "status");
    out.push_back({.name = fmt::format("{}::{}", work_text(each, "eventStreamId"),
                                       work_text(each, "groupName")),
                   .status = status,
                   .state = subscription_state(status)});
  }
  return done(std::move(out));
}

Outcome<Nothing> parse_answer_work_started(const http::Response& response) {
  if (response.status == 200) {
    return unknown<Nothing>("queued", "the node took it, and does it later");
  }
  return common_failure(response).as<Nothing>();
}

}  // namespace verger::client
