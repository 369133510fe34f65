#pragma once

#include <string_view>
#include <vector>

#include "engine/base/random.h"
#include "engine/index/entry.h"
#include "engine/tool/detail/workload_plan.h"

namespace verger::tool {

/// The index of a workload: one table, as a rebuild would leave it. Of the events only positions
/// are kept, since their order in a table follows from the plan.
class WorkloadIndex {
 public:
  WorkloadIndex(const Workload& workload, const WorkloadPlan& plan);
  void add_event(std::uint64_t stream, std::uint64_t number, LogPosition position) {
    last_ = std::max(last_, position);
    if (!positions_.empty()) {
      positions_[plan_.first_event(stream) + number] = position;
    }
  }
  /// Such an event comes soon: where its position goes is nearly always far away in memory, and
  /// waiting for that would be a sixth of all work.
  void expect_event(std::uint64_t stream, std::uint64_t number) const {
    if (!positions_.empty() && number < plan_.events_of(stream)) {
      __builtin_prefetch(&positions_[plan_.first_event(stream) + number], 1);
    }
  }
  /// Every other entry.
  void add(std::string_view stream, EventNumber number, LogPosition position);
  /// Writes table, filters and map; the number of entries.
  Result<std::uint64_t> write(FileSystem& files, const Path& directory, Random& random);

 private:
  const Workload& workload_;
  const WorkloadPlan& plan_;
  std::vector<LogPosition> positions_;
  std::vector<index::IndexEntry> others_;
  LogPosition last_ = kNoPosition;
};

}  // namespace verger::tool
