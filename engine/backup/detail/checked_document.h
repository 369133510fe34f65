#pragma once

#include <exception>
#include <string>
#include <string_view>

#include <nlohmann/json.hpp>

#include "engine/base/bytes.h"
#include "engine/base/result.h"

namespace verger::backup::detail {

/// A document that carries its own SHA-256: the line "<head> 1 sha256 <64 digits>", then JSON.
struct DocumentKind {
  std::string_view head;  ///< "verger-backup-manifest"
  std::string_view noun;  ///< for messages: "manifest"
};

std::string encode_document(const DocumentKind& kind, const nlohmann::ordered_json& body);

/// The parsed body. Errors: kCorruption (any byte differs from what was written), kUnsupported (a
/// newer version).
Result<nlohmann::ordered_json> parse_document(const DocumentKind& kind, ByteView bytes);

Error damaged_document(const DocumentKind& kind, std::string_view what);

/// `read` makes the value of the body; what it throws is damage of the document.
template <class Read>
auto decode_document(const DocumentKind& kind, ByteView bytes, Read read)
    -> Result<decltype(read(nlohmann::ordered_json()))> {
  VERGER_TRY(const auto body, parse_document(kind, bytes));
  try {
    return read(body);
  } catch (const std::exception& error) {
    return damaged_document(kind, error.what());
  }
}

}  // namespace verger::backup::detail
