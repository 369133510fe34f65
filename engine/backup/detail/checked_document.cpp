#include "engine/backup/detail/checked_document.h"

#include <fmt/format.h>

#include "engine/base/digest.h"
#include "engine/base/file_system.h"
#include "engine/base/json_depth.h"

namespace verger::backup::detail {

std::string encode_document(const DocumentKind& kind, const nlohmann::ordered_json& body) {
  // Names of files need not be UTF-8.
  const auto text =
      body.dump(1, ' ', false, nlohmann::ordered_json::error_handler_t::replace) + "\n";
  return fmt::format("{} 1 sha256 {}\n{}", kind.head, to_hex(sha256(as_bytes(text))), text);
}

Error damaged_document(const DocumentKind& kind, std::string_view what) {
  return {Errc::kCorruption, fmt::format("the {} is damaged: {}", kind.noun, what)};
}

Result<nlohmann::ordered_json> parse_document(const DocumentKind& kind, ByteView bytes) {
  const auto text = as_text(bytes);
  const auto end = text.find('\n');
  const auto line = text.substr(0, end);
  const auto head = fmt::format("{} 1 sha256 ", kind.head);
  if (end == std::string_view::npos || !line.starts_with(head)) {
    return line.starts_with(fmt::format("{} ", kind.head)) &&
                   !line.starts_with(fmt::format("{} 1 ", kind.head))
               ? Error{Errc::kUnsupported,
                       fmt::format("the {} was written by a newer version: use that one",
                                   kind.noun)}
               : damaged_document(kind,
                                  fmt::format("its first line is not that of a {}", kind.noun));
  }
  const auto body = text.substr(end + 1);
  if (line.substr(head.size()) != to_hex(sha256(as_bytes(body)))) {
    return damaged_document(kind, "its bytes do not have the SHA-256 of its first line");
  }
  if (json_depth(body) > kMaxJsonDepth) {
    return damaged_document(kind, "it is nested too deeply");
  }
  auto parsed = nlohmann::ordered_json::parse(body, nullptr, /*allow_exceptions=*/false);
  if (parsed.is_discarded()) {
    return damaged_document(kind, "it is not JSON");
  }
  return parsed;
}

}  // namespace verger::backup::detail
