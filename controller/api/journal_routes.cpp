#include <nlohmann/json.hpp>

#include "controller/api/answers.h"
#include "controller/api/api_parts.h"
#include "controller/api/members.h"
#include "controller/api/routes.h"

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
            {"notifications", compacted.notifications},
            {"seals", compacted.seals},
            {"records", compacted.records}}},
          {"archived", compacted.archived},
          {"before", view_of(compacted.before)},
          {"after", view_of(compacted.after)}};
}

Result<http::Response> get_journal(const ApiParts& parts, const Call& call) {
  if (parts.retention == nullptr) {
    return no_route(call.request);
  }
  VERGER_TRY(const auto size, parts.retention->size());
  auto out = view_of(size);
  const auto status = parts.retention->status();
  out["removed"] = status.removed;
  out["compacted_at"] = status.ended ? json(format_ticks(*status.ended)) : json();
  return json_answer(200, out);
}

net::awaitable<Result<http::Response>> compact_journal(const ApiParts& parts, Call call) {
  if (parts.retention == nullptr) {
    co_return no_route(call.request);
  }
  VERGER_CO_TRY(const auto body, parse_body(call.body()));
  Members members(body);
  auto reason = members.text("reason");
  VERGER_CO_RETURN_IF_ERROR(members.finish());
  const auto done = co_await parts.retention->compact(call.by(), std::move(reason));
  if (!done && done.error().code == Errc::kConflict) {
    co_return problem(409, "compaction_active", done.error().message);
  }
  co_return done ? json_answer(200, view_of(*done)) : problem_of(done.error());
}

}  // namespace

std::span<const Route> journal_routes() {
  using enum ApiRole;
  static constexpr Route kRoutes[] = {
      {"GET", "/admin/journal", kAdmin, "getJournal", "What the journal takes", 200, "", "Journal",
       "", get_journal},
      {"POST", "/admin/compact", kAdmin, "compactJournal",
       "Remove from the journal what is not kept any longer", 200, "Empty", "Compaction", "",
       compact_journal},
  };
  return kRoutes;
}

}  // namespace verger::controller
