#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api_parts.h"
#include "controller/api/members.h"
#include "controller/api/routes.h"
#include "controller/api/views.h"
#include "engine/base/number_from_text.h"

// /policies.
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
  VERGER_RETURN_IF_ERROR(members.finish());
  if (!parsed.contains("yaml")) {
    return Error{Errc::kInvalidArgument, "the body must be {\"yaml\": the policy's text}"};
  }
  return yaml;
}

json policy_view(const ApiParts& parts, const StoredPolicy& stored) {
  auto out = to_json(stored.policy);
  out["yaml"] = stored.policy.source;
  out["revision"] = stored.revision.value();
  out["applied_by"] = stored.by;
  out["applied_at"] = format_ticks(stored.at);
  auto selected = json::array();
  for (const auto& cluster : parts.registry.list()) {
    if (!stored.policy.selects(cluster)) {
      continue;
    }
    const auto state = parts.scheduler.state(stored.policy.name, cluster.name);
    const auto hours = parts.book.hours(cluster, stored.policy.name, parts.clock.now());
    json entry{{"cluster", cluster.name},
               {"last_due", state.settled ? json(format_ticks(*state.settled)) : json()},
               {"outcome", state.outcome},
               {"late", state.late},
               {"too_old", state.too_old},
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

/// What binds a policy's runs on the clusters that it selects now.
std::vector<Binding> bindings_of(const ApiParts& parts, const SchedulePolicy& policy) {
  std::vector<Binding> out;
  for (const auto& cluster : parts.registry.list()) {
    if (policy.selects(cluster)) {
      out.push_back({.cluster = cluster.name,
                     .windows = parts.book.rules(cluster, policy),
                     .past_duration = past_duration(parts.executor.runs(cluster.name), policy)});
    }
  }
  return out;
}

/// The notes of a policy that may be applied; else the refusal.
std::expected<json, http::Response> admitted(const ApiParts& parts, const SchedulePolicy& policy) {
  const auto notes = admit(policy, to_instant(parts.clock.now()), bindings_of(parts, policy));
  if (!notes) {
    return std::unexpected(policy_refused(notes.error()));
  }
  for (const auto& each : policy.notifications) {
    if (!each.email.empty() && parts.notifier != nullptr && !parts.sends_mail) {
      return std::unexpected(policy_refused(
          {{0, "notifications.email: this vergerd has no mail server: --smtp-url, --smtp-from"}}));
    }
    if (each.command.empty() || !parts.admit_command) {
      continue;
    }
    if (const auto runs = parts.admit_command(each.command.front()); !runs) {
      return std::unexpected(policy_refused({{0, "notifications: " + runs.error().message}}));
    }
  }
  return json(*notes);
}

/// The policy that the body has as text. The error is the answer.
std::expected<SchedulePolicy, http::Response> policy_in(const ApiParts& parts, const Call& call) {
  const auto yaml = yaml_of(call.body());
  if (!yaml) {
    return std::unexpected(problem_of(yaml.error()));
  }
  auto policy = parts.book.parse(*yaml);
  if (!policy) {
    return std::unexpected(policy_refused(policy.error()));
  }
  return *std::move(policy);
}

http::Response list_policies(const ApiParts& parts, const Call& call) {
  const auto list = parts.book.list();
  std::vector<std::string> keys;
  keys.reserve(list.size());
  for (const auto& stored : list) {
    keys.push_back(stored.policy.name);
  }
  return paged_answer("policies", keys, call.target,
                      [&](std::size_t i) { return policy_view(parts, list[i]); });
}

http::Response validate_policy(const ApiParts& parts, const Call& call) {
  const auto policy = policy_in(parts, call);
  if (!policy) {
    return policy.error();
  }
  const auto notes = admitted(parts, *policy);
  if (!notes) {
    return notes.error();
  }
  auto out = to_json(*policy);
  out["notes"] = *notes;
  auto clusters = json::array();
  for (const auto& cluster : parts.registry.list()) {
    if (policy->selects(cluster)) {
      clusters.push_back(cluster.name);
    }
  }
  out["selected_now"] = std::move(clusters);
  return json_answer(200, out);
}

http::Response diff_policy(const ApiParts& parts, const Call& call) {
  const auto policy = policy_in(parts, call);
  if (!policy) {
    return policy.error();
  }
  std::map<std::string, std::string> before;
  std::map<std::string, std::string> after;
  const auto stored = parts.book.find(policy->name);
  if (stored) {
    flatten(to_json(stored->policy), "", before);
  }
  flatten(to_json(*policy), "", after);
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
      200,
      {{"name", policy->name}, {"known", stored.has_value()}, {"changes", std::move(changes)}});
}

Result<http::Response> get_policy(const ApiParts& parts, const Call& call) {
  VERGER_TRY(const auto stored, parts.book.find(call.named("name")));
  auto answer = json_answer(200, policy_view(parts, stored));
  answer.headers.set("ETag", etag_of(stored));
  return answer;
}

http::Response policy_change_failed(const Error& error) {
  return error.code == Errc::kConflict ? problem(412, "changed_meanwhile", error.message)
                                       : problem_of(error);
}

Result<http::Response> delete_policy(const ApiParts& parts, const Call& call) {
  VERGER_TRY(const auto expected, expected_revision(call.request));
  const auto removed = parts.book.remove(call.named("name"), call.by(), expected);
  return removed ? no_content() : policy_change_failed(removed.error());
}

Result<http::Response> apply_policy(const ApiParts& parts, const Call& call) {
  VERGER_TRY(const auto expected, expected_revision(call.request));
  auto policy = policy_in(parts, call);
  if (!policy) {
    return policy.error();
  }
  if (const auto name = call.named("name"); policy->name != name) {
    return problem(400, "bad_request",
                   fmt::format("the text is of the policy {}, not {}", policy->name, name));
  }
  const auto notes = admitted(parts, *policy);
  if (!notes) {
    return notes.error();
  }
  const auto stored = parts.book.apply(*std::move(policy), call.by(), expected);
  if (!stored) {
    return policy_change_failed(stored.error());
  }
  auto out = policy_view(parts, *stored);
  out["notes"] = *notes;
  auto answer = json_answer(200, out);
  answer.headers.set("ETag", etag_of(*stored));
  return answer;
}

net::awaitable<Result<http::Response>> test_notifications(const ApiParts& parts, Call call) {
  VERGER_CO_TRY(const auto body, parse_body(call.body().empty() ? "{}" : call.body()));
  Members members(body);
  members.text("reason");
  VERGER_CO_RETURN_IF_ERROR(members.finish());
  const auto name = call.named("name");
  if (parts.notifier == nullptr) {
    co_return problem(503, "unavailable", "this controller sends no notifications");
  }
  VERGER_CO_TRY(const auto tested, co_await parts.notifier->test(name, call.by()));
  auto recipients = json::array();
  for (const auto& each : tested) {
    recipients.push_back({{"to", each.to},
                          {"delivered", each.problem.empty()},
                          {"problem", each.problem.empty() ? json() : json(each.problem)}});
  }
  co_return json_answer(200, {{"policy", name}, {"recipients", std::move(recipients)}});
}

}  // namespace

std::span<const Route> policy_routes() {
  using enum ApiRole;
  static constexpr Route kRoutes[] = {
      {"GET", "/policies", kViewer, "listPolicies", "The policies that are followed", 200, "",
       "Policies", "limit cursor", list_policies},
      {"POST", "/policies/validate", kViewer, "validatePolicy", "Say everything that is wrong", 200,
       "PolicyText", "Policy", "", validate_policy, OnRecord::kNever},
      {"POST", "/policies/diff", kViewer, "diffPolicy", "What applying would change", 200,
       "PolicyText", "PolicyDiff", "", diff_policy, OnRecord::kNever},
      {"GET", "/policies/{name}", kViewer, "getPolicy", "One policy", 200, "", "Policy", "",
       get_policy},
      {"PUT", "/policies/{name}", kAdmin, "applyPolicy", "Follow a policy", 200, "PolicyText",
       "Policy", "", apply_policy},
      {"POST", "/policies/{name}/notifications/test", kOperator, "testNotifications",
       "Send a notification to each recipient of a policy, and say what became of it", 200, "Empty",
       "NotificationTests", "", test_notifications, OnRecord::kAudited},
      {"DELETE", "/policies/{name}", kAdmin, "deletePolicy", "Follow it no more", 204, "", "", "",
       delete_policy},
  };
  return kRoutes;
}

}  // namespace verger::controller
