#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/base/bytes.h"
#include "engine/base/types.h"

namespace verger::streams {

struct StreamAcl {
  std::optional<std::vector<std::string>> read, write, remove, metadata_read, metadata_write;
};

/// The limits and rights of a stream; empty when nothing applies.
struct StreamMetadata {
  std::optional<std::int64_t> max_count;        ///< > 0
  std::optional<std::int64_t> max_age_seconds;  ///< > 0
  std::optional<std::int64_t> truncate_before;  ///< >= 0; INT64_MAX = soft-deleted
  std::optional<StreamAcl> acl;
  /// Number of the metadata event; -1 when there is none.
  EventNumber number{-1};

  [[nodiscard]] bool soft_deleted() const { return truncate_before == kDeletedStream.value(); }
};

/// Reads a metadata event's data as leniently and as strictly as the server: anything it would
/// refuse makes everything empty (docs/formats/scavenge.md, "Metadata"). `record_version` 0 widens
/// $tb. Never fails.
StreamMetadata parse_metadata(ByteView json, std::uint8_t record_version);

}  // namespace verger::streams
