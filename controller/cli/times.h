#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "engine/base/result.h"
#include "engine/base/types.h"

namespace verger::cli {

/// A time of an answer to the second, "2026-11-22T14:32:07Z"; "-" where there is none.
std::string time_of(const nlohmann::json& object, const char* name);
/// The same of a text as the API has it; empty stays empty.
std::string to_the_second(const std::string& time);
/// "45 s", "3 min", "2 h 5 min", "3 d 4 h".
std::string length_text(std::chrono::seconds length);
/// The same with one decimal below ten seconds: "1.5 s".
std::string fine_length_text(std::chrono::duration<double> length);
/// "45 s to 3 min"; one length where both read the same.
std::string range_text(std::chrono::seconds low, std::chrono::seconds high);

/// What a person means by a time to come: a length from `now` ("90m", "2h", "1d12h"), a time with
/// its zone ("2026-11-22T06:00:00Z", "…+01:00"), or a time of this machine ("2026-11-22T06:00",
/// "06:00": the next one). Error: kInvalidArgument, with what it takes.
Result<Ticks> parse_until(const std::string& text, Ticks now);

}  // namespace verger::cli
