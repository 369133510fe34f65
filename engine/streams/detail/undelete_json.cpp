#include "engine/streams/detail/undelete_json.h"

#include <nlohmann/json.hpp>

#include "engine/base/json_depth.h"

namespace verger::streams::detail {

Bytes undelete_json(ByteView metadata, EventNumber first) {
  auto json = nlohmann::ordered_json::object();
  if (json_depth(as_text(metadata)) <= kMaxJsonDepth) {
    json = nlohmann::ordered_json::parse(as_text(metadata), nullptr, /*allow_exceptions=*/false);
  }
  if (!json.is_object()) {
    // Nothing that could be kept is readable here (the server's reader is more lenient).
    json = nlohmann::ordered_json::object();
  }
  json["$tb"] = first.value();
  const auto text = json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  const auto bytes = as_bytes(text);
  return {bytes.begin(), bytes.end()};
}

}  // namespace verger::streams::detail
