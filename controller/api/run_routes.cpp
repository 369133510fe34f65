#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api_parts.h"
#include "controller/api/members.h"
#include "controller/api/routes.h"
#include "controller/api/views.h"
#include "controller/executor/atomic_stage.h"

// /runs and what people want of them.
namespace verger::controller {

using nlohmann::json;

namespace {

/// A run is what its events add up to.
std::string etag_of(const RunState& run) { return fmt::format("\"{}\"", run.revision.value()); }

Result<http::Response> list_runs(const ApiParts& parts, const Call& call) {
  const std::string cluster(call.target.parameter("cluster").value_or(""));
  if (!cluster.empty()) {
    VERGER_RETURN_IF_ERROR(parts.registry.find(cluster));
  }
  const auto list = parts.executor.runs(cluster);
  std::vector<std::string> keys;
  keys.reserve(list.size());
  for (const auto& run : list) {
    keys.push_back(run->id);
  }
  return paged_answer("runs", keys, call.target, [&](std::size_t i) -> Result<json> {
    VERGER_TRY(const auto run, parts.executor.find_run(keys[i]));
    return views::run(*run);
  });
}

Result<http::Response> get_run(const ApiParts& parts, const Call& call) {
  VERGER_TRY(const auto run, parts.executor.find_run(call.named("id")));
  auto body = views::run(*run, parts.clock.now());
  std::optional<Ticks> resumes;
  if (const auto config = parts.registry.find(run->cluster)) {
    // One that has ended waits for no window, and none binds one that ignores them.
    const auto hours = has_ended(run->status) || run->ignores_hours
                           ? std::nullopt
                           : parts.book.hours(*config, run->plan->policy.name, parts.clock.now());
    if (config->paused) {
      resumes = config->pause_until;
    } else if (hours && !hours->open) {
      resumes = hours->until;
    }
    body["hours"] = hours
                        ? json{{"open", hours->open},
                               {"until", hours->until ? json(format_ticks(*hours->until)) : json()}}
                        : json();
  }
  if (auto notice = pause_notice(*run, parts.clock.now()); !notice.empty()) {
    body["notice"] = std::move(notice);
  }
  body["expected_end"] = views::expected_end(*run, parts.clock.now(), resumes);
  auto answer = json_answer(200, body);
  answer.headers.set("ETag", etag_of(*run));
  return answer;
}

http::Response get_run_gates(const ApiParts& parts, const Call& call) {
  const auto run = parts.executor.find_run(call.named("id"));
  return run ? json_answer(200, views::gates(**run, parts.executor.gates((*run)->id)))
             : problem_of(run.error());
}

/// A run that a caller wants something of, and what the body says of that.
struct RunIntent {
  std::shared_ptr<const RunState> run;
  json body;
};

/// With If-Match an intent is for the run as the caller saw it, and for no later state. The error
/// is the answer.
std::expected<RunIntent, http::Response> run_intent_of(const ApiParts& parts, const Call& call) {
  const auto found = parts.executor.find_run(call.named("id"));
  if (const auto expected = call.request.headers.get("If-Match");
      found && expected && *expected != "*" && etag_of(**found) != *expected) {
    return std::unexpected(
        problem(412, "changed_meanwhile",
                fmt::format("run {} is {} now, and another than {}; look at it again", (*found)->id,
                            to_string((*found)->status), *expected)));
  }
  auto body = parse_body(call.body());
  if (!body || !found) {
    return std::unexpected(problem_of(body ? found.error() : body.error()));
  }
  return RunIntent{*found, *std::move(body)};
}

http::Response after_intent(const ApiParts& parts, const RunState& run, const Result<void>& outcome,
                            const std::string& notice = "") {
  if (!outcome) {
    return refusal_of(parts, outcome.error(), run.cluster);
  }
  const auto state = parts.executor.find_run(run.id);
  if (!state) {
    return problem_of(state.error());
  }
  auto answer = views::run(**state);
  if (!notice.empty()) {
    answer["notice"] = notice;
  }
  return json_answer(202, answer);
}

/// Of a body that says no more than the reason, or that the caller has read.
std::string reason_of(Members& members, const Call& call) {
  return members.text("reason", "asked by " + call.by());
}

Result<http::Response> pause_run(const ApiParts& parts, const Call& call) {
  const auto intent = run_intent_of(parts, call);
  if (!intent) {
    return intent.error();
  }
  Members members(intent->body);
  const auto reason = reason_of(members, call);
  const auto wanted = members.text("mode", "policy");
  VERGER_RETURN_IF_ERROR(members.finish());
  const auto mode = parse_pause_mode(wanted);
  if (!mode) {
    return problem(400, "bad_request", "mode takes policy, drain, now");
  }
  const auto& run = *intent->run;
  const auto paused = parts.executor.pause(run.id, call.by(), reason, *mode);
  const auto now = parts.executor.find_run(run.id);
  return after_intent(parts, run, paused,
                      now ? pause_notice(**now, parts.clock.now()) : std::string());
}

net::awaitable<Result<http::Response>> resume_run(const ApiParts& parts, Call call) {
  const auto intent = run_intent_of(parts, call);
  if (!intent) {
    co_return intent.error();
  }
  Members members(intent->body);
  const auto reason = reason_of(members, call);
  const bool ignore_hours = members.flag("ignore_hours");
  const bool has_reason = !members.text("reason").empty();
  VERGER_CO_RETURN_IF_ERROR(members.finish());
  if (ignore_hours && !has_reason) {
    co_return problem(400, "bad_request",
                      "ignore_hours needs a reason: windows are agreed with others, who will ask "
                      "why (verger --reason)");
  }
  const auto& run = *intent->run;
  const auto outcome =
      ignore_hours ? co_await parts.executor.resume_ignoring_hours(run.id, call.by(), reason)
                   : co_await parts.executor.resume(run.id, call.by());
  co_return after_intent(parts, run, outcome);
}

Result<http::Response> cancel_run(const ApiParts& parts, const Call& call) {
  const auto intent = run_intent_of(parts, call);
  if (!intent) {
    return intent.error();
  }
  Members members(intent->body);
  const auto reason = reason_of(members, call);
  VERGER_RETURN_IF_ERROR(members.finish());
  const auto& run = *intent->run;
  return after_intent(parts, run, parts.executor.cancel(run.id, call.by(), reason));
}

Result<http::Response> throttle_run(const ApiParts& parts, const Call& call) {
  const auto intent = run_intent_of(parts, call);
  if (!intent) {
    return intent.error();
  }
  Members members(intent->body);
  const auto percent = members.number("percent", 100);
  const auto bytes_per_second = members.number("bytes_per_second", 0);
  static_cast<void>(members.text("reason"));  // the audit has it
  VERGER_RETURN_IF_ERROR(members.finish());
  if (percent < 1 || percent > 100 || bytes_per_second < 0) {
    return problem(400, "bad_request",
                   "percent takes 1 to 100, bytes_per_second 0 (no limit) or more");
  }
  const auto& run = *intent->run;
  return after_intent(parts, run,
                      parts.executor.throttle(run.id, call.by(),
                                              {.percent = static_cast<std::int32_t>(percent),
                                               .bytes_per_second = bytes_per_second}));
}

net::awaitable<Result<http::Response>> skip_node(const ApiParts& parts, Call call) {
  const auto intent = run_intent_of(parts, call);
  if (!intent) {
    co_return intent.error();
  }
  Members members(intent->body);
  const auto reason = reason_of(members, call);
  const auto node = members.text("node");
  const bool force = members.flag("force");
  const bool has_reason = !members.text("reason").empty();
  VERGER_CO_RETURN_IF_ERROR(members.finish());
  if (node.empty()) {
    co_return problem(400, "bad_request", "the body needs a member \"node\"");
  }
  if (force && !has_reason) {
    co_return problem(400, "bad_request",
                      "with \"force\" the body needs a member \"reason\": the audit keeps it");
  }
  const auto& run = *intent->run;
  const auto waits_for = co_await parts.executor.skip_node(run.id, node, call.by(), reason, force);
  co_return after_intent(parts, run, waits_for ? Result<void>() : waits_for.error(),
                         waits_for.value_or(""));
}

}  // namespace

std::span<const Route> run_routes() {
  using enum ApiRole;
  static constexpr Route kRoutes[] = {
      {"GET", "/runs", kViewer, "listRuns", "Runs, newest first", 200, "", "Runs",
       "cluster limit cursor", list_runs},
      {"GET", "/runs/{id}", kViewer, "getRun", "One run", 200, "", "Run", "", get_run},
      {"GET", "/runs/{id}/gates", kViewer, "getRunGates",
       "The gates of the steps that wait or are under way, open ones too", 200, "", "RunGates", "",
       get_run_gates},
      {"POST", "/runs/{id}/pause", kOperator, "pauseRun", "Begin no new step", 202, "RunPause",
       "Run", "", pause_run},
      {"POST", "/runs/{id}/resume", kOperator, "resumeRun",
       "Resume after a fresh look; also while windows are closed", 202, "Resume", "Run", "",
       resume_run},
      {"POST", "/runs/{id}/cancel", kOperator, "cancelRun", "End in a safe state", 202, "Empty",
       "Run", "", cancel_run},
      {"POST", "/runs/{id}/throttle", kOperator, "throttleRun",
       "How gently the agents' jobs of the run work from now on", 202, "ThrottleRun", "Run", "",
       throttle_run},
      {"POST", "/runs/{id}/skip", kOperator, "skipNode", "Leave a node out", 202, "Skip", "Run", "",
       skip_node},
  };
  return kRoutes;
}

}  // namespace verger::controller
