#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api.h"
#include "controller/api/members.h"
#include "controller/api/views.h"
#include "engine/base/number_from_text.h"

// /policies, /clusters/{name}/schedule, /clusters/{name}/pause and /resume.
namespace verger::controller {
namespace {

using nlohmann::json;

json problems_json(const std::vector<PolicyProblem>& problems) {
  auto out = json::array();
  for (const auto& each : problems) {
    out.push_back({{"line", each.line > 0 ? json(each.line) : json()}, {"message", each.message}});
  }
  return out;
}

http::Response policy_refused(const std::vector<PolicyProblem>& problems) {
  return problem(422, "policy_invalid", "the policy is refused:\n" + to_text(problems),
                 {{"problems", problems_json(problems)}});
}

std::string etag_of(const StoredPolicy& stored) {
  return fmt::format("\"{}\"", stored.revision.value());
}

/// The revision of If-Match; nullopt where the header is missing or says anything will do.
Result<std::optional<Revision>> expected_revision(const http::Request& request) {
  const auto header = request.headers.get("If-Match");
  if (!header || *header == "*") {
    return std::optional<Revision>();
  }
  const std::string_view text = *header;
  if (text.size() > 2 && text.front() == '"' && text.back() == '"') {
    if (const auto value = number_from_text<std::int64_t>(text.substr(1, text.size() - 2))) {
      return std::optional(Revision(*value));
    }
  }
  return Error{Errc::kInvalidArgument, "If-Match takes the ETag of a policy, such as \"3\""};
}

void flatten(const json& value, const std::string& path, std::map<std::string, std::string>& into) {
  if (value.is_object()) {
    for (const auto& [name, member] : value.items()) {
      flatten(member, path.empty() ? name : fmt::format("{}.{}", path, name), into);
    }
  } else {
    into[path] = value.dump();
  }
}

Result<std::string> yaml_of(const std::string& body) {
  VERGER_TRY(const auto parsed, parse_body(body));
  Members members(parsed);
  auto yaml = members.text("yaml");
  members.text("reason");  // for the audit
  members.refuse_others();
  if (members.wrong()) {
    return *members.wrong();
  }
  if (!parsed.contains("yaml")) {
    return Error{Errc::kInvalidArgument, "the body must be {\"yaml\": the policy's text}"};
  }
  return yaml;
}

}  // namespace

json Api::view(const StoredPolicy& stored) const {
  auto out = to_json(stored.policy);
  out["yaml"] = stored.policy.source;
  out["revision"] = stored.revision.value();
  out["applied_by"] = stored.by;
  out["applied_at"] = format_ticks(stored.at);
  auto selected = json::array();
  for (const auto& cluster : parts_.registry.list()) {
    if (!stored.policy.selects(cluster)) {
      continue;
    }
    const auto state = parts_.scheduler.state(stored.policy.name, cluster.name);
    const auto hours = parts_.book.hours(cluster, stored.policy.name, parts_.clock.now());
    json entry{{"cluster", cluster.name},
               {"last_due", state.settled ? json(format_ticks(*state.settled)) : json()},
               {"outcome", state.outcome},
               {"run", state.run},
               {"plan", state.plan},
               {"reason", state.reason},
               {"waiting", state.waiting},
               {"open", !hours || hours->open},
               {"hours", hours ? json(hours->reason) : json()},
               {"until", hours && hours->until ? json(format_ticks(*hours->until)) : json()}};
    selected.push_back(std::move(entry));
  }
  out["selected"] = std::move(selected);
  return out;
}

std::expected<json, http::Response> Api::admitted(const SchedulePolicy& policy) const {
  const auto notes = admit(policy, to_instant(parts_.clock.now()), bindings_of(policy));
  if (!notes) {
    return std::unexpected(policy_refused(notes.error()));
  }
  for (const auto& each : policy.notifications) {
    if (each.command.empty() || !parts_.admit_command) {
      continue;
    }
    if (const auto runs = parts_.admit_command(each.command.front()); !runs) {
      return std::unexpected(policy_refused({{0, "notifications: " + runs.error().message}}));
    }
  }
  return json(*notes);
}

http::Response Api::policies(const http::Request& request, const http::Target& target,
                             const std::string& by) {
  const auto& path = target.segments;
  if (path.size() == 3) {
    if (request.method == "GET") {
      const auto list = parts_.book.list();
      std::vector<std::string> keys;
      keys.reserve(list.size());
      for (const auto& stored : list) {
        keys.push_back(stored.policy.name);
      }
      return paged_answer("policies", keys, target,
                          [this, &list](std::size_t i) { return view(list[i]); });
    }
    return problem(405, "bad_request", "/policies takes GET; PUT a policy to /policies/{name}");
  }
  const auto& name = path[3];
  if (path.size() == 4 && request.method == "POST" && (name == "validate" || name == "diff")) {
    return policy_text(request.body, name);
  }
  if (path.size() != 4) {
    return problem(404, "not_found", "no such route below /policies");
  }
  if (request.method == "GET") {
    const auto stored = parts_.book.find(name);
    if (!stored) {
      return problem_of(stored.error());
    }
    auto answer = json_answer(200, view(*stored));
    answer.headers.set("ETag", etag_of(*stored));
    return answer;
  }
  const auto expected = expected_revision(request);
  if (!expected) {
    return problem_of(expected.error());
  }
  const auto failed = [](const Error& error) {
    return error.code == Errc::kConflict ? problem(412, "changed_meanwhile", error.message)
                                         : problem_of(error);
  };
  if (request.method == "DELETE") {
    if (auto removed = parts_.book.remove(name, by, *expected); !removed) {
      return failed(removed.error());
    }
    http::Response response;
    response.status = 204;
    return response;
  }
  if (request.method != "PUT") {
    return problem(405, "bad_request", "a policy takes GET, PUT and DELETE");
  }
  const auto yaml = yaml_of(request.body);
  if (!yaml) {
    return problem_of(yaml.error());
  }
  auto policy = parts_.book.parse(*yaml);
  if (!policy) {
    return policy_refused(policy.error());
  }
  if (policy->name != name) {
    return problem(400, "bad_request",
                   fmt::format("the text is of the policy {}, not {}", policy->name, name));
  }
  const auto notes = admitted(*policy);
  if (!notes) {
    return notes.error();
  }
  const auto stored = parts_.book.apply(*std::move(policy), by, *expected);
  if (!stored) {
    return failed(stored.error());
  }
  auto out = view(*stored);
  out["notes"] = *notes;
  auto answer = json_answer(200, out);
  answer.headers.set("ETag", etag_of(*stored));
  return answer;
}

std::vector<Binding> Api::bindings_of(const SchedulePolicy& policy) const {
  std::vector<Binding> out;
  for (const auto& cluster : parts_.registry.list()) {
    if (policy.selects(cluster)) {
      out.push_back({.cluster = cluster.name,
                     .windows = parts_.book.rules(cluster, policy),
                     .past_duration = past_duration(parts_.executor.runs(cluster.name), policy)});
    }
  }
  return out;
}

http::Response Api::policy_text(const std::string& body, std::string_view what) {
  const auto yaml = yaml_of(body);
  if (!yaml) {
    return problem_of(yaml.error());
  }
  const auto policy = parts_.book.parse(*yaml);
  if (!policy) {
    return policy_refused(policy.error());
  }
  if (what == "diff") {
    return policy_diff(*policy);
  }
  const auto notes = admitted(*policy);
  if (!notes) {
    return notes.error();
  }
  auto out = to_json(*policy);
  out["notes"] = *notes;
  auto clusters = json::array();
  for (const auto& cluster : parts_.registry.list()) {
    if (policy->selects(cluster)) {
      clusters.push_back(cluster.name);
    }
  }
  out["selected_now"] = std::move(clusters);
  return json_answer(200, out);
}

http::Response Api::policy_diff(const SchedulePolicy& policy) {
  std::map<std::string, std::string> before;
  std::map<std::string, std::string> after;
  const auto stored = parts_.book.find(policy.name);
  if (stored) {
    flatten(to_json(stored->policy), "", before);
  }
  flatten(to_json(policy), "", after);
  auto changes = json::array();
  for (const auto& [key, value] : after) {
    const auto old = before.find(key);
    if (old == before.end() || old->second != value) {
      changes.push_back({{"key", key},
                         {"before", old == before.end() ? json() : json::parse(old->second)},
                         {"after", json::parse(value)}});
    }
  }
  for (const auto& [key, value] : before) {
    if (!after.contains(key)) {
      changes.push_back({{"key", key}, {"before", json::parse(value)}, {"after", nullptr}});
    }
  }
  return json_answer(
      200, {{"name", policy.name}, {"known", stored.has_value()}, {"changes", std::move(changes)}});
}

http::Response Api::schedule(const std::string& cluster, const http::Target& target) {
  const auto config = parts_.registry.find(cluster);
  if (!config) {
    return problem_of(config.error());
  }
  const auto mine = Zone::find(target.parameter("zone").value_or("UTC"));
  if (!mine) {
    return problem_of(mine.error());
  }
  const auto now = to_instant(parts_.clock.now());
  auto times = json::array();
  for (const auto& each : parts_.scheduler.next(*config, now, 10)) {
    const bool opens = each.kind == NextTime::Kind::kOpens;
    times.push_back(
        {{"kind", opens ? "opens" : "due"},
         {"policy", each.policy},
         {"at", format_ticks(to_ticks(each.at))},
         {"yours", mine->format(each.at)},
         {"policys", each.zone.format(each.at)},
         {"zone", each.zone.name()},
         {"until", each.until ? json(format_ticks(to_ticks(*each.until))) : json()},
         {"until_yours", each.until ? json(mine->format(*each.until)) : json()},
         {"length_seconds", each.until ? json((*each.until - each.at).count()) : json()},
         {"inside", each.inside}});
  }
  auto policies = json::array();
  for (const auto& stored : parts_.book.list()) {
    if (stored.policy.selects(*config)) {
      const auto state = parts_.scheduler.state(stored.policy.name, cluster);
      policies.push_back({{"policy", stored.policy.name},
                          {"enabled", stored.policy.enabled},
                          {"outcome", state.outcome},
                          {"reason", state.reason},
                          {"waiting", state.waiting}});
    }
  }
  return json_answer(200, {{"cluster", cluster},
                           {"now", format_ticks(parts_.clock.now())},
                           {"zone", mine->name()},
                           {"policies", std::move(policies)},
                           {"times", std::move(times)}});
}

net::awaitable<http::Response> Api::cluster_intent(std::string cluster, std::string intent,
                                                   std::string body, std::string by) {
  const auto parsed = parse_body(body);
  if (!parsed) {
    co_return problem_of(parsed.error());
  }
  Members members(*parsed);
  const auto reason = members.text("reason", "asked by " + by);
  const auto wanted_mode = intent == "pause" ? members.text("mode", "policy") : std::string();
  const auto wanted_until = intent == "pause" ? members.text("until") : std::string();
  members.refuse_others();
  if (members.wrong()) {
    co_return problem_of(*members.wrong());
  }
  Result<void> outcome;
  if (intent == "resume") {
    outcome = co_await parts_.executor.resume_cluster(cluster, by);
  } else {
    const auto mode = parse_pause_mode(wanted_mode);
    if (!mode) {
      co_return problem(400, "bad_request", "mode takes policy, drain, now");
    }
    std::optional<Ticks> until;
    if (!wanted_until.empty()) {
      const auto parsed_until = parse_ticks(wanted_until);
      if (!parsed_until) {
        co_return problem_of(parsed_until.error());
      }
      if (*parsed_until <= parts_.clock.now()) {
        co_return problem(400, "bad_request", fmt::format("until {} is in the past", wanted_until));
      }
      until = *parsed_until;
    }
    outcome = parts_.executor.pause_cluster(cluster, by, reason, *mode, until);
  }
  if (!outcome) {
    co_return refusal_of(outcome.error(), cluster);
  }
  const auto config = parts_.registry.find(cluster);
  co_return config ? json_answer(202, views::cluster(*config)) : problem_of(config.error());
}

}  // namespace verger::controller
