#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "engine/base/result.h"

/// What an agent finds a scavenge would remove (docs/formats/agent-interface.md, "The estimate"):
///   GET /agent/v1/scavenge/estimate?threshold=N&enough=BYTES    ScavengeEstimate
namespace verger::api {

struct ScavengeEstimate {
  std::int64_t removed_bytes = -1;
  std::int64_t removed_records = -1;
  bool at_least = false;     ///< it ended once that was enough: more would go
  std::int64_t seconds = 0;  ///< that it took
  friend bool operator==(const ScavengeEstimate&, const ScavengeEstimate&) = default;
};
std::string to_text(const ScavengeEstimate& estimate);
/// Error: kCorruption.
Result<ScavengeEstimate> parse_scavenge_estimate(std::string_view body);

}  // namespace verger::api
