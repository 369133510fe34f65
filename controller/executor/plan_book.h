#pragma once

#include <map>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "controller/journal/journal.h"
#include "engine/base/log.h"
#include "engine/base/result.h"
#include "planner/plan.h"

namespace verger::controller {

/// What a list of plans shows of one.
struct PlanSummary {
  std::string hash;
  std::string cluster;
  std::string made_by;
  Ticks made_at;
};

/// A plan as it was journaled: by whom and when it was made first.
struct StoredPlan {
  std::shared_ptr<const planner::Plan> plan;
  std::string made_by;
  Ticks made_at;
};

/// Every plan that was made, in the journal's streams "plan/HASH". Memory has their summaries, and
/// the plans made since the start; the journal is read for the others.
class PlanBook {
 public:
  /// `journal` and `log` outlive it.
  PlanBook(Journal& journal, ControllerEpoch epoch, Log& log)
      : journal_(&journal), epoch_(epoch), log_(&log) {}

  /// Errors: kCorruption, the journal's.
  Result<void> load();
  /// Journals it. One that is known stays `by` whom and when it was made first, with the estimates
  /// of the newer. Errors: the journal's; then it is not kept.
  Result<StoredPlan> add(planner::Plan plan, std::string by, Ticks now);
  /// By hash, or a prefix of at least 8 digits. Errors: kNotFound, kConflict (the prefix does not
  /// name one plan), kCorruption, the journal's.
  [[nodiscard]] Result<StoredPlan> find(std::string_view hash) const;
  /// The journal is about to lose it.
  void forget(std::string_view hash);
  /// Newest first; of all clusters where the name is empty.
  [[nodiscard]] std::vector<PlanSummary> list(std::string_view cluster) const;

 private:
  struct Known {
    PlanSummary summary;
    std::shared_ptr<const planner::Plan> plan;  ///< nullptr: only the journal has it
  };
  [[nodiscard]] Result<StoredPlan> read(const std::string& hash) const;
  void keep(const StoredPlan& stored);

  Journal* journal_;
  ControllerEpoch epoch_;
  Log* log_;
  std::map<std::string, Known, std::less<>> plans_;  ///< by hash
};

}  // namespace verger::controller
