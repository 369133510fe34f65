#include "planner/restore/redact_again.h"

#include "engine/base/quantities.h"
#include "planner/detail/text.h"
#include "planner/restore/restore_steps.h"

namespace verger::planner::detail {

Step redact_again_step(const std::string& node, std::string_view scope, std::int64_t runs) {
  Step step;
  step.id = joined("redact-", node);
  step.kind = std::string(restore_steps::kRedactAgain);
  step.node = node;
  step.parameters = {{"runs", runs}, {"scope", scope}};
  step.act = joined("redact in the restored files of ", node, " what ", counted(runs, "run"),
                    " of this cluster redacted");
  step.observe = "its agent has read those that the backup has as redacted";
  step.reason = "a backup from before has their data, and the node would serve it";
  step.attempts = 3;
  step.expected = {500, 600'000};
  return step;
}

}  // namespace verger::planner::detail
