#include "nodeagent/api/scavenge_estimate.h"

#include "nodeagent/api/detail/field_table.h"

namespace verger::api {

static constexpr auto rows_of(const ScavengeEstimate* /*type*/) {
  using T = ScavengeEstimate;
  return std::tuple{needed_row("removedBytes", &T::removed_bytes),
                    needed_row("removedRecords", &T::removed_records), row("atLeast", &T::at_least),
                    row("seconds", &T::seconds)};
}

std::string to_text(const ScavengeEstimate& estimate) { return text_of_rows(estimate); }
Result<ScavengeEstimate> parse_scavenge_estimate(std::string_view body) {
  return parse_rows<ScavengeEstimate>(body, "estimate of a scavenge", Errc::kCorruption);
}

}  // namespace verger::api
