#include <string_view>

#include "nodeagent/http/client.h"
#include "nodeagent/http/frame_transport.h"
#include "nodeagent/http/message.h"

extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  using namespace verger;  // NOLINT(google-build-using-namespace)
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto target = http::parse_target(text)) {
    static_cast<void>(target->parameter("wait"));
  }
  static_cast<void>(http::parse_endpoint(text));
  static_cast<void>(http::decode_hello(as_bytes(text)));
  return 0;
}
