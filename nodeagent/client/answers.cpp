#include "nodeagent/client/answers.h"

#include <algorithm>

#include <nlohmann/json.hpp>

#include "nodeagent/api/json_text.h"
#include "nodeagent/client/detail/common.h"

namespace verger::client {
namespace {

using nlohmann::json;

template <class T>
Outcome<T> failure_of(const http::Response& response) {
  return common_failure(response).as<T>();
}

/// 200 with a body that another function could not read.
template <class T>
Outcome<T> unread(const http::Response& response, const Error& error) {
  return unknown<T>("unexpected_answer", error.message + "; the answer was " + describe(response));
}

/// What any client may read, a wrong password forbids: that says nothing about the node.
template <class T>
Outcome<T> fail_open_read(const http::Response& response) {
  auto failure = common_failure(response);
  if (failure.code == "bad_credentials") {
    failure.verdict = Verdict::kUnknown;
    failure.code = "credentials_refused";
  }
  return failure.as<T>();
}

/// A member that is text; empty where there is none.
std::string text_member(const json& object, std::string_view name) {
  if (!object.is_object()) {
    return {};
  }
  const auto it = object.find(name);
  return it != object.end() && it->is_string() ? it->get<std::string>() : std::string{};
}

/// The id in {"scavengeId": "..."} or, in answers of old versions, "ScavengeId: ...".
std::string scavenge_id(const std::string& body) {
  constexpr std::string_view kText = "ScavengeId: ";
  if (body.starts_with(kText)) {
    auto id = body.substr(kText.size(), 36);
    return is_guid(id) ? id : std::string{};
  }
  const auto value = api::parse_json(body, "answer");
  if (!value.has_value()) {
    return {};
  }
  auto id = text_member(*value, "scavengeId");
  return is_guid(id) ? id : std::string{};
}

}  // namespace

bool Login::may_operate() const {
  return std::ranges::any_of(
      groups, [](const auto& group) { return group == "$admins" || group == "$ops"; });
}

Outcome<api::Gossip> parse_answer_gossip(const http::Response& response) {
  if (response.status != 200) {
    return fail_open_read<api::Gossip>(response);
  }
  auto gossip = api::parse_gossip(response.body);
  return gossip.has_value() ? done(std::move(*gossip))
                            : unread<api::Gossip>(response, gossip.error());
}

Outcome<api::NodeInfo> parse_answer_info(const http::Response& response) {
  if (response.status != 200) {
    return fail_open_read<api::NodeInfo>(response);
  }
  // It is JSON with any Content-Type.
  auto info = api::parse_info(response.body);
  return info.has_value() ? done(std::move(*info)) : unread<api::NodeInfo>(response, info.error());
}

Outcome<Nothing> parse_answer_ping(const http::Response& response) {
  if (response.status != 200) {
    return fail_open_read<Nothing>(response);
  }
  const auto value = api::parse_json(response.body, "ping");
  if (!value.has_value() || text_member(*value, "text").empty()) {
    return failure_of<Nothing>(response);
  }
  return done(Nothing{});
}

Outcome<Live> parse_answer_live(const http::Response& response) {
  if (response.status == 204) {
    return unknown<Live>("no_leader_known",
                         "the node is ready, which a voter without a leader says too",
                         Live{.ready = true});
  }
  if (response.status == 503) {
    return done(Live{.ready = false});
  }
  return failure_of<Live>(response);
}

Outcome<StartedScavenge> parse_answer_start_scavenge(const http::Response& response,
                                                     const NodeDialect& /*dialect*/) {
  if (response.status == 200) {
    auto id = scavenge_id(response.body);
    if (id.empty()) {
      return failure_of<StartedScavenge>(response);
    }
    return unknown<StartedScavenge>(
        "accepted",
        "the node accepted it, but the run can fail at once or have nothing to do: watch " + id,
        StartedScavenge{.id = id});
  }
  if (response.status == 400) {
    if (response.body == "Scavenge is already running") {
      return refused<StartedScavenge>("already_running", "a scavenge is already running");
    }
    if (response.body == "Failed to acquire the chunk switch lock") {
      return refused<StartedScavenge>(
          "chunk_lock_held",
          "the chunk lock is held: by a redaction, or by a scavenge that is ending");
    }
    // Up to 22.10 with the running one's id; no other version says anything of that form.
    if (auto id = scavenge_id(response.body); !id.empty()) {
      auto why = "a scavenge is already running: " + id;
      return refused<StartedScavenge>("already_running", std::move(why),
                                      StartedScavenge{.id = std::move(id)});
    }
  }
  return failure_of<StartedScavenge>(response);
}

Outcome<api::CurrentScavenge> parse_answer_current(const http::Response& response) {
  if (response.status != 200) {
    return failure_of<api::CurrentScavenge>(response);
  }
  auto current = api::parse_current_scavenge(response.body);
  if (!current.has_value()) {
    return unread<api::CurrentScavenge>(response, current.error());
  }
  return done(std::move(*current));
}

Outcome<LastScavenge> parse_answer_last(const http::Response& response) {
  if (response.status != 200) {
    return failure_of<LastScavenge>(response);
  }
  const auto value = api::parse_json(response.body, "last scavenge");
  if (!value.has_value()) {
    return unread<LastScavenge>(response, value.error());
  }
  constexpr std::array<std::pair<std::string_view, LastResult>, 5> kResults = {
      {{"Unknown", LastResult::kUnknown},
       {"InProgress", LastResult::kInProgress},
       {"Success", LastResult::kSuccess},
       {"Stopped", LastResult::kStopped},
       {"Errored", LastResult::kErrored}}};
  const auto result = text_member(*value, "scavengeResult");
  const auto* const known =
      std::ranges::find(kResults, result, [](const auto& r) { return r.first; });
  if (known == kResults.end()) {
    return failure_of<LastScavenge>(response);
  }
  auto id = text_member(*value, "scavengeId");
  if (id == "00000000-0000-0000-0000-000000000000") {
    id.clear();
  }
  return done(LastScavenge{.id = std::move(id), .result = known->second});
}

Outcome<StoppedScavenge> parse_answer_stop(const http::Response& response,
                                           const NodeDialect& dialect) {
  if (response.status == 404 && from_a_route(response)) {
    return unknown<StoppedScavenge>(
        "nothing_to_stop",
        "the node knows no such scavenge; it says so also while one is just ending: read current");
  }
  if (response.status != 200) {
    return failure_of<StoppedScavenge>(response);
  }
  std::string id = response.body;
  if (const auto value = api::parse_json(response.body, "answer");
      value.has_value() && value->is_string()) {
    id = value->get<std::string>();
  }
  if (!is_guid(id)) {
    id = scavenge_id(response.body);  // old versions
  }
  if (id.empty()) {
    return failure_of<StoppedScavenge>(response);
  }
  if (!dialect.stop_waits) {
    return unknown<StoppedScavenge>("stopping", "the node was asked to stop " + id,
                                    StoppedScavenge{.id = id});
  }
  return done(StoppedScavenge{.id = std::move(id)});
}

Outcome<Nothing> parse_answer_queued(const http::Response& response) {
  if (response.status == 200 && response.body.empty()) {
    return unknown<Nothing>(
        "queued", "the node queued it and says no more, also where nothing happens: observe it");
  }
  return failure_of<Nothing>(response);
}

Outcome<MergeIndexes> parse_answer_merge_indexes(const http::Response& response) {
  if (response.status != 200) {
    return failure_of<MergeIndexes>(response);
  }
  const auto value = api::parse_json(response.body, "merge of indexes");
  if (!value.has_value() || !is_guid(text_member(*value, "mergeIndexesId"))) {
    return failure_of<MergeIndexes>(response);
  }
  return unknown<MergeIndexes>("accepted",
                               "the node accepted it; there is no way to ask for the end",
                               MergeIndexes{.id = text_member(*value, "mergeIndexesId")});
}

Outcome<Login> parse_answer_login(const http::Response& response) {
  if (response.status != 200) {
    return failure_of<Login>(response);
  }
  const auto value = api::parse_json(response.body, "login");
  if (!value.has_value() || !value->is_object() || value->value("success", json()) != true ||
      !value->value("data", json()).is_object()) {
    return failure_of<Login>(response);
  }
  const auto& data = value->at("data");
  Login login{.name = text_member(data, "loginName"), .groups = {}};
  if (login.name.empty()) {
    return failure_of<Login>(response);
  }
  if (data.contains("groups") && data["groups"].is_array()) {
    for (const auto& group : data["groups"]) {
      if (group.is_string()) {
        login.groups.push_back(group.get<std::string>());
      }
    }
  }
  return done(std::move(login));
}

Outcome<std::vector<api::ScavengeEvent>> parse_answer_scavenges(const http::Response& response) {
  using Events = std::vector<api::ScavengeEvent>;
  if (response.status == 404 && from_a_route(response)) {
    return done(Events{});
  }
  if (response.status != 200) {
    return failure_of<Events>(response);
  }
  auto events = api::parse_scavenge_feed(response.body);
  return events.has_value() ? done(std::move(*events)) : unread<Events>(response, events.error());
}

Outcome<std::vector<api::ScavengeEvent>> parse_answer_scavenge_log(const http::Response& response) {
  auto outcome = parse_answer_scavenges(response);
  if (outcome.code == "lacks_role") {
    outcome.code = "not_ready";
    outcome.why =
        "the run's log cannot be read yet (for about a second after the start of a run the server "
        "lets only $admins read it): " +
        describe(response);
  }
  return outcome;
}

Outcome<Nothing> parse_answer_auto_scavenge_change(const http::Response& response) {
  switch (response.status) {
    case 200:
      return done(Nothing{});
    case 202:
      return unknown<Nothing>("stopping", "it is still stopping a run: ask for its status");
    case 400:
      return refused<Nothing>("rejected", "auto-scavenge refused it: " + describe(response));
    case 404:
      return refused<Nothing>("not_installed", "the node has no auto-scavenge");
    case 503:
      if (response.reason != "Server Is Not Ready" && response.reason != "Server Is Too Busy") {
        return refused<Nothing>("not_enabled",
                                "auto-scavenge is not enabled: " + describe(response));
      }
      return failure_of<Nothing>(response);
    default:
      return failure_of<Nothing>(response);
  }
}

Outcome<AutoScavenge> parse_answer_auto_scavenge(const http::Response& response) {
  if (response.status != 200) {
    const auto change = parse_answer_auto_scavenge_change(response);
    if (change.code == "not_installed") {
      return done(AutoScavenge{.state = AutoScavengeState::kNotInstalled, .schedule = {}});
    }
    if (change.code == "not_enabled") {
      return done(AutoScavenge{.state = AutoScavengeState::kNotEnabled, .schedule = {}});
    }
    return failure_of<AutoScavenge>(response);
  }
  const auto value = api::parse_json(response.body, "auto-scavenge");
  if (!value.has_value()) {
    return unread<AutoScavenge>(response, value.error());
  }
  constexpr std::array<std::pair<std::string_view, AutoScavengeState>, 5> kStates = {
      {{"NotConfigured", AutoScavengeState::kNotConfigured},
       {"Waiting", AutoScavengeState::kWaiting},
       {"InProgress", AutoScavengeState::kInProgress},
       {"Pausing", AutoScavengeState::kPausing},
       {"Paused", AutoScavengeState::kPaused}}};
  const auto state = text_member(*value, "state");
  const auto* const known =
      std::ranges::find(kStates, state, [](const auto& s) { return s.first; });
  if (known == kStates.end()) {
    return failure_of<AutoScavenge>(response);
  }
  return done(AutoScavenge{.state = known->second, .schedule = text_member(*value, "schedule")});
}

}  // namespace verger::client
