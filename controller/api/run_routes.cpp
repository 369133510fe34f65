#include <algorithm>
#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api.h"
#include "controller/api/members.h"
#include "controller/api/views.h"

// /runs and what people want of them.
namespace verger::controller {

using nlohmann::json;

namespace {

/// A run is what its events add up to.
std::string etag_of(const RunState& run) { return fmt::format("\"{}\"", run.revision.value()); }

}  // namespace

net::awaitable<http::Response> Api::runs(http::Request request, http::Target target,
                                         std::string by) {
  const auto& path = target.segments;
  if (path.size() == 3 || path.size() == 4) {
    if (request.method != "GET") {
      co_return wrong_method(request, "GET");
    }
    if (path.size() == 4) {
      const auto run = parts_.executor.find_run(path[3]);
      if (!run) {
        co_return problem_of(run.error());
      }
      auto body = views::run(**run, parts_.clock.now());
      std::optional<Ticks> resumes;
      if (const auto config = parts_.registry.find((*run)->cluster)) {
        const auto hours =
            parts_.book.hours(*config, (*run)->plan->policy.name, parts_.clock.now());
        if (config->paused) {
          resumes = config->pause_until;
        } else if (hours && !hours->open) {
          resumes = hours->until;
        }
        body["hours"] =
            hours ? json{{"open", hours->open},
                         {"until", hours->until ? json(format_ticks(*hours->until)) : json()}}
                  : json();
      }
      body["expected_end"] = views::expected_end(**run, parts_.clock.now(), resumes);
      auto answer = json_answer(200, body);
      answer.headers.set("ETag", etag_of(**run));
      co_return answer;
    }
    const std::string cluster(target.parameter("cluster").value_or(""));
    if (!cluster.empty()) {
      if (const auto config = parts_.registry.find(cluster); !config) {
        co_return problem_of(config.error());
      }
    }
    const auto list = parts_.executor.runs(cluster);
    std::vector<std::string> keys;
    keys.reserve(list.size());
    for (const auto& run : list) {
      keys.push_back(run->id);
    }
    co_return paged_answer("runs", keys, target, [&](std::size_t i) -> Result<json> {
      VERGER_TRY(const auto run, parts_.executor.find_run(keys[i]));
      return views::run(*run);
    });
  }
  if (path.size() == 5 && path[4] == "gates") {
    if (request.method != "GET") {
      co_return wrong_method(request, "GET");
    }
    const auto run = parts_.executor.find_run(path[3]);
    co_return run ? json_answer(200, views::gates(**run, parts_.executor.gates((*run)->id)))
                  : problem_of(run.error());
  }
  if (path.size() == 5) {
    if (request.method != "POST") {
      co_return wrong_method(request, "POST");
    }
    // With If-Match an intent is for the run as the caller saw it, and for no later state.
    if (const auto expected = request.headers.get("If-Match"); expected && *expected != "*") {
      const auto run = parts_.executor.find_run(path[3]);
      if (run && etag_of(**run) != *expected) {
        co_return problem(412, "changed_meanwhile",
                          fmt::format("run {} is {} now, and another than {}; look at it again",
                                      (*run)->id, to_string((*run)->status), *expected));
      }
    }
    co_return co_await run_intent(path[3], path[4], std::move(request.body), std::move(by));
  }
  co_return no_route(request);
}

net::awaitable<http::Response> Api::run_intent(std::string id, std::string intent, std::string body,
                                               std::string by) {
  const auto parsed = parse_body(body);
  if (!parsed) {
    co_return problem_of(parsed.error());
  }
  const auto found = parts_.executor.find_run(id);
  if (!found) {
    co_return problem_of(found.error());
  }
  const auto run = (*found)->id;
  Members members(*parsed);
  const auto reason = members.text("reason", "asked by " + by);
  const auto wanted_mode = intent == "pause" ? members.text("mode", "policy") : std::string();
  const bool ignore_hours = intent == "resume" && members.flag("ignore_hours");
  const auto node = intent == "skip" ? members.text("node") : std::string();
  const bool force = intent == "skip" && members.flag("force");
  const bool has_reason = !members.text("reason").empty();
  members.refuse_others();
  if (members.wrong()) {
    co_return problem_of(*members.wrong());
  }
  Result<void> outcome;
  std::string notice;
  if (intent == "pause") {
    const auto mode = parse_pause_mode(wanted_mode);
    if (!mode) {
      co_return problem(400, "bad_request", "mode takes policy, drain, now");
    }
    outcome = parts_.executor.pause(run, by, reason, *mode);
  } else if (intent == "cancel") {
    outcome = parts_.executor.cancel(run, by, reason);
  } else if (intent == "resume") {
    if (ignore_hours && parsed->value("reason", std::string()).empty()) {
      co_return problem(400, "bad_request",
                        "ignore_hours needs a reason: windows are agreed with others, who will ask "
                        "why (verger --reason)");
    }
    outcome = ignore_hours ? co_await parts_.executor.resume_ignoring_hours(run, by, reason)
                           : co_await parts_.executor.resume(run, by);
  } else if (intent == "skip") {
    if (node.empty()) {
      co_return problem(400, "bad_request", "the body needs a member \"node\"");
    }
    if (force && !has_reason) {
      co_return problem(400, "bad_request",
                        "with \"force\" the body needs a member \"reason\": the audit keeps it");
    }
    auto waits_for = co_await parts_.executor.skip_node(run, node, by, reason, force);
    notice = waits_for.value_or("");
    outcome = waits_for ? Result<void>() : waits_for.error();
  } else {
    co_return problem(404, "not_found",
                      fmt::format("a run takes pause, resume, cancel and skip, not {}", intent));
  }
  if (!outcome) {
    co_return refusal_of(outcome.error(), (*found)->cluster);
  }
  const auto state = parts_.executor.find_run(run);
  if (!state) {
    co_return problem_of(state.error());
  }
  auto answer = views::run(**state);
  if (!notice.empty()) {
    answer["notice"] = notice;
  }
  co_return json_answer(202, answer);
}

}  // namespace verger::controller
