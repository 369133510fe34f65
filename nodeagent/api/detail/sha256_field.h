#pragma once

#include <algorithm>
#include <string_view>

#include "nodeagent/api/json_fields.h"

namespace verger::api {

/// A member that is empty, or a SHA-256 as text.
inline void check_sha256(Fields& fields, std::string_view name, std::string_view text) {
  const bool is_digest = text.size() == 64 && std::ranges::all_of(text, [](char c) {
                           return (c >= '0' && c <= '9') || (c >= 'a' && c <= 'f');
                         });
  if (!text.empty() && !is_digest) {
    fields.wrong(name, "64 lower-case hexadecimal digits were expected");
  }
}

}  // namespace verger::api
