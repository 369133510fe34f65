#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "engine/base/digest.h"
#include "engine/base/file_system.h"
#include "engine/base/result.h"
#include "engine/base/types.h"

namespace verger::redaction {

/// A redaction that was made, as nodes that get the data later need it. Nothing of what the event
/// held is in it.
struct ListedRedaction {
  std::string stream;
  EventNumber number;  ///< -1: of a transaction that was never committed
  LogPosition position;
  bool metadata = false;  ///< blanked, too
  Sha256Digest digest{};  ///< blanked_digest() of the record
  friend bool operator==(const ListedRedaction&, const ListedRedaction&) = default;
};

/// Errors: kUnsupported (a newer version), kCorruption; each names the line. Format:
/// docs/formats/redactions.md.
Result<std::vector<ListedRedaction>> decode_list(std::string_view text);
std::string encode_list(const std::vector<ListedRedaction>& list);

/// An empty list where the file is missing.
Result<std::vector<ListedRedaction>> read_list(FileSystem& files, const Path& path);
/// Adds what the list in the file does not have yet, durably; the file is made when it is missing.
/// An entry with the position of an older one replaces that one when it blanks more.
Result<void> append_to_list(FileSystem& files, const Path& path,
                            const std::vector<ListedRedaction>& more);

}  // namespace verger::redaction
