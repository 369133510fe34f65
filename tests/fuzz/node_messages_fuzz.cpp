#include <nlohmann/json.hpp>

#include "nodeagent/node/election_json.h"
#include "nodeagent/node/gossip.h"
#include "nodeagent/node/replication_messages.h"

/// What another node may send: replication frames, gossip, elections. A frame that decodes encodes
/// to one that decodes.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace verger;  // NOLINT(google-build-using-namespace)
  const ByteView bytes(reinterpret_cast<const std::byte*>(data), size);
  if (const auto message = node::replication::decode(bytes)) {
    if (!node::replication::decode(node::replication::encode(*message))) {
      __builtin_trap();
    }
  }
  if (const auto document = api::JsonDocument::parse(as_text(bytes), "member")) {
    static_cast<void>(node::parse_member(document->root()));
  }
  const auto json = nlohmann::json::parse(as_text(bytes), nullptr, false);
  if (!json.is_discarded()) {
    static_cast<void>(node::parse_election_message(json));
  }
  return 0;
}
