#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api_parts.h"
#include "controller/api/event_feed.h"
#include "controller/api/openapi.h"
#include "controller/api/routes.h"
#include "engine/base/number_from_text.h"

// /events, and what the controller says of itself.
namespace verger::controller {
namespace {

net::awaitable<Result<http::Response>> get_events(const ApiParts& parts, Call call) {
  EventQuery query;
  query.role = call.caller.role;
  std::string after(call.target.parameter("after").value_or("0"));
  if (const auto last = call.request.headers.get("Last-Event-ID")) {
    after = *last;
  }
  if (after == "end") {
    const auto last = parts.journal.last_sequence();
    if (!last) {
      co_return problem_of(last.error());
    }
    after = std::to_string(last->value());
  }
  const auto sequence = number_from_text<std::int64_t>(after);
  const auto wait = number_from_text<std::int64_t>(call.target.parameter("wait").value_or("0"));
  if (!sequence || *sequence < 0 || !wait || *wait < 0 || *wait > 30) {
    co_return problem(
        400, "bad_request",
        "after must be a sequence number of the journal or end, wait 0 to 30 seconds");
  }
  query.after = Sequence(*sequence);
  query.wait = std::chrono::seconds(*wait);
  if (const auto id = call.target.parameter("run")) {
    VERGER_CO_TRY(const auto run, parts.executor.find_run(*id));
    query.stream = "run/" + run->id;
  }
  if (call.request.headers.get("Accept").value_or("").find("text/event-stream") !=
      std::string_view::npos) {
    co_return event_stream(parts.journal, parts.timers, parts.clock, std::move(query));
  }
  const auto page = co_await event_page(parts.journal, parts.timers, parts.clock, std::move(query));
  co_return page ? json_answer(200, *page) : problem_of(page.error());
}

http::Response get_openapi(const ApiParts& /*parts*/, const Call& /*call*/) {
  return json_answer(200, openapi_document(VERGER_VERSION));
}

http::Response get_health(const ApiParts& parts, const Call& /*call*/) {
  return json_answer(
      200,
      {{"status", "ok"}, {"version", VERGER_VERSION}, {"controller_epoch", parts.epoch.value()}});
}

}  // namespace

std::span<const Route> event_routes() {
  using enum ApiRole;
  static constexpr Route kRoutes[] = {
      {"GET", "/events", kViewer, "getEvents",
       "The journal's events that the role may see; server-sent where asked for", 200, "", "Events",
       "after run wait", get_events},
      {"GET", "/openapi.json", kNobody, "getOpenApi", "This document", 200, "", "Any", "",
       get_openapi},
      {"GET", "/health", kNobody, "getHealth", "Whether the controller answers", 200, "", "Health",
       "", get_health},
  };
  return kRoutes;
}

}  // namespace verger::controller
