#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api.h"
#include "controller/api/members.h"

// /admin: the journal's size and compaction.
namespace verger::controller {
namespace {

using nlohmann::json;

json view_of(const JournalSize& size) {
  return {{"events", size.events}, {"bytes", size.bytes}, {"bytes_in_use", size.bytes_in_use}};
}

json view_of(const Compacted& compacted) {
  return {{"removed",
           {{"events", compacted.events()},
            {"progress", compacted.progress},
            {"answers", compacted.answers},
            {"plans", compacted.plans},
            {"schedules", compacted.schedules},
            {"run_details", compacted.run_details},
            {"runs", compacted.runs},
            {"audit", compacted.audit},
            {"seals", compacted.seals},
            {"records", compacted.records}}},
          {"archived", compacted.archived},
          {"before", view_of(compacted.before)},
          {"after", view_of(compacted.after)}};
}

}  // namespace

net::awaitable<http::Response> Api::journal(http::Request request, http::Target target,
                                            std::string by) {
  if (parts_.retention == nullptr) {
    co_return no_route(request);
  }
  if (target.segments[3] == "compact") {
    const auto body = parse_body(request.body);
    if (!body) {
      co_return problem_of(body.error());
    }
    Members members(*body);
    auto reason = members.text("reason");
    members.refuse_others();
    if (members.wrong()) {
      co_return problem_of(*members.wrong());
    }
    const auto done = co_await parts_.retention->compact(std::move(by), std::move(reason));
    if (!done && done.error().code == Errc::kConflict) {
      co_return problem(409, "compaction_active", done.error().message);
    }
    co_return done ? json_answer(200, view_of(*done)) : problem_of(done.error());
  }
  const auto size = parts_.retention->size();
  if (!size) {
    co_return problem_of(size.error());
  }
  auto out = view_of(*size);
  const auto status = parts_.retention->status();
  out["removed"] = status.removed;
  out["compacted_at"] = status.ended ? json(format_ticks(*status.ended)) : json();
  co_return json_answer(200, out);
}

}  // namespace verger::controller
