#pragma once

#include <chrono>
#include <optional>
#include <string>

#include "engine/base/result.h"
#include "engine/base/types.h"
#include "nodeagent/http/message.h"

namespace verger::http {

/// "Sun, 06 Nov 1994 08:49:37 GMT". Error: kInvalidArgument, also of a day that no month has.
Result<Ticks> parse_http_date(const std::string& text);

/// How long a server asks to be left alone (Retry-After), never less than 0: a number of seconds, a
/// fraction counting as a whole one, or a date, which is compared with the answer's own Date where
/// it has one, else with `now`. nullopt: it does not ask, or cannot be understood.
std::optional<std::chrono::seconds> retry_after(const Response& answer, Ticks now);

}  // namespace verger::http
