#pragma once

#include <cstdint>
#include <string>

#include <nlohmann/json.hpp>

#include "engine/base/quantities.h"

namespace verger::cli {

/// Members of an answer, for printing: a missing or null one is empty, zero, or "-".
std::string text_of(const nlohmann::json& object, const char* name);
std::int64_t number_of(const nlohmann::json& object, const char* name);
/// False where it is missing, or no boolean: operations have results of their own by one name.
bool is_true(const nlohmann::json& object, const char* name);
/// An array member; an empty array where it is missing.
nlohmann::json list_of(const nlohmann::json& object, const char* name);
/// An object member; an empty object where it is missing or null.
nlohmann::json object_of(const nlohmann::json& object, const char* name);
/// With thousands separators; "-" where there is no number.
std::string optional_number(const nlohmann::json& object, const char* name);
/// Like optional_number, as "68.9 KiB".
std::string optional_bytes(const nlohmann::json& object, const char* name);
/// One of three words for true, false, and everything else.
std::string verdict(const nlohmann::json& object, const char* name, const char* yes, const char* no,
                    const char* unknown);

}  // namespace verger::cli
