#include <iterator>

#include "nodeagent/http/detail/wire.h"
#include "nodeagent/node/atom_format.h"
#include "nodeagent/node/negotiation.h"

/// The input is a request to a node. What becomes of it before anything is looked up: the wanted
/// and given formats, the parts of its address, the events in its body.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace verger;  // NOLINT(google-build-using-namespace)
  using node::Format;
  constexpr Format kFormats[] = {Format::kJson,     Format::kText,      Format::kXml,
                                 Format::kAtomJson, Format::kEventJson, Format::kEventsJson,
                                 Format::kBytes};
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto request = http::decode_request(text, 4096, 16384);
  if (!request) {
    // Without its head it is still a body.
    static_cast<void>(node::atom::parse_events(std::string(text), false));
    return 0;
  }
  if (const auto target = http::parse_target(request->target)) {
    static_cast<void>(node::negotiate(*request, *target, kFormats));
    static_cast<void>(node::atom::embed_of(*target));
    for (const auto& segment : target->segments) {
      static_cast<void>(node::atom::parse_position(segment));
    }
  }
  static_cast<void>(node::content_format(*request, kFormats));
  for (const bool metadata : {false, true}) {
    static_cast<void>(node::atom::parse_events(request->body, metadata));
  }
  return 0;
}
