#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "controller/api/role.h"
#include "controller/journal/journal.h"
#include "nodeagent/http/message.h"
#include "nodeagent/http/timers.h"

namespace verger::controller {

/// Which events of the journal a client wants.
struct EventQuery {
  Sequence after{0};
  std::string stream;    ///< empty: all
  Revision revision{0};  ///< up to which `stream` has been read
  std::chrono::seconds wait{0};
  ApiRole role = ApiRole::kViewer;  ///< of the caller; see may_see()
};

/// Whether a caller with `role` may see the events of `stream`. What people and policies do is
/// for all; the audit and tokens are an admin's; what is kept for the controller's own use
/// (answers to idempotency keys, seals of snapshots) for no caller. A stream that is not known here
/// is an admin's.
bool may_see(ApiRole role, std::string_view stream);

/// Without what tokens are checked by (salt, hash).
nlohmann::json to_json(const JournalEvent& event);

/// One page of at most 500 events, waiting up to `query.wait` for the first. What waits is woken by
/// the journal; `timers` are only for the end of the wait.
net::awaitable<Result<nlohmann::json>> event_page(Journal& journal, http::Timers& timers,
                                                  Clock& clock, EventQuery query);

/// An endless answer of server-sent events; an id is the journal's sequence. A comment every
/// 15 seconds keeps the connection alive.
http::Response event_stream(Journal& journal, http::Timers& timers, Clock& clock, EventQuery query);

}  // namespace verger::controller
