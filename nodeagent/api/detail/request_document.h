#pragma once

#include <string_view>

#include "engine/base/result.h"
#include "nodeagent/api/json_view.h"

namespace verger::api {

/// What a client has sent: text that is no JSON is its mistake (kInvalidArgument), not damage.
inline Result<JsonDocument> request_document(std::string_view text, std::string_view what) {
  auto document = JsonDocument::parse(text, what);
  if (!document) {
    return Error{Errc::kInvalidArgument, document.error().message};
  }
  return document;
}

}  // namespace verger::api
