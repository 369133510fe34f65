#include <string_view>

#include "nodeagent/http/base64.h"
#include "nodeagent/http/client.h"
#include "nodeagent/http/detail/wire.h"
#include "nodeagent/http/frame_transport.h"
#include "nodeagent/http/message.h"

namespace {

using namespace verger;  // NOLINT(google-build-using-namespace)

constexpr std::size_t kHeaderLimit = 4096;
constexpr std::size_t kBodyLimit = 8192;

/// Text that was taken over from outside into a header stays in its line.
void expect_one_head(std::string_view head) {
  const auto end = head.find("\r\n\r\n");
  if (end == std::string_view::npos || end + 4 != head.size()) {
    __builtin_trap();
  }
}

}  // namespace

/// Whole requests and answers, and their parts: targets, addresses, base64, the first frame of a
/// connection.
extern "C" int LLVMFuzzerTestOneInput(const unsigned char* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  if (const auto target = http::parse_target(text)) {
    static_cast<void>(target->parameter("wait"));
  }
  const auto endpoint = http::parse_endpoint(text);
  static_cast<void>(http::decode_hello(as_bytes(text)));
  static_cast<void>(http::base64_decode(text));
  if (const auto request = http::decode_request(text, kHeaderLimit, kBodyLimit)) {
    if (request->body.size() > kBodyLimit) {
      __builtin_trap();
    }
    static_cast<void>(http::parse_target(request->target));
    auto passed_on = *request;
    passed_on.body.clear();
    expect_one_head(http::request_bytes(http::Endpoint{.host = "node", .port = 1}, passed_on));
  }
  for (const bool head_request : {false, true}) {
    if (const auto response = http::decode_response(text, head_request, kBodyLimit)) {
      if (response->body.size() > kBodyLimit) {
        __builtin_trap();
      }
      expect_one_head(http::response_head(*response, response->body.size(), false, true));
    }
  }
  if (endpoint) {
    expect_one_head(http::request_bytes(*endpoint, {}));
  }
  return 0;
}
