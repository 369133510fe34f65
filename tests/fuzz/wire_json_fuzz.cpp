#include <string_view>

#include <nlohmann/json.hpp>

#include "nodeagent/api/agent.h"
#include "nodeagent/api/node.h"

/// Bodies of both interfaces, as a peer may send them.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace verger;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto facts = api::parse_node_facts(text)) {
    static_cast<void>(nlohmann::json::parse(api::to_text(*facts)));  // always JSON
  }
  static_cast<void>(api::parse_operation_status(text));
  static_cast<void>(api::parse_operation_request(text));
  static_cast<void>(api::parse_permit(text));
  static_cast<void>(api::parse_digest(text));
  static_cast<void>(api::parse_throttle(text));
  static_cast<void>(api::parse_gossip(text));
  static_cast<void>(api::parse_info(text));
  static_cast<void>(api::parse_current_scavenge(text));
  static_cast<void>(api::parse_scavenge_feed(text));
  static_cast<void>(api::parse_version(text));
  static_cast<void>(api::parse_node_state(text));
  return 0;
}
