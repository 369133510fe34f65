#pragma once

#include <chrono>
#include <memory>
#include <string>

#include <nlohmann/json_fwd.hpp>

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
};

nlohmann::json to_json(const JournalEvent& event);

/// One page of at most 500 events, waiting up to `query.wait` for the first. What waits is woken by
/// the journal; `timers` are only for the end of the wait.
net::awaitable<Result<nlohmann::json>> event_page(Journal& journal, http::Timers& timers,
                                                  Clock& clock, EventQuery query);

/// An endless answer of server-sent events; an id is the journal's sequence. A comment every
/// 15 seconds keeps the connection alive.
http::Response event_stream(Journal& journal, http::Timers& timers, Clock& clock, EventQuery query);

}  // namespace verger::controller
