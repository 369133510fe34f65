#include <algorithm>
#include <fmt/format.h>

#include "nodeagent/http/frame_transport.h"

// The first bytes of a connection, without the connection.
namespace verger::http {
namespace {

constexpr std::string_view kMagic = "VGRFRAME";

/// How the start of a foreign protocol looks to a person.
std::string describe(ByteView bytes) {
  const auto text = as_text(bytes);
  for (const std::string_view http : {"HTTP/", "GET ", "POST ", "HEAD ", "PUT "}) {
    if (text.starts_with(http)) {
      return "HTTP";
    }
  }
  if (bytes.size() >= 3 && bytes[0] == std::byte{0x16} && bytes[1] == std::byte{3}) {
    return "TLS";
  }
  if (text.starts_with("PRI * ")) {
    return "HTTP/2";
  }
  std::string out = "bytes";
  for (const auto byte : bytes.first(std::min<std::size_t>(bytes.size(), FrameHello::kSize))) {
    out += fmt::format(" {:02x}", static_cast<unsigned>(byte));
  }
  return out;
}

}  // namespace

Bytes encode_hello(const FrameHello& hello) {
  Bytes out;
  append_bytes(out, as_bytes(kMagic));
  append_le(out, hello.version);
  append_le(out, hello.status);
  return out;
}

Result<FrameHello> decode_hello(ByteView bytes) {
  if (bytes.size() < FrameHello::kSize || !same_bytes(bytes.first(8), as_bytes(kMagic))) {
    return Error{Errc::kUnsupported,
                 fmt::format("this is not Verger's replication protocol but {}; a cluster of "
                             "Verger nodes cannot be mixed with other servers",
                             describe(bytes))};
  }
  return FrameHello{.version = load_le<std::uint16_t>(bytes.data() + 8),
                    .status = load_le<std::uint16_t>(bytes.data() + 10)};
}

}  // namespace verger::http
