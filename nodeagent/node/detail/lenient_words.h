#pragma once

#include <optional>
#include <string_view>

#include <nlohmann/json_fwd.hpp>

#include "engine/base/uuid.h"

/// What the server's libraries read more generously than they write.
namespace verger::node {

/// Equal but for the case of ASCII letters.
bool same_word(std::string_view a, std::string_view b);
/// The member of a JSON object with that name, else the first one with that name in another case;
/// nullptr: neither, or no object.
const nlohmann::ordered_json* member_of(const nlohmann::ordered_json& object,
                                        std::string_view name);
/// 8-4-4-4-12 hexadecimal digits, the same without dashes, or the former in braces or parentheses;
/// spaces around it are allowed.
std::optional<Uuid> parse_guid(std::string_view text);

}  // namespace verger::node
